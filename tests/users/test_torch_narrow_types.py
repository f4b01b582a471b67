"""float16 and bfloat16 in PyTorch: errors are at most twice eager's, judged by float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from judge import less_exact
from sweeps import sweep
from torch import Tensor
from torch.nn import functional as F

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

HALVES = [torch.float16, torch.bfloat16]
ROWS = torch.arange(64) % 5

#: What may round in between, each with the shapes of its operands: in decompositions, but for what
#: has a comment.
CASES: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "cross": (torch.linalg.cross, [(333, 3), (333, 3)]),
    "addr": (lambda c, a, b: torch.addr(c, a, b, beta=0.7, alpha=1.3), [(61, 33), (61,), (33,)]),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False),
        [(1, 2, 33, 35), (1, 20, 21, 2)],
    ),
    "conv_transpose": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, groups=2),
        [(1, 16, 7, 9), (16, 4, 3, 3), (8,)],
    ),
    # The product and the sum with a bias.
    "addmm": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        [(67,), (65, 129), (129, 67)],
    ),
    "linear": (F.linear, [(5, 13, 129), (67, 129), (67,)]),
    "baddbmm": (torch.baddbmm, [(3, 33, 35), (3, 33, 129), (3, 129, 35)]),
    # The sum and what it is divided by.
    "mean": (lambda x: x.mean(1), [(65, 1290)]),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), [(2, 3, 65, 33)]),
    # What is added up in memory.
    "index_add": (lambda x, y: x.index_add(0, ROWS, y, alpha=0.7), [(5, 7), (64, 7)]),
    "scatter_mean": (
        lambda x, y: x.scatter_reduce(0, ROWS[:, None].expand(64, 7), y, "mean"),
        [(5, 7), (64, 7)],
    ),
    # A number that 16 bits do not hold.
    "number": (lambda x, y: 0.7 * x / y - y, [(165, 29), (165, 29)]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.3), [(165, 29)]),
}

#: One of each kind.
QUICK = ["cross", "grid_sample", "conv_transpose", "addmm", "mean", "index_add", "number"]


@pytest.mark.parametrize("dtype", sweep(HALVES, torch.bfloat16), ids=str)
@pytest.mark.parametrize("case", sweep(CASES, *QUICK))
def test_error_is_at_most_twice_eagers(case: str, dtype: torch.dtype) -> None:
    function, shapes = CASES[case]
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    eager, exact = function(*operands), function(*(x.double() for x in operands))
    ours = compiled(*operands)
    assert ours.dtype == eager.dtype
    assert less_exact(ours, eager, exact) == ""


@pytest.mark.parametrize("dtype", sweep(HALVES, torch.bfloat16), ids=str)
def test_conversions_of_the_program_round(dtype: torch.dtype) -> None:
    x = torch.randn(999)

    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def rounded(x: Tensor) -> Tensor:
        return x.to(dtype).float() - x

    assert torch.equal(rounded(x), x.to(dtype).float() - x)


@pytest.mark.parametrize("dtype", sweep(HALVES, torch.float16), ids=str)
def test_without_fast_math_every_operation_rounds(dtype: torch.dtype) -> None:
    x, y = (torch.randn(999).to(dtype) for _ in range(2))

    def chain(x: Tensor, y: Tensor) -> Tensor:
        return 0.3 * (x * y + y) - x

    options = {"strict_target": True, "mlir_disable_fast_math": True}
    compiled = polyblocks_jit_torch(compile_options=options)(chain)
    assert torch.equal(compiled(x, y), chain(x, y))


@pytest.mark.parametrize(
    "dtype", sweep([torch.float32, *HALVES], torch.float32, torch.float16), ids=str
)
def test_numbers_are_rounded_where_eager_rounds_them(dtype: torch.dtype) -> None:
    x = torch.linspace(-3, 3, 301).to(dtype)

    def stepwise(x: Tensor) -> tuple[Tensor, ...]:
        jumps = torch.remainder(x, 0.3), torch.fmod(x, 0.7), x // 0.3, F.threshold(x, 0.3, 0.0)
        return x == 0.3, x > 0.7, torch.isin(x, 0.1), *jumps

    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(stepwise)
    for ours, eager in zip(compiled(x), stepwise(x), strict=True):
        assert torch.equal(ours, eager)


@pytest.mark.slow
def test_numbers_before_a_tensor_have_its_type() -> None:
    x = torch.linspace(1, 3, 301, dtype=torch.float64)

    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def before(x: Tensor) -> tuple[Tensor, ...]:
        return 0.1 - x, 0.1 / x, torch.lgamma(-x), torch.pow(0.1, x)

    for ours, exact in zip(before(x), (0.1 - x, 0.1 / x, torch.lgamma(-x), 0.1**x), strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-12, atol=1e-14)
