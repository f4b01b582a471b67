"""Loops of a tile without iterations whose places are all left out by masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.masks.absence import Absence, Number, constants_of
from polyblocks.affine.masks.columns import (
    Box,
    Columns,
    box_of,
    counts,
    ends_at,
    filled_by,
    is_within,
    rewritten_in,
    rows_of,
)
from polyblocks.affine.masks.constraints import (
    Bound,
    Condition,
    bound_of,
    conditions_of,
    largest,
)
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Buffer,
    For,
    Load,
    Node,
    Store,
    Value,
    walk,
)


@dataclass
class _Assumed:
    """Facts about iterations of a loop outside of a bound."""

    known: dict[Value, Number] = field(default_factory=dict)
    dropped: set[Store] = field(default_factory=set)


@dataclass(frozen=True)
class Fact:
    """The number in all columns of a buffer beyond another one.

    Attributes:
        at: the first of these columns, or the one behind the last.
        number: the number.
        box: the elements that it is true of; None for all.
    """

    at: Expr
    number: Number
    box: Box | None


#: Values of columns beyond a number; numbers beyond which columns are not read.
Facts = dict[Columns, Fact]
Unread = dict[Columns, set[Expr]]


class TileCuts:
    """The bounds of a tile's loops.

    Places that a mask leaves out are found from the first loop to the last one: comparisons that
    have one outcome there, and elements that hold a known number. Bounds are set from the last one
    to the first: what nothing reads any more need not be computed.

    Args:
        around: variables of the loops around the tile.
        nodes: the tile.
        step: bounds of columns are multiples of it, so that vectors are whole.
    """

    def __init__(self, around: list[Var], nodes: list[Node], step: int) -> None:
        self._tile = frozenset(around)
        self._statements = [n for n in nodes if isinstance(n, For)]
        #: Buffers without facts: those that code between the loops touches.
        self._outside = {n.buffer for n in nodes if isinstance(n, Access)}
        #: Variables of the tile, and of loops that run over a part of their values.
        self._partial = {n.var for n in walk(nodes) if isinstance(n, For) and n.bounded}
        self._partial |= self._tile
        self._step = step
        self._conditions = conditions_of(nodes)
        self._constants = constants_of(nodes)
        self._rows = rows_of(nodes)
        self._ends: list[Bound] = []
        self._facts: list[dict[Buffer, Facts]] = []
        #: Later reads of buffers, each with the ends of columns beyond which it reads nothing.
        self._reads: dict[Buffer, list[tuple[Load, Unread]]] = {}

    def cut(self) -> int:
        """Set the bounds; the number of loops that got some."""
        if not any(c.if_true or c.if_false for c in self._conditions.values()):
            return 0
        facts: dict[Buffer, Facts] = {}
        seen: set[Buffer] = set()
        for statement in self._statements:
            self._facts.append({b: facts[b] for b in facts.keys() - self._mixed(statement)})
            self._learn(statement, facts, seen)
        if not any(self._facts) and not facts:
            return 0
        count = 0
        for number in range(len(self._statements) - 1, -1, -1):
            statement = self._statements[number]
            before = [(loop, loop.bounds) for loop, _ in _loops(statement)]
            self._set_bounds(statement, self._facts[number])
            count += sum(loop.bounds != bounds for loop, bounds in before)
            self._note_reads(statement)
        return count

    # Facts

    def _learn(self, statement: For, facts: dict[Buffer, Facts], seen: set[Buffer]) -> None:
        """Take note of what a statement stores where masks leave places out."""
        stored: dict[Store, dict[tuple[Columns, Expr], Number]] = {
            n: {} for n in walk([statement]) if isinstance(n, Store) and n.buffer.kind == "local"
        }
        for loop, outer in _loops(statement):
            for bound, assumed in self._assumptions(loop, outer, self._facts[-1]).items():
                absence = Absence({**self._constants, **assumed.known}, ())
                absence.run(loop.body)
                for store, value in absence.stored.items():
                    if store in stored and isinstance(value, Number):
                        for columns, at in self._columns(store, loop.var, bound):
                            stored[store][columns, at] = value
        written: dict[Buffer, list[Access]] = {}
        for node in walk([statement]):
            if isinstance(node, Access) and node.writes:
                written.setdefault(node.buffer, []).append(node)
        for buffer, writers in written.items():
            mine = [n for n in writers if isinstance(n, Store)]
            if len(mine) < len(writers) or buffer in self._outside:
                facts[buffer] = {}
                continue
            common: dict[Columns, tuple[Expr, Number]] = {}
            for (columns, at), value in stored.get(mine[0], {}).items():
                if any(stored.get(n, {}).get((columns, at)) != value for n in mine):
                    continue
                if columns not in common or columns.is_tighter(at, common[columns][0]):
                    common[columns] = at, value
            found = {
                columns: Fact(
                    at, value, filled_by(mine[0], columns.dim, columns.row, self._partial)
                )
                for columns, (at, value) in common.items()
            }
            if buffer in seen:
                # Elements that it leaves as they are may hold anything.
                alone = len(mine) == 1
                found = {c: fact for c, fact in found.items() if alone and fact.box is not None}
            else:
                found = {c: replace(fact, box=None) for c, fact in found.items()}
                seen.add(buffer)
            facts[buffer] = found

    def _mixed(self, statement: For) -> set[Buffer]:
        """Buffers that a statement may read after it has written to them, or others may."""
        bodies = [(loop.body, [*outer, loop]) for loop, outer in _loops(statement)]
        return self._outside | rewritten_in(bodies)

    def _columns(self, store: Store, var: Var, bound: Bound) -> Iterator[tuple[Columns, Expr]]:
        """The columns that a store has outside of a bound of a variable, and their end."""
        for columns in self._candidates(store, bound.upper):
            column = columns.of(store)
            if column is None or column.coefficient(var) != 1:
                continue
            at = bound.at + (column - Expr.of(var))
            if self._tile.issuperset(at.variables()):
                yield columns, at

    def _candidates(self, access: AffineAccess, upper: bool) -> Iterator[Columns]:
        """The possible columns of an access."""
        for dim, row in self._rows.get(access.buffer, ()):
            yield Columns(dim, row, upper)

    # Facts outside of bounds

    def _assumptions(
        self, loop: For, outer: list[For], facts: dict[Buffer, Facts]
    ) -> dict[Bound, _Assumed]:
        """Bounds of a loop, and what holds in the iterations outside of each."""
        found: dict[Bound, _Assumed] = {}
        rows = {f.var for f in outer}
        innermost = loop.lanes or not any(isinstance(n, For) for n in loop.body)
        for node in walk(loop.body):
            if isinstance(node, Store) and node.buffer in self._reads:
                for columns, ends in self._unread(node.buffer).items():
                    for at in ends:
                        bound = self._beyond(node, columns, at, loop.var, rows)
                        if bound is not None:
                            found.setdefault(bound, _Assumed()).dropped.add(node)
            elif isinstance(node, Load):
                for columns, fact in facts.get(node.buffer, {}).items():
                    box = fact.box
                    if box and not is_within(box_of(node, columns.dim, columns.row), box):
                        continue
                    bound = self._beyond(node, columns, fact.at, loop.var, rows)
                    if bound is not None:
                        found.setdefault(bound, _Assumed()).known[node.result] = fact.number
            elif innermost:
                for value in node.defines:
                    if value in self._conditions:
                        self._decided(value, self._conditions[value], loop, rows, found)
        return _with_implied({b: assumed for b, assumed in found.items() if b.cuts(loop.var)})

    def _beyond(
        self, access: AffineAccess, columns: Columns, at: Expr, var: Var, outer: set[Var]
    ) -> Bound | None:
        """Values of a variable; for all others an access is beyond a column."""
        column = columns.of(access)
        if column is None or not column.depends_on(var):
            return None
        number = at - 1 - column if columns.upper else column - at
        bound = bound_of(number, var, self._tile, outer)
        return bound if bound is not None and bound.upper is columns.upper else None

    def _decided(
        self,
        value: Value,
        condition: Condition,
        loop: For,
        outer: set[Var],
        found: dict[Bound, _Assumed],
    ) -> None:
        """Take note of bounds that decide a condition."""
        for outcome in (True, False):
            for number in condition.needed_for(outcome):
                bound = bound_of(number, loop.var, self._tile, outer)
                if bound is None:
                    continue
                if not bound.cuts(loop.var) or not self._leaves_some(bound, loop.var):
                    continue
                bound = bound.rounded(self._step, self._tile)
                found.setdefault(bound, _Assumed()).known[value] = Number(not outcome)

    def _leaves_some(self, bound: Bound, var: Var) -> bool:
        """Whether a row of a tile has places within a bound, and within it and all others."""
        # Of all columns, where the variable counts those of a block.
        zeros = {v: Expr(0) for v in bound.at.variables() if v not in self._tile}
        whole = bound.at.substitute(zeros)
        columns = var.extent + (whole - bound.at).range()[1]
        bound = Bound(bound.upper, whole)
        if not bound.upper and bound.at.range()[1] >= columns:
            return False
        if bound.upper and bound.at.range()[0] < 1:
            return False
        for other in self._ends:
            if other.upper is not bound.upper:
                length = bound.at - other.at if bound.upper else other.at - bound.at
                if length.tight_range()[0] < 1:
                    return False
        self._ends.append(bound)
        return True

    # Bounds

    def _set_bounds(self, statement: For, facts: dict[Buffer, Facts]) -> None:
        """Leave out iterations of a statement's loops that have no effect."""
        mixed = self._mixed(statement)
        for loop, outer in _loops(statement):
            if loop.lanes or loop.unit or loop.level or loop.copy:
                continue
            for bound, assumed in self._assumptions(loop, outer, facts).items():
                dropped = {store for store in assumed.dropped if store.buffer not in mixed}
                absence = Absence({**self._constants, **assumed.known}, dropped)
                absence.run(loop.body)
                if not absence.dead or not absence.passes(loop):
                    continue
                _add(loop, bound)

    def _note_reads(self, statement: For) -> None:
        """Take note of columns that a statement reads, and of those that it writes before."""
        for node in walk([statement]):
            if isinstance(node, Store) and node.buffer in self._reads:
                for dim, row in self._rows.get(node.buffer, ()):
                    box = filled_by(node, dim, row, self._partial)
                    if box is not None:
                        self._reads[node.buffer] = [
                            (load, ends)
                            for load, ends in self._reads[node.buffer]
                            if not is_within(box_of(load, dim, row), box)
                        ]
        for load, path in _loads(statement):
            if load.buffer.kind == "local":
                found = load, self._ends_of(load, path)
                self._reads.setdefault(load.buffer, []).append(found)

    def _unread(self, buffer: Buffer) -> Unread:
        """The ends of columns of a buffer beyond which nothing is read later."""
        reads = self._reads.get(buffer, [])
        found: Unread = {}
        for columns, ends in [item for _, each in reads for item in each.items()]:
            for at in ends:
                if all(at in each.get(columns, ()) or ends_at(r, columns, at) for r, each in reads):
                    found.setdefault(columns, set()).add(at)
        return found

    def _ends_of(self, load: Load, path: list[For]) -> Unread:
        """Beyond which columns a load reads nothing, as the loops around it have bounds."""
        found: Unread = {}
        for loop in path:
            inside = {f.var for f in path[path.index(loop) + 1 :]}
            outside = self._tile.union(f.var for f in path) - inside
            for upper in (True, False):
                for columns in self._candidates(load, upper):
                    column = columns.of(load)
                    if column is None or not counts(column, loop.var, inside):
                        continue
                    for at in loop.upper if upper else loop.lower:
                        last = column.substitute({loop.var: at - 1 if upper else at})
                        end = largest(last, outside, upper)
                        end = end + 1 if upper else end
                        if self._tile.issuperset(end.variables()):
                            found.setdefault(columns, set()).add(end)
        return found


