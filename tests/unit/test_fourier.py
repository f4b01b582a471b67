"""Fourier transforms: roots, butterflies, factors, and whole transforms against float64."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from tests.support.fourier_programs import run

from polyblocks.algorithms.fourier import Kind, factors
from polyblocks.algorithms.fourier.butterflies import butterfly
from polyblocks.algorithms.fourier.roots import root, roots
from polyblocks.errors import UnsupportedError

PI = np.longdouble("3.14159265358979323846264338327950288")


class Numbers:
    """Arithmetic of Python's numbers."""

    def add(self, x, y):
        return x + y

    def sub(self, x, y):
        return x - y

    def mul(self, x, y):
        return x * y

    def neg(self, x):
        return -x

    def number(self, value):
        return value


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12, 1000])
def test_roots_are_rounded_once(n):
    turns = np.arange(-2, 3 * n)
    many = roots(turns, n)
    for t, value in zip(turns, many, strict=True):
        c, s = root(int(t), n)
        assert complex(c, s) == value
        angle = 2 * PI * (int(t) % n) / n
        assert abs(value.real - np.cos(angle)) < 1.2e-16
        assert abs(value.imag - np.sin(angle)) < 1.2e-16
        if 4 * t % n == 0:
            assert {abs(c), abs(s)} == {0.0, 1.0}
        # Conjugates and opposites are exact, so that results of symmetric input are symmetric.
        assert complex(*root(-int(t), n)) == value.conjugate()


@pytest.mark.each_choice
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 16, 17, 19, 47])
@pytest.mark.parametrize("real", [False, True])
def test_butterflies(r, sign, real):
    rng = np.random.default_rng(r)
    x = rng.standard_normal(r) + (0 if real else 1j) * rng.standard_normal(r)
    got = butterfly(Numbers(), [(v.real, None if real else v.imag) for v in x], sign)
    want = np.fft.fft(x) if sign < 0 else np.fft.ifft(x) * r
    got = np.array([complex(re, im or 0) for re, im in got])
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 16, 30, 128, 1 << 12, 1 << 13, 7**3, 11 * 13 * 64, 41 * 47])
def test_radices_multiply_to_the_length(n):
    assert factors.is_smooth(n)
    assert prod(factors.radices(n)) == n


def test_radices_are_few():
    assert factors.radices(720) == [8, 9, 10]
    assert factors.radices(1000) == [10, 10, 10]
    assert factors.radices(1024) == [8, 8, 4, 4]
    assert factors.radices(1536) == [8, 8, 8, 3]
    assert factors.radices(2 * 47) == [2, 47]


def test_splits_are_near_each_other_and_full_of_lanes():
    assert factors.split(255) is None
    assert factors.split(255, few=True) == (15, 17)
    assert factors.split(63, few=True) is None
    assert factors.split(64) == (8, 8)
    assert factors.split(128) == (8, 16)
    assert factors.split(256) == (16, 16)
    assert factors.split(4096) == (64, 64)
    assert sorted(factors.split(512)) == [16, 32]
    assert sorted(factors.split(1000)) == [25, 40]


def test_strips_of_large_matrices() -> None:
    assert factors.strip(128, 128) == factors.WIDTH
    assert factors.strip(128, 120) is None
    assert factors.strip(64, 64) is None


def test_lengths_that_are_too_long_are_refused():
    factors.check_length(1 << 22)
    with pytest.raises(UnsupportedError, match="of 2097169 numbers needs 6291456 factors"):
        factors.check_length(2097169)


def test_lengths_of_convolutions():
    for n in (53, 59, 97, 4099):
        m = factors.convolution_length(n)
        assert m >= 2 * n - 1
        assert factors.is_smooth(m)
        assert m < 4 * n


CASES = [
    (Kind.COMPLEX, (3, 1, 1)),
    (Kind.COMPLEX, (20, 12, 1)),
    (Kind.COMPLEX, (1, 105, 1)),
    (Kind.COMPLEX, (2, 53, 1)),
    (Kind.COMPLEX, (2, 23 * 16, 1)),
    (Kind.COMPLEX, (20, 19, 1)),
    pytest.param(Kind.COMPLEX, (20, 47, 1), marks=pytest.mark.extended),
    (Kind.COMPLEX, (2, 256, 1)),
    (Kind.COMPLEX, (1, 1 << 14, 1)),
    (Kind.COMPLEX, (2, 30, 20)),
    (Kind.COMPLEX, (37, 16, 1)),
    (Kind.COMPLEX, (3, 64, 1)),
    (Kind.COMPLEX, (2, 24, 40)),
    (Kind.COMPLEX, (2, 90, 40)),
    (Kind.COMPLEX, (2, 9, 3)),
    (Kind.REAL, (2, 1, 1)),
    (Kind.REAL, (2, 9, 2)),
    (Kind.REAL, (3, 40, 1)),
    (Kind.REAL, (2, 26, 17)),
    (Kind.REAL, (3, 106, 1)),
    (Kind.HALF, (2, 1, 1)),
    (Kind.HALF, (3, 2, 1)),
    (Kind.HALF, (3, 9, 1)),
    (Kind.HALF, (3, 40, 1)),
    (Kind.HALF, (2, 6, 16)),
]


@pytest.mark.each_choice
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("kind, shape", CASES)
def test_transforms(kind, shape, sign):
    outer, n, inner = shape
    rng = np.random.default_rng(n)
    length = n // 2 + 1 if kind is Kind.HALF else n
    re, im = (rng.standard_normal((outer, length, inner)).astype(np.float32) for _ in range(2))
    got = run(kind, re, None if kind is Kind.REAL else im, n, sign, 0.5)
    x = re.astype(np.float64) if kind is Kind.REAL else re.astype(np.float64) + 1j * im
    if kind is Kind.HALF:
        want = 0.5 * n * np.fft.irfft(x if sign > 0 else x.conj(), n, axis=1)
    else:
        want = 0.5 * (np.fft.fft(x, axis=1) if sign < 0 else n * np.fft.ifft(x, axis=1))
        want = want[:, : n // 2 + 1] if kind is Kind.REAL else want
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 4e-7 * max(1.0, np.abs(want).max())


def test_a_real_input_of_a_complex_transform_needs_no_imaginary_parts():
    x = np.random.default_rng(0).standard_normal((2, 12, 1))
    got = run(Kind.COMPLEX, x, None, 12, -1, 1.0)
    np.testing.assert_allclose(got, np.fft.fft(x, axis=1), rtol=1e-13, atol=1e-13)


@pytest.mark.each_choice
@pytest.mark.parametrize("n", [19, 24, 53, 256])
@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_the_same_program_on_a_gpu(arch, n):
    rng = np.random.default_rng(1)
    re, im = rng.standard_normal((2, 3, n, 1)).astype(np.float32)
    target = "nvgpu" if arch.startswith("sm") else "amdgpu"
    got = run(Kind.COMPLEX, re, im, n, -1, 1.0, target=target, arch=arch, simulate=True)
    np.testing.assert_allclose(got, np.fft.fft(re + 1j * im, axis=1), rtol=1e-5, atol=1e-5)
