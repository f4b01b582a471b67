"""Products, distances, factorizations and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

import torch

from bench.cliffs.case import Array, Case, Draw, factorizations, rows, side
from bench.cliffs.operands import definite

Maker = Callable[[Draw, int], tuple[Array, ...]]


def _squares(count: int = 2) -> Maker:
    """Matrices for a product, smaller than what is only read: it has n**1.5 steps."""
    return lambda draw, n: tuple(draw.normal(side(n // 4), side(n // 4)) for _ in range(count))


def _batches(extent: int, count: int = 2) -> Maker:
    return lambda draw, n: tuple(
        draw.normal(n // (4 * extent * extent), extent, extent) for _ in range(count)
    )


def _rows(width: int) -> Maker:
    return lambda draw, n: (draw.normal(*rows(n, width)),)


def _complex_rows(width: int) -> Maker:
    return lambda draw, n: (draw.complex(*rows(n // 2, width)),)


def _points(width: int) -> Maker:
    return lambda draw, n: (draw.normal(side(n), width), draw.normal(side(n), width))


def _convolved(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(k), n=x.shape[-1])


def _spectrogram(x: torch.Tensor) -> torch.Tensor:
    window = torch.hann_window(512)
    return torch.stft(x, 512, 128, window=window, return_complex=True).abs()


def _round_trip(x: torch.Tensor) -> torch.Tensor:
    window = torch.hann_window(512)
    spectrum = torch.stft(x, 512, 128, window=window, return_complex=True)
    return torch.istft(spectrum, 512, 128, window=window)


def _lower(draw: Draw, n: int, extent: int = 0) -> tuple[Array, ...]:
    import numpy as np

    a, b = definite(extent, 4)(draw, n)
    return np.tril(a), b


CASES = (
    Case("mm", torch.mm, _squares(), gradient=True),
    Case("mm, transposed", lambda x, y: x.t() @ y.t(), _squares()),
    Case("addmm", torch.addmm, _squares(3), gradient=True),
    Case("bmm of 8x8", torch.bmm, _batches(8), gradient=True),
    Case("bmm of 64x64", torch.bmm, _batches(64), gradient=True),
    Case("baddbmm of 16x16", torch.baddbmm, _batches(16, 3)),
    Case(
        "mv", torch.mv, lambda d, n: (d.normal(side(n), side(n)), d.normal(side(n))), gradient=True
    ),
    Case("dot", torch.dot, lambda d, n: (d.normal(n // 2), d.normal(n // 2)), gradient=True),
    Case(
        "product of complex matrices",
        torch.mm,
        lambda d, n: (
            d.complex(side(n // 16), side(n // 16)),
            d.complex(side(n // 16), side(n // 16)),
        ),
    ),
    Case(
        "tall and thin product",
        lambda x, y: x.t() @ y,
        lambda d, n: (d.normal(*rows(n // 2, 32)), d.normal(*rows(n // 2, 32))),
    ),
    Case(
        "einsum of four axes",
        lambda x, y: torch.einsum("bhqd,bhkd->bhqk", x, y),
        lambda d, n: (
            d.normal(max(1, n // 65536), 4, 128, 64),
            d.normal(max(1, n // 65536), 4, 128, 64),
        ),
    ),
    Case("trace", torch.trace, lambda d, n: (d.normal(side(n), side(n)),)),
    Case(
        "cross",
        lambda x, y: torch.linalg.cross(x, y),
        lambda d, n: (d.normal(n // 6, 3), d.normal(n // 6, 3)),
        gradient=True,
    ),
    Case(
        "vecdot",
        torch.linalg.vecdot,
        lambda d, n: (d.normal(*rows(n // 2, 64)), d.normal(*rows(n // 2, 64))),
    ),
    Case("cov", torch.cov, lambda d, n: (d.normal(64, n // 64),)),
    Case("corrcoef", torch.corrcoef, lambda d, n: (d.normal(64, n // 64),)),
    Case("cdist of 3", torch.cdist, _points(3)),
    Case("cdist of 64", torch.cdist, _points(64), gradient=True),
    Case("cdist of 16, p=1", lambda x, y: torch.cdist(x, y, 1.0), _points(16)),
    Case("pdist of 64", torch.nn.functional.pdist, lambda d, n: (d.normal(side(n // 2), 64),)),
    Case("matrix_power 5", lambda x: torch.linalg.matrix_power(x, 5), _batches(16, 1)),
    Case("matrix_exp of 8x8", torch.matrix_exp, _batches(8, 1)),
    *factorizations(
        Case("cholesky", torch.linalg.cholesky, definite(0), gradient=True),
        Case("cholesky of 16x16", torch.linalg.cholesky, definite(16)),
        Case(
            "cholesky_solve",
            lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a)),
            definite(0, 4),
        ),
        Case("inv", torch.linalg.inv, definite(0)),
        Case("inv of 3x3", torch.linalg.inv, definite(3), gradient=True),
        Case("inv of 16x16", torch.linalg.inv, definite(16)),
        Case("solve", torch.linalg.solve, definite(0, 4)),
        Case("solve of 3x3", torch.linalg.solve, definite(3, 4), gradient=True),
        Case("solve of 16x16", torch.linalg.solve, definite(16, 4)),
        Case(
            "solve_triangular",
            lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
            _lower,
            gradient=True,
        ),
        Case("lu_factor", torch.linalg.lu_factor, definite(0)),
        Case("qr", lambda a: torch.linalg.qr(a)[1].abs(), definite(0)),
        Case("qr of 16x16", lambda a: torch.linalg.qr(a)[1].abs(), definite(16)),
        Case("det of 3x3", torch.linalg.det, definite(3), gradient=True),
        Case("slogdet of 16x16", torch.linalg.slogdet, definite(16)),
        Case("eigvalsh of 3x3", torch.linalg.eigvalsh, definite(3)),
        Case("eigvalsh of 16x16", torch.linalg.eigvalsh, definite(16)),
        Case("svdvals of 16x16", torch.linalg.svdvals, definite(16)),
        Case(
            "lstsq of 64x8",
            lambda a, b: torch.linalg.lstsq(a, b, driver="gels").solution,
            lambda d, n: (d.normal(n // 2048, 64, 8), d.normal(n // 2048, 64, 2)),
        ),
    ),
    Case("fft of 1024", torch.fft.fft, _complex_rows(1024), gradient=False),
    Case("fft of 65536", torch.fft.fft, _complex_rows(65536)),
    Case("fft of 1000", torch.fft.fft, _complex_rows(1000)),
    Case("fft of 1009", torch.fft.fft, _complex_rows(1009)),
    Case("ifft of 256", torch.fft.ifft, _complex_rows(256)),
    Case("rfft of 4096", torch.fft.rfft, _rows(4096), gradient=True),
    Case("irfft of 4096", torch.fft.irfft, _complex_rows(2049)),
    Case("fft2", torch.fft.fft2, lambda d, n: (d.complex(4, side(n // 8), side(n // 8)),)),
    Case(
        "circular convolution by fft, 4096",
        _convolved,
        lambda d, n: (d.normal(*rows(n // 2, 4096)), d.normal(*rows(n // 2, 4096))),
        gradient=True,
    ),
    Case("stft of 512", _spectrogram, lambda d, n: (d.normal(4, n // 8),)),
    Case("stft and istft of 512", _round_trip, lambda d, n: (d.normal(4, n // 8),)),
)
