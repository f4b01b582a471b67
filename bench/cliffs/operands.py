"""Operands that operations of several frameworks have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.cliffs.case import Array, Draw, rows, side

Maker = Callable[[Draw, int], tuple[Array, ...]]


def flat(low: float = -4, high: float = 4, count: int = 1) -> Maker:
    """Arrays of uniform numbers."""
    return lambda draw, n: tuple(draw.uniform(low, high, n // count) for _ in range(count))


def of_rows(width: int, count: int = 1) -> Maker:
    """Arrays of rows of a width, normal numbers."""
    return lambda draw, n: tuple(draw.normal(*rows(n // count, width)) for _ in range(count))


def squares(count: int = 1, parts: int = 1) -> Maker:
    """Square matrices, of which ``parts`` have all elements."""
    return lambda draw, n: tuple(
        draw.normal(side(n // parts), side(n // parts)) for _ in range(count)
    )


def definite(extent: int, columns: int = 0) -> Maker:
    """Definite matrices, one large one if ``extent`` is 0; with right-hand sides if asked."""

    def make(draw: Draw, n: int) -> tuple[Array, ...]:
        if extent:
            a = draw.positive_definite(n // (8 * extent * extent), extent, extent)
        else:
            a = draw.positive_definite(side(n // 4), side(n // 4))
        return (a, draw.normal(*a.shape[:-1], columns)) if columns else (a,)

    return make


def image(channels: int = 32) -> Maker:
    """Images with channels last."""

    def make(draw: Draw, n: int) -> tuple[Array, ...]:
        extent = side(n, 2, 4 * channels)
        return (draw.normal(4, extent, extent, channels),)

    return make


def image_and(*weights: int) -> Maker:
    """Images with channels last, and the weights of a convolution of them."""

    def make(draw: Draw, n: int) -> tuple[Array, ...]:
        extent = side(n // 4, 2, 4 * weights[-2])
        return draw.normal(4, extent, extent, weights[-2]), draw.normal(*weights) / 8

    return make


def scattered(draw: Draw, n: int) -> tuple[Array, ...]:
    """A destination of rows, which of them are updated, and as many rows."""
    count = n // 64
    return (
        draw.normal(count, 64),
        draw.integers(0, count, count, dtype=np.int32),
        draw.normal(count, 64),
    )
