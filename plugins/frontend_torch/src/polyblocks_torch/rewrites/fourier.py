"""Fourier transforms along one dimension of a tensor of any rank."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import fx

from polyblocks.algorithms.fourier import check_length
from polyblocks_torch.importing.fourier import FOURIER, FOURIER_TO_REAL
from polyblocks_torch.rewrites.emitter import Emitter

aten = torch.ops.aten


def transform(
    emitter: Emitter, re: fx.Node, im: fx.Node | None, dim: int, sign: int, scale: float
) -> tuple[fx.Node, fx.Node]:
    """``scale * sum(x[j] exp(sign 2 pi i j k / n))`` along a dimension.

    Args:
        emitter: of the graph.
        re: real parts.
        im: imaginary parts; None if they are zero.
        dim: the dimension.
        sign: of the exponent.
        scale: factor of all results.

    Returns:
        Real and imaginary parts, of the shape of ``re``.
    """
    return _pair(emitter, re, im, dim, sign, scale, half=False)


def transform_real(
    emitter: Emitter, x: fx.Node, dim: int, sign: int, scale: float
) -> tuple[fx.Node, fx.Node]:
    """The first n / 2 + 1 results of the transform of n real numbers."""
    return _pair(emitter, x, None, dim, sign, scale, half=True)


def transform_to_real(
    emitter: Emitter, re: fx.Node, im: fx.Node, dim: int, n: int, sign: int, scale: float
) -> fx.Node:
    """The n real results of the transform of half of a Hermitian sequence."""
    check_length(n)
    head = n // 2 + 1
    heads = [emitter.emit(aten.slice.Tensor, part, dim, 0, head) for part in (re, im)]
    parts = [_folded(emitter, part, dim) for part in heads]
    result = emitter.emit(FOURIER_TO_REAL, *parts, n, sign, scale)
    return _unfolded(emitter, result, _shape(re), dim, n)


def _pair(
    emitter: Emitter,
    re: fx.Node,
    im: fx.Node | None,
    dim: int,
    sign: int,
    scale: float,
    *,
    half: bool,
) -> tuple[fx.Node, fx.Node]:
    shape = _shape(re)
    check_length(shape[dim])
    parts = [None if part is None else _folded(emitter, part, dim) for part in (re, im)]
    both = emitter.emit(FOURIER, *parts, shape[dim], sign, scale, half)
    n = shape[dim] // 2 + 1 if half else shape[dim]
    first, second = (
        _unfolded(emitter, emitter.emit(operator.getitem, both, i), shape, dim, n) for i in (0, 1)
    )
    return first, second


def _shape(node: fx.Node) -> list[int]:
    return list(node.meta["val"].shape)


def _folded(emitter: Emitter, part: fx.Node, dim: int) -> fx.Node:
    """As [outer, n, inner]."""
    shape = _shape(part)
    if not part.meta["val"].is_contiguous():
        part = emitter.emit(aten.clone.default, part, memory_format=torch.contiguous_format)
    folded = [math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])]
    return part if folded == shape else _view(emitter, part, folded)


def _unfolded(emitter: Emitter, part: fx.Node, shape: list[int], dim: int, n: int) -> fx.Node:
    return _view(emitter, part, [*shape[:dim], n, *shape[dim + 1 :]])


def _view(emitter: Emitter, part: fx.Node, shape: Any) -> fx.Node:
    return emitter.emit(aten.view.default, part, shape)
