"""Where the pieces of an operand are in memory, and which of them are there.

A place is a sum of what depends on the row (or column), which a thread computes once, of what
depends on the step, which is mostly the same for all threads, and of a constant, for which accesses
have room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyblocks.affine.access import address, strides
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.expr import Expr, Var
from polyblocks.codegen.gpu.emission.code import Code, as_bound

if TYPE_CHECKING:
    from polyblocks.codegen.gpu.matrix_emission.emit_matrix import MatrixEmitter

#: Elements up to which rows and steps are numbers of 32 bits, with room for those before the first.
_FEW = 1 << 30


@dataclass(frozen=True)
class Sum:
    """A number that is computed, and a constant."""

    value: Any
    plus: int = 0

    def whole(self, code: Code) -> Any:
        """Both together."""
        return code.plus(self.value, self.plus)


@dataclass(frozen=True)
class Source:
    """A piece in memory.

    Attributes:
        of_rows, of_steps: elements from the beginning of the buffer (of type index) by which the
            row (or column) and the step move it.
        plus: what is to be added to both.
        there: whether the piece is there, else it is zero; None: always.
    """

    of_rows: Any
    of_steps: Any
    plus: int
    there: Any


class Sources:
    """The pieces of one operand.

    Args:
        emitter: of the kernel.
        operand: what is copied.
    """

    def __init__(self, emitter: MatrixEmitter, operand: Operand) -> None:
        self.emitter, self.code, self.kernel = emitter, emitter.code, emitter.kernel
        self.load, self.side = operand.load, 0 if operand.of_rows else 1
        product = self.kernel.product
        self.order, self.linear = product.order, product.linear[self.side]
        buffer = self.load.buffer
        pairs = zip(buffer.shape, strides(buffer), strict=True)
        self.few = 1 + sum((extent - 1) * abs(step) for extent, step in pairs) <= _FEW
        self.number = self.code.i32 if self.few else self.code.index

    def at(
        self,
        begin: Any,
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
        plus, inside = self._steps(begin, step, size[0], whole, asked)
        plus += self._rows(outer, size[1])
        place = address(load.buffer, load.index)
        plus += place.const
        of_rows, of_steps = self._parts(place)
        holds = code.both([self._holds(e) for e in load.where])
        there = code.both([c for c in (inside, holds) if c is not None])
        return Source(of_rows, of_steps, plus, there)

    def _steps(self, begin: Any, step: Sum, size: int, whole: bool, asked: bool) -> tuple[int, Any]:
        """Set the variables of a step; what they leave out, and whether the step exists."""
        code, emitter, last = self.code, self.emitter, self.order[-1]
        depth, count = self.kernel.depth, self.kernel.counts[2]
        apart = self._adds(last)
        if not self.linear and last.extent % depth == 0:
            # All of a tile's steps have the other loops' variables in common.
            emitter._decode(begin, self.order)
            value = step.value if apart is not None else step.whole(code)
            emitter.variables[last] = code.add(emitter.variables[last], value)
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
            emitter.variables.update(dict.fromkeys(self.order, code.integer(0)))
            emitter.variables[last] = number
        else:
            emitter._decode(number, self.order)
        return plus, inside

    def _is_before(self, step: Any, count: int) -> Any:
        code = self.code
        if count <= _FEW:
            step = code.value("arith.index_cast", code.i32, step)
            return code.compare("ult", step, code.integer(count, code.i32))
        return code.compare("ult", step, code.integer(count))

    def _rows(self, outer: Sum, size: int) -> int:
        """Set the variables of a row (or column) that exists; what they leave out."""
        code, emitter, kernel = self.code, self.emitter, self.kernel
        parts = kernel.parts
        order = (parts.rows, parts.columns)[self.side]
        count, first = kernel.counts[self.side], emitter.first[self.side]
        exists = count % kernel.tile[self.side] == 0
        apart = self._adds(order[-1]) if len(order) == 1 and exists else None
        number = code.add(first, outer.value if apart is not None else outer.whole(code))
        if not exists:
            number = code.value("arith.minui", code.index, number, code.integer(count - size))
        emitter.variables.update(emitter._values(number, self.side))
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
        return self.emitter.expr(Expr(0, rest)), self.emitter.expr(Expr(0, of_steps))

    def _holds(self, condition: Expr) -> Any:
        """Whether an expression is not negative."""
        code = self.code
        moving, predicate, bound = as_bound(condition)
        parts = self._parts(moving)
        if self.few:
            parts = tuple(code.value("arith.index_cast", code.i32, part) for part in parts)
        value = code.value("arith.addi", self.number, *parts)
        return code.compare(predicate, value, code.integer(bound, self.number))
