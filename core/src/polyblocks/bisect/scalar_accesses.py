"""Vector loads and stores for the reference lowering: checked, or element by element.

Upstream's run-time checks know scalar accesses only. And a boolean takes a byte in memory, where
LLVM would pack the elements of a ``vector<16xi1>`` into bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NAMES = ("vector.load", "vector.store", "vector.maskedload", "vector.maskedstore")


def scalarize(operations: Callable[[str], list[Any]]) -> None:
    """Rewrite or check the accesses of one-dimensional vectors.

    Args:
        operations: gives all operations of a name; a context and a location are current.
    """
    for name in _NAMES:
        for op in operations(name):
            _Access(op).rewrite()


class _Access:
    """One vector load or store."""

    def __init__(self, op: Any) -> None:
        from polyblocks.mlir import ir

        self.op = op
        operands = list(op.operands)
        self.stored = operands.pop(0) if op.name == "vector.store" else None
        self.memref = operands.pop(0)
        rank = ir.MemRefType(self.memref.type).rank
        self.indices = [operands.pop(0) for _ in range(rank)]
        self.mask = operands.pop(0) if op.name.startswith("vector.masked") else None
        # The rest is what a masked load gives for lanes that are off, or what one stores.
        self.other = operands.pop(0) if operands else None
        if op.name == "vector.maskedstore":
            self.stored = self.other
        value = op.results[0] if self.stored is None else self.stored
        self.type = ir.VectorType(value.type)

    def rewrite(self) -> None:
        """Check it if that takes one check, else replace it by scalar accesses."""
        from polyblocks import mlir

        ir = mlir.ir
        element = ir.MemRefType(self.memref.type).element_type
        if self.type.rank != 1 or element != self.type.element_type:
            return
        lanes = self._lanes()
        with ir.InsertionPoint(self.op):
            self._see_through_view()
            if lanes is not None and str(element) != "i1":
                self._check(lanes)
                return
            if self.stored is not None:
                for k in range(self.type.shape[0]):
                    self._store(k)
            else:
                vector = mlir.dialect("vector")
                result = self.other or _zeros(self.type)
                for k in range(self.type.shape[0]):
                    result = vector.InsertOp(self._load(k), result, [], [k]).result
                self.op.results[0].replace_all_uses_with(result)
        self.op.erase()

    def _see_through_view(self) -> None:
        """Go on with all of the memory that a view starts somewhere in, as one dimension.

        Code that computes addresses before a loop makes views that begin at run-time offsets; what
        must be kept are the bounds of what they are views of.
        """
        from polyblocks import mlir

        ir = mlir.ir
        owner = self.memref.owner
        if isinstance(owner, ir.Block) or owner.name != "memref.reinterpret_cast":
            return
        source, *rest = owner.operands
        whole = ir.MemRefType(source.type)
        if len(rest) != 1 or not whole.has_static_shape or 0 in whole.shape:
            return
        strides, _ = ir.MemRefType(self.memref.type).get_strides_and_offset()
        steps, begin = whole.get_strides_and_offset()
        if begin:
            return
        span = 1 + sum((n - 1) * step for n, step in zip(whole.shape, steps, strict=True))
        arith, index = mlir.dialect("arith"), ir.IndexType.get()
        place = rest[0]
        for at, stride in zip(self.indices, strides, strict=True):
            step = arith.MulIOp(at, arith.ConstantOp(index, stride).result).result
            place = arith.AddIOp(place, step).result
        flat = ir.Operation.create(
            "memref.reinterpret_cast",
            results=[ir.MemRefType.get([span], whole.element_type)],
            operands=[source],
            attributes={
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                "static_offsets": ir.DenseI64ArrayAttr.get([0]),
                "static_sizes": ir.DenseI64ArrayAttr.get([span]),
                "static_strides": ir.DenseI64ArrayAttr.get([1]),
            },
        )
        self.memref, self.indices = flat.results[0], [place]

    def _lanes(self) -> int | None:
        """How many lanes are on, if that is known and they are the first ones."""
        from polyblocks.mlir import ir

        if self.mask is None:
            return int(self.type.shape[0])
        owner = self.mask.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            return None
        on = [bool(lane) for lane in ir.DenseIntElementsAttr(owner.attributes["value"])]
        return sum(on) if on == sorted(on, reverse=True) else None

    def _check(self, lanes: int) -> None:
        """An assertion that the first and the last element lie in the memref."""
        from polyblocks import mlir

        arith = mlir.dialect("arith")
        if lanes == 0:
            return
        type_ = mlir.ir.MemRefType(self.memref.type)
        message = f"out-of-bounds access: {self.op.name} of {lanes} elements of {type_}"
        for place in self.indices, self._at(lanes - 1):
            for index, extent in zip(place, type_.shape, strict=True):
                limit = arith.ConstantOp(mlir.ir.IndexType.get(), extent).result
                # As an unsigned number, a negative index is too large as well.
                fits = arith.CmpIOp(arith.CmpIPredicate.ult, index, limit).result
                mlir.dialect("cf").AssertOp(fits, message)

    def _store(self, k: int) -> None:
        from polyblocks import mlir

        def store() -> None:
            value = mlir.dialect("vector").ExtractOp(self.stored, [], [k]).result
            mlir.dialect("memref").StoreOp(value, self.memref, self._at(k))

        if self.mask is None:
            store()
            return
        scf = mlir.dialect("scf")
        with mlir.ir.InsertionPoint(scf.IfOp(self._is_on(k)).then_block):
            store()
            scf.YieldOp([])

    def _load(self, k: int) -> Any:
        from polyblocks import mlir

        scf = mlir.dialect("scf")

        def load() -> Any:
            return mlir.dialect("memref").LoadOp(self.memref, self._at(k)).result

        if self.mask is None:
            return load()
        branch = scf.IfOp(self._is_on(k), [self.type.element_type], has_else=True)
        with mlir.ir.InsertionPoint(branch.then_block):
            scf.YieldOp([load()])
        with mlir.ir.InsertionPoint(branch.else_block):
            scf.YieldOp([mlir.dialect("vector").ExtractOp(self.other, [], [k]).result])
        return branch.results[0]

    def _is_on(self, k: int) -> Any:
        from polyblocks import mlir

        return mlir.dialect("vector").ExtractOp(self.mask, [], [k]).result

    def _at(self, k: int) -> list[Any]:
        from polyblocks import mlir

        arith = mlir.dialect("arith")
        shift = arith.ConstantOp(mlir.ir.IndexType.get(), k).result
        return [*self.indices[:-1], arith.AddIOp(self.indices[-1], shift).result]


def _zeros(type_: Any) -> Any:
    from polyblocks import mlir

    ir = mlir.ir
    element = type_.element_type
    zero = (
        ir.FloatAttr.get(element, 0.0)
        if isinstance(element, ir.FloatType)
        else ir.IntegerAttr.get(element, 0)
    )
    value = ir.DenseElementsAttr.get_splat(type_, zero)
    return mlir.dialect("arith").ConstantOp(type_, value).result
