"""The steps of a Keras model (one batch of training, evaluation, prediction) as compiled functions.

Keras keeps each as a function in an attribute of the model, which it makes of the model's
step (``train_step``, ``test_step``, ``predict_step``) where it is None. Here others stand in these
attributes for the time of a call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from polyblocks.errors import InputError
from polyblocks.frontends.function_report import FunctionReport
from polyblocks.isolation import forks
from polyblocks.options import CompileOptions
from polyblocks_tf.function import CompiledFunction

#: Attribute of the model -> the method that is one step, and the one that makes the attribute.
_STEPS = {
    "train_function": ("train_step", "make_train_function"),
    "test_function": ("test_step", "make_test_function"),
    "predict_function": ("predict_step", "make_predict_function"),
}


class Steps:
    """The compiled steps of a model as it was configured by its ``compile``.

    Args:
        model: of Keras 3.
        name: what the user calls it, for reports.
        options: the checked options.
        report: receives what happens.
    """

    def __init__(
        self, model: Any, name: str, options: CompileOptions, report: FunctionReport
    ) -> None:
        self._model = model
        self._name = name
        self._options = options
        self._report = report
        self._lock = forks.rlock()
        self._users = 0
        self._saved: dict[str, Any] = {}
        self._ours: dict[str, Callable[[Any], Any]] = {}
        self._compiled: dict[str, Callable[[Any], Any]] = {
            attribute: self._step(attribute) for attribute in _STEPS
        }
        self._configuration = self._configured()

    def are_current(self) -> bool:
        """Whether the model is still configured as it was when these steps were made."""
        with self._lock:
            then, now = self._configuration, self._configured()
        return all(a is b for a, b in zip(then, now, strict=True))

    def _configured(self) -> list[Any]:
        """Objects that ``Model.compile`` makes anew, and Keras's own steps.

        Those are made anew by ``make_train_function(force=True)``, and dropped by ``quantize``.
        """
        model = self._model
        found = [getattr(model, "_loss_tracker", None), getattr(model, "optimizer", None)]
        for attribute in _STEPS:
            step = getattr(model, attribute, None)
            ours = self._users and step is self._ours[attribute]
            found.append(self._saved[attribute] if ours else step)
        return found

    def obstacle(self) -> str | None:
        """Why Keras has to run its own steps; None if nothing speaks against compiled ones."""
        model = self._model
        if getattr(model, "run_eagerly", False):
            return "the model is configured with run_eagerly=True; configure it without"
        if model._distribute_strategy is not None or tf.distribute.has_strategy():
            return "tf.distribute runs the steps of this model; build it outside of a strategy"
        for _, maker in _STEPS.values():
            if not getattr(type(model), maker).__module__.startswith("keras."):
                return f"{type(model).__name__} overrides {maker}; override train_step instead"
        return None

    @contextlib.contextmanager
    def in_place(self, how: str) -> Iterator[None]:
        """Have Keras find the compiled steps.

        Args:
            how: the method of the model that is called, for reports.
        """
        with self._lock:
            # Of calls at once, in threads or in each other, the first saves and the last restores.
            if not self._users:
                self._save(how)
            self._users += 1
            for attribute, run in self._ours.items():
                setattr(self._model, attribute, run)
                setattr(self._model, _STEPS[attribute][1], self._maker(attribute))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._restore()

    def _save(self, how: str) -> None:
        self._saved = {attribute: getattr(self._model, attribute, None) for attribute in _STEPS}
        self._ours = {
            "train_function": self._on_iterator("train_function", how),
            "test_function": self._on_iterator("test_function", how),
            "predict_function": self._on_batches("predict_function", how),
        }

    def _restore(self) -> None:
        model = self._model
        for attribute, function in self._saved.items():
            # Not where the model was configured anew meanwhile.
            if getattr(model, attribute) is self._ours[attribute]:
                setattr(model, attribute, function)
            delattr(model, _STEPS[attribute][1])

    def _maker(self, attribute: str) -> Callable[..., Any]:
        """The ``make_train_function`` that callbacks find: it, too, makes a compiled step."""

        def make(force: bool = False) -> Any:
            if force:
                self._compiled[attribute] = self._step(attribute)
                setattr(self._model, attribute, self._ours[attribute])
            return getattr(self._model, attribute)

        return make

    def _step(self, attribute: str) -> CompiledFunction:
        method, _ = _STEPS[attribute]
        step = getattr(self._model, method)

        @tf.autograph.experimental.do_not_convert
        def one_step(data: Any) -> Any:
            return step(data)

        one_step.__name__ = f"{self._name}.{method}"
        made = CompiledFunction(one_step, one_step, self._options, None, False)
        made._report = self._report
        return made

    def _on_iterator(self, attribute: str, how: str) -> Callable[[Any], Any]:
        """As Keras calls the steps of training and evaluation: the last of several results counts.

        Whether the data ends is known when the next batch is asked for.
        """

        def run(iterator: Any) -> Any:
            outputs = None
            for number in range(self._model.steps_per_execution):
                try:
                    data = next(iterator)
                except (StopIteration, tf.errors.OutOfRangeError):
                    if not number:
                        raise
                    break
                outputs = self._run(attribute, data, how)
            return outputs

        return run

    def _on_batches(self, attribute: str, how: str) -> Callable[[Any], Any]:
        """As Keras calls that of prediction: with a list of batches, whose results are joined."""

        def run(batches: Any) -> Any:
            found = [self._run(attribute, data, how) for data in batches]
            if len(found) == 1:
                return found[0]
            return tf.nest.map_structure(lambda *parts: tf.concat(parts, 0), *found)

        return run

    def _run(self, attribute: str, data: Any, how: str) -> Any:
        data = tf.nest.map_structure(
            lambda part: None if isinstance(part, tf.experimental.Optional) else part, data
        )
        try:
            return self._compiled[attribute](data)
        except InputError as error:
            # Keras takes more than arrays, sparse tensors for example.
            strict = self._options.strict_target
            self._report.not_compiled(how, str(error), strict=strict)
        return self._by_keras(attribute, data)

    def _by_keras(self, attribute: str, data: Any) -> Any:
        with self._lock:
            if not isinstance(self._compiled[attribute], _Uncompiled):
                # Not in the model's attribute, from which other threads run their steps.
                model: Any = _View(self._model)
                getattr(type(self._model), _STEPS[attribute][1])(model)
                made = _Uncompiled(getattr(model, attribute), attribute)
                self._compiled[attribute] = made
            step = self._compiled[attribute]
        return step(data)


class _View:
    """A model whose attributes can be set without setting them."""

    train_function = test_function = predict_function = None

    def __init__(self, model: Any) -> None:
        self._polyblocks_model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._polyblocks_model, name)


class _Uncompiled:
    """Keras's own step, called as a compiled one."""

    def __init__(self, function: Callable[..., Any], attribute: str) -> None:
        self._function = function
        self._takes_list = attribute == "predict_function"

    def __call__(self, data: Any) -> Any:
        return self._function([data] if self._takes_list else iter([data]))
