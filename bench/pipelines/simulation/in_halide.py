"""The simulations on grids in Halide; one pipeline has one or some of the steps."""

from __future__ import annotations

import halide as hl

from bench.constants import DIFFUSION
from bench.pipelines.constants import COURANT2, HEAT_STEPS, STAR, WAVE_STEPS
from bench.pipelines.halide_programs import Program, Source, held, named, total

x, y, z = (hl.Var(name) for name in "xyz")

#: Steps of the heat equation in one pipeline.
HEAT_AT_ONCE = 8


def wave(before: Source, now: Source) -> Program:
    """One step of the wave equation, so many times."""
    depth, height, width = now.shape
    bounds = [(0, width), (0, height), (0, depth)]
    u = hl.BoundaryConditions.constant_exterior(now.image, hl.f32(0), bounds)
    terms = [hl.f32(3 * STAR[0]) * u[x, y, z]]
    for far, tap in enumerate(STAR[1:], 1):
        terms += [
            hl.f32(tap) * (u[x - far, y, z] + u[x + far, y, z]),
            hl.f32(tap) * (u[x, y - far, z] + u[x, y + far, z]),
            hl.f32(tap) * (u[x, y, z - far] + u[x, y, z + far]),
        ]
    after = 2 * u[x, y, z] - before.image[x, y, z] + hl.f32(COURANT2) * total(terms)
    return Program(named("after", (x, y, z), after), now.shape, calls=WAVE_STEPS)


def heat(u: Source) -> Program:
    """Some steps of the heat equation, so many times."""
    height, width = u.shape
    now = held(u.image, height, width)
    border = (x <= 0) | (x >= width - 1) | (y <= 0) | (y >= height - 1)
    for number in range(HEAT_AT_ONCE):
        here = now[x, y]
        around = now[x, y - 1] + now[x, y + 1] + now[x - 1, y] + now[x + 1, y]
        after = hl.select(border, here, here + hl.f32(DIFFUSION) * (around - 4 * here))
        now = named(f"after{number + 1}", (x, y), after)
    return Program(now, u.shape, calls=HEAT_STEPS // HEAT_AT_ONCE)
