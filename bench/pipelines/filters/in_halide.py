"""The filters in Halide."""

from __future__ import annotations

from collections.abc import Sequence

import halide as hl

from bench.constants import BLUR
from bench.pipelines.constants import (
    BILATERAL_RANGE,
    BILATERAL_REACH,
    BILATERAL_SPACE,
    EDGE_HIGH,
    EDGE_LOW,
    HARRIS,
    PATCH_DISTANCE,
    PATCH_REACH,
    SEARCH_REACH,
    SOBEL,
    SOBEL_SCALE,
    TAN_22,
    TAN_67,
    UNSHARP_THRESHOLD,
    UNSHARP_WEIGHT,
    WEAK,
)
from bench.pipelines.halide_programs import Program, Source, Stage, named, total, weighted

x, y, c, dx, dy = (hl.Var(name) for name in ("x", "y", "c", "dx", "dy"))

#: Rows of a strip that one thread computes, in schedules by hand.
STRIP = 32


def _blurred(image: Stage, more: Sequence[hl.Var]) -> tuple[hl.Func, hl.Func]:
    across = named("across", (x, y, *more), weighted(image, BLUR, lambda i: (x + i, y, *more)))
    down = named("down", (x, y, *more), weighted(across, BLUR, lambda i: (x, y + i, *more)))
    return across, down


def blur_x_blur_y(image: Source) -> Program:
    """A separable blur; by hand: strips, in which the rows slide that were blurred across."""
    across, down = _blurred(image.image, (c,))
    channels, height, width = image.shape

    def by_hand(lanes: int) -> None:
        strip, row = hl.Var("strip"), hl.Var("row")
        down.split(y, strip, row, STRIP, hl.TailStrategy.ShiftInwards)
        down.vectorize(x, 2 * lanes).parallel(strip)
        across.store_at(down, strip).compute_at(down, row).vectorize(x, 2 * lanes)

    return Program(down, (channels, height - 4, width - 4), by_hand)


def unsharp_mask(image: Source) -> Program:
    """See :mod:`in_torch` beside, as for all of these."""
    _, blurred = _blurred(image.image, (c,))
    sharp = image.image[x + 2, y + 2, c]
    detail = sharp - blurred[x, y, c]
    more = hl.select(
        hl.abs(detail) < hl.f32(UNSHARP_THRESHOLD), sharp, sharp + hl.f32(UNSHARP_WEIGHT) * detail
    )
    channels, height, width = image.shape
    return Program(named("sharpened", (x, y, c), more), (channels, height - 4, width - 4))


def _sobel(f: Stage, scale: float) -> tuple[hl.Func, hl.Func]:
    taps = [(i, j, hl.f32(SOBEL[j][i] / scale)) for j in range(3) for i in range(3) if SOBEL[j][i]]
    across = total([tap * f[x + i, y + j] for i, j, tap in taps])
    down = total([tap * f[x + j, y + i] for i, j, tap in taps])
    return named("gx", (x, y), across), named("gy", (x, y), down)


def harris(image: Source) -> Program:
    """Harris' corner measure; by hand: strips, in which the rows of gradients slide."""
    gx, gy = _sobel(image.image, SOBEL_SCALE)

    def summed(name: str, product: hl.Expr) -> hl.Func:
        f = named(f"{name}_product", (x, y), product)
        return named(name, (x, y), total([f[x + i, y + j] for j in range(3) for i in range(3)]))

    here = (x, y)
    sums = [
        summed("xx", gx[here] * gx[here]),
        summed("yy", gy[here] * gy[here]),
        summed("xy", gx[here] * gy[here]),
    ]
    xx, yy, xy = (f[here] for f in sums)
    trace = xx + yy
    corners = named("corners", here, xx * yy - xy * xy - hl.f32(HARRIS) * trace * trace)
    height, width = image.size

    def by_hand(lanes: int) -> None:
        strip, row = hl.Var("strip"), hl.Var("row")
        corners.split(y, strip, row, STRIP, hl.TailStrategy.ShiftInwards)
        corners.vectorize(x, lanes).parallel(strip)
        for gradient in (gx, gy):
            gradient.store_at(corners, strip).compute_at(corners, row).vectorize(x, lanes)
        gy.compute_with(gx, x)

    return Program(corners, (height - 4, width - 4), by_hand)