def _with_implied(found: dict[Bound, _Assumed]) -> dict[Bound, _Assumed]:
    """For each bound also what holds outside of tighter ones."""
    if len(found) < 2:
        return found
    result: dict[Bound, _Assumed] = {}
    for bound, assumed in found.items():
        known, dropped = dict(assumed.known), set(assumed.dropped)
        for other, more in found.items():
            if other is not bound and other.upper is bound.upper and bound.implies(other):
                known.update(more.known)
                dropped.update(more.dropped)
        result[bound] = _Assumed(known, dropped)
    return result


def _add(loop: For, bound: Bound) -> None:
    """Let a loop have a bound, unless it has a tighter one; what is looser is left out."""
    bounds = [Bound(bound.upper, at) for at in (loop.upper if bound.upper else loop.lower)]
    if any(bound.implies(other) for other in bounds):
        return
    ends = (*(other.at for other in bounds if not other.implies(bound)), bound.at)
    if bound.upper:
        loop.upper = ends
    else:
        loop.lower = ends


def _loops(statement: For, outer: tuple[For, ...] = ()) -> Iterator[tuple[For, list[For]]]:
    """A loop and those in it, outer before inner, each with the loops around it."""
    yield statement, list(outer)
    for node in statement.body:
        if isinstance(node, For):
            yield from _loops(node, (*outer, statement))


def _loads(statement: For) -> Iterator[tuple[Load, list[For]]]:
    """The loads in a loop, each with the loops around it."""
    for loop, outer in _loops(statement):
        for node in loop.body:
            if isinstance(node, Load):
                yield node, [*outer, loop]
