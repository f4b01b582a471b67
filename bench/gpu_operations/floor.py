"""The least that an operation can take on a chip, whatever its kernels are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from bench.gpu_operations.eliminations import Chain
from bench.gpu_operations.products import FORMULAS
from bench.gpu_operations.traffic import traffic
from polyblocks.target import TargetDescription

#: Seconds of the smallest kernel, from the start of one to that of the next in a replayed graph, on
#: an H200 (1.6 to 2.0 µs; 2026-11-28).
SMALLEST_KERNEL = 1.8e-6


@dataclass(frozen=True)
class Floor:
    """What an operation has to do.

    Attributes:
        bytes: of operands and results, each moved as often as it has to be.
        flops: of its products and eliminations, a multiply-add as two.
        seconds: the largest of the times of these, that of all that comes from the last cache,
            that of columns that wait for each other, and the smallest kernel's.
    """

    bytes: int
    flops: int
    seconds: float


def floor(
    function: Callable[..., Any], operands: Sequence[torch.Tensor], target: TargetDescription
) -> Floor:
    """The floor of a call, at the rates of the target's description."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fake = [mode.from_tensor(x) for x in operands]
    counter = FlopCounterMode(display=False, custom_mapping=FORMULAS)
    chain = Chain(target)
    with mode, counter, chain:
        results = function(*fake)
    flops = int(counter.get_total_flops())
    tensors = [x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor)]
    nbytes = sum(x.numel() * x.element_size() for x in (*operands, *tensors))
    more = traffic(function, operands, target)
    nbytes += more.beyond(operands)
    memory, cache = (level.bandwidth for level in (target.memory[-1], target.memory[-2]))
    assert memory is not None
    computed = flops / _rate(operands, target)
    seconds = max(SMALLEST_KERNEL, nbytes / memory, computed, chain.seconds)
    if cache is not None:
        read = sum(n * x.nbytes for n, x in zip(more.readings, operands, strict=True))
        seconds = max(seconds, (read + more.rows) / cache)
    return Floor(nbytes, flops, seconds)


def _rate(operands: Sequence[torch.Tensor], target: TargetDescription) -> float:
    """Operations per second of products of such operands, by a matrix unit if one takes them."""
    names = {str(x.dtype).removeprefix("torch.") for x in operands if x.is_floating_point()}
    dtype = next(iter(names)) if len(names) == 1 else "float32"
    units = [unit.flops for unit in target.matrix_units if set(unit.both) == {dtype}]
    return max(units, default=0.0) or target.flops.get(dtype) or target.flops["float32"]