def canny_edges(image: Source) -> Program:
    """Maxima of the gradient along its own direction, and two thresholds."""
    gx, gy = _sobel(_blurred(image.image, ())[1], 1.0)
    size = named("size", (x, y), hl.sqrt(gx[x, y] * gx[x, y] + gy[x, y] * gy[x, y]))

    def beside(down: int, across: int) -> hl.Expr:
        return hl.Expr(size[x + 1 + across, y + 1 + down])

    ux, uy = gx[x + 1, y + 1], gy[x + 1, y + 1]
    flat = hl.abs(uy) <= hl.f32(TAN_22) * hl.abs(ux)
    steep = hl.abs(uy) >= hl.f32(TAN_67) * hl.abs(ux)
    falling = ux * uy > 0
    one = hl.select(falling, beside(-1, -1), beside(-1, 1))
    other = hl.select(falling, beside(1, 1), beside(1, -1))
    one = hl.select(flat, beside(0, -1), steep, beside(-1, 0), one)
    other = hl.select(flat, beside(0, 1), steep, beside(1, 0), other)
    here = beside(0, 0)
    thin = named("thin", (x, y), hl.select((here >= one) & (here > other), here, hl.f32(0)))
    strongest = thin[x, y]
    for i, j in ((i, j) for j in range(3) for i in range(3)):
        strongest = hl.max(strongest, thin[x + i, y + j])
    edge = hl.select(strongest >= hl.f32(EDGE_HIGH), hl.f32(1), hl.f32(WEAK))
    edges = named(
        "edges", (x, y), hl.select(thin[x + 1, y + 1] >= hl.f32(EDGE_LOW), edge, hl.f32(0))
    )
    height, width = image.size
    return Program(edges, (height - 10, width - 10))


def _sorted(values: list[hl.Expr]) -> list[hl.Expr]:
    """The values in ascending order, by insertion."""
    done: list[hl.Expr] = []
    for value in values:
        for number, smaller in enumerate(done):
            done[number], value = hl.min(smaller, value), hl.max(smaller, value)
        done.append(value)
    return done


def median(image: Source) -> Program:
    """The median of 25: columns of five are sorted once; what cannot be in the middle is dropped.

    Of the r-th smallest of each of five columns take the k-th smallest: r k values are not larger,
    itself among them, and (6 - r)(6 - k) are not smaller. The median has 13 of either; what has
    more is on one of its sides, and as many are on the other one.
    """
    column = hl.Func("column")
    column[x, y] = tuple(_sorted([image.image[x, y + j] for j in range(5)]))
    ranks = hl.Func("ranks")
    left: list[hl.Expr] = []
    for rank in range(5):
        row = _sorted([column[x + i, y][rank] for i in range(5)])
        left += [
            value
            for place, value in enumerate(row)
            if (rank + 1) * (place + 1) <= 13 and (5 - rank) * (5 - place) <= 13
        ]
    ranks[x, y] = tuple(left)
    # As many were dropped below as above.
    middle = _sorted([ranks[x, y][number] for number in range(len(left))])[len(left) // 2]
    height, width = image.size
    return Program(named("middle", (x, y), middle), (height - 4, width - 4))


def _mean(name: str, weight: hl.Expr, value: hl.Expr) -> hl.Func:
    """The weighted mean over the reduction domain that both have."""
    sums = hl.Func("sums")
    sums[x, y] = (hl.f32(0), hl.f32(0))
    sums[x, y] = (sums[x, y][0] + weight * value, sums[x, y][1] + weight)
    return named(name, (x, y), sums[x, y][0] / sums[x, y][1])


def bilateral(image: Source) -> Program:
    """Means of 9 x 9 pixels by nearness and likeness."""
    reach, image_ = BILATERAL_REACH, image.image
    near = named("near", (dx,), hl.exp(-hl.f32(dx * dx) / hl.f32(2 * BILATERAL_SPACE**2)))
    window = hl.RDom([(-reach, 2 * reach + 1)] * 2, "window")
    there = image_[x + reach + window.x, y + reach + window.y]
    apart = there - image_[x + reach, y + reach]
    alike = hl.exp(-apart * apart / hl.f32(2 * BILATERAL_RANGE**2))
    mean = _mean("smooth", near[window.x] * near[window.y] * alike, there)
    height, width = image.size
    return Program(mean, (height - 2 * reach, width - 2 * reach))


def non_local_means(image: Source) -> Program:
    """Means of 7 x 7 pixels by the likeness of the 3 x 3 pixels around them."""
    image_, patch, margin = image.image, 2 * PATCH_REACH + 1, SEARCH_REACH + PATCH_REACH
    apart = image_[x + SEARCH_REACH + dx, y + SEARCH_REACH + dy]
    apart = apart - image_[x + SEARCH_REACH, y + SEARCH_REACH]
    every = (x, y, dx, dy)
    squares = named("squares", every, apart * apart)
    down = named("patches", every, total([squares[x, y + j, dx, dy] for j in range(patch)]))
    box = named("box", every, total([down[x + i, y, dx, dy] for i in range(patch)]))
    weight = named("weight", every, hl.exp(-box[every] / hl.f32(patch * patch * PATCH_DISTANCE)))
    window = hl.RDom([(-SEARCH_REACH, 2 * SEARCH_REACH + 1)] * 2, "search")
    there = image_[x + margin + window.x, y + margin + window.y]
    mean = _mean("denoised", weight[x, y, window.x, window.y], there)
    height, width = image.size
    return Program(mean, (height - 2 * margin, width - 2 * margin), beam=4)
