"""The incomplete gamma functions of the torch frontend, against mpmath and eager."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.decomp.every import REGISTRY
from polyblocks_torch.decomp.incomplete_gamma import _DOUBLE, _SINGLE

aten = torch.ops.aten

OPS: dict[str, tuple[Any, Callable[..., Tensor]]] = {
    "igamma": (aten.igamma.default, torch.igamma),
    "igammac": (aten.igammac.default, torch.igammac),
}


def exact(name: str, a: float, x: float) -> float:
    with mpmath.workdps(30):
        parts = (0, x) if name == "igamma" else (x, mpmath.inf)
        return float(mpmath.gammainc(a, *parts, regularized=True))


def points() -> Tensor:
    """Pairs on both sides of every border between methods, and far from them."""
    orders = [1e-7, 1e-3, 0.02, 0.5, 1.0, 1.7, 5.0, 11.9, 12.1, 19.9, 20.1, 90.0, 800.0, 5000.0]
    found = []
    for a in orders:
        near = [a * r for r in (0.44, 0.46, 0.9, 0.99, 1.0, 1.01, 1.2, 1.79, 1.81, 2.29, 2.31)]
        found += [(a, x) for x in (1e-5, 0.3, 1.99, 2.01, 2.99, 3.01, 7.0, 30.0, *near)]
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(
    "dtype, rtol, least", [(torch.float32, 7e-8, 1e-36), (torch.float64, 5e-12, 1e-200)]
)
def test_results_are_right_to_the_last_places(
    name: str, dtype: torch.dtype, rtol: float, least: float
) -> None:
    a, x = points().to(dtype).unbind(1)
    got = REGISTRY[OPS[name][0]](a, x)
    assert got.dtype is dtype
    for order, place, value in zip(a.tolist(), x.tolist(), got.tolist(), strict=True):
        expected = exact(name, order, place)
        assert value == pytest.approx(expected, rel=rtol, abs=least), (order, place)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_borders_are_those_of_eager(name: str, dtype: torch.dtype) -> None:
    edges = [
        torch.nan, -torch.inf, -1.5, -0.0, 0.0, 1e-5, 0.3, 1, 2.5, 30, 250, torch.inf,
    ]  # fmt: skip
    a, x = torch.tensor(list(itertools.product(edges, edges)), dtype=dtype).unbind(1)
    op, eager = OPS[name]
    torch.testing.assert_close(
        REGISTRY[op](a, x), eager(a, x), rtol=1e-2 if dtype.itemsize == 2 else 1e-5,
        atol=2e-6, equal_nan=True,
    )  # fmt: skip


def test_operands_are_broadcast_and_promoted() -> None:
    a, x = torch.rand(3, 1) + 0.5, torch.rand(5, dtype=torch.float64)
    got = REGISTRY[aten.igamma.default](a, x)
    assert got.dtype is torch.float64
    assert got.shape == (3, 5)
    torch.testing.assert_close(got, torch.igamma(a, x))
    assert REGISTRY[aten.igamma.default](torch.ones(2, dtype=torch.int64), x.long()) is (
        NotImplemented
    )


def test_float32_takes_fewer_terms() -> None:
    assert sum(_SINGLE.temme) < sum(_DOUBLE.temme)


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:Error detected in Igamma")
@pytest.mark.parametrize("name", OPS)
def test_the_gradient_is_that_of_x_alone(name: str) -> None:
    eager = OPS[name][1]

    def function(a: Tensor, x: Tensor) -> Tensor:
        return eager(a, x)

    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    a = torch.tensor([0.3, 1.0, 2.5, 40.0, 300.0])
    expected, got = (torch.tensor([0.2, 3.0, 2.0, 39.0, 310.0], requires_grad=True) for _ in "ab")
    results = function(a, expected), compiled(a, got)
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-6)
    for result in results:
        result.sum().backward()
    torch.testing.assert_close(got.grad, expected.grad, rtol=1e-4, atol=1e-6)
    with pytest.raises(FallbackError, match=f"the derivative for '{name}: input'"):
        compiled(a.clone().requires_grad_(), got)
