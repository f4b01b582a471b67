"""Footprints: which part of each buffer the iterations of a nest touch, and how often it moves.

Counted on boxes: accesses of one place whose indices differ by constants are one box (a stencil's
window), overlapping boxes become their hull. Indices known only at run time are apart from each
other, within what the other terms of the address leave them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

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
from polyblocks.affine.analysis.mean_trips import mean_trips
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    AnyLoad,
    Buffer,
    For,
    Index,
    IndirectAccess,
    Load,
    Node,
    Op,
    Store,
    Value,
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
    def is_passed(self) -> bool:
        """Whether it is stored to, past the caches."""
        return self.passes and self.written > 0

    @property
    def moved(self) -> int:
        """Bytes that cross a border of the memory hierarchy when each is loaded and stored once."""
        return self.read_lines + self.written_lines


#: Operations on integers that make affine expressions of such.
_LINEAR = frozenset({"arith.addi", "arith.subi", "arith.muli"})


@dataclass(eq=False)
class Level:
    """A loop of a nest, or the nest itself (``var`` None, one trip).

    Attributes:
        var: the loop's variable; of one with bounds, a fresh one that counts its iterations.
        loop_var: the loop's variable.
        trips: its iterations, for one iteration of the loops outside, at most.
        mean: the same on average.
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
    mean: float = 1.0

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
        return {b: round(moved * self.mean) for b, moved in total.items()}


def analyze(nodes: Iterable[Node], line: int = 64) -> Level:
    """The footprints of a nest at each of its loops.

    Args:
        nodes: the nest's body.
        line: bytes in which memory is moved.
    """
    root = Level(None, 1)
    nodes = list(nodes)
    accesses = [n for n in walk(nodes) if isinstance(n, Access)]
    indirect = any(isinstance(n, IndirectAccess) for n in accesses)
    _collect(root, nodes, _Scope(indirect, _flat_views(accesses)))
    _Measure(line).level(root)
    return root


@dataclass
class _Scope:
    """Facts inside of some loops.

    Attributes:
        indirect: whether there are accesses for which index values must be known.
        flat: a view of one dimension for buffers that are accessed by several names.
        shifts: where loops with bounds begin: var -> origin + fresh var.
        values: index values as expressions; one that is known at run time only is a variable.
        unknown: such variables, and the loops in which they change.
        around: the loops around, outer before inner.
        loops: the same as nodes.
        means: iterations on average, by the bounds of a loop: many loops have the same.
    """

    indirect: bool
    flat: dict[Buffer, Buffer]
    shifts: dict[Var, Expr] = field(default_factory=dict)
    values: dict[Value, Expr] = field(default_factory=dict)
    unknown: dict[Var, list[Level]] = field(default_factory=dict)
    around: list[Level] = field(default_factory=list)
    loops: list[For] = field(default_factory=list)
    means: dict[Any, float] = field(default_factory=dict)

    def inside(self, node: For, level: Level) -> _Scope:
        """The scope inside of one more loop."""
        shifts = self.shifts
        if node.bounded:
            assert level.var is not None
            shifts = {**shifts, node.var: node.origin.substitute(shifts) + level.var}
        values = dict(self.values) if self.indirect else self.values
        around = [*self.around, level]
        loops = [*self.loops, node]
        new = _Scope(
            *(self.indirect, self.flat, shifts, values, self.unknown, around, loops, self.means)
        )
        if self.indirect:
            for argument in node.arguments:
                values[argument] = new._new([level])
        return new

    def place(self, node: Access) -> tuple[Buffer, tuple[Expr, ...]]:
        """The memory and place that an access touches, with views resolved."""
        index = tuple(node.index_by(self._shifted, self.at))
        flat = self.flat.get(node.buffer.base)
        if flat is None or node.buffer is flat:
            return node.buffer, index
        return flat, (address(node.buffer, index),)

    def _shifted(self, expr: Expr) -> Expr:
        return expr.substitute(self.shifts) if self.shifts else expr

    def at(self, value: Value) -> Expr:
        """An index value as an expression."""
        if value not in self.values:
            self.values[value] = self._new([] if value.external is not None else self.around)
        return self.values[value]

    def define(self, node: Node) -> None:
        """Take a node into account that may make index values."""
        if not self.indirect:
            return
        if isinstance(node, Index):
            self.values[node.result] = node.expr.substitute(self.shifts)
        elif isinstance(node, Op):
            expr = self._expr(node)
            if expr is None:
                self._define(node)
            else:
                self.values[node.results[0]] = expr
        elif isinstance(node, AnyLoad):
            self._define(node)

    def _expr(self, op: Op) -> Expr | None:
        """The expression that an integer operation computes, or None."""
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

    def _define(self, node: Op | AnyLoad) -> None:
        """Results that change where an operand does."""
        exprs = list(node.index) if isinstance(node, Load) else [self.at(v) for v in node.uses]
        variables = {v for e in exprs for v in e.variables()}
        changing = [
            level
            for level in self.around
            if level.var in variables or any(level in self.unknown.get(v, ()) for v in variables)
        ]
        for result in node.defines:
            self.values[result] = self._new(changing)

    def changing(self, index: Iterable[Expr]) -> dict[Var, list[Level]]:
        """Run-time variables of an index, and the loops in which each changes."""
        variables = (v for e in index for v in e.variables())
        return {v: self.unknown[v] for v in variables if v in self.unknown}

    def _new(self, changing: list[Level]) -> Expr:
        var = Var(1 << 40, "unknown")
        self.unknown[var] = changing
        return Expr.of(var)


