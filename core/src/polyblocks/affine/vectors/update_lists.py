"""Loops around a guarded store: vectors list the updates that hold, which are stored from there.

A branch for each update would be mispredicted half of the time, and a scatter instruction that
leaves lanes out takes as long as one that does not.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.element import dtype_of
from polyblocks.affine.model import AnyStore, For, GuardedStore, Simd, Value
from polyblocks.affine.ops import INTRINSIC, intrinsic_attributes
from polyblocks.affine.vectors.vector_bodies import Frame, VectorBody
from polyblocks.affine.vectors.vector_ops import compare, extract, index_op
from polyblocks.mlir import dialect, ir

#: Updates of a list, which with their places fill a part of the nearest cache. 4M updates by two
#: cores of a Zen 4: 5.7 ms with 512, 8.3 with 2048, 9.0 with 64.
LENGTH = 512
#: Bits of the narrowest numbers that are listed as they are.
LISTED = 32


def guarded_store(loop: For) -> GuardedStore | None:
    """The store that a loop makes for some of its iterations; None if it has none."""
    return next((n for n in loop.body if isinstance(n, GuardedStore)), None)


def listed_lanes(store: GuardedStore, vector_bits: int) -> int:
    """Updates that a register holds, of what is listed."""
    return max(2, vector_bits // max(dtype_of(store.buffer.element).bits, LISTED))


class UpdateList:
    """Places and values of updates that wait to be stored, and how many there are.

    Args:
        owner: of the loop; the list is allocated at the insertion point.
        store: what is done with each.
        simd: of the loop: a vector's lanes have room behind the last update.
    """

    def __init__(self, owner: Frame, store: GuardedStore, simd: Simd) -> None:
        self._owner, self._store = owner, store
        self._lanes, self._compress = simd.width, simd.compress
        element = dtype_of(store.buffer.element)
        self._bits = ir.IntegerType.get_signless(element.bits)
        self._listed = ir.IntegerType.get_signless(max(element.bits, LISTED))
        place = 32 if store.buffer.numel < 1 << 31 else 64
        self._place = ir.IntegerType.get_signless(place)
        self._places = self._allocate(self._place)
        self._values = self._allocate(self._listed)

    def _allocate(self, element: Any) -> Any:
        i64 = ir.IntegerType.get_signless(64)
        return ir.Operation.create(
            "memref.alloca",
            results=[ir.MemRefType.get([LENGTH + self._lanes], element)],
            attributes={
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                "alignment": ir.IntegerAttr.get(i64, 64),
            },
        ).results[0]

    def append(self, mask: Any, place: Any, value: Any, count: Any) -> Any:
        """List the lanes of a mask, behind ``count`` others; returns how many there are then.

        A list that has no room for another vector is stored.
        """
        width = mask.type.shape[0]
        place = _converted("arith.index_cast", place, self._place)
        if value.type.element_type != self._bits:
            value = _converted("arith.bitcast", value, self._bits)
        if self._bits != self._listed:
            value = _converted("arith.extui", value, self._listed)
        for lanes, memref in ((place, self._places), (value, self._values)):
            front = ir.Operation.create(
                INTRINSIC,
                results=[lanes.type],
                operands=[lanes, mask, lanes],
                attributes=intrinsic_attributes(self._compress, 3),
            ).results[0]
            ir.Operation.create("vector.store", operands=[front, memref, count])
        count = index_op("arith.addi", count, self._ones(mask, width))
        full = compare("sgt", count, self._owner.number(LENGTH - self._lanes))
        scf = dialect("scf")
        branch = scf.IfOp(full, [count.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            self.flush(count)
            scf.YieldOp([self._owner.number(0)])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([count])
        return branch.operation.results[0]

    def _ones(self, mask: Any, width: int) -> Any:
        """How many lanes of a mask are set."""
        bits = ir.IntegerType.get_signless(width)
        word = ir.Operation.create(
            "vector.bitcast", results=[ir.VectorType.get([1], bits)], operands=[mask]
        ).results[0]
        ones = ir.Operation.create("math.ctpop", results=[bits], operands=[extract(word, 0)])
        return ir.Operation.create(
            "arith.index_castui", results=[self._owner.index], operands=[ones.results[0]]
        ).results[0]

    def flush(self, count: Any) -> None:
        """Store the updates of the list, in its order."""
        scf, owner = dialect("scf"), self._owner
        loop = scf.ForOp(owner.number(0), count, owner.number(1))
        with ir.InsertionPoint(loop.body):
            at = loop.induction_variable
            place, value = (
                ir.Operation.create("memref.load", results=[t], operands=[m, at]).results[0]
                for t, m in ((self._place, self._places), (self._listed, self._values))
            )
            place = _converted("arith.index_cast", place, owner.index)
            if self._bits != self._listed:
                value = _converted("arith.trunci", value, self._bits)
            if (element := self._store.buffer.element) != self._bits:
                value = _converted("arith.bitcast", value, element)
            ir.Operation.create(
                "memref.store",
                operands=[value, owner.writer.memref(self._store.buffer), place],
                loc=self._store.location or ir.Location.unknown(),
            )
            scf.YieldOp([])


def _converted(name: str, value: Any, element: Any) -> Any:
    """A number, or those of a vector, as numbers of another type."""
    type_ = element
    if isinstance(value.type, ir.VectorType):
        type_ = ir.VectorType.get(value.type.shape, element)
    return ir.Operation.create(name, results=[type_], operands=[value]).results[0]


class ListBody(VectorBody):
    """As many iterations as a vector has lanes, whose updates are listed.

    Attributes:
        updates: mask, places and values of the lanes.
    """

    updates: tuple[Any, Any, Any]

    def store(self, node: AnyStore) -> None:
        if not isinstance(node, GuardedStore):
            super().store(node)
            return
        holds = self.lanes(node.condition)
        if self.mask is not None:
            holds = index_op("arith.andi", holds, self.mask)
        (place,) = node.index
        self.updates = holds, self.lanes(place), self.lanes(node.value)


def may_be_listed(store: GuardedStore, varying: set[Value]) -> bool:
    """Whether updates of a store can be listed: at places of one number, that differ."""
    return (
        len(store.index) == 1
        and {store.condition, store.index[0]} <= varying
        and dtype_of(store.buffer.element).in_vectors
    )
