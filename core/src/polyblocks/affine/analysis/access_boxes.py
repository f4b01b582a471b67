"""Boxes: the parts of buffers that accesses touch while some loops run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from polyblocks.affine.analysis.boxes import Box, hull, overlap
from polyblocks.affine.expr import Atom, Div, Var
from polyblocks.affine.model import Buffer

#: More elements than any buffer has: how far values are apart that are known at run time only.
APART = 1 << 40

Terms = tuple[tuple[Atom, int], ...]


@dataclass(eq=False)
class Group:
    """Accesses in one body whose indices differ by constants only.

    Attributes:
        buffer: what they touch.
        terms: per dimension, the index without its constant.
        constants: per dimension, the constants that occur.
        places: the constants of each access.
        count: how many accesses.
        write: whether they store.
        passes: whether all of them are stores that pass the caches.
        unknown: variables that stand for what is known at run time only, and the loops in which
            each changes. Its values are anywhere, far apart.
    """

    buffer: Buffer
    terms: tuple[Terms, ...]
    constants: list[set[int]]
    count: int
    write: bool
    passes: bool = False
    places: set[tuple[int, ...]] = field(default_factory=set)
    unknown: dict[Var, list[Any]] = field(default_factory=dict)

    def box(self, widths: dict[Var, int], unknown: dict[Var, int] | None = None) -> StridedBox:
        """Its footprint while each variable takes the given number of values.

        Args:
            widths: of loops.
            unknown: of what is known at run time only.
        """
        values = {**widths, **(unknown or {})}
        outer: list[Terms] = []
        ranges: list[tuple[int, int]] = []
        counts: list[int] = []
        runs: list[int] = []
        still: list[int] = []
        for terms, constants, size in zip(
            self.terms, self.constants, self.buffer.shape, strict=True
        ):
            fixed: list[tuple[Atom, int]] = []
            moving: list[tuple[int, int]] = []
            least, most = min(constants), max(constants)
            for atom, factor in terms:
                extent = _values(atom, values)
                if extent > 1 and atom in self.unknown:
                    # Within what the next larger term steps over, as the digits of a number are,
                    # and within the dimension.
                    steps = (abs(f) for _, f in terms if abs(f) > abs(factor))
                    room = max(1, min(steps, default=size) // abs(factor))
                    extent = min(extent, room)
                    step = abs(factor) * (room // extent)
                    most += step * (extent - 1)
                    moving.append((step, extent))
                elif extent > 1:
                    moving.append((abs(factor), extent))
                    if factor > 0:
                        most += factor * (extent - 1)
                    else:
                        least += factor * (extent - 1)
                if extent == 1 or not isinstance(atom, Var):
                    fixed.append((atom, factor))
            if not moving:
                still.append(len(outer))
            length, pieces = _run(moving, constants)
            outer.append(tuple(fixed))
            ranges.append((least, most + 1))
            counts.append(min(length * pieces, most - least + 1))
            runs.append(pieces)
        box = StridedBox(tuple(outer), tuple(ranges), counts, runs, self._part(still))
        if self.unknown:
            box.most = self.count * math.prod(widths.values())
        return box

    def values_of_unknown(self, path: list[Any]) -> dict[Var, int]:
        """How many values each of ``unknown`` has while the loops of a path run."""
        return {
            var: math.prod(level.trips for level in path if level in changing)
            for var, changing in self.unknown.items()
        }

    def _part(self, still: list[int]) -> float:
        """The part of a box that there is: few of the rows around the middle of a star."""
        rows = math.prod(len(self.constants[d]) for d in still)
        if rows <= 1 or not self.places:
            return 1.0
        return len({tuple(place[d] for d in still) for place in self.places}) / rows


@dataclass
class StridedBox:
    """A strided part of a box in a buffer, relative to the offset from outer loops.

    Attributes:
        outer: per dimension, these terms of the index.
        box: around everything that is touched.
        counts: different indices per dimension; fewer than the box has for strided accesses.
        runs: per dimension, into how many runs of neighbours these indices fall.
        part: of all combinations of these indices, those that there are.
        most: elements that there are at most.
    """

    outer: tuple[Terms, ...]
    box: Box
    counts: list[int]
    runs: list[int]
    part: float = 1.0
    most: int = APART

    @property
    def elements(self) -> int:
        """Number of elements."""
        return min(math.ceil(math.prod(self.counts) * self.part), self.most)

    def meets(self, other: StridedBox) -> bool:
        """Whether both have the same origin, and boxes that overlap."""
        return self.outer == other.outer and overlap(self.box, other.box)

    def include(self, other: StridedBox) -> None:
        """Grow to the hull of both."""
        both = hull(self.box, other.box)
        self.most = max(self.most, other.most)
        self.part = max(self.part, other.part) if self.box == other.box else 1.0
        for d, (low, high) in enumerate(both):
            if other.box[d] != self.box[d]:
                self.counts[d] += other.counts[d]
            self.counts[d] = min(max(self.counts[d], other.counts[d]), high - low)
            self.runs[d] = max(self.runs[d], other.runs[d])
        self.box = both

    def lines(self, buffer: Buffer, dims: list[tuple[int, int]], line: int) -> int:
        """Bytes of the memory lines that it touches.

        Runs of neighbouring elements are rounded up to lines, as if they began at one.

        Args:
            buffer: that the box is in.
            dims: stride and number of the dimensions in which neighbours differ, ascending.
            line: bytes of a line.
        """
        run, rows = buffer.bytes_per_element, 1
        # The stride of a dimension whose neighbours continue the run; -1: it has ended.
        step = 1
        for stride, d in dims:
            extent, count = buffer.shape[d], self.counts[d]
            low, high = self.box[d]
            span = high - low
            if stride != step:
                rows *= count
            elif count < span:
                pieces = self.runs[d]
                run, step = min(run * span, pieces * round_up(run * count // pieces, line)), -1
            else:
                run, step = run * count, step * extent if count == extent else -1
        whole = rows * round_up(run, line)
        touched = min(round_up(math.ceil(whole * self.part), line), self.most * line)
        return min(touched, round_up(nbytes(buffer), line))


def _run(moving: list[tuple[int, int]], constants: set[int]) -> tuple[int, int]:
    """Length and number of the runs of neighbours in ``constant + sum(factor * [0, extent))``."""
    length, pieces = 1, 1
    for factor, extent in sorted(moving):
        if factor <= length:
            length += factor * (extent - 1)
        else:
            pieces *= extent
    starts = sorted(constants)
    apart = 1 + sum(b - a > length for a, b in pairwise(starts))
    if apart == 1 and pieces == 1:
        # Overlapping windows are one.
        return length + starts[-1] - starts[0], 1
    return length, pieces * (apart if pieces == 1 else len(starts))


def _values(atom: Atom, widths: dict[Var, int]) -> int:
    """How many values an atom takes while the variables of ``widths`` vary.

    A quotient is assumed to begin at a multiple of its divisor, which is what collapsed and tiled
    loops give.
    """
    if isinstance(atom, Var):
        return widths.get(atom, 1)
    spread = sum(abs(c) * (_values(a, widths) - 1) for a, c in atom.dividend.terms)
    if isinstance(atom, Div):
        return spread // atom.divisor + 1
    return min(spread + 1, atom.divisor)


def numel(buffer: Buffer) -> int:
    """Elements of a buffer; a size that is known only at run time does not limit anything."""
    return buffer.numel if min(buffer.shape, default=0) >= 0 else 1 << 62


def nbytes(buffer: Buffer) -> int:
    """Bytes of a buffer, as :func:`numel`."""
    return numel(buffer) * buffer.bytes_per_element


def round_up(size: int, line: int) -> int:
    """Bytes of whole lines."""
    return -(-size // line) * line
