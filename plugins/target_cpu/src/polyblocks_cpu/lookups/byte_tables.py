"""Tables of numbers of 32 bits, taken apart into tables of their first, second, ... bytes.

AVX-512's permutations of bytes pick 64 numbers of 8 bits from tables of 64 or 128 at a time. Four
of them, of the four bytes of every number, and the shuffles that put these together are far fewer
instructions than the loads of 64 lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.vectors.vector_ops import index_op, shuffle
from polyblocks.mlir import dialect, ir
from polyblocks.target import Issue
from polyblocks_cpu.instructions.avx512 import intrinsic
from polyblocks_cpu.instructions.registers import invoke

#: Bytes of a register, and numbers of 32 bits.
BYTES, LANES = 64, 16
#: Bytes of a number, each of which has a table.
PLANES = 4
#: Entries that a byte tells apart.
MOST_ENTRIES = 256
#: Registers of indices whose bytes fill one register.
PARTS = BYTES // LANES


def slots(entries: int, issue: Issue) -> float:
    """Slots (:class:`polyblocks.target.Issue`) in which 64 lanes get a number each.

    Args:
        entries: of the table.
        issue: what the core starts in a slot.
    """
    halves = 2 if entries > 2 * BYTES else 1
    plane = halves / issue.shuffles + (halves - 1) / issue.vectors
    return PLANES * plane + 2 * PARTS / issue.shuffles


def packing_slots(issue: Issue) -> float:
    """Slots in which 64 indices become bytes."""
    return (PARTS - 1) / issue.shuffles


@dataclass(frozen=True)
class ByteTables:
    """Some parts of one table, in memory as bytes.

    Attributes:
        planes: memref of parts x 4 x (a multiple of 64) bytes.
        entries: of each part, 256 at most.
    """

    planes: Any
    entries: int

    @classmethod
    def of(cls, table: Any, firsts: Sequence[int], entries: int) -> ByteTables:
        """Take a table apart here.

        Args:
            table: memref of one dimension, of numbers of 32 bits.
            firsts: where the parts begin.
            entries: of each part.
        """
        i8 = ir.IntegerType.get_signless(8)
        room = -(-entries // BYTES) * BYTES
        type_ = ir.MemRefType.get([len(firsts) * PLANES, room], i8)
        planes = ir.Operation.create(
            "memref.alloca",
            results=[type_],
            attributes={
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), BYTES),
            },
        ).result
        for part, first in enumerate(firsts):
            whole = entries // LANES
            if whole:
                scf = dialect("scf")
                loop = scf.ForOp(_index(0), _index(whole * LANES), _index(LANES))
                with ir.InsertionPoint(loop.body):
                    _take_apart(table, first, loop.induction_variable, planes, part, LANES)
                    scf.YieldOp([])
            if entries % LANES:
                at = _index(whole * LANES)
                _take_apart(table, first, at, planes, part, entries % LANES)
        return cls(planes, entries)

    def look_up(self, index: Any, part: int, type_: Any) -> list[Any]:
        """The results of 64 lanes from one part of the table.

        Args:
            index: from :func:`packed`.
            part: number of the part.
            type_: of the numbers.

        Returns:
            Four registers of 16 lanes.
        """
        first = part * PLANES
        a, b, c, d = (self._bytes(index, first + plane) for plane in range(PLANES))
        low = [_interleaved(a, b, half) for half in range(2)]
        high = [_interleaved(c, d, half) for half in range(2)]
        i16 = ir.IntegerType.get_signless(16)
        words = ir.VectorType.get([BYTES // 2], i16)
        lanes = ir.VectorType.get([LANES], type_)
        return [
            _bitcast(_interleaved(_bitcast(u, words), _bitcast(v, words), half), lanes)
            for u, v in zip(low, high, strict=True)
            for half in range(2)
        ]

    def _bytes(self, index: Any, plane: int) -> Any:
        """One byte of each number."""
        count = -(-self.entries // BYTES)
        registers = [self._register(plane, k) for k in range(count)]
        if count == 1:
            return intrinsic("permvar.qi.512", registers[0], index)
        low = intrinsic("vpermi2var.qi.512", registers[0], index, registers[1])
        if count == 2:
            return low
        high = intrinsic("vpermi2var.qi.512", registers[2], index, registers[-1])
        zero = _splat(index.type, 0)
        arith = dialect("arith")
        upper = arith.CmpIOp(arith.CmpIPredicate.slt, index, zero).result
        return arith.SelectOp(upper, high, low).result

    def _register(self, plane: int, number: int) -> Any:
        type_ = ir.VectorType.get([BYTES], ir.IntegerType.get_signless(8))
        return ir.Operation.create(
            "vector.load",
            results=[type_],
            operands=[self.planes, _index(plane), _index(number * BYTES)],
        ).result


def packed(indices: Sequence[Any]) -> Any:
    """Four registers of 16 indices below 256 as bytes, as ``look_up`` takes them."""
    a, b, c, d = indices
    i16, i8 = (ir.IntegerType.get_signless(n) for n in (16, 8))
    words = ir.VectorType.get([BYTES // 2], i16)
    halves = [
        invoke("llvm.x86.avx512.packusdw.512", pair, [words]).result for pair in ((a, b), (c, d))
    ]
    return invoke("llvm.x86.avx512.packuswb.512", halves, [ir.VectorType.get([BYTES], i8)]).result


def _take_apart(table: Any, first: int, at: Any, planes: Any, part: int, count: int) -> None:
    """The bytes of 16 numbers, or of ``count``, to their tables."""
    i32, i8 = (ir.IntegerType.get_signless(n) for n in (32, 8))
    element = table.type.element_type
    type_ = ir.VectorType.get([LANES], element)
    where = index_op("arith.addi", at, _index(first)) if first else at
    if count == LANES:
        op = ir.Operation.create("vector.load", results=[type_], operands=[table, where])
    else:
        bits = [ir.BoolAttr.get(lane < count) for lane in range(LANES)]
        mask = ir.VectorType.get([LANES], ir.IntegerType.get_signless(1))
        zero = ir.FloatAttr.get(element, 0) if element != i32 else ir.IntegerAttr.get(i32, 0)
        op = ir.Operation.create(
            "vector.maskedload",
            results=[type_],
            operands=[
                *(table, where, _constant(ir.DenseElementsAttr.get(bits, mask))),
                _constant(ir.DenseElementsAttr.get_splat(type_, zero)),
            ],
        )
    numbers = op.result
    whole = ir.VectorType.get([LANES], i32)
    if element != i32:
        numbers = ir.Operation.create("arith.bitcast", results=[whole], operands=[numbers]).result
    short = ir.VectorType.get([LANES], i8)
    for plane in range(PLANES):
        shifted = numbers
        if plane:
            shifted = index_op("arith.shrui", numbers, _splat(whole, 8 * plane))
        narrow = ir.Operation.create("arith.trunci", results=[short], operands=[shifted]).result
        ir.Operation.create(
            "vector.store", operands=[narrow, planes, _index(part * PLANES + plane), at]
        )


def _interleaved(a: Any, b: Any, half: int) -> Any:
    """Elements of two registers in turns: the first or the second half of each 128 bits."""
    (lanes,) = a.type.shape
    block = lanes * 16 // BYTES
    lane = [
        source
        for start in range(0, lanes, block)
        for k in range(start + half * block // 2, start + (half + 1) * block // 2)
        for source in (k, lanes + k)
    ]
    return shuffle(a, b, lane)


def _bitcast(value: Any, type_: Any) -> Any:
    return ir.Operation.create("vector.bitcast", results=[type_], operands=[value]).result


def _splat(type_: Any, number: int) -> Any:
    attribute = ir.IntegerAttr.get(type_.element_type, number)
    return _constant(ir.DenseElementsAttr.get_splat(type_, attribute))


def _constant(attribute: Any) -> Any:
    return dialect("arith").ConstantOp(attribute.type, attribute).result


def _index(number: int) -> Any:
    type_ = ir.IndexType.get()
    return dialect("arith").ConstantOp(type_, ir.IntegerAttr.get(type_, number)).result
