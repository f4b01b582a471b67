"""The simulations in PyTorch.

Long loops are ``while_loop``s where they are compiled: a loop of Python is traced step by step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._higher_order_ops import scan, while_loop
from torch.nn import functional

from bench.algorithms.constants import SCALING_EPS, SCALING_RATE, SOFTENING, TIME_STEP
from bench.algorithms.in_torch import n_body
from bench.constants import DIFFUSION
from bench.pipelines.constants import (
    COURANT2,
    HEAT_STEPS,
    SCALING_STEPS,
    STAR,
    WAVE_STEPS,
)

__all__ = [
    "heat",
    "inverse_3x3",
    "n_body",
    "n_body_planes",
    "product_3x3",
    "scaling",
    "scaling_by_rows",
    "wave",
]


def _repeated(step: Callable[[Tensor], Tensor], count: int, state: Tensor) -> Tensor:
    if not torch.compiler.is_compiling():
        for _ in range(count):
            state = step(state)
        return state

    def body(number: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return number + 1, step(state)

    begin = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda number, _: number < count, body, (begin, state))[1]


def wave(before: Tensor, now: Tensor) -> Tensor:
    """Steps of the wave equation in space, eighth order in it, at rest outside: D x H x W each."""
    reach = len(STAR) - 1

    def curvature(x: Tensor) -> Tensor:
        result = 3 * STAR[0] * x
        for axis, extent in enumerate(x.shape):
            padding = [0, 0] * (2 - axis) + [reach, reach] + [0, 0] * axis
            wide = functional.pad(x, padding)
            for far in range(1, reach + 1):
                below = wide.narrow(axis, reach - far, extent)
                above = wide.narrow(axis, reach + far, extent)
                result = result + STAR[far] * (below + above)
        return result

    for _ in range(WAVE_STEPS):
        before, now = now, 2 * now - before + COURANT2 * curvature(now)
    return now


def heat(u: Tensor) -> Tensor:
    """Steps of the heat equation on a plate whose border keeps its temperature: H x W."""

    def step(u: Tensor) -> Tensor:
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        inner = inner + DIFFUSION * (around - 4 * inner)
        middle = torch.cat([u[1:-1, :1], inner, u[1:-1, -1:]], dim=1)
        return torch.cat([u[:1], middle, u[-1:]], dim=0)

    return _repeated(step, HEAT_STEPS, u)


def n_body_planes(
    x: Tensor, y: Tensor, z: Tensor, vx: Tensor, vy: Tensor, vz: Tensor, mass: Tensor
) -> tuple[Tensor, ...]:
    """One leapfrog step as in :func:`n_body`, with an array of N for each coordinate."""
    dx, dy, dz = (p[None, :] - p[:, None] for p in (x, y, z))
    squared = dx * dx + dy * dy + dz * dz + SOFTENING
    pull = mass[None, :] / (squared * torch.sqrt(squared))
    vx, vy, vz = (
        v + TIME_STEP * (pull * d).sum(1) for v, d in ((vx, dx), (vy, dy), (vz, dz))
    )  # fmt: skip
    return x + TIME_STEP * vx, y + TIME_STEP * vy, z + TIME_STEP * vz, vx, vy, vz


def scaling(position: Tensor, distances: Tensor) -> Tensor:
    """Gradient descent for multidimensional scaling: N x 2 points, N x N distances to reach."""

    def step(position: Tensor) -> Tensor:
        apart = position[:, None, :] - position[None, :, :]
        length = torch.sqrt((apart * apart).sum(-1) + SCALING_EPS)
        pull = 1 - distances / length
        return position - SCALING_RATE * (pull[:, :, None] * apart).mean(1)

    return _repeated(step, SCALING_STEPS, position)


def scaling_by_rows(position: Tensor, distances: Tensor) -> Tensor:
    """The same, where a scan over the points moves one after the other from the old places."""

    def step(position: Tensor) -> Tensor:
        def moved(point: Tensor, wanted: Tensor) -> Tensor:
            apart = point - position
            length = torch.sqrt((apart * apart).sum(-1) + SCALING_EPS)
            return point - SCALING_RATE * ((1 - wanted / length)[:, None] * apart).mean(0)

        if not torch.compiler.is_compiling():
            return torch.vmap(moved)(position, distances)
        nothing = torch.zeros((), dtype=position.dtype)
        rows = (position, distances)
        return scan(lambda carry, row: (carry.clone(), moved(*row)), nothing, rows)[1]

    return _repeated(step, SCALING_STEPS, position)


def product_3x3(a: Tensor, b: Tensor) -> Tensor:
    """Products of a pair of matrices at every pixel: H x W x 3 x 3 each."""
    return a @ b


def inverse_3x3(a: Tensor) -> Tensor:
    """Inverses, from cross products of the rows: H x W x 3 x 3."""
    first, second, third = a.unbind(-2)
    columns = (
        torch.linalg.cross(second, third),
        torch.linalg.cross(third, first),
        torch.linalg.cross(first, second),
    )
    determinant = (first * columns[0]).sum(-1)
    return torch.stack(columns, dim=-1) / determinant[..., None, None]
