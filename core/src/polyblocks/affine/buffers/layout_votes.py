"""Which dimension of an array is walked in order, as the arrays are that it meets in loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod

from polyblocks.affine.analysis.dataflow import makers_of, slice_of, variables_of
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    Index,
    IndirectAccess,
    IndirectStore,
    Nest,
    Node,
    Value,
    walk,
)
from polyblocks.affine.steps import stride_between_steps, without_steps

#: An access, the variables of the loops around it, and the bytes that it moves in all.
_Walk = tuple[AffineAccess, list[Var], int]


@dataclass(frozen=True)
class Row:
    """Elements along one dimension that are moved together, at a place known only at run time.

    Attributes:
        buffer: whose.
        dimension: of the buffer.
        var: of the loop that counts along the dimension.
        moved: bytes, in all.
    """

    buffer: Buffer
    dimension: int
    var: Var
    moved: int


@dataclass
class Ballot:
    """Who votes for which dimension.

    Rows at run-time places that are no rows in memory take a line for every element. So their bytes
    count as often as lines have elements; also those of arrays that have their layout from there.

    Attributes:
        open: arrays whose layout is not decided, and which do not vote.
        line: bytes of a line of a cache.
    """

    open: set[Buffer]
    line: int = 64
    _walks: dict[Nest, list[_Walk]] = field(default_factory=dict)
    _ordered: dict[int, list[Var]] = field(default_factory=dict)
    _rows: dict[Nest, list[Row]] = field(default_factory=dict)
    _counted: dict[Nest, dict[Buffer, list[int]]] = field(default_factory=dict)
    _weights: dict[Buffer, int] = field(default_factory=dict)
    _heaviest: dict[tuple[Buffer, int], int] = field(default_factory=dict)

    def close(self, buffer: Buffer, nests: list[Nest], dimension: int) -> None:
        """Let an array vote in these nests, which are all that touch it; its layout is decided.

        Args:
            buffer: the array.
            nests: all that touch it.
            dimension: which of its dimensions comes last.
        """
        self.open.remove(buffer)
        self._weights[buffer] = self._heaviest.get((buffer, dimension), 1)
        for nest in nests:
            self._counted.pop(nest, None)

    def votes(self, buffer: Buffer, nests: list[Nest]) -> list[int]:
        """Bytes that accesses of arrays with a layout move in order, by dimension of a buffer."""
        votes = [0] * len(buffer.shape)
        for nest in nests:
            counted = self._counted.setdefault(nest, {})
            if buffer not in counted:
                ordered = self.votes_of(buffer, self._of(nest))
                scattered = scattered_along(buffer, nest)
                rows = self._votes_of_rows(buffer, nest)
                counted[buffer] = [sum(each) for each in zip(ordered, scattered, rows, strict=True)]
            for dimension, mine in enumerate(counted[buffer]):
                votes[dimension] += mine
        return votes

    def votes_of(self, buffer: Buffer, walks: Iterable[_Walk]) -> list[int]:
        """As :meth:`votes`, of accesses that run in the same loops."""
        votes = [0] * len(buffer.shape)
        walks = list(walks)
        mine = [n for n, _, _ in walks if n.buffer is buffer]
        moves: dict[Var, list[int]] = {}
        for other, variables, moved in walks:
            if other.buffer.base in self.open or other.buffer is buffer or not moved:
                continue
            for var in self._in_order(other, variables):
                if var not in moves:
                    moves[var] = _dimensions(mine, var, len(votes))
                self._vote(buffer, moves[var], moved, other.buffer.base, votes)
        return votes

    def _vote(
        self, buffer: Buffer, dimensions: list[int], moved: int, voter: Buffer, votes: list[int]
    ) -> None:
        """Add the vote of an array for some dimensions of a buffer."""
        weight = self._weights.get(voter, 1)
        for dimension in dimensions:
            votes[dimension] += moved * weight
            if weight > self._heaviest.get((buffer, dimension), 1):
                self._heaviest[buffer, dimension] = weight

    def _votes_of_rows(self, buffer: Buffer, nest: Nest) -> list[int]:
        """As :meth:`votes`, of rows at run-time places: its own, or those that it is used with."""
        votes = [0] * len(buffer.shape)
        if nest not in self._rows:
            self._rows[nest] = rows_at_run_time(nest)
        for row in self._rows[nest]:
            if row.buffer is buffer:
                weight = max(1, self.line // buffer.bytes_per_element)
                votes[row.dimension] += row.moved * weight
                self._heaviest[buffer, row.dimension] = weight
            elif row.buffer.base not in self.open and row.dimension == len(row.buffer.shape) - 1:
                mine = [n for n, _, _ in self._of(nest) if n.buffer is buffer]
                dimensions = _dimensions(mine, row.var, len(votes))
                self._vote(buffer, dimensions, row.moved, row.buffer.base, votes)
        return votes

    def _of(self, nest: Nest) -> list[_Walk]:
        """Accesses of a nest, the variables of the loops around each, and the bytes they move."""
        if nest not in self._walks:
            found = [w for w in walks(nest.body) if w[0].buffer.kind != "local"]
            if facts_of(nest).contraction is not None:
                # Packed operands are moved once, however often they are used.
                first = {n.buffer: n for n, _, _ in reversed(found)}
                found = [
                    (n, v, n.buffer.base.nbytes if first[n.buffer] is n else 0) for n, v, _ in found
                ]
            self._walks[nest] = [(n, v, moved // _repeats(n, v)) for n, v, moved in found]
        return self._walks[nest]

    def _in_order(self, node: AffineAccess, variables: list[Var]) -> list[Var]:
        """The variables along which an access of a known layout is in order."""
        if id(node) not in self._ordered:
            self._ordered[id(node)] = [v for v in variables if stride_between_steps(node, v) == 1]
        return self._ordered[id(node)]


def scattered_along(buffer: Buffer, nest: Nest) -> list[int]:
    """Bytes that are stored at a run-time place along one dimension, while no other index moves.

    The elements along that dimension are used together, in an order of their own: next to each
    other they take the fewest lines of a cache.
    """
    votes = [0] * len(buffer.shape)
    stores: list[tuple[IndirectStore, Var, int]] = []
    exprs: dict[Value, Expr] = {}

    def visit(nodes: list[Node], inner: Var | None, times: int) -> None:
        for node in nodes:
            if isinstance(node, For):
                visit(node.body, node.var, times * max(node.trips, 1))
            elif isinstance(node, Index):
                exprs[node.result] = node.expr
            elif isinstance(node, IndirectStore) and node.buffer is buffer and inner is not None:
                stores.append((node, inner, times))

    visit(nest.body, None, 1)
    for store, inner, times in stores:
        index = [exprs.get(value) for value in store.index]
        at_run_time = [d for d, expr in enumerate(index) if expr is None]
        still = all(not expr.coefficient(inner) for expr in index if expr is not None)
        if len(at_run_time) == 1 and still:
            votes[at_run_time[0]] += times * buffer.bytes_per_element
    return votes


def rows_at_run_time(nest: Nest) -> list[Row]:
    """The accesses of a nest at places whose last loop counts along a single dimension."""
    makers = makers_of(walk(nest.body))
    found: list[Row] = []

    def visit(nodes: list[Node], inner: Var | None, times: int) -> None:
        for node in nodes:
            if isinstance(node, For):
                visit(node.body, node.var, times * max(node.trips, 1))
            elif isinstance(node, IndirectAccess) and inner is not None and inner.extent > 1:
                along = _along(node, inner, makers)
                if along is not None:
                    nbytes = times * node.buffer.bytes_per_element
                    found.append(Row(node.buffer, along, inner, nbytes))

    visit(nest.body, None, 1)
    return found


def _along(node: IndirectAccess, var: Var, makers: dict[Value, Node]) -> int | None:
    """The only dimension that moves with a loop, if others are at run-time places; or None."""
    moving = []
    for dimension, value in enumerate(node.index):
        maker = makers.get(value)
        if isinstance(maker, Index) and maker.expr.coefficient(var) == 1:
            moving.append(dimension)
        elif var in variables_of(slice_of([value], makers)):
            return None
    at_run_time = any(not isinstance(makers.get(value), Index) for value in node.index)
    return moving[0] if len(moving) == 1 and at_run_time else None


def _dimensions(accesses: list[AffineAccess], var: Var, rank: int) -> list[int]:
    """Those along which some of the accesses move with a loop."""
    return [
        d for d in range(rank) if any(without_steps(n.index[d]).coefficient(var) for n in accesses)
    ]


def _repeats(node: AffineAccess, variables: list[Var]) -> int:
    """How often an access comes to each element: a row that all rows read is one row."""
    touched = {v for e in node.index for v in e.variables()}
    return prod(v.extent for v in variables if v not in touched)


def walks(nodes: list[Node], outer: Iterable[Var] = (), times: int = 1) -> Iterator[_Walk]:
    """The accesses of nodes that run ``times`` times in the loops of ``outer``."""
    for node in nodes:
        if isinstance(node, For):
            inner = [*outer, node.var] if node.var.extent > 1 else list(outer)
            yield from walks(node.body, inner, times * max(node.trips, 1))
        elif isinstance(node, AffineAccess):
            yield node, list(outer), times * node.buffer.bytes_per_element
