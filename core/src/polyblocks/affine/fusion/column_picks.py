"""Elements of rows that are looked up, each as a sum over its row.

A loss looks up the score of each row's class, ``scores[i, t[i]]``, which needs the whole array in
memory. The sum of ``select(j == t[i], scores[i, j], -0)`` over ``j`` is the same number, exactly,
and goes through the columns as the row's other reductions do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.cleanup.dead_nests import drop_stores
from polyblocks.affine.element import printed
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.fusion.siblings import SiblingFusion
from polyblocks.affine.model import (
    Buffer,
    For,
    Index,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    clone,
    nested,
    remove_dead,
    replace_values,
    walk,
    writes,
)
from polyblocks.affine.ops import Integers, Ops, constant_number, integer
from polyblocks.affine.rewrites.merging import fits, merged
from polyblocks.affine.users import Users

#: Columns that an index of 32 bits counts.
MOST_COLUMNS = 1 << 31

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.trunci", "arith.extsi", "arith.extui")
#: Types of integers that have room for such an index.
_WIDE = ("i32", "i64", "index")


@dataclass(frozen=True)
class _Pick:
    """A load at a column that is known at run time only.

    Attributes:
        nest: that it is in.
        load: the load.
        within: the nodes that it is one of.
        loops: around it, from the outside in.
        code: computes its indices.
    """

    nest: Nest
    load: IndirectLoad
    within: list[Node]
    loops: list[For]
    code: list[Node]


class ColumnPicks:
    """The look-ups of an array's elements, one in each row at most.

    Args:
        sequence: the program.
        picks: them.
        dimension: the array's columns.
        add: an addition whose rounding is as free as that of the array's own sums.
    """

    def __init__(self, sequence: Sequence, picks: list[_Pick], dimension: int, add: Op) -> None:
        self._sequence = sequence
        self._picks = picks
        self._dimension = dimension
        self._add = add
        self._made: list[Nest] = []

    @classmethod
    def of(
        cls, buffer: Buffer, dimension: int, users: Users, sequence: Sequence
    ) -> ColumnPicks | None:
        """The look-ups of an array; None if there are none, or others than one for each row."""
        columns = buffer.shape[dimension]
        picks: list[_Pick] = []
        for nest in users.readers(buffer):
            if isinstance(nest, Nest):
                found = _picks_in(nest, buffer, dimension)
                if found is None:
                    return None
                picks += found
        each = [prod(loop.var.extent for loop in p.loops) for p in picks]
        if not picks or columns > MOST_COLUMNS or max(each) * columns > buffer.numel:
            return None
        sums = [n for w in users.writers(buffer) if isinstance(w, Nest) for n in walk(w.body)]
        add = next((n for n in sums if isinstance(n, Op) and n.name == "arith.addf"), None)
        if add is None or add.results[0].type != buffer.element:
            return None
        return cls(sequence, picks, dimension, add)

    def make(self) -> None:
        """Let nests sum rows up, right in front of those that look elements up."""
        for pick in self._picks:
            made, sums = self._sum(pick)
            self._made.append(made)
            self._sequence.items.insert(self._sequence.items.index(pick.nest), made)
            self._sequence.buffers.append(sums)
            place = tuple(Expr.of(loop.var) for loop in pick.loops)
            self._exchange(pick, pick.load, Load(pick.load.result, sums, place))

    def join(self, others: Collection[Nest]) -> None:
        """Sum up in sweeps through the columns that are there already.

        Args:
            others: those that may carry a sum beside what they reduce.
        """
        siblings = SiblingFusion()
        for pick, made in zip(self._picks, self._made, strict=True):
            if pick.nest in others:
                self._join_reader(pick, made, siblings)
                continue
            first = siblings.partner(self._sequence, self._sequence.items.index(made))
            if first is not None and first in others:
                siblings.join(self._sequence, first, made)

    def _join_reader(self, pick: _Pick, made: Nest, siblings: SiblingFusion) -> None:
        """Sum up in the nest that looks a sum up behind a reduction of its own."""
        reader, (mine,) = pick.nest, made.body
        parts = ReductionNest.of(reader)
        assert isinstance(mine, For)
        assert parts is not None
        if pick.within[-len(parts.after) :] != parts.after or not fits(mine, parts.parallel[0]):
            return
        (sums,) = writes(made)
        (store,) = [n for n in walk([mine]) if isinstance(n, Store)]
        (load,) = [n for n in pick.within if isinstance(n, Load) and n.buffer is sums]
        pick.within.remove(load)
        replace_values(pick.within, {load.result: store.value})
        body: list[Node] = [merged(mine, parts.parallel[0])]
        drop_stores(body, {sums})
        siblings.merge_loops(body)
        remove_dead(body)
        self._sequence.items.remove(made)
        self._sequence.buffers.remove(sums)
        reader.kind = "reduction"
        reader.replace(body)

    def undo(self) -> None:
        """Take the sums out again."""
        for pick, made in zip(self._picks, self._made, strict=True):
            (sums,) = writes(made)
            (load,) = [n for n in pick.within if isinstance(n, Load) and n.buffer is sums]
            self._exchange(pick, load, pick.load)
            self._sequence.items.remove(made)
            self._sequence.buffers.remove(sums)

    def _exchange(self, pick: _Pick, old: Node, new: Node) -> None:
        pick.within[pick.within.index(old)] = new
        pick.nest.replace()

    def _sum(self, pick: _Pick) -> tuple[Nest, Buffer]:
        """The nest that sums the rows up, and where it puts the sums."""
        load, number = pick.load, integer(32)
        column = Var(load.buffer.shape[self._dimension])
        rows = [Var(loop.var.extent) for loop in pick.loops]
        at = {loop.var: Expr.of(v) for loop, v in zip(pick.loops, rows, strict=True)}
        values: dict[Value, Value] = {}
        body = clone(pick.code, values, at)
        index = [_expr_of(v, makers_of(pick.code)) for v in load.index]
        ops = Ops(body, load.location)
        place = values[load.index[self._dimension]]
        chosen = ops.op("arith.index_cast", [place], number)
        zero = ops.constant(-0.0, load.result.type)
        inner: list[Node] = []
        each = Ops(inner, load.location)
        here = each.op("arith.index_cast", [each.index(Expr.of(column))], number)
        element, total, result = (Value(load.result.type) for _ in range(3))
        whole = (e.substitute(at) for e in index if e is not None)
        where = [Expr.of(column) if e is None else next(whole) for e in index]
        inner.append(Load(element, load.buffer, tuple(where)))
        nothing = each.constant(-0.0, load.result.type)
        term = each.select(each.compare(Integers.EQUAL, here, chosen), element, nothing)
        yielded = each.like(self._add, [term, total])
        body.append(For(column, inner, [zero], [total], [result], [yielded]))
        size = load.buffer.bytes_per_element
        shape = tuple(v.extent for v in rows)
        buffer = Buffer(shape, load.buffer.element, "alloc", bytes_per_element=size)
        body.append(Store(result, buffer, tuple(Expr.of(v) for v in rows)))
        nest = Nest(nested(rows, body), [], changed=True)
        nest.name, nest.kind, nest.sources = pick.nest.name, "reduction", pick.nest.sources
        return nest, buffer


def _picks_in(nest: Nest, buffer: Buffer, dimension: int) -> list[_Pick] | None:
    """The look-ups in a nest; None if one of them is not of a row's element."""
    found: list[_Pick] = []
    written = {b.base for b in writes(nest)}

    def see(nodes: list[Node], loops: list[For], before: list[Node]) -> bool:
        code = [*before, *nodes]
        makers = makers_of(code)
        for node in nodes:
            if isinstance(node, IndirectLoad) and node.buffer is buffer:
                needed = slice_of(node.index, makers)
                own = [n for n in code if n in needed]
                bounded = not loops or any(f.bounded for f in loops)
                if bounded or not _is_known(own, makers, written):
                    return False
                affine = [_expr_of(v, makers) is not None for v in node.index]
                if affine != [d != dimension for d in range(len(affine))]:
                    return False
                found.append(_Pick(nest, node, nodes, loops, own))
            elif isinstance(node, For):
                if not see(node.body, [*loops, node], code):
                    return False
            elif any(isinstance(n, IndirectLoad) and n.buffer is buffer for n in walk([node])):
                return False
        return True

    return found if see(nest.body, [], []) else None


def _is_known(code: list[Node], makers: Mapping[Value, Node], written: set[Buffer]) -> bool:
    """Whether code can stand in front of its nest, in loops like those around it."""
    if not all(isinstance(n, (Op, Index, Load)) for n in code):
        return False
    if any(v not in makers for n in code for v in n.uses):
        return False
    return all(n.buffer.base not in written and not n.where for n in code if isinstance(n, Load))


def _expr_of(value: Value, makers: Mapping[Value, Node]) -> Expr | None:
    """The affine expression that an index is; None if it is known at run time only."""
    maker = makers.get(value)
    if isinstance(maker, Index):
        return maker.expr
    if not isinstance(maker, Op) or maker.name not in (*_CASTS, "arith.minui"):
        return None
    if printed(maker.results[0].type) not in _WIDE:
        return None
    # Numbers of rows that a program makes itself are integers on the way, and no larger than they
    # can be.
    value, *limits = maker.operands
    expr = _expr_of(value, makers)
    if expr is None or expr.range()[0] < 0 or expr.range()[1] >= MOST_COLUMNS:
        return None
    least = min((constant_number(makers.get(v)) or 0 for v in limits), default=MOST_COLUMNS)
    return expr if expr.range()[1] <= least else None