def _flat_views(accesses: Iterable[Access]) -> dict[Buffer, Buffer]:
    """For memory that is accessed by several names one of them, a view of one dimension."""
    names: dict[Buffer, set[Buffer]] = {}
    for node in accesses:
        names.setdefault(node.buffer.base, set()).add(node.buffer)
    flat: dict[Buffer, Buffer] = {}
    for base, buffers in names.items():
        view = next((b for b in buffers if len(b.shape) == 1), None)
        if view is not None and len(buffers) > 1 and all(map(is_whole, buffers)):
            flat[base] = view
    return flat


def _collect(level: Level, nodes: Iterable[Node], scope: _Scope) -> None:
    """Fill ``level``."""
    found: dict[tuple[Buffer, bool, tuple[Terms, ...]], Group] = {}
    for node in nodes:
        scope.define(node)
        if isinstance(node, For):
            var = Var(node.trips, node.var.name) if node.bounded else node.var
            mean = float(node.trips)
            if node.bounded:
                key = node.lower, node.upper, node.var.extent, len(scope.loops)
                if key not in scope.means:
                    scope.means[key] = mean_trips(node, scope.loops)
                mean = scope.means[key]
            inner = Level(var, node.trips, node.level, loop_var=node.var, mean=mean)
            _collect(inner, node.body, scope.inside(node, inner))
            level.inner.append(inner)
        elif isinstance(node, Access):
            buffer, index = scope.place(node)
            store = node.writes
            terms = tuple(e.terms for e in index)
            group = found.get((buffer, store, terms))
            if group is None:
                group = Group(buffer, terms, [set() for _ in index], 0, store, passes=store)
                if scope.unknown:
                    group.unknown = scope.changing(index)
                found[buffer, store, terms] = group
            place = tuple(e.const for e in index)
            for constants, const in zip(group.constants, place, strict=True):
                constants.add(const)
            group.places.add(place)
            group.count += 1
            group.passes = group.passes and isinstance(node, Store) and node.stream > 0
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
        """The memory that the groups touch while the loops of their paths run."""
        boxes: dict[tuple[Buffer, bool], list[StridedBox]] = {}
        most: dict[tuple[Buffer, bool], float] = {}
        stays: set[Buffer] = set()
        partial: set[tuple[Buffer, bool]] = set()
        for path, group in inside:
            key = (group.buffer, group.write)
            if group.write and not group.passes:
                stays.add(group.buffer)
            times = float(group.count)
            for level in path:
                times *= level.mean
            most[key] = most.get(key, 0.0) + times
            if any(level.mean < level.trips for level in path):
                partial.add(key)
            widths = {level.var: level.trips for level in path if level.var is not None}
            box = group.box(widths, group.values_of_unknown(path) if group.unknown else None)
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
            size = round(min(elements, times, numel(buffer)) * buffer.bytes_per_element)
            largest = round(min(times * self.line, round_up(nbytes(buffer), self.line)))
            if key in partial and times < elements:
                # A triangle in its box.
                lines = round(lines * times / elements)
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
