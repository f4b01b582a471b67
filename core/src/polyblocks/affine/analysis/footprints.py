"""Footprints: which part of each buffer the iterations of a nest touch, and how often it moves.

Counted on boxes: accesses of one place whose indices differ by constants are one box (a stencil's
window), overlapping boxes become their hull. Indices known only at run time touch one line each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from polyblocks.affine.access import address, is_whole, strides
from polyblocks.affine.analysis.access_boxes import (
    Group,
    StridedBox,
    Terms,
    nbytes,
    numel,
    round_up,
)
from polyblocks.affine.analysis.known_values import CASTS, binary
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Store,
    Value,
    operands,
    results,
    walk,
)


@dataclass
class Touched:
    """Bytes of one buffer that some iterations touch, once each.

    Attributes:
        read: bytes of the elements that are loaded.
        written: bytes of the elements that are stored.
        read_lines: bytes of the lines that are loaded from.
        written_lines: bytes of the lines that are stored to.
        passes: whether the stores pass the caches.
    """

    read: int = 0
    written: int = 0
    read_lines: int = 0
    written_lines: int = 0
    passes: bool = True

    @property
    def resident(self) -> int:
        """Bytes of cache that they need."""
        return max(self.read_lines, self.written_lines)

    @property
    def moved(self) -> int:
        """Bytes that cross a border of the memory hierarchy when each is loaded and stored once."""
        return self.read_lines + self.written_lines

    @property
    def fetched(self) -> int:
        """Bytes that come from behind such a border: a line comes before it is stored to."""
        return self.read_lines if self.passes else max(self.read_lines, self.written_lines)


@dataclass
class Moved:
    """Bytes that a loop moves across a border of the memory hierarchy, all its iterations.

    Attributes:
        fetched: towards the core.
        written: away from it, through the caches.
        passed: the same past the caches, to the main memory.
    """

    fetched: float = 0.0
    written: float = 0.0
    passed: float = 0.0

    def add(self, other: Moved, times: float = 1.0) -> None:
        """Add so many times another one's."""
        self.fetched += times * other.fetched
        self.written += times * other.written
        self.passed += times * other.passed


#: Operations on integers that make affine expressions of such.
_LINEAR = frozenset({"arith.addi", "arith.subi", "arith.muli"})

#: Per loop and buffer what is moved in its body, outside of inner loops.
Parts = dict["Level", dict[Buffer, Moved]]


