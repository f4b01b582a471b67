"""Tracing a function of structures as one of flat tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import OptionalXlaContext

from polyblocks_tf.numbers.number import Trace
from polyblocks_tf.tracing.structure import Arguments


def trace(
    function: Callable[..., Any],
    arguments: Arguments,
    specs: Sequence[tf.TensorSpec],
    autograph: bool,
    places: Sequence[int] = (),
    numbers: Trace | None = None,
) -> Any:
    """Trace a function of structures as one of flat tensors.

    Args:
        function: what is traced.
        arguments: of a call.
        specs: of its arrays, then of the scalars that stand for numbers.
        autograph: whether Python's control flow on tensors is translated.
        places: of these numbers.
        numbers: what they are part of.

    Returns:
        A ConcreteFunction; its ``structured_outputs`` are in the user's structure.
    """

    def flat(*tensors: Any) -> Any:
        count = len(tensors) - len(places)
        changing: dict[int, Any] = {}
        if numbers is not None:
            changing = {
                place: numbers.number(place, arguments.kinds[place][1], tensor)
                for place, tensor in zip(places, tensors[count:], strict=True)
            }
        args, kwargs = arguments.rebuild(tensors[:count], changing)
        # Lists that loops fill then have sizes that are constants.
        with OptionalXlaContext(True):
            return function(*args, **kwargs)

    return tf.function(flat, autograph=autograph).get_concrete_function(*specs)


def scalars(arguments: Arguments, places: Sequence[int]) -> list[Any]:
    """Numbers of a call as arrays: no rounding takes place before a dtype is wanted."""
    wide = {float: np.float64, int: np.int64}
    return [np.array(arguments.numbers[p], wide[arguments.kinds[p][1]]) for p in places]
