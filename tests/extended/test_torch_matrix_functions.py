"""Matrix exponentials, least squares, and what else had been left to PyTorch for its data."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
SLACK = {torch.float32: 2e-5, torch.float64: 1e-12}


def compiled(function: Any) -> Any:
    return polyblocks_jit_torch(function, compile_options=STRICT)


def near(found: Tensor, exact: Tensor, slack: float) -> None:
    """Whether differences are small beside the largest element."""
    assert found.shape == exact.shape
    if exact.numel():
        assert (found.double() - exact).abs().max() <= slack * exact.abs().max()


@pytest.mark.parametrize("dtype", SLACK)
def test_matrix_exponentials(dtype: torch.dtype) -> None:
    exponential = compiled(torch.linalg.matrix_exp)
    # Rotations, whose exponentials are small however large they are; and matrices of any norms.
    turns = torch.randn(5, 7, 7, dtype=dtype) * 10
    turns = turns - turns.mT
    mixed = torch.randn(5, 7, 7, dtype=dtype) * torch.tensor([0, 1e-6, 0.1, 1, 5])[:, None, None]
    for x in (turns, mixed.to(dtype)):
        near(exponential(x), torch.linalg.matrix_exp(x.double()), SLACK[dtype])
    for shape in ((2, 3, 1, 1), (0, 3, 3), (3, 0, 0)):
        x = torch.randn(shape, dtype=dtype)
        near(exponential(x), torch.linalg.matrix_exp(x.double()), SLACK[dtype])


def test_matrix_exponentials_of_extremes() -> None:
    exponential = compiled(torch.linalg.matrix_exp)
    assert torch.equal(
        exponential(torch.diag(torch.tensor([-1e30, 0]))), torch.diag(torch.tensor([0.0, 1]))
    )
    for extreme in (torch.inf, torch.nan):
        assert exponential(torch.tensor([[0.0, extreme], [0, 0]])).isnan().all()


def test_gradients_of_matrix_exponentials() -> None:
    x = torch.randn(4, 5, 5, dtype=torch.float64, requires_grad=True)
    (found,), (expected,) = (
        torch.autograd.grad(f(x).square().sum(), x)
        for f in (compiled(torch.linalg.matrix_exp), torch.linalg.matrix_exp)
    )
    near(found, expected, 1e-12)


SYSTEMS = [
    ((64, 8), (64, 3)),
    ((5, 9, 4), (5, 9, 2)),
    ((5, 4, 9), (5, 4, 2)),
    ((3, 6, 6), (3, 6, 1)),
    ((9, 4), (9,)),
    ((5, 9, 4), (5, 9)),
]


@pytest.mark.parametrize("shape, right", SYSTEMS)
def test_least_squares(shape: tuple[int, ...], right: tuple[int, ...]) -> None:
    a = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    b = torch.randn(right, dtype=torch.float64, requires_grad=True)

    def solved(a: Tensor, b: Tensor) -> Any:
        return torch.linalg.lstsq(a, b, driver="gels")

    found, expected = compiled(solved)(a, b), solved(a, b)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9)
    slopes = [torch.autograd.grad(x.solution.square().sum(), (a, b)) for x in (found, expected)]
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-7, atol=1e-7)


def test_least_squares_need_full_rank() -> None:
    solved = compiled(lambda a, b: torch.linalg.lstsq(a, b, driver="gels").solution)
    a = torch.tensor([[1.0, 0], [2, 0], [3, 0]])
    with pytest.raises(torch.linalg.LinAlgError, match="does not have full rank"):
        solved(a, torch.ones(3, 1))
    assert torch.equal(solved(torch.zeros(3, 2), torch.ones(3, 1)), torch.zeros(2, 1))


@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 2), (4, 2, 1), None])
def test_gaussian_losses(shape: tuple[int, ...] | None) -> None:
    x = torch.randn(4, 2, 3, requires_grad=True)
    target = torch.randn(4, 2, 3)
    variance: Any = 1.5 if shape is None else torch.rand(shape).index_fill(0, torch.tensor(0), 0)
    for full, reduction in itertools.product((False, True), ("none", "mean", "sum")):

        def loss(
            x: Tensor, target: Tensor, variance: Any, full=full, reduction=reduction
        ) -> Tensor:
            return F.gaussian_nll_loss(x, target, variance, full=full, reduction=reduction)

        found, expected = compiled(loss)(x, target, variance), loss(x, target, variance)
        torch.testing.assert_close(found, expected)
        slopes = [torch.autograd.grad(y.sum(), x)[0] for y in (found, expected)]
        torch.testing.assert_close(slopes[0], slopes[1])


def test_gaussian_losses_check_variances() -> None:
    loss = compiled(F.gaussian_nll_loss)
    x = torch.ones(3)
    assert loss(x, x, x) == 0
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        loss(x, x, -x)
    with pytest.raises(ValueError, match="var is of incorrect size"):
        polyblocks_jit_torch(F.gaussian_nll_loss)(x, x, torch.ones(2))
    with pytest.raises(ValueError, match="no is not valid"):
        polyblocks_jit_torch(lambda x: F.gaussian_nll_loss(x, x, x, reduction="no"))(x)
