"""Matrix products of integers wrap around in their type, as eager mode's do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

A, B, SUM = (5, 7), (7, 3), (5, 3)

CASES: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, (A, B)),
    "bmm": (torch.bmm, ((2, *A), (2, *B))),
    "mv": (torch.mv, (A, (7,))),
    "dot": (torch.dot, ((7,), (7,))),
    "matmul of a batch": (torch.matmul, ((2, 3, *A), B)),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=-2, alpha=3), (SUM, A, B)),
    "addmm without the summand": (lambda c, a, b: torch.addmm(c, a, b, beta=0), (SUM, A, B)),
    "fractions": (
        lambda c, a, b: torch.addbmm(c, a, b, beta=1.7, alpha=2.9),
        (SUM, (2, *A), (2, *B)),
    ),
    "addbmm": (torch.addbmm, (SUM, (2, *A), (2, *B))),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b, alpha=3), ((2, *SUM), (2, *A), (2, *B))),
    "addmv": (lambda c, a, b: torch.addmv(c, a, b, beta=2), ((5,), A, (7,))),
    "linear": (torch.nn.functional.linear, ((4, 7), (3, 7), (3,))),
    "no elements to sum": (torch.addmm, (SUM, (5, 0), (0, 3))),
    "convolution": (torch.nn.functional.conv2d, ((1, 2, 9, 8), (3, 2, 3, 3), (3,))),
}


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], torch.int8, torch.int64
    ),
    ids=str,
)
def test_products_equal_eager(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    low, high = max(limits.min, -(2**62)), min(limits.max, 2**62)
    inputs = [
        [torch.randint(low, high, shape, dtype=dtype) for shape in shapes]
        for _, shapes in CASES.values()
    ]

    def products(inputs: list[list[Tensor]]) -> list[Tensor]:
        calls = zip(CASES.values(), inputs, strict=True)
        return [function(*tensors) for (function, _), tensors in calls]

    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(products)
    for name, ours, eager in zip(CASES, compiled(inputs), products(inputs), strict=True):
        assert ours.dtype == dtype, name
        assert torch.equal(ours, eager), name
