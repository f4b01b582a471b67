"""Discrete Fourier transforms as dense products and twiddle factors.

J. W. Cooley, J. W. Tukey, An algorithm for the machine calculation of complex Fourier series
(1965): for n = p m, transforms of length m, a multiplication by roots of unity, transforms of
length p. Short transforms are matrix products with constant matrices.
"""

from __future__ import annotations

import math

import torch
from torch import fx

from polyblocks.errors import UnsupportedError
from polyblocks_torch.rewrites.emitter import Emitter

aten = torch.ops.aten

#: Transforms up to this length are one matrix product.
DIRECT = 32

#: Longer ones are left to PyTorch: their roots of unity are constants of the program.
LONGEST = 1 << 13


def transform_rows(
    emitter: Emitter, re: fx.Node, im: fx.Node | None, sign: int
) -> tuple[fx.Node, fx.Node]:
    """``sum(x[j] exp(sign 2 pi i j k / n))`` of each row.

    Args:
        emitter: of the graph.
        re: real parts, [rows, n].
        im: imaginary parts; None if they are zero.
        sign: of the exponent.

    Returns:
        Real and imaginary parts, [rows, n].

    Raises:
        UnsupportedError: n is above :data:`LONGEST`, or has a prime factor above :data:`DIRECT`.
    """
    rows, n = re.meta["val"].shape
    if n > LONGEST:
        raise UnsupportedError(f"Fourier transforms of more than {LONGEST} elements")
    if n <= DIRECT:
        return _direct(emitter, re, im, sign)
    p = next((p for p in range(DIRECT, 1, -1) if n % p == 0), None)
    if p is None:
        raise UnsupportedError(f"Fourier transforms whose length has a prime factor above {DIRECT}")
    m = n // p
    inner_re = _split(emitter, re, rows, m, p)
    inner_im = None if im is None else _split(emitter, im, rows, m, p)
    re, im = transform_rows(emitter, inner_re, inner_im, sign)
    re, im = _twiddle(emitter, re, im, rows, p, m, sign)
    # [rows, p, m] -> [rows * m, p]: the second transform runs along p.
    re = _transposed(emitter, re, [rows * m, p])
    im = _transposed(emitter, im, [rows * m, p])
    re, im = _direct(emitter, re, im, sign)
    results = []
    for part in (re, im):
        cube = emitter.emit(aten.view.default, part, [rows, m, p])
        results.append(_transposed(emitter, cube, [rows, n]))
    return results[0], results[1]


def _split(emitter: Emitter, x: fx.Node, rows: int, m: int, p: int) -> fx.Node:
    """[rows, n] -> [rows * p, m]: every p-th element makes a row."""
    return _transposed(emitter, emitter.emit(aten.view.default, x, [rows, m, p]), [rows * p, m])


def _transposed(emitter: Emitter, cube: fx.Node, shape: list[int]) -> fx.Node:
    """A tensor of rank 3 with its last two dimensions exchanged, dense, in another shape."""
    turned = emitter.emit(aten.permute.default, cube, [0, 2, 1])
    turned = emitter.emit(aten.clone.default, turned, memory_format=torch.contiguous_format)
    return emitter.emit(aten.view.default, turned, shape)


def _twiddle(
    emitter: Emitter, re: fx.Node, im: fx.Node, rows: int, p: int, m: int, sign: int
) -> tuple[fx.Node, fx.Node]:
    """Multiply element [row, j, k] by ``exp(sign 2 pi i j k / (p m))``."""
    cosine, sine = _roots(emitter, p, m, p * m, sign, re.meta["val"].dtype)
    re = emitter.emit(aten.view.default, re, [rows, p, m])
    im = emitter.emit(aten.view.default, im, [rows, p, m])
    return multiply(emitter, (re, im), (cosine, sine))


def multiply(
    emitter: Emitter, a: tuple[fx.Node, fx.Node], b: tuple[fx.Node, fx.Node]
) -> tuple[fx.Node, fx.Node]:
    """Product of two pairs, element by element."""
    mul, emit = aten.mul.Tensor, emitter.emit
    re = emit(aten.sub.Tensor, emit(mul, a[0], b[0]), emit(mul, a[1], b[1]))
    im = emit(aten.add.Tensor, emit(mul, a[0], b[1]), emit(mul, a[1], b[0]))
    return re, im


def _direct(
    emitter: Emitter, re: fx.Node, im: fx.Node | None, sign: int
) -> tuple[fx.Node, fx.Node]:
    """Rows times the symmetric matrix of roots of unity."""
    n = re.meta["val"].shape[-1]
    cosine, sine = _roots(emitter, n, n, n, sign, re.meta["val"].dtype)
    mm, emit = aten.mm.default, emitter.emit
    if im is None:
        return emit(mm, re, cosine), emit(mm, re, sine)
    return (
        emit(aten.sub.Tensor, emit(mm, re, cosine), emit(mm, im, sine)),
        emit(aten.add.Tensor, emit(mm, re, sine), emit(mm, im, cosine)),
    )


def _roots(
    emitter: Emitter, rows: int, columns: int, n: int, sign: int, dtype: torch.dtype
) -> tuple[fx.Node, fx.Node]:
    """Cosines and sines of ``sign 2 pi j k / n``, [rows, columns], rounded once."""
    angles = [[sign * 2 * math.pi * (j * k % n) / n for k in range(columns)] for j in range(rows)]
    cosine = [[math.cos(angle) for angle in row] for row in angles]
    sine = [[math.sin(angle) for angle in row] for row in angles]
    return emitter.constant(cosine, dtype), emitter.constant(sine, dtype)
