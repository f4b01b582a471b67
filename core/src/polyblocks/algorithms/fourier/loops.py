"""Affine loops over buffers of real numbers: what the transforms are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyblocks.mlir import dialect, ir


class Code:
    """Scalar arithmetic, loads and stores of one floating-point type, at the insertion point.

    Arguments:
        element: the type of all numbers.
    """

    def __init__(self, element: Any) -> None:
        self.element = element

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return self._emit("arith.addf", x, y)

    def sub(self, x: Any, y: Any) -> Any:
        """The difference."""
        return self._emit("arith.subf", x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""
        return self._emit("arith.mulf", x, y)

    def neg(self, x: Any) -> Any:
        """The negative."""
        return self._emit("arith.negf", x)

    def number(self, value: float) -> Any:
        """A constant."""
        return (
            dialect("arith").ConstantOp(self.element, ir.FloatAttr.get(self.element, value)).result
        )

    def _emit(self, name: str, *operands: Any) -> Any:
        op = ir.Operation.create(name, results=[self.element], operands=list(operands))
        return op.results[0]

    def alloc(self, *shape: int) -> Any:
        """A buffer."""
        kind = ir.MemRefType.get(shape, self.element)
        return ir.Operation.create(
            "memref.alloc",
            results=[kind],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
        ).results[0]

    def buffer(self, tensor: Any) -> Any:
        """The elements of a tensor, to be read."""
        kind = ir.RankedTensorType(tensor.type)
        memory = ir.MemRefType.get(kind.shape, kind.element_type)
        return ir.Operation.create(
            "bufferization.to_buffer",
            results=[memory],
            operands=[tensor],
            attributes={"read_only": ir.UnitAttr.get()},
        ).results[0]

    def tensor(self, buffer: Any) -> Any:
        """The tensor of what loops have stored to a buffer of :meth:`alloc`."""
        kind = ir.MemRefType(buffer.type)
        return ir.Operation.create(
            "bufferization.to_tensor",
            results=[ir.RankedTensorType.get(kind.shape, kind.element_type)],
            operands=[buffer],
            attributes={"restrict": ir.UnitAttr.get(), "writable": ir.UnitAttr.get()},
        ).results[0]

    def table(self, numbers: np.ndarray[Any, Any]) -> Any:
        """A buffer of constants, rounded from float64."""
        dtype = np.float64 if isinstance(self.element, ir.F64Type) else np.float32
        kind = ir.RankedTensorType.get(numbers.shape, self.element)
        dense = ir.DenseElementsAttr.get(np.ascontiguousarray(numbers, dtype), type=kind)
        return self.buffer(dialect("arith").ConstantOp(kind, dense).result)


Body = Callable[["Place"], None]


class Place:
    """Indices in a nest of loops, for loads and stores: affine expressions of the variables."""

    def __init__(self, variables: Sequence[Any], exprs: Sequence[Any]) -> None:
        self._variables = list(variables)
        self.indices = list(exprs)

    def load(self, buffer: Any, *index: Any) -> Any:
        """An element; indices are affine expressions or numbers."""
        kind = ir.MemRefType(buffer.type).element_type
        op = ir.Operation.create(
            "affine.load",
            results=[kind],
            operands=[buffer, *self._variables],
            attributes={"map": self._map(index)},
        )
        return op.results[0]

    def store(self, value: Any, buffer: Any, *index: Any) -> None:
        """Store an element."""
        ir.Operation.create(
            "affine.store",
            operands=[value, buffer, *self._variables],
            attributes={"map": self._map(index)},
        )

    def _map(self, index: Sequence[Any]) -> Any:
        exprs = [ir.AffineConstantExpr.get(e) if isinstance(e, int) else e for e in index]
        return ir.AffineMapAttr.get(ir.AffineMap.get(len(self._variables), 0, exprs))


def nest(extents: Sequence[int], body: Body, begin: Sequence[int] | None = None) -> None:
    """Loops over a box; one of a single iteration is none, and its index a number.

    Args:
        extents: the end of each loop.
        body: appends the code of an iteration.
        begin: the first index of each loop; 0 without.
    """
    starts = list(begin or [0] * len(extents))
    if any(n <= low for n, low in zip(extents, starts, strict=True)):
        return
    variables: list[Any] = []
    exprs: list[Any] = []

    def inside(depth: int) -> None:
        if depth == len(extents):
            body(Place(variables, exprs))
            return
        low, high = starts[depth], extents[depth]
        if high - low == 1:
            exprs.append(low)
            inside(depth + 1)
            return
        affine = dialect("affine")
        loop = affine.AffineForOp(low, high, 1, [])
        with ir.InsertionPoint(loop.body):
            exprs.append(ir.AffineDimExpr.get(len(variables)))
            variables.append(loop.induction_variable)
            inside(depth + 1)
            affine.AffineYieldOp([])

    inside(0)
