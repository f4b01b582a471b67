"""A compiled layer of Keras 3: to Keras, and to other layers that hold it, the layer itself."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from polyblocks_tf.function import CompiledFunction
from polyblocks_tf.models.masks import MASKS, masks_of, with_attributes, with_masks

#: Methods of Keras that compute with tensors.
_COMPUTING = ("call", "train_step", "test_step", "predict_step", "compute_loss")


def is_keras_layer(function: Any) -> bool:
    """Whether it is a layer or model of Keras 3 whose backend is TensorFlow."""
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(function, getattr(keras, "Layer", ())):
        return False
    return bool(keras.backend.backend() == "tensorflow")


class CompiledKerasLayer(CompiledFunction):
    """The compiled form of a Keras layer.

    It calls itself an instance of the layer's class. So a layer or model that has it as an
    attribute has its weights, losses and metrics, and saves them. A method of the user's runs
    uncompiled where it computes with tensors, and that is said.
    """

    #: Set where all of the attributes are: later ones are the layer's.
    _complete = False

    def __init__(self, function: Any, *arguments: Any) -> None:
        super().__init__(function, *arguments)
        self._python_function = with_masks(function)
        self._complete = True

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._function) if "_function" in self.__dict__ else type(self)

    def __dir__(self) -> Iterable[str]:
        """The layer's, in which Keras looks for what to save: not the original once more."""
        return [*dir(self._function), "polyblocks_options", "polyblocks_report"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        masks = masks_of(args)
        if masks is not None and kwargs.get("mask") is None and self._input_signature is None:
            kwargs = {**kwargs, MASKS: masks}
        if kwargs and isinstance(kwargs.get("training"), EagerTensor | np.ndarray | np.generic):
            kwargs = {**kwargs, "training": bool(kwargs["training"])}
        return with_attributes(super().__call__(*args, **kwargs))

    def quantize(self, *args: Any, **kwargs: Any) -> Any:
        """``quantize`` of the layer or model; what was compiled before is forgotten."""
        try:
            return self._function.quantize(*args, **kwargs)
        finally:
            with self._lock:
                self._forget()

    def _forget(self) -> None:
        """Trace and compile anew at the next call."""
        for known in (self._variants, self._policies, self._calls, self._symbolic):
            known.clear()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_function" not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        value = getattr(self._function, name)
        return self._said(name, value) if _is_of_user(name, value) else value

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the layer (``trainable``), where it would be read, too."""
        own = not self._complete or name in self.__dict__ or hasattr(type(self), name)
        if own or name.startswith("__"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._function, name, value)

    def _said(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that says that it is not compiled, where it computes with tensors."""

        def say() -> None:
            self._report.not_compiled(
                name,
                f"only the call of {self._name} is compiled; compile its method, too: "
                f"polyblocks_jit_tf({self._name}.{name})",
                strict=self._options.strict_target,
            )

        @functools.wraps(method)
        def run(*args: Any, **kwargs: Any) -> Any:
            given = _holds_tensors((args, kwargs))
            if given:
                say()
            result = method(*args, **kwargs)
            if not given and _holds_tensors(result):
                say()
            return result

        return run


def _is_of_user(name: str, value: Any) -> bool:
    """Whether it is a method of the user's own, or one of Keras's that computes, overridden.

    Others of Keras's (``load_own_variables``) are called by Keras, wherever they are defined.
    """
    function = getattr(value, "__func__", None)
    if function is None or name.startswith("_") or _is_of_keras(function):
        return False
    known = any(name in vars(base) for base in type(value.__self__).__mro__ if _is_of_keras(base))
    return not known or name in _COMPUTING


def _is_of_keras(definition: Any) -> bool:
    module = str(getattr(definition, "__module__", None) or "")
    return module.split(".")[0] in ("keras", "tensorflow", "builtins")


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(part, tf.Tensor | np.ndarray) for part in tf.nest.flatten(value))
