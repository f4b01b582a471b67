"""Where the decompositions of this package register themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])

#: Op overload -> decomposition. A decomposition returns NotImplemented to leave a call as it is.
REGISTRY: dict[torch._ops.OpOverload, Callable[..., Any]] = {}


def decomposition(*ops: torch._ops.OpOverload) -> Callable[[F], F]:
    """Register a function as the decomposition of op overloads.

    Raises:
        ValueError: an overload has a decomposition here already.
    """

    def register(function: F) -> F:
        for op in ops:
            if op in REGISTRY:
                raise ValueError(f"{op} has two decompositions")
            REGISTRY[op] = function
        return function

    return register
