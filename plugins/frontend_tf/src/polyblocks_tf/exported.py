"""Input signatures of TensorFlow's functions and models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction


def open_exported(function: Any) -> tuple[Callable[..., Any], Sequence[Any] | None]:
    """A function, and descriptions of its inputs.

    A ``tf.function`` has them in its ``input_signature``, a function that is traced in its
    signature, a Keras model in its ``inputs`` once it is built.
    """
    if isinstance(function, ConcreteFunction):
        args, kwargs = function.structured_input_signature
        return function, None if kwargs else _without_names(args)
    if isinstance(function, tf.keras.Model):
        inputs = getattr(function, "inputs", None)
        return function, [inputs[0] if len(inputs) == 1 else inputs] if inputs else None
    return function, getattr(function, "input_signature", None)


def _without_names(specs: Any) -> Any:
    """The names are those of placeholders, which a new trace gives itself."""
    return tf.nest.map_structure(
        lambda s: tf.TensorSpec(s.shape, s.dtype) if isinstance(s, tf.TensorSpec) else s, specs
    )
