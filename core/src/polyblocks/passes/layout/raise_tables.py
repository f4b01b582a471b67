"""raise-tables: where a table of places counts on evenly, places are affine."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    For,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Sequence,
    Value,
    clone,
    remove_dead,
    replace_values,
)
from polyblocks.affine.subnests import change_subnests, mark_tiles, parallel_shell
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class RaiseTablesPass(NestPass):
    """Split the innermost loop of a nest that looks places up in a constant table.

    Images are enlarged with tables of the pixels that each pixel comes from: ``0, 0, 0, 1, 1, 2``
    and so on, held within the image at its ends. Between these parts a table counts on by 1 every
    so many elements. A loop for each of the elements between, around one along the table, walks
    in order where a gather was.

    Before::

        affine.for %x = 0 to 64 {
          %t = affine.load %table[%x]            // 0, 0, 1, 1, 2, 2, ..., 30, 31, 31, 31
          %y = memref.load %a[%t] ... }

    After::

        affine.for %x = 0 to 31 { affine.for %p = 0 to 2 { ... affine.load %a[%x] ... } }
        affine.for %x = 0 to 2 { %t = affine.load %table[%x + 62] ... }
    """

    name: ClassVar[str] = "raise-tables"
    #: Elements of a table between which it counts on, at most.
    most: int = 8
    #: The part of a loop that must be even.
    least: float = 0.75

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Raise in every nest and sub-nest that gathers."""
        parts: list[tuple[int, int, int]] = []

        def change(nodes: list[Node], around: list[For]) -> list[Node] | None:
            del around
            return self._split(nodes, parts)

        for nest in sequence.nests():
            parts.clear()
            if change_subnests(nest, change):
                for low, high, step in parts:
                    context.decide(self.name, nest.name, "even", part=[low, high], step=step)

    def _split(self, nodes: list[Node], parts: list[tuple[int, int, int]]) -> list[Node] | None:
        """The loops with the innermost one in up to three parts; None if nothing gets even."""
        loops, body = parallel_shell(nodes)
        if len(loops) < 2 or any(f.bounded or f.level or f.lanes or f.unit for f in loops):
            return None
        if not any(isinstance(n, IndirectLoad) for n in body):
            return None
        if any(isinstance(n, (For, IndirectStore)) for n in body):
            return None
        loop = loops[-1]
        tables = [n for n in body if isinstance(n, Load) and _is_table(n, loop.var)]
        found = self._even([_values(n) for n in tables])
        if found is None:
            return None
        low, high, step = found
        middle = _middle(body, loop.var, tables, found)
        if middle is None:
            return None
        extent = loop.var.extent
        new: list[Node] = [*_part(body, loop.var, 0, low), middle]
        new += _part(body, loop.var, high, extent - high)
        loops[-2].body = new
        loops[-2].tile = False
        mark_tiles(nodes)
        remove_dead(nodes)
        parts.append((low, high, step))
        return nodes

    def _even(self, tables: list[list[int]]) -> tuple[int, int, int] | None:
        """Where all tables count on by 1 every so many elements: the part, and how many."""
        if not tables:
            return None
        for step in range(1, self.most + 1):
            ranges = [_longest(table, step) for table in tables]
            low, high = max(a for a, _ in ranges), min(b for _, b in ranges)
            high -= (high - low) % step
            if high - low >= self.least * len(tables[0]):
                return low, high, step
        return None


def _is_table(load: Load, var: Var) -> bool:
    """Whether a load is of a constant table of integers, in its order."""
    if load.buffer.constant is None or load.where or str(load.result.type) not in ("i32", "i64"):
        return False
    return address(load.buffer, load.index) == Expr.of(var)


def _values(load: Load) -> list[int]:
    assert load.buffer.constant is not None
    return [int(getattr(v, "value", v)) for v in load.buffer.constant]


def _longest(table: Items[int], step: int) -> tuple[int, int]:
    """The longest part of a table that counts on evenly; as good as none if it is short.

    There elements so far apart differ by 1, and neighbours by no more.
    """
    best, first = (0, 0), 0
    for x in range(1, len(table) + 1):
        if x < len(table) and table[x] - table[x - 1] in (0, 1):
            if x - first < step or table[x] - table[x - step] == 1:
                continue
            following = x - step + 1
        else:
            following = x
        best = max(best, (first, x), key=lambda part: part[1] - part[0])
        first = following
    return best if best[1] - best[0] >= 2 * step else (0, 0)


def _part(body: list[Node], var: Var, first: int, count: int) -> list[Node]:
    """A loop over some of the iterations."""
    if count <= 0:
        return []
    part = Var(count)
    return [For(part, clone(body, {}, {var: Expr.of(part) + first}))]


def _middle(
    body: list[Node], var: Var, tables: list[Load], even: tuple[int, int, int]
) -> Node | None:
    """The loops over the even part, in which tables are affine; None if gathers are as before."""
    from polyblocks.mlir import ir

    low, high, step = even
    group, digit = Var((high - low) // step), Var(step)
    values: dict[Value, Value] = {}
    offset = Expr.of(digit) if step > 1 else Expr(0)
    copy = clone(body, values, {var: Expr.of(group) * step + offset + low})
    loads = {values[n.result]: _values(n) for n in tables}
    nodes: list[Node] = []
    for node in copy:
        table = loads.get(node.result) if isinstance(node, Load) else None
        if table is None:
            nodes.append(node)
            continue
        assert isinstance(node, Load)
        # Where it counts on: behind so many elements of a group.
        turn = next((k for k in range(1, step) if table[low + k] != table[low]), step)
        place = Expr.of(group) + table[low] + (offset + (step - turn)) // step
        index = Value(ir.IndexType.get())
        nodes.append(Index(index, place))
        nodes.append(Op("arith.index_cast", [index], {}, [node.result], node.location))
    known = KnownValues()
    known.block(nodes)
    replace_values(nodes, known.same)
    out: list[Node] = []
    affine = 0
    for node in nodes:
        if isinstance(node, IndirectLoad):
            for position, value in enumerate(node.index):
                expr = known.exprs.get(value)
                if expr is not None:
                    affine += position == len(node.index) - 1
                    index = Value(ir.IndexType.get())
                    out.append(Index(index, expr))
                    node.index[position] = index
        elif isinstance(node, Load):
            affine += 1
        out.append(node)
    before = sum(isinstance(n, Load) for n in body) - len(tables)
    if affine <= before:
        return None
    return For(group, [For(digit, out)] if step > 1 else out)