@dataclass(eq=False)
class Level:
    """A loop of a nest, or the nest itself (``var`` None, one trip).

    Attributes:
        var: the loop's variable; of one with bounds, a fresh one that counts its iterations.
        loop_var: the loop's variable.
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
    loop_var: Var | None = None

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
            for buffer, moved in level.traffic(capacity).items():
                total[buffer] = total.get(buffer, 0) + moved
        for group in self.groups:
            # Accesses between the loops; a line each, once per iteration.
            total.setdefault(group.buffer, self.once[group.buffer].moved)
        return {b: moved * self.trips for b, moved in total.items()}

    def parts(self, capacity: int) -> Parts:
        """As :meth:`traffic`, by the loops that wait for it.

        What stays in the cache is fetched by the first loop that touches it, and written back
        behind the last one that stores to it.
        """
        parts: Parts = {}
        if self.resident() <= capacity or not self.inner:
            loops = list(self._leaves(1))
            for buffer, touched in self.whole.items():
                _hand_out(parts, buffer, touched.fetched, loops, "fetched")
                how = "passed" if touched.passes else "written"
                _hand_out(parts, buffer, touched.written_lines, loops[::-1], how)
            return parts
        for level in self.inner:
            for leaf, buffers in level.parts(capacity).items():
                for buffer, moved in buffers.items():
                    total = parts.setdefault(leaf, {}).setdefault(buffer, Moved())
                    total.add(moved, self.trips)
        met = {buffer for buffers in parts.values() for buffer in buffers}
        for group in self.groups:
            if group.buffer not in met:
                once = self.once[group.buffer]
                parts.setdefault(self, {})[group.buffer] = Moved(
                    once.fetched * self.trips, once.written_lines * self.trips
                )
        return parts

    def _leaves(self, times: int) -> Iterator[tuple[Level, int]]:
        """Loops with accesses of their own, and how often each of them is run."""
        if self.groups:
            yield self, times
        for level in self.inner:
            yield from level._leaves(times * self.trips)


def _hand_out(
    parts: Parts, buffer: Buffer, nbytes: int, loops: list[tuple[Level, int]], what: str
) -> None:
    """Give each loop as much of what is moved as it touches, as long as there is some."""
    touching = []
    for level, times in loops:
        mine = level.whole.get(buffer)
        if mine is not None and any(g.buffer is buffer for g in level.groups):
            size = mine.fetched if what == "fetched" else mine.written_lines
            if size:
                touching.append((level, size * times))
    left = nbytes
    for position, (level, most) in enumerate(touching):
        part = left if position == len(touching) - 1 else min(left, most)
        moved = parts.setdefault(level, {}).setdefault(buffer, Moved())
        setattr(moved, what, getattr(moved, what) + part)
        left -= part


def analyze(nodes: Iterable[Node], line: int = 64) -> Level:
    """The footprints of a nest at each of its loops.

    Args:
        nodes: the nest's body.
        line: bytes in which memory is moved.
    """
    root = Level(None, 1)
    nodes = list(nodes)
    _collect(root, nodes, _Scope(flat=_flat_views(nodes)))
    _Measure(line).level(root)
    return root


@dataclass
class _Scope:
    """What is known inside of some loops.

    Attributes:
        shifts: where loops with bounds begin: var -> origin + fresh var.
        values: index values as expressions; one that is known at run time only is a variable.
        unknown: such variables, and the loops in which they change.
        around: the loops around, outer before inner.
        flat: a view of one dimension for buffers that are accessed by several names.
    """

    shifts: dict[Var, Expr] = field(default_factory=dict)
    values: dict[Value, Expr] = field(default_factory=dict)
    unknown: dict[Var, list[Level]] = field(default_factory=dict)
    around: list[Level] = field(default_factory=list)
    flat: dict[Buffer, Buffer] = field(default_factory=dict)

    def place(self, node: Access) -> tuple[Buffer, tuple[Expr, ...]]:
        """What an access touches, by the one name of its memory."""
        if isinstance(node, (Load, Store)):
            index = node.index
            if self.shifts:
                index = tuple(e.substitute(self.shifts) for e in index)
        else:
            index = tuple(self.at(v) for v in node.index)
        flat = self.flat.get(node.buffer.base)
        if flat is None or node.buffer is flat:
            return node.buffer, index
        return flat, (address(node.buffer, index),)

    def at(self, value: Value) -> Expr:
        """An index value as an expression."""
        if value not in self.values:
            self.values[value] = self._new([] if value.external is not None else self.around)
        return self.values[value]

    def define(self, node: Node) -> None:
        """Take a node into account that may make index values."""
        if isinstance(node, Index):
            expr = node.expr.substitute(self.shifts) if self.shifts else node.expr
            self.values[node.result] = expr
        elif isinstance(node, Op):
            expr = self._expr(node)
            if expr is None:
                self._define(node)
            else:
                self.values[node.results[0]] = expr
        elif isinstance(node, (Load, IndirectLoad)):
            self._define(node)

    def _expr(self, op: Op) -> Expr | None:
        """What an operation on integers makes of expressions."""
        if op.name == "arith.constant":
            value = getattr(op.attributes.get("value"), "value", None)
            return Expr(value) if isinstance(value, int) else None
        if op.name not in _LINEAR and op.name not in CASTS:
            return None
        known = [self.values.get(v) for v in op.operands]
        if op.name in CASTS:
            return known[0]
        first, second = known
        return None if first is None or second is None else binary(op.name, first, second)

    def _define(self, node: Op | Load | IndirectLoad) -> None:
        """Results that change where an operand does."""
        exprs = list(node.index) if isinstance(node, Load) else [self.at(v) for v in operands(node)]
        variables = {v for e in exprs for v in e.variables()}
        changing = [
            level
            for level in self.around
            if level.var in variables or any(level in self.unknown.get(v, ()) for v in variables)
        ]
        for result in results(node):
            self.values[result] = self._new(changing)

    def _new(self, changing: list[Level]) -> Expr:
        var = Var(1 << 40, "unknown")
        self.unknown[var] = changing
        return Expr.of(var)


def _flat_views(nodes: Iterable[Node]) -> dict[Buffer, Buffer]:
    """For memory that is accessed by several names one of them, a view of one dimension."""
    names: dict[Buffer, set[Buffer]] = {}
    for node in walk(nodes):
        if isinstance(node, Access):
            names.setdefault(node.buffer.base, set()).add(node.buffer)
    flat: dict[Buffer, Buffer] = {}
    for base, buffers in names.items():
        if len(buffers) > 1 and all(map(is_whole, buffers)):
            flat.update({base: b for b in buffers if len(b.shape) == 1})
    return flat


def _collect(level: Level, nodes: Iterable[Node], scope: _Scope) -> None:
    """Fill ``level``."""
    found: dict[tuple[Buffer, bool, tuple[Terms, ...]], Group] = {}
    for node in nodes:
        scope.define(node)
        if isinstance(node, (Load, Store, IndirectLoad, IndirectStore)):
            buffer, index = scope.place(node)
            store = isinstance(node, (Store, IndirectStore))
            terms = tuple(e.terms for e in index)
            key = (buffer, store, terms)
            group = found.get(key)
            if group is None:
                group = found[key] = Group(buffer, terms, [set() for _ in index], 0, store)
                group.passes = store
                group.unknown = {v: scope.unknown[v] for e in index for v in e.variables() if v in scope.unknown}
            place = tuple(e.const for e in index)
            for constants, const in zip(group.constants, place, strict=True):
                constants.add(const)
            group.places.add(place)
            group.count += 1
            group.passes = group.passes and isinstance(node, Store) and node.stream > 0
        elif isinstance(node, For):
            var, trips, shifts = node.var, node.trips, scope.shifts
            if node.bounded:
                var = Var(trips, node.var.name)
                shifts = {**shifts, node.var: node.origin.substitute(shifts) + var}
            inner = Level(var, trips, node.level, loop_var=node.var)
            around = [*scope.around, inner]
            inside = _Scope(shifts, dict(scope.values), scope.unknown, around, scope.flat)
            for argument in node.arguments:
                inside.values[argument] = inside._new([inner])
            _collect(inner, node.body, inside)
            level.inner.append(inner)
    level.groups.extend(found.values())


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
        boxes: dict[tuple[Buffer, bool], list[StridedBox]] = {}
        most: dict[tuple[Buffer, bool], int] = {}
        stays: set[Buffer] = set()
        for path, group in inside:
            key = (group.buffer, group.write)
            if group.write and not group.passes:
                stays.add(group.buffer)
            times = group.count
            for level in path:
                times *= level.trips
            most[key] = most.get(key, 0) + times
            widths = {level.var: level.trips for level in path if level.var is not None}
            unknown = {
                var: math.prod(level.trips for level in path if level in changing)
                for var, changing in group.unknown.items()
            }
            box = group.box(widths, unknown)
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
            size = min(elements, times, numel(buffer)) * buffer.bytes_per_element
            largest = min(times * self.line, round_up(nbytes(buffer), self.line))
            touched = result.setdefault(buffer, Touched())
            touched.passes = buffer not in stays
            if write:
                touched.written, touched.written_lines = size, max(size, min(lines, largest))
            else:
                touched.read, touched.read_lines = size, max(size, min(lines, largest))
        return result

    def _dims(self, buffer: Buffer) -> list[tuple[int, int]]:
        """(stride, number) of the dimensions in which neighbours differ, ascending."""
        dims = self.dims.get(buffer)
        if dims is None:
            known = zip(strides(buffer), range(len(buffer.shape)), strict=True)
            dims = sorted((s, d) for s, d in known if s != 0 and buffer.shape[d] != 1)
            self.dims[buffer] = dims
        return dims
