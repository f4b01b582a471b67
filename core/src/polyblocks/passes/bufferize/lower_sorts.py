"""lower-sorts: a sort of rows becomes loops that distribute their elements by digits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.bufferize.replacing import replace_each

#: Bits of a digit, at most: a row's counts of all digits stay in the innermost cache.
DIGIT = 8
#: The same for rows of at least :data:`LONG` elements, whose counts are few beside their data. On
#: one thread of an Emerald Rapids 10^6 floats take 16.3 ms instead of 20.4, 10^7 take 253 instead
#: of 276; 10^5 take 1 ms with either.
LONG_DIGIT, LONG = 11, 1 << 18


@dataclass(frozen=True)
class LowerSortsPass:
    """Lower ``tm_tensor.sort`` by a signed key, along the last dimension, to loops.

    Radix sort from the least significant digit (Knuth, The Art of Computer Programming, volume 3,
    5.2.5): one sweep counts the elements with each digit, and one sweep for each digit puts every
    element behind those with smaller digits and the earlier ones with the same.

    Before::

        tm_tensor.sort dimension(1) outs(%words : memref<8x1000xi64>) {
          ^bb0(%a: i64, %b: i64): ... arith.shrsi %a, %c32 ... arith.cmpi slt ... }

    After::

        affine.for %r = 0 to 8 {
          ...                                       // %starts: where each digit's elements begin
          affine.for %i = 0 to 1000 {
            %w = affine.load %words[%r, %i]
            %d = ...                                // bits 32 to 39 of it
            %p = memref.load %starts[%r, %d]
            memref.store %w, %other[%r, %p]
            memref.store %p + 1, %starts[%r, %d] }
          ... }
    """

    name: ClassVar[str] = "lower-sorts"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PROGRAM_LOOPS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was a sort."""
        del context
        return replace_each(module, "tm_tensor.sort", lambda op: _Digits(op).write())


class _Digits:
    """The loops of one sort."""

    def __init__(self, op: Any) -> None:
        from polyblocks.algorithms.sorting.order import order_of
        from polyblocks.mlir import ir

        order = order_of(op)
        self.buffers = list(op.operands)
        shape = list(self.buffers[0].type.shape)
        dim = ir.IntegerAttr(op.attributes["dimension"]).value
        assert order is not None, "plan-sorts writes comparators that can be read"
        assert order.signed
        assert not order.descending
        assert dim == len(shape) - 1
        self.outer, self.extent = shape[:-1], shape[-1]
        self.digits = _digits(order.shift, order.bits, LONG_DIGIT if shape[-1] >= LONG else DIGIT)

    def write(self) -> None:
        """Write the loops at the insertion point."""
        from polyblocks.mlir import dialect, ir

        memref = dialect("memref")
        others = [memref.AllocOp(buffer.type, [], []).result for buffer in self.buffers]
        size = sum(1 << bits for _, bits in self.digits)
        kind = ir.MemRefType.get([*self.outer, size], ir.IntegerType.get_signless(32))
        self.starts = memref.AllocOp(kind, [], []).result
        _loops(self.outer, lambda row: self._row(row, others, size))

    def _row(self, row: list[Any], others: list[Any], size: int) -> None:
        from polyblocks.mlir import ir

        i32 = ir.IntegerType.get_signless(32)
        _loops([size], lambda at: _store(_number(i32, 0), self.starts, [*row, *at]))
        _loops([self.extent], lambda at: self._count(row, at))
        base = 0
        for _, bits in self.digits:
            self._begin(row, base, 1 << bits)
            base += 1 << bits
        source, target = self.buffers, others
        for number in range(len(self.digits)):
            _loops([self.extent], partial(self._move, row, number, source, target))
            source, target = target, source
        if source is not self.buffers:
            copies = list(zip(source, self.buffers, strict=True))

            def copy(at: list[Any]) -> None:
                for old, new in copies:
                    _store(_load(old, [*row, *at]), new, [*row, *at])

            _loops([self.extent], copy)

    def _count(self, row: list[Any], at: list[Any]) -> None:
        word = _load(self.buffers[0], [*row, *at])
        for number in range(len(self.digits)):
            self._advance(row, word, number)

    def _advance(self, row: list[Any], word: Any, number: int) -> Any:
        """Add 1 to what is kept for the digit of a word; returns what it was."""
        from polyblocks.mlir import dialect

        arith, memref = dialect("arith"), dialect("memref")
        where = [*row, self._digit(word, number)]
        old = memref.LoadOp(self.starts, where).result
        memref.StoreOp(arith.AddIOp(old, _number(old.type, 1)).result, self.starts, where)
        return old

    def _digit(self, word: Any, number: int) -> Any:
        """The index of a word's digit in the table."""
        from polyblocks.mlir import dialect, ir

        arith, kind = dialect("arith"), word.type
        low, bits = self.digits[number]
        digit = word
        if low:
            digit = arith.ShRUIOp(digit, _number(kind, low)).result
        digit = arith.AndIOp(digit, _number(kind, (1 << bits) - 1)).result
        if low + bits == kind.width:
            # Negative numbers come first.
            digit = arith.XOrIOp(digit, _number(kind, 1 << (bits - 1))).result
        base = sum(1 << b for _, b in self.digits[:number])
        if base:
            digit = arith.OrIOp(digit, _number(kind, base)).result
        return arith.IndexCastUIOp(ir.IndexType.get(), digit).result

    def _begin(self, row: list[Any], base: int, size: int) -> None:
        """Counts become the numbers of elements with smaller digits."""
        from polyblocks.mlir import dialect, ir

        affine, arith = dialect("affine"), dialect("arith")
        zero = _number(ir.IntegerType.get_signless(32), 0)
        loop = affine.AffineForOp(0, size, 1, [zero])
        with ir.InsertionPoint(loop.body):
            where = [*row, loop.induction_variable]
            count = _load(self.starts, where, base)
            running = loop.inner_iter_args[0]
            _store(running, self.starts, where, base)
            affine.AffineYieldOp([arith.AddIOp(running, count).result])

    def _move(
        self, row: list[Any], number: int, source: list[Any], target: list[Any], at: list[Any]
    ) -> None:
        from polyblocks.mlir import dialect, ir

        arith, memref = dialect("arith"), dialect("memref")
        elements = [_load(buffer, [*row, *at]) for buffer in source]
        place = self._advance(row, elements[0], number)
        place = arith.MinUIOp(place, _number(place.type, self.extent - 1)).result
        index = arith.IndexCastUIOp(ir.IndexType.get(), place).result
        for element, buffer in zip(elements, target, strict=True):
            memref.StoreOp(element, buffer, [*row, index])


