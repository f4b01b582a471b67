"""Room for the interpreter's frames, for functions that call small ones very often."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Slots of a frame that take more than half of a piece of 512 KiB: the rest is for what it calls.
_SLOTS = 34_000


def with_large_frame(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function below which frames lie in one piece of memory.

    CPython (3.11 and later) keeps frames in pieces of 16 KiB. A call that needs a new piece gets it
    from the operating system, and gives it back when it returns. If small functions are called
    where a piece ends, at a depth that only chance decides, each call takes ten times as long:
    a third of the time of a compilation, as it happened. A frame that is large itself gets a large
    piece, in which those of all functions below have room.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__code__ = call.__code__.replace(co_stacksize=_SLOTS)
    return wraps(function)(call)
