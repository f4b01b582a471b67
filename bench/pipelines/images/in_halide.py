"""The pipelines of several resolutions in Halide; :mod:`in_torch` beside says what they are."""

from __future__ import annotations

from collections.abc import Sequence

import halide as hl

from bench.pipelines.constants import (
    BLACK,
    BLEND_LEVELS,
    CELL,
    COLOR_MATRIX,
    CURVE,
    DETAIL,
    DETAIL_RANGE,
    INTERPOLATION_LEVELS,
    LAPLACIAN_LEVELS,
    LAPLACIAN_SHADES,
    SHADES,
    SHARPEN,
    TAPS3,
    TAPS4,
    TAPS5,
    TONE,
)
from bench.pipelines.halide_programs import (
    Program,
    Source,
    Stage,
    held,
    named,
    surrounded,
    total,
    weighted,
)

x, y, z, c, k = (hl.Var(name) for name in ("x", "y", "z", "c", "k"))

Size = tuple[int, int]

#: One alternative at each stage, for what has many of them.
GREEDY = 1

#: Rows of a strip that one thread computes, in schedules by hand.
STRIP = 16


def _half(size: Size, levels: int = 1) -> Size:
    return size[0] >> levels, size[1] >> levels


# --- camera ---------------------------------------------------------------------------------


def _mean(a: hl.Expr, b: hl.Expr) -> hl.Expr:
    return hl.f32(0.5) * (a + b)


def _calmer(p: hl.Expr, q: hl.Expr, r: hl.Expr, s: hl.Expr) -> hl.Expr:
    return hl.select(hl.abs(p - q) < hl.abs(r - s), _mean(p, q), _mean(r, s))