def _digits(low: int, high: int, most: int) -> list[tuple[int, int]]:
    """The first bit and the number of bits of each digit of a key, about equally wide."""
    count = -(-(high - low) // most)
    width = -(-(high - low) // count)
    return [(first, min(width, high - first)) for first in range(low, high, width)]


def _loops(extents: list[int], body: Any, variables: tuple[Any, ...] = ()) -> None:
    """Loops over the extents, and the body for their variables."""
    from polyblocks.mlir import dialect, ir

    if not extents:
        body(list(variables))
        return
    affine = dialect("affine")
    loop = affine.AffineForOp(0, extents[0], 1, [])
    with ir.InsertionPoint(loop.body):
        _loops(extents[1:], body, (*variables, loop.induction_variable))
        affine.AffineYieldOp([])


def _number(kind: Any, value: int) -> Any:
    from polyblocks.mlir import dialect

    return dialect("arith").ConstantOp(kind, value).result


def _map(index: list[Any], offset: int) -> Any:
    """The map of an access at variables, with ``offset`` added to the last one."""
    from polyblocks.mlir import ir

    exprs = [ir.AffineDimExpr.get(i) for i in range(len(index))]
    exprs[-1] = exprs[-1] + offset
    return ir.AffineMapAttr.get(ir.AffineMap.get(len(index), 0, exprs))


def _load(buffer: Any, index: list[Any], offset: int = 0) -> Any:
    from polyblocks.mlir import ir

    op = ir.Operation.create(
        "affine.load",
        results=[buffer.type.element_type],
        operands=[buffer, *index],
        attributes={"map": _map(index, offset)},
    )
    return op.results[0]


def _store(value: Any, buffer: Any, index: list[Any], offset: int = 0) -> None:
    from polyblocks.mlir import ir

    ir.Operation.create(
        "affine.store",
        operands=[value, buffer, *index],
        attributes={"map": _map(index, offset)},
    )
