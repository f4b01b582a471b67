"""A compiled model of Keras 3: what ``fit``, ``evaluate`` and ``predict`` do is compiled, too."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from polyblocks_tf.models.compiled_layer import CompiledKerasLayer, is_keras_layer
from polyblocks_tf.models.steps import Steps


def is_keras_model(function: Any) -> bool:
    """Whether it is a model of Keras 3 whose backend is TensorFlow."""
    return is_keras_layer(function) and isinstance(function, sys.modules["keras"].Model)


class CompiledModel(CompiledKerasLayer):
    """The compiled form of a Keras model.

    The steps of training, evaluation and prediction are compiled functions that share the model's
    report. Keras runs the rest: epochs, batches, callbacks. The original model stays as it is.
    """

    _known_steps: Steps | None = None

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """``Model.fit`` with a compiled training step, and evaluation step for validation."""
        with self._steps("fit"):
            return self._function.fit(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """``Model.evaluate`` with a compiled step."""
        with self._steps("evaluate"):
            return self._function.evaluate(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """``Model.predict`` with a compiled step."""
        with self._steps("predict"):
            return self._function.predict(*args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """``Model.train_on_batch``, compiled."""
        with self._steps("train_on_batch"):
            return self._function.train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """``Model.test_on_batch``, compiled."""
        with self._steps("test_on_batch"):
            return self._function.test_on_batch(*args, **kwargs)

    def predict_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """``Model.predict_on_batch``, compiled."""
        with self._steps("predict_on_batch"):
            return self._function.predict_on_batch(*args, **kwargs)

    def make_train_function(self, force: bool = False) -> Any:
        """``Model.make_train_function``; with ``force`` the compiled step is made anew, too."""
        return self._make("make_train_function", force)

    def make_test_function(self, force: bool = False) -> Any:
        """``Model.make_test_function``; with ``force`` the compiled step is made anew, too."""
        return self._make("make_test_function", force)

    def make_predict_function(self, force: bool = False) -> Any:
        """``Model.make_predict_function``; with ``force`` the compiled step is made anew, too."""
        return self._make("make_predict_function", force)

    def _make(self, maker: str, force: bool) -> Any:
        if force:
            with self._lock:
                self._known_steps = None
        return getattr(self._function, maker)(force)

    def _forget(self) -> None:
        super()._forget()
        self._known_steps = None

    @contextlib.contextmanager
    def _steps(self, how: str) -> Iterator[None]:
        """Have Keras run compiled steps; or say why it runs its own."""
        model = self._function
        with self._lock:
            steps = self._known_steps
            if steps is None or not steps.are_current():
                steps = Steps(model, self._name, self._options, self._report)
                self._known_steps = steps
        reason = steps.obstacle()
        if reason is not None:
            self._report.not_compiled(how, reason, strict=self._options.strict_target)
            yield
            return
        with steps.in_place(how):
            yield
