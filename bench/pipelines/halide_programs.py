"""What a pipeline in Halide is made of.

A module ``in_halide`` has functions of the same names as those in the other languages. Each takes
its arguments as :class:`Source` and returns a :class:`Program`, whose coordinates are in Halide's
order: the first one is the innermost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import halide as hl

#: What can be read at a place, and a place of it.
Stage = hl.Func | hl.ImageParam
Place = tuple[hl.Expr, ...]


@dataclass(frozen=True)
class Source:
    """An argument.

    Attributes:
        image: what a function reads, ``image[x, y]``.
        shape: in NumPy's order.
    """

    image: Stage
    shape: tuple[int, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.shape[-2], self.shape[-1]


@dataclass(frozen=True)
class Program:
    """A pipeline.

    Attributes:
        output: its last stage.
        shape: of the result, in NumPy's order.
        by_hand: sets a schedule, for so many lanes of float32; None if there is none.
        calls: how often the pipeline runs in turn: its result takes the place of the last argument,
            and that one of the argument before it.
        beam: alternatives that the search of Adams2019 keeps at each stage. With its own 32 it
            schedules ten stages in seconds; a reduction over four stages takes it one minute, and a
            pyramid of eight levels six.
    """

    output: hl.Func
    shape: tuple[int, ...]
    by_hand: Callable[[int], None] | None = None
    calls: int = 1
    beam: int = 32


def weighted(f: Stage, taps: Sequence[float], at: Callable[[int], Place]) -> hl.Expr:
    """A sum of places of ``f``: ``at`` says where each tap is."""
    return total([hl.f32(tap) * f[at(number)] for number, tap in enumerate(taps)])


def total(terms: Sequence[hl.Expr]) -> hl.Expr:
    """The sum, from left to right."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def named(name: str, arguments: Sequence[hl.Var], value: hl.Expr) -> hl.Func:
    """A stage."""
    f = hl.Func(name)
    f[tuple(arguments)] = value
    return f


def held(f: Stage, height: int, width: int) -> hl.Func:
    """Beyond the border is what lies on it; further dimensions are left alone."""
    return hl.BoundaryConditions.repeat_edge(f, [(0, width), (0, height)])


def surrounded(f: Stage, height: int, width: int) -> hl.Func:
    """Beyond the border is 0; further dimensions are left alone."""
    return hl.BoundaryConditions.constant_exterior(f, hl.f32(0), [(0, width), (0, height)])
