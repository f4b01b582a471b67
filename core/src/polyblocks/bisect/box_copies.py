"""Copies of boxes for the reference lowering: loops, and memory of one space.

Waits and barriers do nothing here: a copy is done where it stands, and one element is computed
after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.attributes import BARRIER, COMMIT, COPY, WAIT


def expand_box_copies(operations: Callable[[str], list[Any]]) -> None:
    """Rewrite all copies, and erase waits and barriers.

    Args:
        operations: gives all operations of a name; a context and a location are current.
    """
    from polyblocks import mlir

    ir = mlir.ir
    for op in operations("memref.alloca"):
        type_ = ir.MemRefType(op.results[0].type)
        if isinstance(type_.memory_space, ir.StringAttr):
            plain = ir.MemRefType.get(type_.shape, type_.element_type, type_.layout)
            op.results[0].set_type(plain)
    for op in operations(COPY):
        with ir.InsertionPoint(op):
            _Expansion(op).loops([])
        op.erase()
    for name in (COMMIT, WAIT, BARRIER):
        for op in operations(name):
            op.erase()


class _Expansion:
    """One copy."""

    def __init__(self, op: Any) -> None:
        self.given = op.attributes
        self.source, self.destination, *self.around = op.operands
        self.shape = list(self.given["shape"])

    def loops(self, own: list[Any]) -> None:
        """The loops inside of those whose variables are known, and what is in them."""
        from polyblocks import mlir

        ir, affine = mlir.ir, mlir.dialect("affine")
        level = len(own)
        if level == len(self.shape):
            self._element(own)
            return
        operands = [*self.around, *own]
        bounds = []
        for name, constant in (("lower", 0), ("upper", self.shape[level])):
            results = [ir.AffineConstantExpr.get(constant)]
            if name in self.given:
                results += self._results(ir.AffineMapAttr(self.given[name][level]).value)
            bounds.append(ir.AffineMap.get(len(operands), 0, results))
        loop = affine.AffineForOp(
            *bounds, 1, [], lower_bound_operands=operands, upper_bound_operands=operands
        )
        block = loop.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            self.loops([*own, block.arguments[0]])
            affine.AffineYieldOp([])

    def _element(self, own: list[Any]) -> None:
        from polyblocks import mlir

        ir = mlir.ir
        operands = [*self.around, *own]
        value = self._loaded(operands)
        for each in self.given.get("conversions", ()):
            entry = ir.DictAttr(each)
            value = ir.Operation.create(
                ir.StringAttr(entry["name"]).value,
                results=[ir.TypeAttr(entry["type"]).value],
                operands=[value],
                attributes={a.name: a.attr for a in ir.DictAttr(entry["attributes"])},
            ).results[0]
        ir.Operation.create(
            "affine.store",
            operands=[value, self.destination, *operands],
            attributes={"map": self._map(self.given["to"])},
        )

    def _loaded(self, operands: list[Any]) -> Any:
        """An element, or zero where a condition does not hold."""
        from polyblocks import mlir

        ir, affine = mlir.ir, mlir.dialect("affine")
        element = ir.MemRefType(self.source.type).element_type

        def load() -> Any:
            return ir.Operation.create(
                "affine.load",
                results=[element],
                operands=[self.source, *operands],
                attributes={"map": self._map(self.given["from"])},
            ).results[0]

        if "where" not in self.given:
            return load()
        results = self._results(ir.AffineMapAttr(self.given["where"]).value)
        holds = ir.IntegerSet.get(len(operands), 0, results, [False] * len(results))
        branch = ir.Operation.create(
            "affine.if",
            results=[element],
            operands=operands,
            attributes={"condition": ir.IntegerSetAttr.get(holds)},
            regions=2,
        )
        is_float = isinstance(element, ir.FloatType)
        zero = (ir.FloatAttr.get if is_float else ir.IntegerAttr.get)(element, 0)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            affine.AffineYieldOp([load()])
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            affine.AffineYieldOp([mlir.dialect("arith").ConstantOp(element, zero).result])
        return branch.results[0]

    def _map(self, attribute: Any) -> Any:
        from polyblocks.mlir import ir

        results = self._results(ir.AffineMapAttr(attribute).value)
        count = len(self.around) + len(self.shape)
        return ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, results))

    def _results(self, amap: Any) -> list[Any]:
        """The results of a map, in which the variables of the box are dimensions behind others."""
        from polyblocks.mlir import with_dims

        return [with_dims(e, len(self.around)) for e in amap.results]
