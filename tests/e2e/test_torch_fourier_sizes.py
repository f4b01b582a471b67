"""PyTorch: Fourier transforms of all kinds of lengths are as exact as eager's."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from tests.support.sweeps import sweep
from torch import Tensor

from polyblocks.algorithms.fourier import factors
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
POWERS = [2**k for k in range(1, 13)]
#: Every radix: rows as lanes and matrices of both parities, and their halves.
SMOOTH = [3, 7, 13, 17, 22, 41, 47, 60, 74, 75, 86, 93, 133, 368, 437, 522, 630, 1250, 2058]
#: Convolutions of both parities, whose own length is a power of two or three quarters of one.
OTHERS = [73, 97, 326, 926, 1525, 2454, 4093]
#: One rounding of the largest number, which no error is counted for.
LEAST = 2.0**-24


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


def radices_of(lengths: Iterable[int]) -> set[int]:
    return {r for n in lengths for r in factors.radices(n)}


def test_the_lengths_take_every_way() -> None:
    smooth = [*POWERS, *SMOOTH]
    every = filter(factors.is_smooth, range(2, 4097))
    assert radices_of(smooth) == radices_of(every)
    ways = {(factors.split(n, few=True) is None, n % 2) for n in smooth}
    assert len(ways) == 4
    kinds = {(factors.convolution_length(n) % 3 == 0, n % 2) for n in OTHERS}
    assert len(kinds) == 4
    assert all(map(factors.is_smooth, smooth))
    assert not any(map(factors.is_smooth, OTHERS))


@pytest.mark.extended
@pytest.mark.parametrize(
    "n", sweep(sorted([*POWERS, *SMOOTH, *OTHERS]), 97, 512, extended=[2, 74]), ids=str
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


@pytest.mark.parametrize("dtype", [None, torch.float64], ids=str)
def test_frequencies_are_tables(dtype: torch.dtype | None) -> None:
    """PyTorch's own, bit by bit, of both parities and of none."""

    def function(x: Tensor) -> tuple[Tensor, ...]:
        both = torch.fft.fftfreq, torch.fft.rfftfreq
        numbers = [f(n, d, dtype=dtype) for f in both for n in (1, 2, 7, 30) for d in (1.0, 0.03)]
        return (*numbers, torch.fft.ifft(torch.fft.fft(x) * torch.fft.fftfreq(7)).real)

    x = torch.randn(4, 7)
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    *numbers, filtered = compiled(x)
    *expected, reference = function(x)
    assert all(map(torch.equal, numbers, expected))
    torch.testing.assert_close(filtered, reference)


def test_windows_are_tables() -> None:
    """Of both parities and none; eager mode rounds their angles as we do."""
    kinds = ("hann", "hamming", "blackman", "bartlett", "kaiser")

    def function(x: Tensor) -> tuple[Tensor, ...]:
        windows = [
            getattr(torch, f"{kind}_window")(n, periodic)
            for kind in kinds
            for periodic in (True, False)
            for n in (0, 1, 2, 9, 16)
        ]
        further = torch.hamming_window(7, True, 0.6, 0.3), torch.kaiser_window(8, False, 3.0)
        wide = torch.blackman_window(8, dtype=torch.float64), torch.bartlett_window(9).half()
        return *windows, *further, *wide, x * torch.kaiser_window(8)

    x = torch.randn(3, 8)
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    for found, expected in zip(compiled(x), function(x), strict=True):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-7)
