"""Footprints: which part of each buffer the iterations of a nest touch, and how often it moves.

Counted on boxes: accesses of one place whose indices differ by constants are one box (a stencil's
window), overlapping boxes become their hull. Indices known only at run time touch one line each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from polyblocks.affine.access import strides
from polyblocks.affine.expr import Atom, Div, Expr, Var
from polyblocks.affine.model import Buffer, For, Load, LoadAt, Node, Store, StoreAt

Terms = tuple[tuple[Atom, int], ...]


@dataclass(eq=False)
class Group:
    """Accesses in one body whose indices differ by constants only.

    Attributes:
        buffer: what they touch.
        terms: per dimension, the index without its constant; None for run-time indices.
        constants: per dimension, the constants that occur.
        count: how many accesses.
        write: whether they store.
    """

    buffer: Buffer
    terms: tuple[Terms, ...] | None
    constants: list[set[int]]
    count: int
    write: bool

    def box(self, widths: dict[Var, int]) -> Box:
        """What it touches while the variables of ``widths`` take so many values each."""
        assert self.terms is not None
        outer: list[Terms] = []
        low: list[int] = []
        high: list[int] = []
        counts: list[int] = []
        runs: list[int] = []
        for terms, constants in zip(self.terms, self.constants, strict=True):
            fixed: list[tuple[Atom, int]] = []
            moving: list[tuple[int, int]] = []
            least, most = min(constants), max(constants)
            for atom, factor in terms:
                extent = _values(atom, widths)
                if extent > 1:
                    moving.append((abs(factor), extent))
                    if factor > 0:
                        most += factor * (extent - 1)
                    else:
                        least += factor * (extent - 1)
                if extent == 1 or not isinstance(atom, Var):
                    fixed.append((atom, factor))
            length, pieces = _run(moving, constants)
            outer.append(tuple(fixed))
            low.append(least)
            high.append(most)
            counts.append(min(length * pieces, most - least + 1))
            runs.append(pieces)
        return Box(tuple(outer), low, high, counts, runs)


@dataclass
class Box:
    """A box in a buffer, relative to what the loops outside add to the indices (``outer``).

    Attributes:
        low: smallest index per dimension, inclusive.
        high: largest index per dimension, inclusive.
        counts: different indices per dimension; fewer than the hull has for strided accesses.
        runs: per dimension, into how many runs of neighbours these indices fall.
    """

    outer: tuple[Terms, ...]
    low: list[int]
    high: list[int]
    counts: list[int]
    runs: list[int]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.counts)

    def meets(self, other: Box) -> bool:
        """Whether both have the same origin, and elements in common."""
        return self.outer == other.outer and all(
            a <= d and c <= b
            for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True)
        )

    def include(self, other: Box) -> None:
        """Grow to the hull of both."""
        for d, (a, b) in enumerate(zip(other.low, other.high, strict=True)):
            if (a, b) != (self.low[d], self.high[d]):
                self.counts[d] += other.counts[d]
            self.low[d], self.high[d] = min(a, self.low[d]), max(b, self.high[d])
            self.counts[d] = max(self.counts[d], other.counts[d])
            self.counts[d] = min(self.counts[d], self.high[d] - self.low[d] + 1)
            self.runs[d] = max(self.runs[d], other.runs[d])

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
            span = self.high[d] - self.low[d] + 1
            if stride != step:
                rows *= count
            elif count < span:
                pieces = self.runs[d]
                run, step = min(run * span, pieces * _up(run * count // pieces, line)), -1
            else:
                run, step = run * count, step * extent if count == extent else -1
        return min(rows * _up(run, line), _up(_nbytes(buffer), line))


@dataclass
class Touched:
    """Bytes of one buffer that some iterations touch, once each.

    Attributes:
        read: bytes of the elements that are loaded.
        written: bytes of the elements that are stored.
        read_lines: bytes of the lines that are loaded from.
        written_lines: bytes of the lines that are stored to.
    """

    read: int = 0
    written: int = 0
    read_lines: int = 0
    written_lines: int = 0

    @property
    def resident(self) -> int:
        """Bytes of cache that they need."""
        return max(self.read_lines, self.written_lines)

    @property
    def moved(self) -> int:
        """Bytes that cross a border of the memory hierarchy when each is loaded and stored once."""
        return self.read_lines + self.written_lines


@dataclass(eq=False)
class Level:
    """A loop of a nest, or the nest itself (``var`` None, one trip).

    Attributes:
        var: the loop's variable.
        trips: its iterations, for one iteration of the loops outside.
        parallel: the parallel level that it is mapped to.
        groups: accesses in its body, outside of inner loops.
        inner: the loops in its body.
        once: what one iteration touches, by buffer.
        whole: what all its iterations touch, for one iteration of the loops outside.
    """

    var: Var | None
    trips: int
    parallel: str | None = None
    groups: list[Group] = field(default_factory=list)
    inner: list[Level] = field(default_factory=list)
    once: dict[Buffer, Touched] = field(default_factory=dict)
    whole: dict[Buffer, Touched] = field(default_factory=dict)

    def walk(self) -> Iterator[Level]:
        """This level and all inside, outer before inner."""
        yield self
        for level in self.inner:
            yield from level.walk()

    def reuse(self, buffer: Buffer) -> float:
        """How often this loop touches each byte of ``buffer`` that it touches, in iterations."""
        whole = self.whole[buffer].resident
        return self.trips * self.once[buffer].resident / whole if whole else 1.0

    def resident(self) -> int:
        """Bytes of cache that one iteration needs."""
        return sum(t.resident for t in self.once.values())

    def traffic(self, capacity: int) -> dict[Buffer, int]:
        """Bytes moved into and out of a cache of ``capacity`` bytes, per buffer.

        As long as one iteration fits, the loop finds what the iterations before have loaded;
        otherwise every iteration loads again what the loops inside need.
        """
        if self.resident() <= capacity or not self.inner:
            return {b: t.moved for b, t in self.whole.items()}
        total: dict[Buffer, int] = {}
        for level in self.inner:
            for buffer, nbytes in level.traffic(capacity).items():
                total[buffer] = total.get(buffer, 0) + nbytes
        for group in self.groups:
            # Accesses between the loops; a line each, once per iteration.
            total.setdefault(group.buffer, self.once[group.buffer].moved)
        return {b: nbytes * self.trips for b, nbytes in total.items()}


def analyze(nodes: Iterable[Node], line: int = 64) -> Level:
    """The footprints of a nest at each of its loops.

    Args:
        nodes: the nest's body.
        line: bytes in which memory is moved.
    """
    root = Level(None, 1)
    _collect(root, nodes, {})
    _Measure(line).level(root)
    return root


def _collect(level: Level, nodes: Iterable[Node], shifts: dict[Var, Expr]) -> None:
    """Fill ``level``. ``shifts`` says where loops with bounds begin: var -> lower + fresh var."""
    found: dict[tuple[Buffer, bool, tuple[Terms, ...] | None], Group] = {}
    for node in nodes:
        if isinstance(node, (Load, Store)):
            index = node.index
            if shifts:
                index = tuple(e.substitute(shifts) for e in index)
            terms = tuple(e.terms for e in index)
            key = (node.buffer, isinstance(node, Store), terms)
            group = found.get(key)
            if group is None:
                group = found[key] = Group(node.buffer, terms, [set() for _ in index], 0, key[1])
            for constants, e in zip(group.constants, index, strict=True):
                constants.add(e.const)
            group.count += 1
        elif isinstance(node, (LoadAt, StoreAt)):
            # One that cannot be merged with any other.
            group = Group(node.buffer, None, [], 1, isinstance(node, StoreAt))
            level.groups.append(group)
        elif isinstance(node, For):
            var, trips, inside = node.var, node.trips, shifts
            if node.bounded:
                var = Var(trips, node.var.name)
                inside = {**shifts, node.var: _start(node, shifts) + var}
            inner = Level(var, trips, node.level)
            _collect(inner, node.body, inside)
            level.inner.append(inner)
    level.groups.extend(found.values())


def _start(loop: For, shifts: dict[Var, Expr]) -> Expr:
    """Where a loop with bounds begins: the bound that moves with the loops outside."""
    bounds = [e.substitute(shifts) for e in loop.lower]
    moving = [e for e in bounds if not e.is_constant]
    return moving[0] if moving else max(bounds, key=lambda e: e.const, default=Expr(0))


class _Measure:
    """Sets the footprints of levels."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.dims: dict[Buffer, list[tuple[int, int]]] = {}

    def level(self, level: Level) -> list[tuple[list[Level], Group]]:
        """Set those of a level and all inside; returns its groups, with the loops around them."""
        inside: list[tuple[list[Level], Group]] = [([], group) for group in level.groups]
        for inner in level.inner:
            inside += self.level(inner)
        if len(level.inner) == 1 and not level.groups:
            level.once = level.inner[0].whole
        else:
            level.once = self.touched(inside)
        for path, _ in inside:
            path.append(level)
        level.whole = level.once if level.trips == 1 else self.touched(inside)
        return inside

    def touched(self, inside: list[tuple[list[Level], Group]]) -> dict[Buffer, Touched]:
        """What the groups touch while the loops of their paths run."""
        boxes: dict[tuple[Buffer, bool], list[Box]] = {}
        scattered: dict[tuple[Buffer, bool], int] = {}
        most: dict[tuple[Buffer, bool], int] = {}
        for path, group in inside:
            key = (group.buffer, group.write)
            times = group.count
            for level in path:
                times *= level.trips
            most[key] = most.get(key, 0) + times
            if group.terms is None:
                scattered[key] = scattered.get(key, 0) + times
                continue
            box = group.box({level.var: level.trips for level in path if level.var is not None})
            known = boxes.setdefault(key, [])
            met = next((b for b in known if b.meets(box)), None)
            if met is None:
                known.append(box)
            else:
                met.include(box)
        result: dict[Buffer, Touched] = {}
        for key, times in most.items():
            buffer, write = key
            elements = lines = 0
            for box in boxes.get(key, ()):
                elements += box.elements
                lines += box.lines(buffer, self._dims(buffer), self.line)
            elements += scattered.get(key, 0)
            lines += scattered.get(key, 0) * self.line
            nbytes = min(elements, times, _numel(buffer)) * buffer.bytes_per_element
            largest = min(times * self.line, _up(_nbytes(buffer), self.line))
            touched = result.setdefault(buffer, Touched())
            if write:
                touched.written, touched.written_lines = nbytes, max(nbytes, min(lines, largest))
            else:
                touched.read, touched.read_lines = nbytes, max(nbytes, min(lines, largest))
        return result

    def _dims(self, buffer: Buffer) -> list[tuple[int, int]]:
        """(stride, number) of the dimensions in which neighbours differ, ascending."""
        dims = self.dims.get(buffer)
        if dims is None:
            known = zip(strides(buffer), range(len(buffer.shape)), strict=True)
            dims = sorted((s, d) for s, d in known if s != 0 and buffer.shape[d] != 1)
            self.dims[buffer] = dims
        return dims


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


def _numel(buffer: Buffer) -> int:
    """Elements of a buffer; a size that is known only at run time does not limit anything."""
    return buffer.numel if min(buffer.shape, default=0) >= 0 else 1 << 62


def _nbytes(buffer: Buffer) -> int:
    return _numel(buffer) * buffer.bytes_per_element


def _up(nbytes: int, line: int) -> int:
    return -(-nbytes // line) * line
