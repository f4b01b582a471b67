"""Sums of 16-bit numbers are kept in 32 bits, whatever op they come from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

CASES: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = {
    "sum": (lambda a: a.sum(), [(999,)]),
    "sum of columns": (lambda a: a.sum(0), [(301, 7)]),
    "matmul": (lambda a, b: a @ b, [(5, 257), (257, 9)]),
    "convolution": (torch.nn.functional.conv2d, [(1, 16, 7, 7), (4, 16, 3, 3)]),
    "written out": (lambda a, b: (a[:, None, :] * b[None, :, :]).sum(-1), [(3, 257), (5, 257)]),
    "cumsum": (lambda a: a.cumsum(0), [(501,)]),
    "mean and variance": (lambda a: a.var() + a.mean(), [(997,)]),
}


@pytest.mark.parametrize("dtype", sweep([torch.bfloat16, torch.float16], torch.bfloat16))
@pytest.mark.parametrize("case", CASES)
def test_error_is_that_of_eager(case: str, dtype: torch.dtype) -> None:
    function, shapes = CASES[case]
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(s, generator=generator).to(dtype) for s in shapes]
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    exact = function(*[x.double() for x in inputs])
    ours = (compiled(*inputs).double() - exact).abs().max()
    # One rounding of the result, and what float32 sums of this length may add.
    allowed = torch.finfo(dtype).eps * exact.abs().max() + 1e-4 * exact.abs().max()
    assert ours <= allowed
