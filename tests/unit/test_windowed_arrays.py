"""Operands whose rows are windows: what is copied pixel by pixel, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from polyblocks import mlir
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.windowed_arrays import WindowedArray, windowed
from polyblocks.affine.model import Buffer, Load, Value, Var
from polyblocks_nvgpu.bulk.copies import BULK_COPIES


def of(
    size: tuple[int, ...],
    window: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    low: tuple[int, ...],
    high: tuple[int, ...] | None = None,
    channels: int = 64,
    images: int = 3,
    change: Any = None,
) -> WindowedArray | None:
    """That of ``x[n, s * i + d * k - low, ..., c]`` with padding of ``low`` and ``high``.

    ``change`` gets the index, conditions, rows and steps, and returns others.
    """
    with mlir.make_context():
        half = mlir.ir.F16Type.get()
        n, c = Var(images, "n"), Var(channels, "c")
        counts = [
            (extent + before + after - (taps - 1) * apart - 1) // step + 1
            for extent, taps, step, apart, before, after in zip(
                size, window, stride, dilation, low, high or low, strict=True
            )
        ]
        outs = [Var(count, f"o{k}") for k, count in enumerate(counts)]
        taps = [Var(count, f"k{k}") for k, count in enumerate(window)]
        places = [
            Expr.of(o) * s + Expr.of(k) * d - p
            for o, k, s, d, p in zip(outs, taps, stride, dilation, low, strict=True)
        ]
        where = []
        for expr, extent in zip(places, size, strict=True):
            least, most = expr.range()
            where += [expr] * (least < 0) + [Expr(extent - 1) - expr] * (most >= extent)
        index, rows, steps = [Expr.of(n), *places, Expr.of(c)], [n, *outs], [*taps, c]
        if change is not None:
            index, where, rows, steps = change(index, where, rows, steps)
        shape = (images, *size, channels)
        buffer = Buffer(shape, half, "input", bytes_per_element=2)
        load = Load(Value(half), buffer, tuple(index), where=tuple(where))
        return windowed(load, rows, steps, BULK_COPIES)


def corners(found: WindowedArray | None) -> list[tuple[int, int, int]]:
    assert found is not None
    return [(each.low, each.corner, each.step) for each in found.pixels]


def test_of_a_window_the_innermost_dimension_comes_first() -> None:
    found = of((14, 16), (3, 5), (1, 2), (2, 1), (2, 1))
    assert found is not None
    assert found.extents == (64, 16, 14, 3)
    assert found.strides == (128, 16 * 128, 14 * 16 * 128)
    # 7 windows of 5 from -1 on: the last one begins at 11, of places up to 15.
    assert corners(found) == [(-1, -4, 2), (-2, -2, 1)]
    assert [each.apart for each in found.pixels] == [1, 2]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (((70,), (5,), (3,), (2,), (4,)), [(-4, -4, 3)]),
        (((9, 9), (3, 3), (1, 1), (1, 1), (0, 0)), [(0, -2, 1), (0, -2, 1)]),
        (((9, 9), (1, 1), (2, 2), (1, 1), (0, 0)), [(0, 0, 2), (0, 0, 2)]),
        (((5, 6, 7), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)), [(-1, -1, 1)] * 3),
    ],
)
def test_from_one_to_three_dimensions(given: Any, expected: list[tuple[int, int, int]]) -> None:
    assert corners(of(*given)) == expected


def test_padding_may_differ_at_both_ends() -> None:
    assert corners(of((10, 10), (3, 3), (1, 1), (1, 1), (2, 0), (0, 1))) == [
        (0, -1, 1),
        (-2, -2, 1),
    ]


def test_one_image() -> None:
    found = of((9, 9), (3, 3), (1, 1), (1, 1), (1, 1), images=1)
    assert found is not None
    assert (found.image, found.extents) == (None, (64, 9, 9, 1))


def turned(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    """The window's elements from the last one on."""
    k = steps[0]
    return [e.substitute({k: Expr(k.extent - 1) - Expr.of(k)}) for e in index], where, rows, steps


def of_divided_places(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    """As a convolution that is transposed."""
    n, i, j, c = index
    return [n, i // 2, j, c], where, rows, steps


def of_images_that_overlap(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    n, i, j, c = index
    return [n, i + rows[0], j, c], where, rows, steps


def of_another_condition(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    return index, [*where, index[1] - 3], rows, steps


def of_rows_in_another_order(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    return index, where, [rows[0], rows[2], rows[1]], steps


def of_channels_outside(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    return index, where, rows, [steps[-1], *steps[:-1]]


def of_steps_elsewhere(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    return index, where, rows, [Var(2), *steps]


def of_a_sum_of_elements(index: Any, where: Any, rows: Any, steps: Any) -> Any:
    n, i, j, c = index
    return [n, i + steps[1], j, c], where, rows, steps


@pytest.mark.parametrize(
    "change",
    [
        turned,
        of_divided_places,
        of_images_that_overlap,
        of_another_condition,
        of_rows_in_another_order,
        of_channels_outside,
        of_steps_elsewhere,
        of_a_sum_of_elements,
    ],
)
def test_refused(change: Any) -> None:
    given = ((9, 9), (3, 3), (1, 1), (1, 1), (1, 1))
    assert of(*given) is not None
    assert of(*given, change=change) is None


@pytest.mark.parametrize(
    ("given", "channels"),
    [
        # Channels that are no whole lines, too large a step, and corners and offsets without room.
        (((9, 9), (3, 3), (1, 1), (1, 1), (1, 1)), 72),
        (((90, 90), (3, 3), (9, 9), (1, 1), (1, 1)), 64),
        (((300, 300), (140, 3), (1, 1), (1, 1), (0, 1)), 64),
        (((300, 3), (3, 3), (1, 1), (130, 1), (130, 1)), 64),
        (((40, 9, 9), (3, 3, 3), (1, 1, 1), (17, 1, 1), (17, 1, 1)), 64),
        (((3, 3, 3, 3), (1, 1, 1, 1), (2, 2, 2, 2), (1, 1, 1, 1), (0, 0, 0, 0)), 64),
    ],
)
def test_there_are_limits(given: Any, channels: int) -> None:
    assert of(*given, channels=channels) is None


def test_chips_without_such_copies() -> None:
    with mlir.make_context():
        half = mlir.ir.F16Type.get()
        i, k, c = Var(8), Var(3), Var(64)
        buffer = Buffer((10, 64), half, "input", bytes_per_element=2)
        load = Load(Value(half), buffer, (Expr.of(i) + k, Expr.of(c)))
        assert windowed(load, [i], [k, c], BULK_COPIES) is not None
        assert windowed(load, [i], [k, c], replace(BULK_COPIES, windows=None)) is None
