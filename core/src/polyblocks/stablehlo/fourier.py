"""Fourier transforms along the last dimensions of an array."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from polyblocks.algorithms.fourier import Kind, check_length, transform
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import integers, keyword
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import reshape


@rule("stablehlo.fft")
def _fft(lowering: Lowering, op: Any, arguments: list[Array]) -> Array:
    (x,) = arguments
    shape, element = lowering.type_of(op.results[0])
    if not prod(shape) or not x.numel:
        return Array(shape, element, splat=0)
    kind = keyword(op, "fft_type")
    lengths = integers(op, "fft_length")
    for length in lengths:
        check_length(length)
    sign = 1 if kind.startswith("I") else -1
    # Inverse transforms are means.
    scale = 1.0 / prod(lengths) if sign > 0 else 1.0
    last, others = x.rank - 1, range(x.rank - len(lengths), x.rank - 1)
    if kind == "IRFFT":
        planes = _parts(lowering, x)
        for dim in others:
            planes = _along(lowering, Kind.COMPLEX, planes, dim, x.shape[dim], sign)
        return _along(lowering, Kind.HALF, planes, last, lengths[-1], sign, scale)[0]
    if kind == "RFFT":
        whole, planes = Kind.REAL, [x]
    else:
        whole, planes = Kind.COMPLEX, _parts(lowering, x)
    # Once for all dimensions.
    factors = [scale, *[1.0] * len(others)]
    planes = _along(lowering, whole, planes, last, lengths[-1], sign, factors.pop())
    for dim in others:
        planes = _along(lowering, Kind.COMPLEX, planes, dim, x.shape[dim], sign, factors.pop())
    loops = range(len(shape))
    inputs = [lowering.operand(plane, loops) for plane in planes]
    return lowering.generic(shape, inputs, [element], lambda loaded: [code.join(*loaded)])[0]


def _parts(lowering: Lowering, x: Array) -> list[Array]:
    """Real and imaginary parts."""
    if x.splat is not None:
        number = complex(x.splat)
        parts = (number.real, number.imag)
        return [Array(x.shape, x.element.part, splat=part) for part in parts]
    source = lowering.operand(x, range(x.rank))
    part = x.element.part
    return lowering.generic(x.shape, [source], [part, part], lambda z: [*code.parts(z[0])])


def _along(
    lowering: Lowering,
    kind: Kind,
    planes: Sequence[Array],
    dim: int,
    n: int,
    sign: int,
    scale: float = 1.0,
) -> list[Array]:
    """A transform of length n along one dimension; imaginary parts may be missing."""
    shape = planes[0].shape
    folded = (prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :]))
    re, *im = (lowering.tensor(reshape(lowering, plane, folded)) for plane in planes)
    results = transform(kind, re, im[0] if im else None, n, sign, scale)
    extent = n // 2 + 1 if kind is Kind.REAL else n
    element = planes[0].element
    return [
        reshape(
            lowering,
            Array((folded[0], extent, folded[2]), element, result),
            (*shape[:dim], extent, *shape[dim + 1 :]),
        )
        for result in results
        if result is not None
    ]
