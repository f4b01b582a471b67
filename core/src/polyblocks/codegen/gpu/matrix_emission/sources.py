"""Where the pieces of an operand are in memory, and which of them are there.

A place is a sum of what depends on the row (or column), which a thread computes once, of what
depends on the step, which is mostly the same for all threads, and of a constant, for which accesses
have room. Where a chip has loads that find zeros beyond the end of a buffer, a piece that is not
there is read from such a place, which needs no branch.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.access import address, reach
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.expr import Expr, Var
from polyblocks.codegen.gpu.accesses.places import Source, Sum
from polyblocks.codegen.gpu.emission.code import as_bound
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope

#: Elements up to which rows and steps are numbers of 32 bits, with room for those before the first.
_FEW = 1 << 30


class Sources:
    """The pieces of one operand.

    Args:
        scope: of the kernel.
        operand: what is copied.
    """

    def __init__(self, scope: UnitScope, operand: Operand) -> None:
        self.scope, self.code, self.plan = scope, scope.code, scope.plan
        self.tile, self.nodes = scope.tile, scope.tile.nodes
        self.load, self.side = operand.load, operand.side
        access = self.plan.access
        self.order, self.linear = access.product.steps, access.linear[self.side]
        self.few = reach(self.load.buffer) <= _FEW
        self.number = self.code.i32 if self.few else self.code.index
        self.window = self.plan.window(operand)
        #: Variables of the step that are the same for all threads, whatever the tile.
        self.fixed: dict[Var, Expr] = {}

    def at(
        self,
        begin: Sum,
        step: Sum,
        outer: Sum,
        size: tuple[int, int],
        whole: bool,
        *,
        asked: bool = False,
    ) -> Source:
        """The piece that begins at a step of a row (or column).

        Args:
            begin: the first step of the tile.
            step: counted from there.
            outer: the row (or column), counted from the first one of the tile.
            size: steps, and rows (or columns), of the piece.
            whole: whether all of the tile's steps exist.
            asked: whether nothing is read that is not there; else it is read from another place.
        """
        code, load = self.code, self.load
        ahead, inside = self._steps(begin, step, size[0], whole, asked)
        plus = ahead + self._rows(outer, size[1])
        place = address(load.buffer, load.index).substitute(self.fixed)
        plus += place.const
        of_rows, of_steps = self._parts(place)
        holds = code.both([self._holds(e.substitute(self.fixed)) for e in load.where])
        there = code.both([c for c in (inside, holds) if c is not None])
        return Source(of_rows, of_steps, plus, ahead, there)

    def _steps(self, tile: Sum, step: Sum, size: int, whole: bool, asked: bool) -> tuple[int, Any]:
        """Set the variables of a step; what they leave out, and whether the step exists."""
        code, nodes, last = self.code, self.nodes, self.order[-1]
        depth, count = self.plan.sizes.depth, self.plan.sizes.counts[2]
        if self.window > 1:
            return self._of_windows(tile, step), None
        begin = tile.whole(code)
        apart = self._adds(last)
        if not self.linear and last.extent % depth == 0:
            # All of a tile's steps have the other loops' variables in common.
            nodes.decode(begin, self.order)
            value = step.value if apart is not None else step.whole(code)
            nodes.variables[last] = code.add(nodes.variables[last], value)
            return (apart or 0) * step.plus, None
        inside, plus = None, 0
        if whole or asked:
            apart = apart if self.linear else None
            plus = (apart or 0) * step.plus
            number = code.add(begin, step.value if apart is not None else step.whole(code))
            if not whole:
                inside = self._is_before(code.add(begin, step.whole(code)), count)
        else:
            number = code.add(begin, step.whole(code))
            inside = code.compare("ult", number, code.integer(count))
            number = code.value("arith.minui", code.index, number, code.integer(count - size))
        if self.linear:
            nodes.variables.update(dict.fromkeys(self.order, code.integer(0)))
            nodes.variables[last] = number
        else:
            nodes.decode(number, self.order)
        return plus, inside

    def _is_before(self, step: Any, count: int) -> Any:
        code = self.code
        if count <= _FEW:
            step = code.value("arith.index_cast", code.i32, step)
            return code.compare("ult", step, code.integer(count, code.i32))
        return code.compare("ult", step, code.integer(count))

    def _of_windows(self, tile: Sum, step: Sum) -> int:
        """Set the variables of a step whose place in a window is known; what they leave out."""
        code, nodes, (channel, *inside) = self.code, self.nodes, self.order
        channels, place = divmod(tile.plus + step.plus, self.window)
        for var in reversed(inside):
            place, value = divmod(place, var.extent)
            self.fixed[var] = Expr(value)
        windows = (code.quotient(number, self.window) for number in (tile.value, step.value))
        nodes.variables[channel] = code.add(*windows)
        apart = self._adds(channel)
        assert apart is not None
        return apart * channels

    def _rows(self, outer: Sum, size: int) -> int:
        """Set the variables of a row (or column) that exists; what they leave out."""
        code, nodes, plan = self.code, self.nodes, self.plan
        parts = plan.sizes.parts
        order = (parts.rows, parts.columns)[self.side]
        count, first = plan.sizes.counts[self.side], self.tile.first[self.side]
        exists = count % plan.sizes.tile[self.side] == 0
        apart = self._adds(order[-1]) if len(order) == 1 and exists else None
        number = code.add(first, outer.value if apart is not None else outer.whole(code))
        if not exists:
            number = code.value("arith.minui", code.index, number, code.integer(count - size))
        nodes.variables.update(self.tile.values(number, self.side))
        return (apart or 0) * outer.plus

    def _adds(self, var: Var) -> int | None:
        """Elements by which a variable moves the place; None if that, or a condition, is not so."""
        if any(var in set(e.variables()) for e in self.load.where):
            return None
        return address(self.load.buffer, self.load.index).coefficient(var)

    def _parts(self, expr: Expr) -> tuple[Any, Any]:
        """An expression without its constant: what does not depend on the step, and what does."""
        loops = set(self.order)
        of_steps = {a: c for a, c in expr.terms if loops & set(Expr(0, {a: c}).variables())}
        rest = {a: c for a, c in expr.terms if a not in of_steps}
        return self.nodes.expr(Expr(0, rest)), self.nodes.expr(Expr(0, of_steps))

    def _holds(self, condition: Expr) -> Any:
        """Whether an expression is not negative."""
        code = self.code
        moving, predicate, bound = as_bound(condition)
        parts = self._parts(moving)
        if self.few:
            parts = tuple(code.value("arith.index_cast", code.i32, part) for part in parts)
        value = code.value("arith.addi", self.number, *parts)
        return code.compare(predicate, value, code.integer(bound, self.number))
