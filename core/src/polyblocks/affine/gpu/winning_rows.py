"""Rows that are stored at run-time places by threads in any order: of those to one the last wins.

Where an update is a row, all its elements go where the same numbers say, so the last update of a
place is found once for a row: an atomic maximum of the numbers of the updates. Then each element
takes the value of the update that won, which is computed from the update's number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from polyblocks.affine.access import address
from polyblocks.affine.analysis.dataflow import makers_of, slice_of, variables_of
from polyblocks.affine.element import I64
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.likeness import likeness
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import (
    Access,
    Buffer,
    Check,
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Sequence,
    Store,
    Value,
    around,
    clone,
    index_exprs,
    reads,
    walk,
    writes,
)
from polyblocks.affine.ops import Integers, Ops, integer
from polyblocks.affine.rewrites.run_time_places import MovedCode
from polyblocks.affine.subnests import straight_loops

#: Bytes of an update's number, alone or with bits of a value behind it.
NUMBER_BYTES = 8


def ready(boards: list[Buffer]) -> list[Node]:
    """No update has been at any place: numbers are zero, on boards of one shape."""
    dims = [Var(extent) for extent in boards[0].shape]
    body: list[Node] = []
    nothing = Ops(body).constant(0, boards[0].element)
    body.extend(Store(nothing, board, tuple(Expr.of(d) for d in dims)) for board in boards)
    return around(dims, body)


def number_of(ops: Ops, variables: Iterable[Var], type_: Any) -> Value:
    """An update's number, of its iterations: they begin with one, since nothing is zero."""
    number = Expr(0)
    for var in variables:
        number = number * var.extent + Expr.of(var)
    return ops.op("arith.index_cast", [ops.index(number + 1)], type_)


def keep_most(ops: Ops, board: Buffer, index: list[Value], number: Value) -> None:
    """Leave the larger of a number and the one at a place of a board."""
    before = Value(board.element)
    ops.out.append(IndirectLoad(before, board, index, ops.location))
    most = ops.op("arith.maxsi", [before, number])
    ops.out.append(IndirectStore(most, board, index, ops.location))


@dataclass
class Before:
    """The elements before the updates: those in memory, or the value that a nest has for all.

    Attributes:
        fill: the nest, as :func:`polyblocks.affine.scatters.fills.fill_before` finds it; None if no
            nest fills the buffer.
        used: whether its values are taken, so that it need not store them.
    """

    fill: Nest | None = None
    used: bool = False

    def value(self, target: Buffer, index: tuple[Expr, ...], out: list[Node]) -> Value:
        """That of an element; its code goes to ``out``."""
        extents = [v.extent for e in index for v, _ in e.terms if isinstance(v, Var)]
        if self.fill is not None and extents == list(target.shape):
            found = _filled_with(self.fill, target, index, out)
            if found is not None:
                self.used = True
                return found
        old = Value(target.element)
        out.append(Load(old, target, index))
        return old


