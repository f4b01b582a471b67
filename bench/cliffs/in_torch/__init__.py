"""The operations in PyTorch: its peers, and the cases of this folder."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from bench.cliffs.case import Array, Case
from bench.cliffs.in_torch import (
    database,
    images,
    indexing,
    linear_algebra,
    losses,
    movement,
    rankings,
    sequences,
)
from bench.cliffs.table import OURS
from bench.predictions import of_last_call as report
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

__all__ = ["CASES", "PEERS", "arrays", "call", "exact", "forget", "operands", "report", "start"]

_FORWARD = (
    *database.CASES,
    *rankings.CASES,
    *movement.CASES,
    *indexing.CASES,
    *images.CASES,
    *sequences.CASES,
    *linear_algebra.CASES,
    *losses.CASES,
)
#: Those that say so are asked for their gradients as well.
CASES = _FORWARD + tuple(
    dataclasses.replace(case, name=f"{case.name}, gradients") for case in _FORWARD if case.gradient
)
CASES = tuple(
    dataclasses.replace(case, gradient=case.name.endswith(", gradients")) for case in CASES
)

PEERS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda function: function,
    "Inductor": lambda function: torch.compile(function, dynamic=False),
    OURS: lambda function: polyblocks_jit_torch(
        function, compile_options={"target": "cpu", "strict_target": True}
    ),
}


def start(threads: int) -> None:
    """Set the threads, and import what the first compilation of each peer imports."""
    torch.set_num_threads(threads)
    logging.getLogger("torch").setLevel(logging.ERROR)
    for compiler in PEERS.values():
        compiler(lambda x: x + 1)(torch.ones(4))


def operands(arrays: tuple[Array, ...]) -> tuple[torch.Tensor, ...]:
    """The arrays as tensors."""
    return tuple(torch.from_numpy(array) for array in arrays)


def call(case: Case, made: Any, operands: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    """What is timed: the results, or the gradients of a sum of them with weights."""
    if not case.gradient:
        return lambda: made(*operands)
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in operands]
    inputs = [x for x in leaves if x.requires_grad]

    # Sums would be of no use: of what is normalized they are always the same.
    weights: list[torch.Tensor] = []

    def gradients() -> Any:
        results = [
            y
            for y in pytree.tree_leaves(made(*leaves))
            if isinstance(y, torch.Tensor) and y.requires_grad
        ]
        if not weights:
            generator = torch.Generator().manual_seed(len(results))
            weights.extend(
                torch.randn(y.shape, generator=generator, dtype=torch.float32).to(y.dtype)
                for y in results
            )
        return torch.autograd.grad(results, inputs, weights, allow_unused=True)

    return gradients


def arrays(result: Any) -> list[Array]:
    """The tensors of a result."""
    return [_array(x) for x in pytree.tree_leaves(result) if x is not None]


def _array(x: Any) -> Array:
    if not isinstance(x, torch.Tensor):
        return np.asarray(x)
    x = x.detach().resolve_conj().resolve_neg()
    return (x.float() if x.dtype is torch.bfloat16 else x).numpy()


def exact(case: Case, operands: tuple[torch.Tensor, ...]) -> list[Array] | None:
    """The same in float64; None where there is no such function."""
    wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    try:
        widened = tuple(x.to(wide.get(x.dtype, x.dtype)) for x in operands)
        return arrays(call(case, case.function, widened)())
    except (RuntimeError, TypeError):
        return None


def forget() -> None:
    """Let go of what was compiled."""
    torch._dynamo.reset()
