"""The rows of image pipelines and simulations. NumPy only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.algorithms.table import bodies, distances
from bench.table import Arrays, Case, elements, uniform

#: Largest error of a right result: float32 in sums whose order is free.
TOLERANCE = 1e-4

#: Part of the pixels that may differ more, where a comparison decides what becomes of one.
BRANCHES = 1e-4


def photographs(count: int, height: int, width: int, extra: int = 0) -> Arrays:
    """Images of 256 shades with soft slopes, squares, thin lines and noise, as a camera has them.

    What lies on a step between shades is there in every precision.

    Args:
        count: of images.
        height: of each.
        width: of each.
        extra: a number for other images of the same kind.
    """
    random = np.random.default_rng(7 + extra)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    made = []
    for number in range(count):
        waves = np.sin(x / (37 + number) + extra) * np.cos(y / 53)
        squares = np.where((x // 64 + y // 96 + number + extra) % 2 == 0, 0.2, -0.2)
        lines = np.where((x + y) % 97 < 2, 0.15, 0.0)
        noise = 0.03 * random.standard_normal((height, width), dtype=np.float32)
        shade = np.clip(0.5 + 0.2 * waves + squares + lines + noise, 0, 1) * 255
        made.append(np.floor(shade).astype(np.float32) / 256)
    return tuple(made)


def gray(height: int, width: int) -> Callable[[], Arrays]:
    """One image."""
    return lambda: photographs(1, height, width)


def shades(height: int, width: int) -> Callable[[], Arrays]:
    """One image of shades from 0 to 255: products of its gradients are not small numbers."""
    return lambda: tuple(256 * image for image in photographs(1, height, width))


def color(height: int, width: int) -> Callable[[], Arrays]:
    """One image of three channels."""
    return lambda: (np.stack(photographs(3, height, width)),)


def sensor(height: int, width: int, curve: int) -> Callable[[], Arrays]:
    """What a sensor under a Bayer pattern sees, with some hot pixels, and a curve of tones."""

    def make() -> Arrays:
        red, green, blue = photographs(3, height, width)
        raw = green.copy()
        raw[0::2, 1::2], raw[1::2, 0::2] = red[0::2, 1::2], blue[1::2, 0::2]
        raw[np.random.default_rng(8).random((height, width)) < 1e-3] = 1.0
        tones = np.linspace(0, 1, curve + 1) ** (1 / 1.8)
        return raw, tones.astype(np.float32)

    return make


def holes(height: int, width: int) -> Callable[[], Arrays]:
    """An image of three channels, and where it is known: at a quarter of the pixels."""

    def make() -> Arrays:
        known = np.random.default_rng(9).random((height, width)) < 0.25
        return np.stack(photographs(3, height, width)), known.astype(np.float32)

    return make


def halves(height: int, width: int) -> Callable[[], Arrays]:
    """Two images of three channels, and a mask of a slanted half."""

    def make() -> Arrays:
        y, x = np.mgrid[:height, :width]
        mask = (x + y // 4 < 0.6 * width).astype(np.float32)
        one, other = (np.stack(photographs(3, height, width, extra)) for extra in (0, 5))
        return one, other, mask

    return make


def pulse(extent: int) -> Callable[[], Arrays]:
    """Two moments of a wave in a cube: a bump, and what it becomes."""

    def make() -> Arrays:
        along = (np.arange(extent, dtype=np.float32) - extent / 3) / 8
        squared = along[:, None, None] ** 2 + along[:, None] ** 2 + along**2
        before = np.exp(-squared)
        return before, (0.98 * before).astype(np.float32)

    return make


def planes(count: int) -> Callable[[], Arrays]:
    """Bodies with an array for each coordinate."""

    def make() -> Arrays:
        place, speed, mass = bodies(count)()
        return (*(np.ascontiguousarray(x) for x in (*place.T, *speed.T)), mass)

    return make


def matrices(height: int, width: int, count: int = 1) -> Callable[[], Arrays]:
    """Matrices of 3 x 3 at every pixel, far from singular."""

    def make() -> Arrays:
        random = np.random.default_rng(10)
        shape = (count, height, width, 3, 3)
        return tuple(random.uniform(-0.5, 0.5, shape).astype(np.float32) + 2 * np.eye(3, dtype="f"))

    return make


def _case(
    name: str,
    program: str,
    inputs: Callable[[], Arrays],
    floor_bytes: int,
    bar: tuple[float, float],
    *,
    branches: float = 0.0,
    tolerance: float = TOLERANCE,
) -> Case:
    return Case(
        name,
        f"pipelines.{program}",
        inputs,
        floor_bytes,
        bar=bar[0],
        bar_floor=bar[1],
        tolerance=tolerance,
        branches=branches,
    )


_SQUARE, _MEGAPIXEL = (2048, 2048), (1024, 1024)
_WIDE, _RAW = (1536, 2560), (1968, 2592)
_CUBE, _BODIES, _POINTS = 256, 2048, 200

#: What is asked of a row: at least, and the least that is acceptable.
_EVEN, _AHEAD = (1.0, 0.7), (1.5, 1.0)


def _less(shape: tuple[int, int], margin: int) -> int:
    """Bytes of an image and of a result that is smaller by so many pixels."""
    return elements(shape, (shape[0] - margin, shape[1] - margin))


CASES: tuple[Case, ...] = (
    _case(
        "blur 3x2048x2048",
        "filters.blur_x_blur_y",
        color(*_SQUARE),
        3 * _less(_SQUARE, 4),
        (1.5, 1.0),
    ),
    _case(
        "unsharp mask 3x2048x2048",
        "filters.unsharp_mask",
        color(*_SQUARE),
        3 * _less(_SQUARE, 4),
        (1.2, 1.0),
        branches=BRANCHES,
    ),
    _case(
        "Harris corners 2048x2048",
        "filters.harris",
        shades(*_SQUARE),
        _less(_SQUARE, 4),
        (1.1, 0.8),
    ),
    _case(
        "Canny-like edges 2048x2048",
        "filters.canny_edges",
        gray(*_SQUARE),
        _less(_SQUARE, 10),
        (1.1, 0.8),
        branches=BRANCHES,
    ),
    _case(
        "camera pipeline 2592x1968",
        "images.camera",
        sensor(*_RAW, 256),
        elements(_RAW, (3, 1954, 2578)),
        _EVEN,
        branches=BRANCHES,
    ),
    _case(
        "bilateral grid 2560x1536",
        "images.bilateral_grid",
        gray(*_WIDE),
        2 * elements(_WIDE),
        _EVEN,
    ),
    _case(
        "multi-scale interpolation 3x2560x1536",
        "images.interpolation",
        holes(*_WIDE),
        7 * elements(_WIDE),
        _EVEN,
    ),
    _case(
        "local Laplacian 2560x1536",
        "images.local_laplacian",
        gray(*_WIDE),
        2 * elements(_WIDE),
        _EVEN,
    ),
    _case(
        "pyramid blending 3x2048x2048",
        "images.blending",
        halves(*_SQUARE),
        10 * elements(_SQUARE),
        _EVEN,
    ),
    _case(
        "median 5x5 1024x1024",
        "filters.median",
        gray(*_MEGAPIXEL),
        _less(_MEGAPIXEL, 4),
        _EVEN,
        tolerance=0.0,
    ),
    _case(
        "bilateral 9x9 1024x1024",
        "filters.bilateral",
        gray(*_MEGAPIXEL),
        _less(_MEGAPIXEL, 8),
        _EVEN,
    ),
    _case(
        "non-local means 7/3 1024x1024",
        "filters.non_local_means",
        gray(*_MEGAPIXEL),
        _less(_MEGAPIXEL, 8),
        _EVEN,
    ),
    _case(
        f"wave equation, 25 points, 10 steps {_CUBE}x{_CUBE}x{_CUBE}",
        "simulation.wave",
        pulse(_CUBE),
        3 * 4 * _CUBE**3,
        _AHEAD,
    ),
    _case(
        "heat equation, 200 steps 1024x1024",
        "simulation.heat",
        uniform(_MEGAPIXEL),
        2 * elements(_MEGAPIXEL),
        _AHEAD,
    ),
    _case(
        f"N-body {_BODIES}, [n, n, 3]",
        "simulation.n_body",
        bodies(_BODIES),
        13 * 4 * _BODIES,
        _AHEAD,
    ),
    _case(
        f"N-body {_BODIES}, three arrays",
        "simulation.n_body_planes",
        planes(_BODIES),
        13 * 4 * _BODIES,
        _AHEAD,
    ),
    _case(
        f"scaling, 1000 steps {_POINTS} points",
        "simulation.scaling",
        distances(_POINTS),
        elements((_POINTS, _POINTS), (_POINTS, 4)),
        _AHEAD,
    ),
    _case(
        f"scaling by rows, 1000 steps {_POINTS} points",
        "simulation.scaling_by_rows",
        distances(_POINTS),
        elements((_POINTS, _POINTS), (_POINTS, 4)),
        _AHEAD,
    ),
    _case(
        "3x3 product per pixel 1024x1024",
        "simulation.product_3x3",
        matrices(*_MEGAPIXEL, count=2),
        27 * elements(_MEGAPIXEL),
        _AHEAD,
    ),
    _case(
        "3x3 inverse per pixel 1024x1024",
        "simulation.inverse_3x3",
        matrices(*_MEGAPIXEL),
        18 * elements(_MEGAPIXEL),
        _AHEAD,
    ),
)

#: Cases that compute the same, written in two ways.
SPELLINGS = {
    "N-body": tuple(case.name for case in CASES if ".n_body" in case.program),
    "scaling": tuple(case.name for case in CASES if ".scaling" in case.program),
}
