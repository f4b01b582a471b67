"""The rows of :mod:`bench.pipelines` for GPUs: at the sizes of the table, and small. NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.algorithms.table import bodies, distances
from bench.gpu.cases import Pair
from bench.pipelines.table import (
    CASES,
    color,
    gray,
    halves,
    holes,
    matrices,
    planes,
    pulse,
    sensor,
    shades,
)
from bench.table import Arrays, uniform

#: Arguments that a simulator is through with soon, by program.
SMALL: dict[str, Callable[[], Arrays]] = {
    "filters.blur_x_blur_y": color(37, 61),
    "filters.unsharp_mask": color(37, 61),
    "filters.harris": shades(37, 61),
    "filters.canny_edges": gray(137, 161),
    "images.camera": sensor(50, 78, 256),
    "images.bilateral_grid": gray(48, 80),
    "images.interpolation": holes(256, 128),
    "images.local_laplacian": gray(128, 256),
    "images.blending": halves(64, 96),
    "filters.median": gray(37, 61),
    "filters.bilateral": gray(37, 61),
    "filters.non_local_means": gray(37, 61),
    "simulation.wave": pulse(23),
    "simulation.heat": uniform((37, 61)),
    "simulation.n_body": bodies(53),
    "simulation.n_body_planes": planes(53),
    "simulation.scaling": distances(17),
    "simulation.scaling_by_rows": distances(17),
    "simulation.product_3x3": matrices(13, 17, count=2),
    "simulation.inverse_3x3": matrices(13, 17),
}

#: In the table's order. The floor of a small case is not known.
PIPELINES = tuple(
    Pair(
        case,
        replace(
            case,
            name=f"{case.name}, small",
            inputs=SMALL[case.program.removeprefix("pipelines.")],
            floor_bytes=0,
        ),
        group="pipelines",
    )
    for case in CASES
)