@dataclass
class WinningRows:
    """Updates whose places do not depend on all of their loops.

    Attributes:
        loops: perfect ones.
        body: straight-line code in them.
        store: the store in it.
        own: the loops that are an index of the destination each, by its dimension: iterations of
            them never meet in an element.
        placing: the code that says where, and checks it.
    """

    loops: list[For]
    body: list[Node]
    store: IndirectStore
    own: dict[int, Var]
    placing: list[Node]

    @classmethod
    def of(cls, loops: list[For], body: list[Node], store: IndirectStore) -> WinningRows | None:
        """None where the places of all elements differ, or values cannot be computed later."""
        exprs, variables = index_exprs(body), [loop.var for loop in loops]
        fixed = [exprs.get(value) for value in store.index]
        own = {
            d: e.terms[0][0]
            for d, e in enumerate(fixed)
            if e is not None and len(e.terms) == 1 and not e.const and e.terms[0][1] == 1
        }
        own = {d: v for d, v in own.items() if v in variables and list(own.values()).count(v) == 1}
        known = {d for d, e in enumerate(fixed) if e is not None and e.is_constant} | own.keys()
        needed = [v for d, v in enumerate(store.index) if d not in known]
        checks = [n for n in body if isinstance(n, Check)]
        parts = slice_of([*needed, *(n.condition for n in checks)], makers_of(body))
        placing = [n for n in body if n in parts or n in checks]
        found = cls(loops, body, store, own, placing)  # type: ignore[arg-type]
        rows = prod(v.extent for v in found.own.values() if v not in found.used)
        return found if rows > 1 and found._value_at(MovedCode({}, None)) is not None else None

    @cached_property
    def used(self) -> set[Var]:
        """The variables that places depend on."""
        return variables_of(self.placing)

    @property
    def meeting(self) -> list[Var]:
        """The loops whose iterations may meet in an element."""
        own = set(self.own.values())
        return [loop.var for loop in self.loops if loop.var not in own]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers: one for each place that the code may say."""
        exprs = index_exprs(self.body)
        return tuple(
            extent if self._is_kept(d, exprs.get(value)) else 1
            for d, (value, extent) in enumerate(
                zip(self.store.index, self.store.buffer.shape, strict=True)
            )
        )

    def _is_kept(self, dimension: int, expr: Expr | None) -> bool:
        if dimension in self.own:
            return self.own[dimension] in self.used
        return expr is None or not expr.is_constant

    def board(self) -> Buffer:
        """For the numbers."""
        return Buffer(self.shape, integer(I64.bits), "alloc", bytes_per_element=NUMBER_BYTES)

    @property
    def moved(self) -> int:
        """Bytes that the nests move: numbers three times, places once, rows of the destination."""
        steps = prod(v.extent for v in self.meeting)
        board, buffer = prod(self.shape), self.store.buffer
        return NUMBER_BYTES * (3 * board + 2 * steps) + 3 * buffer.numel * buffer.bytes_per_element

    def numbered(self, board: Buffer) -> list[Node]:
        """Each place has the largest number of the updates that are made there."""
        old = [v for loop in self.loops if (v := loop.var) in self.used or v in self.meeting]
        fresh = {v: Var(v.extent) for v in old}
        values: dict[Value, Value] = {}
        nodes = clone(self.placing, values, {v: Expr.of(new) for v, new in fresh.items()})
        ops = Ops(nodes, self.store.location)
        mine = number_of(ops, (fresh[var] for var in self.meeting), board.element)
        index = []
        for d, value in enumerate(self.store.index):
            if board.shape[d] == 1:
                index.append(ops.index(0))
            elif d in self.own:
                index.append(ops.index(Expr.of(fresh[self.own[d]])))
            else:
                index.append(values.get(value, value))
        keep_most(ops, board, index, mine)
        return around(list(fresh.values()), nodes)

    def taken(self, board: Buffer, before: Before) -> list[Node]:
        """Each element is that of the update that won, if there was one; else that ``before``."""
        target = self.store.buffer
        exprs = index_exprs(self.body)
        dims: list[Var] = []
        index: list[Expr] = []
        for d, value in enumerate(self.store.index):
            expr = exprs.get(value)
            if d not in self.own and expr is not None and expr.is_constant:
                index.append(expr)
                continue
            dims.append(Var(self.own[d].extent if d in self.own else target.shape[d]))
            index.append(Expr.of(dims[-1]))
        at = {var: index[d] for d, var in self.own.items()}
        body: list[Node] = []
        ops = Ops(body, self.store.location)
        place = [e if n > 1 else Expr(0) for e, n in zip(index, board.shape, strict=True)]
        number = Value(board.element)
        body.append(Load(number, board, tuple(place)))
        nothing, one = (ops.constant(n, board.element) for n in (0, 1))
        met = ops.compare(Integers.NOT_EQUAL, number, nothing)
        # Where nothing was stored, the first update's value is computed, and not taken.
        counted = ops.op("arith.subi", [ops.select(met, number, one), one])
        type_ = self.store.index[0].type
        places: dict[Var, Value] = {}
        rest = ops.op("arith.index_cast", [counted], type_)
        for position, var in reversed(list(enumerate(self.meeting))):
            extent = ops.index(var.extent)
            places[var] = ops.op("arith.remsi", [rest, extent]) if position else rest
            rest = ops.op("arith.divsi", [rest, extent]) if position else rest
        moved = MovedCode(places, type_, body)
        new = self._value_at(moved, at)
        assert new is not None
        old = before.value(target, tuple(index), body)
        body.append(Store(ops.select(met, new, old), target, tuple(index)))
        return around(dims, body)

    def _value_at(self, moved: MovedCode, at: dict[Var, Expr] | None = None) -> Value | None:
        """The value of an update; its code goes to ``moved``. None if it cannot be written."""
        if at is None:
            moved = MovedCode({v: Value(None) for v in self.meeting}, None)
        makers = makers_of(self.body)
        parts = slice_of([self.store.value], makers)
        if any(isinstance(n, IndirectLoad) for n in parts):
            # Places of what it reads are checked where it does.
            checks = [n for n in self.body if isinstance(n, Check)]
            parts |= slice_of([n.condition for n in checks], makers) | dict.fromkeys(checks)
        values: dict[Value, Value] = {}
        for node in self.body:
            if node in parts and not moved.take(node, at or {}, values):
                return None
        return values.get(self.store.value, self.store.value)


@dataclass
class KnownNumbers:
    """Numbers of updates that were found for one array, for others with the same places."""

    _found: list[tuple[Hashable, Nest, Buffer]] = field(default_factory=list)

    def get(self, sequence: Sequence, before: Nest, numbered: Nest, board: Buffer) -> Buffer | None:
        """The numbers that are known where a nest stands, if it would find the same.

        Args:
            sequence: the program.
            before: a nest of it.
            numbered: would find them, with ``board`` for them.
            board: is kept for later if there are none.
        """
        key, items = _identity(numbered, board), sequence.items
        for other, nest, numbers in self._found:
            if other != key or not stands_before(numbered, nest):
                continue
            between = items[items.index(nest) + 1 : items.index(before)]
            read = {b.base for b in reads(numbered)}
            if read.isdisjoint(b.base for item in between for b in writes(item)):
                return numbers
        self._found.append((key, numbered, board))
        return None


def _identity(nest: Nest, board: Buffer) -> Hashable:
    """Equal for nests that do the same with the same memory, but for what they write to."""
    made = {value for node in walk(nest.body) for value in node.defines}
    taken = [v for node in walk(nest.body) for v in node.uses if v not in made]
    buffers = [n.buffer for n in walk(nest.body) if isinstance(n, Access) and n.buffer is not board]
    return likeness(nest.body), tuple(v.external or v for v in taken), tuple(buffers)


def _filled_with(
    fill: Nest, buffer: Buffer, index: tuple[Expr, ...], out: list[Node]
) -> Value | None:
    """The value that a fill stores to an element; None where its loops count other ones.

    Args:
        fill: as :func:`fill_before` finds it for the buffer.
        buffer: that it fills.
        index: of the element.
        out: gets the code.
    """
    found = straight_loops(fill.body)
    assert found is not None
    loops, body = found
    (store,) = (n for n in body if isinstance(n, Store))
    if store.buffer.shape == buffer.shape:
        places = list(index)
    elif len(loops) == 1:
        places = [address(buffer, index)]
    else:
        return None
    values: dict[Value, Value] = {}
    variables = {loop.var: place for loop, place in zip(loops, places, strict=True)}
    out.extend(clone([n for n in body if n is not store], values, variables))
    return values.get(store.value, store.value)