def _interleaved(name: str, rows: Sequence[Sequence[hl.Expr]]) -> hl.Func:
    """Of four planes; an interior pixel of the planes is the first one."""
    planes = [
        named(f"{name}{number}", (x, y), plane) for number, plane in enumerate((*rows[0], *rows[1]))
    ]
    a, b, c, d = (plane[x // 2 + 2, y // 2 + 2] for plane in planes)
    even = hl.select(x % 2 == 0, a, b)
    return named(name, (x, y), hl.select(y % 2 == 0, even, hl.select(x % 2 == 0, c, d)))


def camera(raw: Source, curve: Source) -> Program:
    """Hot pixels, demosaicing, colour matrix, curve and sharpening."""
    around = [raw.image[x + 2 + i, y + 2 + j] for i, j in ((0, -2), (0, 2), (-2, 0), (2, 0))]
    low, high = around[0], around[0]
    for value in around[1:]:
        low, high = hl.min(low, value), hl.max(high, value)
    calm = named("calm", (x, y), hl.clamp(raw.image[x + 2, y + 2], low, high))
    g0, r, b, g1 = (
        named(name, (x, y), calm[2 * x + i, 2 * y + j])
        for name, i, j in (("g0", 0, 0), ("r", 1, 0), ("b", 0, 1), ("g1", 1, 1))
    )
    green_r = named("green_r", (x, y), _calmer(g0[x, y], g0[x + 1, y], g1[x, y - 1], g1[x, y]))
    green_b = named("green_b", (x, y), _calmer(g1[x - 1, y], g1[x, y], g0[x, y], g0[x, y + 1]))
    red = named("red", (x, y), r[x, y] - green_r[x, y])
    blue = named("blue", (x, y), b[x, y] - green_b[x, y])
    diagonal = _calmer(red[x - 1, y + 1], red[x, y], red[x - 1, y], red[x, y + 1])
    other = _calmer(blue[x + 1, y - 1], blue[x, y], blue[x, y - 1], blue[x + 1, y])
    h0, h1, here_r, here_b = g0[x, y], g1[x, y], green_r[x, y], green_b[x, y]
    reds = (
        (h0 + _mean(red[x - 1, y], red[x, y]), here_r + red[x, y]),
        (here_b + diagonal, h1 + _mean(red[x, y], red[x, y + 1])),
    )
    blues = (
        (h0 + _mean(blue[x, y - 1], blue[x, y]), here_r + other),
        (here_b + blue[x, y], h1 + _mean(blue[x, y], blue[x + 1, y])),
    )
    greens = ((h0, here_r), (here_b, h1))
    colors = [
        _interleaved(name, rows)
        for name, rows in (("reds", reds), ("greens", greens), ("blues", blues))
    ]
    lights = [color[x, y] - hl.f32(BLACK) for color in colors]
    mixed = [
        total([hl.f32(weight) * light for weight, light in zip(row, lights, strict=True)])
        for row in COLOR_MATRIX
    ]
    right = named("right", (x, y, c), hl.clamp(hl.mux(c, mixed), hl.f32(0), hl.f32(1)))
    place = right[x, y, c] * CURVE
    below = hl.clamp(hl.i32(place), 0, CURVE - 1)
    part = place - hl.f32(below)
    bent = named(
        "bent", (x, y, c), curve.image[below] * (1 - part) + curve.image[below + 1] * part
    )  # fmt: skip
    across = named("across", (x, y, c), weighted(bent, TAPS3, lambda i: (x + i, y, c)))
    smooth = weighted(across, TAPS3, lambda i: (x, y + i, c))
    sharp = bent[x + 1, y + 1, c]
    height, width = raw.size
    output = hl.clamp(sharp + hl.f32(SHARPEN) * (sharp - smooth), hl.f32(0), hl.f32(1))
    return Program(named("picture", (x, y, c), output), (3, height - 14, width - 14))


# --- bilateral grid -------------------------------------------------------------------------


def bilateral_grid(image: Source) -> Program:
    """A histogram of cells, blurred along its three axes, read between the cells."""
    height, width = image.size
    rows, columns, last = height // CELL, width // CELL, SHADES
    pixel = hl.RDom([(0, CELL), (0, CELL)], "pixel")
    value = held(image.image, height, width)[x * CELL + pixel.x, y * CELL + pixel.y]
    shade = hl.clamp(hl.i32(value * SHADES + hl.f32(0.5)), 0, last)
    grid = hl.Func("grid")
    grid[x, y, z, c] = hl.f32(0)
    grid[x, y, shade, c] += hl.select(c == 0, value, hl.f32(1))
    every = (x, y, z, c)
    inside = surrounded(grid, rows, columns)
    deep = named("deep", every, weighted(inside, TAPS5, lambda i: (x, y, z + i - 2, c)))
    down = named("down", every, weighted(deep, TAPS5, lambda i: (x, y + i - 2, z, c)))
    across = named("across", every, weighted(down, TAPS5, lambda i: (x + i - 2, y, z, c)))

    def between(at: hl.Var, extent: int) -> tuple[hl.Expr, hl.Expr]:
        place = 2 * at + 1 - CELL
        below = hl.clamp(place // (2 * CELL), 0, extent - 2)
        return below, hl.clamp(hl.f32(place) / (2 * CELL) - hl.f32(below), hl.f32(0), hl.f32(1))

    depth = image.image[x, y] * SHADES
    (ix, fx), (iy, fy) = between(x, columns), between(y, rows)
    iz = hl.clamp(hl.i32(depth), 0, last - 1)
    fz = depth - hl.f32(iz)

    def mixed(a: hl.Expr, b: hl.Expr, part: hl.Expr) -> hl.Expr:
        return a * (1 - part) + b * part

    def line(j: int, n: int) -> hl.Expr:
        return mixed(across[ix, iy + j, iz + n, c], across[ix + 1, iy + j, iz + n, c], fx)

    found = [mixed(line(0, n), line(1, n), fy) for n in (0, 1)]
    sliced = named("sliced", (x, y, c), mixed(*found, fz))
    return Program(named("smooth", (x, y), sliced[x, y, 0] / sliced[x, y, 1]), image.shape)


# --- pyramids -------------------------------------------------------------------------------


def _halving(f: Stage, size: Size, name: str, *more: hl.Var) -> tuple[hl.Func, hl.Func]:
    """Four taps along each axis, down and then across; ``size`` is that of ``f``."""
    inside = held(f, *size)
    down = weighted(inside, TAPS4, lambda i: (x, 2 * y - 1 + i, *more))
    flat = named(f"{name}_down", (x, y, *more), down)
    across = weighted(flat, TAPS4, lambda i: (2 * x - 1 + i, y, *more))
    return flat, named(name, (x, y, *more), across)


def _halved(f: Stage, size: Size, name: str, *more: hl.Var) -> hl.Func:
    return _halving(f, size, name, *more)[1]


def _doubled(f: hl.Func, size: Size, name: str, *more: hl.Var) -> hl.Func:
    """Linear between pixels; ``size`` is that of ``f``."""
    inside = held(f, *size)
    # The next pixel is the one before for even places, the one behind for odd ones.
    near, far = hl.f32(0.75), hl.f32(0.25)
    across = near * inside[x // 2, y, *more] + far * inside[x // 2 - 1 + 2 * (x % 2), y, *more]
    wide = named(f"{name}_across", (x, y, *more), across)
    down = near * wide[x, y // 2, *more] + far * wide[x, y // 2 - 1 + 2 * (y % 2), *more]
    return named(name, (x, y, *more), down)


def interpolation(image: Source, known: Source) -> Program:
    """Fill an image where it is not known; the fourth channel says how well it is."""
    size = image.size
    part = known.image[x, y]
    pyramid = [
        named("masked", (x, y, c), hl.select(c < 3, image.image[x, y, hl.min(c, 2)] * part, part))
    ]
    for level in range(1, INTERPOLATION_LEVELS):
        pyramid.append(_halved(pyramid[-1], _half(size, level - 1), f"level{level}", c))
    filled = pyramid[-1]
    for level in reversed(range(INTERPOLATION_LEVELS - 1)):
        up = _doubled(filled, _half(size, level + 1), f"up{level}", c)
        here = pyramid[level]
        value = here[x, y, c] + (1 - here[x, y, 3]) * up[x, y, c]
        filled = named(f"filled{level}", (x, y, c), value)
    result = named("normalized", (x, y, c), filled[x, y, c] / filled[x, y, 3])
    return Program(result, image.shape, beam=GREEDY)


def local_laplacian(image: Source) -> Program:
    """Laplacian pyramids for some shades; by hand: levels in strips, differences never kept."""
    count, size, levels = LAPLACIAN_SHADES, image.size, LAPLACIAN_LEVELS
    shade = hl.f32(k) / (count - 1)
    apart = image.image[x, y] - shade
    bump = apart * hl.exp(-apart * apart / hl.f32(2 * DETAIL_RANGE**2))
    tones = shade + hl.f32(TONE) * apart + hl.f32(DETAIL) * bump
    remapped = named("remapped", (x, y, k), tones)
    gaussian, inputs = [remapped], [named("input", (x, y), image.image[x, y])]
    halvings: list[tuple[hl.Func, hl.Func, int]] = []
    for level in range(1, levels):
        larger = _half(size, level - 1)
        for pyramid, name, more in ((gaussian, "gaussian", (k,)), (inputs, "input", ())):
            flat, half = _halving(pyramid[-1], larger, f"{name}{level}", *more)
            pyramid.append(half)
            halvings.append((flat, half, level))
    # A stage of its own: a schedule may keep rows of the one above, of all shades, and of this one
    # nothing, since two shades are read of it.
    gaussian[0] = named("remapped_again", (x, y, k), tones)

    def chosen(pyramid: hl.Func, level: int) -> hl.Expr:
        place = inputs[level][x, y] * (count - 1)
        below = hl.clamp(hl.i32(place), 0, count - 2)
        part = place - hl.f32(below)
        return (1 - part) * pyramid[x, y, below] + part * pyramid[x, y, below + 1]

    result = named(f"result{levels - 1}", (x, y), chosen(gaussian[-1], levels - 1))
    results = [result]
    for level in reversed(range(levels - 1)):
        smaller = _half(size, level + 1)
        up = _doubled(gaussian[level + 1], smaller, f"gaussian_up{level}", k)
        detail = named(f"detail{level}", (x, y, k), gaussian[level][x, y, k] - up[x, y, k])
        coarse = _doubled(result, smaller, f"result_up{level}")
        result = named(f"result{level}", (x, y), coarse[x, y] + chosen(detail, level))
        results.append(result)

    def in_strips(f: hl.Func, level: int, lanes: int, *before: hl.Func) -> None:
        """Keep a level; the rows of what comes right before it slide along its strips."""
        strip, row = hl.Var("strip"), hl.Var("row")
        height, width = _half(size, level)
        f.compute_root()
        if width >= 2 * lanes:
            f.vectorize(x, lanes)
        if height >= 4 * STRIP:
            f.split(y, strip, row, STRIP).parallel(strip)
            for stage in before:
                stage.store_at(f, strip).compute_at(f, row).vectorize(x, lanes)

    def by_hand(lanes: int) -> None:
        for flat, half, level in halvings:
            # An exponential of each pixel and shade is computed once on the way up.
            first = (remapped,) if half is gaussian[1] else ()
            in_strips(half, level, lanes, *first, flat)
            if half.dimensions() == 3:
                half.parallel(k)
        for number, f in enumerate(results):
            in_strips(f, levels - 1 - number, lanes)

    return Program(result, image.shape, by_hand, beam=GREEDY)


def _smaller(f: Stage, size: Size, name: str, *more: hl.Var) -> hl.Func:
    """Every other pixel after five taps along each axis; ``size`` is that of ``f``."""
    inside = held(f, *size)
    down = named(
        f"{name}_down", (x, y, *more), weighted(inside, TAPS5, lambda i: (x, 2 * y - 2 + i, *more))
    )
    return named(name, (x, y, *more), weighted(down, TAPS5, lambda i: (2 * x - 2 + i, y, *more)))


def _larger(f: hl.Func, size: Size, name: str, *more: hl.Var) -> hl.Func:
    """A pixel between each two, half of either; ``size`` is that of ``f``."""
    inside = held(f, *size)
    down = _mean(inside[x, y // 2, *more], inside[x, (y + 1) // 2, *more])
    tall = named(f"{name}_down", (x, y, *more), down)
    across = _mean(tall[x // 2, y, *more], tall[(x + 1) // 2, y, *more])
    return named(name, (x, y, *more), across)


def blending(one: Source, other: Source, mask: Source) -> Program:
    """Laplacian pyramids of two images, mixed by the Gaussian pyramid of a mask."""
    size = one.size
    ones, others = (
        [named(name, (x, y, c), source.image[x, y, c])]
        for name, source in (("one", one), ("other", other))
    )
    masks = [named("mask", (x, y), mask.image[x, y])]
    for level in range(1, BLEND_LEVELS):
        larger = _half(size, level - 1)
        ones.append(_smaller(ones[-1], larger, f"one{level}", c))
        others.append(_smaller(others[-1], larger, f"other{level}", c))
        masks.append(_smaller(masks[-1], larger, f"mask{level}"))

    def mixed(level: int, a: hl.Expr, b: hl.Expr) -> hl.Expr:
        return masks[level][x, y] * a + (1 - masks[level][x, y]) * b

    last, here = BLEND_LEVELS - 1, (x, y, c)
    result = named(f"mixed{last}", here, mixed(last, ones[last][here], others[last][here]))
    for level in reversed(range(last)):
        smaller = _half(size, level + 1)
        up = [
            _larger(f, smaller, f"{name}_up{level}", c)
            for name, f in (
                ("one", ones[level + 1]), ("other", others[level + 1]), ("mixed", result),
            )
        ]  # fmt: skip
        details = [ones[level][here] - up[0][here], others[level][here] - up[1][here]]
        result = named(f"mixed{level}", here, up[2][here] + mixed(level, *details))
    return Program(result, one.shape, beam=GREEDY)
