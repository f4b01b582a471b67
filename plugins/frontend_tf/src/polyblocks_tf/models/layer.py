"""A compiled model or layer as a layer of another Keras model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

if TYPE_CHECKING:
    from polyblocks_tf.function import CompiledFunction


def is_keras_tensor(value: Any) -> bool:
    """Whether it stands for a tensor in a functional model of Keras."""
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(value, getattr(keras, "KerasTensor", ()))


def infers_shapes() -> bool:
    """Whether Keras traces here to learn shapes, and will not run what it traces."""
    scope = sys.modules.get("keras.src.backend.common.symbolic_scope")
    return scope is not None and bool(scope.in_symbolic_scope())


def call_context() -> tuple[tuple[str, Any], ...] | None:
    """Arguments that layers inherit from the call of an outer one: ``training``, where it is set.

    None outside of such a call, and where it sets nothing.
    """
    state = sys.modules.get("keras.src.backend.common.global_state")
    context = None if state is None else state.get_global_attribute("current_call_ctx")
    if context is None:
        return None
    given = vars(context)
    if len(given) == 1:  # the entry layer alone
        return None
    return (
        tuple(
            (name, _hashable(given[name]))
            for name in sorted(given)
            if name != "entry_layer" and given[name] is not None
        )
        or None
    )


def _hashable(value: Any) -> Any:
    """A value that a call may set, tensors and arrays of one value as this."""
    if isinstance(value, EagerTensor):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        return value.item() if value.ndim == 0 else (value.shape, value.dtype, value.tobytes())
    if isinstance(value, tf.Tensor):  # of what is being traced
        return value.ref()
    return value if isinstance(value, Hashable) else repr(value)


def as_layer(function: CompiledFunction) -> Any:
    """A layer that calls a compiled model or layer, and has its weights.

    Called eagerly, as by the outer model, it runs compiled. In what Keras or TensorFlow trace it is
    a part of that.
    """
    original = function.polyblocks_original
    layer: Any = sys.modules["keras"].layers.Layer  # the program has imported it

    class CompiledLayer(layer):
        """A layer that stands for the compiled function in the outer model."""

        def __init__(self) -> None:
            super().__init__(name=f"compiled_{original.name}", dtype=original.dtype_policy)
            self.original = original  # Keras finds its weights here
            self.built = True
            self.supports_masking = original.supports_masking

        def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
            return original.compute_mask(inputs, previous_mask)

        def call(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        # Keras reads there whether to pass ``training`` and ``mask``.
        call.__signature__ = inspect.signature(type(original).call)  # type: ignore[attr-defined]

        def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
            if not original.built:
                original(*args, **kwargs)
            return original.compute_output_spec(*args, **kwargs)

        def get_config(self) -> Any:
            raise NotImplementedError(
                f"{self.name} cannot be saved: save the weights, or a model that holds "
                f"{original.name} itself instead of what was compiled of it"
            )

    return CompiledLayer()
