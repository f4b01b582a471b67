"""Where the decompositions of this package register themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])

#: Op overload -> decomposition. A decomposition returns NotImplemented to leave a call as it is.
REGISTRY: dict[torch._ops.OpOverload, Callable[..., Any]] = {}
#: Those of ops that round to 16 bits on the way, where their decompositions say so.
ROUNDED: set[torch._ops.OpOverload] = set()


def decomposition(*ops: torch._ops.OpOverload, rounds: bool = False) -> Callable[[F], F]:
    """Register a function as the decomposition of op overloads.

    Args:
        ops: the overloads.
        rounds: whether it says itself what 16-bit operands are computed in, and where results are
            rounded on the way; see :mod:`polyblocks_torch.importing.opmath`.

    Raises:
        ValueError: an overload has a decomposition here already.
    """

    def register(function: F) -> F:
        for op in ops:
            if op in REGISTRY:
                raise ValueError(f"{op} has two decompositions")
            REGISTRY[op] = function
        ROUNDED.update(ops if rounds else ())
        return function

    return register
