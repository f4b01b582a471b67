"""Where the pieces of an operand are in memory, and which of them are there.

A place is a sum of what depends on the row (or column), which a thread computes once, of what
depends on the step, which is mostly the same for all threads, and of a constant, for which accesses
have room. Where a chip has loads that find zeros beyond the end of a buffer, a piece that is not
there is read from such a place, which needs no branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyblocks.affine.access import address, reach, strides
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.emission.code import Code, as_bound
from polyblocks.mlir import ir
from polyblocks.target import BoundedLoads

if TYPE_CHECKING:
    from polyblocks.codegen.gpu.matrix_emission.emit_matrix import MatrixEmitter

#: Bytes that a buffer may have, and the offset of what is not there: no constant that is added to
#: it makes it small again.
_LIMIT = 1 << 31
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
        plus: offset added to both.
        ahead: the part of it that is the same for all threads, as ``of_steps`` is, where threads
            know the places of steps in windows; then the rest is not negative.
        there: whether the piece is there, else it is zero; None: always.
    """

    of_rows: Any
    of_steps: Any
    plus: int
    ahead: int
    there: Any


class Sources:
    """The pieces of one operand.

    Args:
        emitter: of the kernel.
        operand: what is copied.
    """

    def __init__(self, emitter: MatrixEmitter, operand: Operand) -> None:
        self.emitter, self.code, self.kernel = emitter, emitter.code, emitter.kernel
        self.load, self.side = operand.load, operand.side
        product = self.kernel.product
        self.order, self.linear = product.order, product.linear[self.side]
        self.few = reach(self.load.buffer) <= _FEW
        self.number = self.code.i32 if self.few else self.code.index
        self.window = self.kernel.window(operand)
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
        code, emitter, last = self.code, self.emitter, self.order[-1]
        depth, count = self.kernel.depth, self.kernel.counts[2]
        if self.window > 1:
            return self._of_windows(tile, step), None
        begin = tile.whole(code)
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

    def _of_windows(self, tile: Sum, step: Sum) -> int:
        """Set the variables of a step whose place in a window is known; what they leave out."""
        code, emitter, (channel, *inside) = self.code, self.emitter, self.order
        channels, place = divmod(tile.plus + step.plus, self.window)
        for var in reversed(inside):
            place, value = divmod(place, var.extent)
            self.fixed[var] = Expr(value)
        windows = (code.quotient(number, self.window) for number in (tile.value, step.value))
        emitter.variables[channel] = code.add(*windows)
        apart = self._adds(channel)
        assert apart is not None
        return apart * channels

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


def can_be_bounded(buffer: Buffer, loads: BoundedLoads | None, nbytes: int) -> bool:
    """Whether a chip's loads of ``nbytes`` can read a buffer; not a part of another one."""
    type_ = buffer.memref_type
    begins = type_ is None or type_.get_strides_and_offset()[1] == 0
    forward = all(s >= 0 for s in strides(buffer))
    return (
        loads is not None
        and nbytes in (1, 2, 4, loads.bytes)
        and begins
        and forward
        and reach(buffer) * buffer.bytes_per_element < _LIMIT
    )


class BoundedBuffer:
    """A buffer as a chip's bounded loads know it, described behind the memref's definition.

    Args:
        code: of the kernel.
        loads: the chip's.
        buffer: one for which :func:`can_be_bounded` holds.
        memref: of it.
        apart: whether ``of_steps`` of all sources are the same for all threads.
    """

    def __init__(
        self, code: Code, loads: BoundedLoads, buffer: Buffer, memref: Any, apart: bool
    ) -> None:
        self._code, self._loads, self._apart = code, loads, apart
        self._size = buffer.bytes_per_element
        with code.behind(memref):
            at = code.value("memref.extract_aligned_pointer_as_index", code.index, memref)
            i16 = ir.IntegerType.get_signless(16)
            given = [
                code.pointer(at, 1),
                *(
                    code.constant(ir.IntegerAttr.get(type_, number))
                    for type_, number in (
                        (i16, 0), (code.i64, reach(buffer) * self._size), (code.i32, loads.flags),
                    )
                ),
            ]  # fmt: skip
            resource = ir.Type.parse(f"!llvm.ptr<{loads.space}>")
            (self._resource,) = code.intrinsic(loads.describe, [resource], given)

    def load(self, source: Source, type_: Any, location: Any) -> Any:
        """A number, or a vector of the widest access, that is at a place or zero."""
        code, size = self._code, self._size
        offset, ahead = source.of_rows, code.integer(0)
        if self._apart:
            # The load adds the part that all threads share.
            ahead = code.plus(source.of_steps, source.ahead)
            offset = code.plus(offset, source.plus - source.ahead)
        else:
            offset = code.plus(code.add(offset, source.of_steps), source.plus)
        offset, ahead = (
            code.value("arith.index_cast", code.i32, code.times(elements, size))
            for elements in (offset, ahead)
        )
        beyond, none = (code.constant(ir.IntegerAttr.get(code.i32, n)) for n in (-_LIMIT, 0))
        offset = code.value("arith.select", code.i32, source.there, offset, beyond)
        given = [self._resource, offset, ahead, none]
        if not isinstance(type_, ir.VectorType):
            return code.intrinsic(self._loads.load, [type_], given, location)[0]
        words = ir.VectorType.get([self._loads.bytes // 4], code.i32)
        (loaded,) = code.intrinsic(self._loads.load, [words], given, location)
        return code.value("vector.bitcast", type_, loaded)
