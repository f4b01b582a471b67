"""Masks of Keras: attributes of tensors, which a traced function neither takes nor returns.

So they are further arguments and results of what is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from polyblocks.frontends.partition import is_without_framework

#: The argument that holds the masks of the others. TensorFlow takes no name that begins with ``_``.
MASKS = "polyblocks_keras_masks"


class Masked(NamedTuple):
    """Results, and the masks of these in the order of ``tf.nest.flatten``; None: it has none."""

    outputs: Any
    masks: tuple[Any, ...]


def masks_of(values: Sequence[Any]) -> list[Any] | None:
    """The masks of tensors in some values, in the order of ``tf.nest.flatten``; None: no masks."""
    for value in values:
        if isinstance(value, tf.Tensor):
            if _mask(value) is not None:
                break
        elif isinstance(value, (list, tuple, dict)) and masks_of(tf.nest.flatten(value)):
            break
    else:
        return None
    return [
        _mask(value) if isinstance(value, tf.Tensor) else None for value in tf.nest.flatten(values)
    ]


def _mask(tensor: Any) -> Any:
    # To look for an attribute that a tensor lacks takes it microseconds.
    return vars(tensor).get("_keras_mask")


def with_masks(function: Callable[..., Any]) -> Callable[..., Any]:
    """A layer or model of Keras as a function that is traced.

    It takes the masks of its positional arguments as the argument :data:`MASKS`, and returns
    :class:`Masked` where a result has a mask.
    """

    def masked(*args: Any, **kwargs: Any) -> Any:
        _attach(args, kwargs.pop(MASKS, None))
        return _detached(function(*args, **kwargs))

    return masked


def with_attributes(result: Any) -> Any:
    """A call's result, with masks as attributes of the tensors."""
    if type(result) is not Masked:
        return result
    _attach(result.outputs, result.masks)
    return result.outputs


@tf.autograph.experimental.do_not_convert
def _attach(values: Any, masks: Sequence[Any] | None) -> None:
    if masks is not None:
        for value, mask in zip(tf.nest.flatten(values), masks, strict=True):
            if mask is not None:
                value._keras_mask = mask


@tf.autograph.experimental.do_not_convert
def _detached(outputs: Any) -> Any:
    masks = masks_of([outputs])
    # A program that is compiled ahead of time gives what is asked for alone.
    return outputs if masks is None or is_without_framework() else Masked(outputs, tuple(masks))
