"""Arrays that a program takes as arguments, however small they are.

A framework may put small arrays that a function holds into the program as constants. Those that are
bound by name when a file is loaded must stay arguments, or the file would keep their first values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_weights: ContextVar[tuple[Any, ...]] = ContextVar("polyblocks_weight_arguments", default=())


@contextmanager
def taken_as_arguments(arrays: Iterable[Any]) -> Iterator[None]:
    """Compile programs inside of the block without storing these arrays in them."""
    token = _weights.set(tuple(arrays))
    try:
        yield
    finally:
        _weights.reset(token)


def weight_arguments() -> tuple[Any, ...]:
    """The arrays of :func:`taken_as_arguments`; none outside of it."""
    return _weights.get()
