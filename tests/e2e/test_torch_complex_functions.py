"""Functions of complex numbers: each against eager mode, at branch cuts and zeros."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, -80.0, 1e-6, 0.9999)
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in (
            *("log", "log2", "log10", "log1p", "exp2", "expm1", "sqrt", "rsqrt", "reciprocal"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
            *("asinh", "acosh", "atanh", "sgn", "sigmoid"),
        )
    },
    **{f"z**{n}": (lambda z, n=n: z**n) for n in (0, 1, 2, 3, 4, -1, -2, 0.5, 2.5, 1 + 2j)},
    "2**z": lambda z: 2**z,
    "z**z": lambda z: z**z,
    "real ** complex": lambda z: z.real.abs() ** (1 + 2j),
}


def everything(z: Tensor) -> dict[str, Tensor]:
    return {name: function(z) for name, function in FUNCTIONS.items()}


@pytest.mark.parametrize("dtype", sweep([torch.complex64, torch.complex128], torch.complex64))
def test_functions(dtype: torch.dtype) -> None:
    z = torch.tensor([complex(a, b) for a, b in itertools.product(PARTS, PARTS)], dtype=dtype)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(everything)(z)
    eager, exact = everything(z), everything(z.to(torch.complex128))
    tolerance = 1e-5 if dtype == torch.complex64 else 1e-11
    for name, mine in ours.items():
        assert mine.dtype == eager[name].dtype
        for get in (torch.real, torch.imag):
            got, given, known = (get(x[name]).double() for x in (ours, eager, exact))
            off = torch.minimum((got - given).abs(), (got - known).abs())
            size = exact[name].abs()
            # Overflow in float32 is no error of either.
            close = (got == given) | (got.isnan() & given.isnan()) | (off <= tolerance * size)
            close |= (size > 1e38) | ~given.isfinite()
            assert bool(close.all()), (name, z[~close], got[~close], given[~close])


def test_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    z = torch.tensor([0, complex(-0.0, -0.0), complex(inf, inf), complex(-inf, 2), complex(nan, 1)])

    def function(z: Tensor) -> tuple[Tensor, ...]:
        return z.log(), z.sqrt(), z**2.5, z.atanh()

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)(z)
    for mine, eager in zip(ours[:2], function(z)[:2], strict=True):
        torch.testing.assert_close(mine, eager, equal_nan=True, rtol=1e-5, atol=0)
        known = ~(eager.real.isnan() | eager.imag.isnan())
        for get in (torch.real, torch.imag):
            signs = get(mine).signbit() == get(eager).signbit()
            assert bool(signs[known].all())


@pytest.mark.parametrize("dtype", sweep([torch.complex64, torch.complex128], torch.complex64))
def test_products_and_variances(dtype: torch.dtype) -> None:
    def function(z: Tensor) -> list[Tensor]:
        return [
            *(z.prod(), z.prod(1), z.prod(-2, keepdim=True), z[:, :1].prod(1), z[:0].prod(0)),
            *(z.cumprod(0), z.cumprod(1), z[0, 0].prod(0), z.real.prod(dtype=dtype)),
            *(z.var(), z.std(0), z.var(1, correction=0, keepdim=True), z[0, 0].var(correction=0)),
            *(*torch.var_mean(z, 0), *torch.std_mean(z)),
        ]

    torch.manual_seed(0)
    z = torch.randn(3, 5, dtype=torch.complex128)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)(z.to(dtype))
    tolerance = 1e-5 if dtype == torch.complex64 else 1e-12
    for mine, eager, exact in zip(ours, function(z.to(dtype)), function(z), strict=True):
        assert (mine.dtype, mine.shape) == (eager.dtype, eager.shape)
        torch.testing.assert_close(mine.to(exact.dtype), exact, rtol=tolerance, atol=tolerance)


def test_numbers_for_nan() -> None:
    inf, nan = float("inf"), float("nan")
    z = torch.tensor([complex(nan, 1), complex(inf, -inf), complex(2, nan)])

    def function(z: Tensor) -> tuple[Tensor, Tensor]:
        return z.nan_to_num(), z.nan_to_num(1.0, 2.0, 3.0)

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)(z)
    torch.testing.assert_close(ours, function(z), rtol=0, atol=0)
