"""PyTorch: Fourier transforms of all kinds of lengths are as exact as eager's."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from tests.support.sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
POWERS = [2**k for k in range(1, 13)]
PRIMES = [3, 7, 23, 47, 97, 251, 509, 1021, 2039, 4093]
#: One rounding of the largest number, which no error is counted for.
LEAST = 2.0**-24


def lengths(count: int) -> list[int]:
    """Numbers up to 4096, small ones as often as large ones."""
    generator = random.Random(0)
    return [int(2 ** generator.uniform(1, 12)) for _ in range(count)]


def all_kinds(n: int) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]:
    """Of complex numbers, of real ones and of half of symmetric ones, and their inverses."""

    def function(z: Tensor, x: Tensor, half: Tensor) -> tuple[Tensor, ...]:
        real = torch.fft.rfft(x)
        return torch.fft.fft(z), torch.fft.ifft(z), real, torch.fft.irfft(half, n)

    return function


def errors(found: Tensor, exact: Tensor) -> tuple[float, float]:
    """Of the norm, relative, and of the largest number."""
    off = found.to(exact.dtype) - exact
    norm = torch.linalg.vector_norm
    return float(norm(off) / norm(exact)), float(off.abs().max() / exact.abs().max())


@pytest.mark.parametrize(
    "n", sweep(sorted({*POWERS, *PRIMES, *lengths(60), 43, 74}), 97, 512, extended=[2, 74]), ids=str
)
def test_errors_are_at_most_twice_those_of_eager_mode(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    z = torch.randn(5, n, dtype=torch.complex64, generator=generator)
    x = torch.randn(5, n, generator=generator)
    half = torch.fft.rfft(torch.randn(5, n, generator=generator))
    function = all_kinds(n)
    found = polyblocks_jit_torch(function, compile_options=STRICT)(z, x, half)
    eager = function(z, x, half)
    exact = function(z.to(torch.complex128), x.double(), half.to(torch.complex128))
    for mine, theirs, best in zip(found, eager, exact, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        for error, allowed in zip(errors(mine, best), errors(theirs, best), strict=True):
            assert error <= 2 * max(allowed, LEAST)
