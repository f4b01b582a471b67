"""The operations: those of ``bench.cliffs`` in PyTorch, larger, and those that were timed on GPUs.

Operands are described, not drawn: their arrays are empty, and nothing reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

from bench.cliffs import in_torch
from bench.cliffs.case import Array, Case, Draw

#: Elements of the operands, about: float32 in several times the largest second-level cache.
ELEMENTS = 1 << 25


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: with its parameters.
        function: of tensors.
        operands: makes them.
    """

    name: str
    function: Callable[..., Any]
    operands: Callable[[], Sequence[torch.Tensor]]


class Empty(Draw):
    """Operands of which only shapes and dtypes are asked for."""

    def __init__(self) -> None:
        super().__init__(0)

    def normal(self, *shape: int) -> Array:
        return np.empty(shape, np.float32)

    def uniform(self, low: float, high: float, *shape: int) -> Array:
        return np.empty(shape, np.float32)

    def integers(self, low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
        return np.empty(shape, dtype)

    def flags(self, *shape: int) -> Array:
        return np.empty(shape, np.bool_)

    def complex(self, *shape: int) -> Array:
        return np.empty(shape, np.complex64)

    def permutation(self, count: int) -> Array:
        return np.empty(count, np.int64)

    def positive_definite(self, *shape: int) -> Array:
        return np.empty(shape, np.float32)


def _of_cliffs(case: Case) -> Operation:
    def operands() -> Sequence[torch.Tensor]:
        return in_torch.operands(case.operands(Empty(), ELEMENTS))

    if not case.gradient:
        return Operation(case.name, case.function, operands)
    return Operation(case.name, lambda *given: gradients_of(case.function, given), operands)


def gradients_of(function: Callable[..., Any], operands: Sequence[torch.Tensor]) -> Any:
    """The gradients of the sum of the results, each times itself."""
    leaves = [x for x in operands if x.is_floating_point()]

    def called(*given: torch.Tensor) -> list[torch.Tensor]:
        remaining = iter(given)
        found = function(*(next(remaining) if x.is_floating_point() else x for x in operands))
        return [y for y in pytree.tree_leaves(found) if y.is_floating_point()]

    results, gradients = torch.func.vjp(called, *leaves)
    return gradients([y.detach() for y in results])


def _of(
    name: str, function: Callable[..., Any], *operands: tuple[tuple[int, ...], Any]
) -> Operation:
    return Operation(
        name, function, lambda: [torch.empty(shape, dtype=dtype) for shape, dtype in operands]
    )


def _recurrence(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    state = x[0]
    found = []
    for step in x.unbind(0):
        state = torch.tanh(state * a + step * b)
        found.append(state)
    return torch.stack(found)


def _embedded(
    words: torch.Tensor, places: torch.Tensor, index: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    return (words[index] + places) @ weights


F32, F16, F64, U8, I64 = torch.float32, torch.float16, torch.float64, torch.uint8, torch.int64

#: With the sizes at which their times were measured.
MEASURED = (
    _of("softmax over dimension 0, 8192x4096", lambda x: x.softmax(0), ((8192, 4096), F32)),
    _of("softmax, 524288 rows of 64", lambda x: x.softmax(-1), ((1 << 19, 64), F32)),
    _of("softmax, 1024 f16 rows of 50257", lambda x: x.softmax(-1), ((1024, 50257), F16)),
    _of(
        "depthwise 3x3, f16, 32x256x28x28",
        lambda x, w: functional.conv2d(x, w, padding=1, groups=256),
        ((32, 256, 28, 28), F16),
        ((256, 1, 3, 3), F16),
    ),
    _of(
        "avg_pool2d 3x3, 16x64x128x128",
        lambda x: functional.avg_pool2d(x, 3, 1, 1),
        ((16, 64, 128, 128), F32),
    ),
    _of(
        "adaptive_avg_pool2d 128 to 7",
        lambda x: functional.adaptive_avg_pool2d(x, 7),
        ((16, 64, 128, 128), F32),
    ),
    _of(
        "conv_transpose2d 4x4/2 f16 128 to 64, 16x28x28",
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1),
        ((16, 128, 28, 28), F16),
        ((128, 64, 4, 4), F16),
    ),
    _of(
        "conv3d 3x3x3 f16 32 to 32, 4x32x32x32",
        lambda x, w: functional.conv3d(x, w, padding=1),
        ((4, 32, 32, 32, 32), F16),
        ((32, 32, 3, 3, 3), F16),
    ),
    _of("cumsum of 2**24", lambda x: x.cumsum(0), ((1 << 24,), F32)),
    _of("cummax, 4096 rows of 1024", lambda x: x.cummax(1)[0], ((4096, 1024), F32)),
    _of(
        "recurrence of 64 steps, 256x256",
        _recurrence,
        ((64, 256, 256), F32),
        ((256, 256), F32),
        ((256, 256), F32),
    ),
    _of("roll then flip, 8192x4096", lambda x: x.roll(3, 1).flip(0), ((8192, 4096), F32)),
    _of(
        "bytes to normalized floats, 12x1080x1920",
        lambda x: (x.float() / 255 - 0.5) / 0.25,
        ((12, 1080, 1920), U8),
    ),
    _of(
        "bytes to floats, channels first, 16x540x960x3",
        lambda x: (x.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25,
        ((16, 540, 960, 3), U8),
    ),
    _of(
        "batch norm, training, 16x64x128x128",
        lambda x: functional.batch_norm(x, None, None, training=True),
        ((16, 64, 128, 128), F32),
    ),
    _of("mm float64 1024", lambda a, b: a @ b, ((1024, 1024), F64), ((1024, 1024), F64)),
    _of("mm float16 4096", lambda a, b: a @ b, ((4096, 4096), F16), ((4096, 4096), F16)),
    _of(
        "embeddings, then a product",
        _embedded,
        ((50257, 768), F16),
        ((128, 768), F16),
        ((128,), I64),
        ((768, 2304), F16),
    ),
    _of(
        "group norm 64x64x112x112",
        lambda x, w, b: functional.group_norm(x, 32, w, b),
        ((64, 64, 112, 112), F32),
        ((64,), F32),
        ((64,), F32),
    ),
    _of("cumsum over dimension 0, 8192x4096", lambda x: x.cumsum(0), ((8192, 4096), F32)),
    _of("cumsum, 8192 rows of 4096", lambda x: x.cumsum(1), ((8192, 4096), F32)),
    _of("cummax over dimension 0, 4096x1024", lambda x: x.cummax(0)[0], ((4096, 1024), F32)),
    _of("cummax with places, 4096 rows of 1024", lambda x: x.cummax(1), ((4096, 1024), F32)),
)


def operations() -> Iterator[Operation]:
    """All operations, those of ``bench.cliffs`` behind the others."""
    yield from MEASURED
    for case in in_torch.CASES:
        yield _of_cliffs(case)


def named(only: str) -> list[Operation]:
    """Those whose names contain one of the parts of ``only``, parted by ``|``; all if it is empty.

    Raises:
        ValueError: a part fits none.
    """
    everything = list(operations())
    parts = [part for part in only.split("|") if part]
    for part in parts:
        if not any(part in each.name for each in everything):
            raise ValueError(f"no operation contains '{part}'")
    return [each for each in everything if not parts or any(p in each.name for p in parts)]
