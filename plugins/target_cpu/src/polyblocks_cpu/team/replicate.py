"""Every thread of a team runs a function: what only one may do, and what it tells others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.codegen.checks import zero
from polyblocks.codegen.memory import VIEWS
from polyblocks.codegen.walk import nested
from polyblocks_cpu.team.kernels import has_shared, is_shared

#: How ops begin that do nothing but compute a value; all threads compute those of integers.
_PURE = ("arith.", "math.", "complex.", "index.", "ub.", "vector.")
_PURE_OPS = VIEWS | {
    "memref.get_global",
    "memref.dim",
    "memref.extract_strided_metadata",
    "memref.extract_aligned_pointer_as_index",
}
#: Ops that all threads do, each for itself, if all need the value.
_LOADS = ("memref.load", "vector.load", "vector.maskedload")


class Replicate:
    """Guards in a function what the first thread does alone.

    Calls of parallel kernels, loops and branches around them, and arithmetic on integers are for
    all threads. Everything else is put into ``scf.if %first``, as much as there is in a row. Its
    results that all threads need (loop bounds, conditions) are passed in memory. A load that
    all need is done by all.

    Attributes:
        guards: the ``scf.if`` operations made.

    Args:
        first: whether the thread is the first one; an ``i1`` at the begin of the function.
        share: makes memory of one element of a type, which all threads see.
    """

    def __init__(self, first: Any, share: Callable[[Any], Any]) -> None:
        self.guards: set[Any] = set()
        self._first = first
        self._share = share
        self._needed: set[Any] = set()
        #: Values that all threads have.
        self._common: set[Any] = set()

    def function(self, body: Any) -> None:
        """Rewrite the blocks of a function."""
        for block in body.blocks:
            self._need(block)
        for block in body.blocks:
            self._guard(block)

    # Values that all threads need.

    def _need(self, block: Any) -> None:
        operations = [op.operation for op in block.operations]
        for op in operations:
            if self._is_common(op) or op == operations[-1]:
                for operand in op.operands:
                    self._need_value(operand)
            if _is_control(op):
                for region in op.regions:
                    for inner in region.blocks:
                        self._need(inner)

    def _is_common(self, op: Any) -> bool:
        """Whether all threads come to an operation, whatever it gives."""
        if is_shared(op) or _is_control(op):
            return True
        return _is_pure(op) and any(_is_memref(result) for result in op.results)

    def _need_value(self, value: Any) -> None:
        from polyblocks.mlir import ir

        waiting = [value]
        while waiting:
            value = waiting.pop()
            if value in self._needed:
                continue
            self._needed.add(value)
            if isinstance(value.owner, ir.Block):
                continue
            op = value.owner.operation
            if _is_pure(op) or op.name in _LOADS:
                waiting.extend(op.operands)

    # Work of the first thread.

    def _guard(self, block: Any) -> None:
        self._common.update(block.arguments)
        alone: list[Any] = []
        operations = [inner.operation for inner in block.operations]
        for op, following in zip(operations, [*operations[1:], None], strict=True):
            if following is not None and self._is_free(op):
                self._common.update(op.results)
                continue
            common = self._is_common(op) or following is None
            load = op.name in _LOADS and op.results[0] in self._needed
            if common or load:
                self._close(alone, op)
                alone = []
                self._common.update(op.results)
                if _is_control(op):
                    for region in op.regions:
                        for inner in region.blocks:
                            self._guard(inner)
                continue
            alone.append(op)
            if any(result in self._needed for result in op.results):
                self._close(alone, following)
                alone = []

    def _is_free(self, op: Any) -> bool:
        """Whether an operation computes something of what all threads have."""
        return _is_pure(op) and all(value in self._common for value in op.operands)

    def _close(self, alone: list[Any], before: Any) -> None:
        """Put operations into a guard that stands before another one."""
        from polyblocks import mlir

        if not alone:
            return
        ir = mlir.ir
        scf = mlir.dialect("scf")
        inside = {op for outer in alone for op in nested(outer)}
        made = [result for op in alone for result in op.results]
        told = [value for value in made if value in self._needed]
        handed = [v for v in made if v not in self._needed and _used_outside(v, inside)]
        with ir.InsertionPoint(before):
            types = [value.type for value in handed]
            guard = scf.IfOp(self._first, types, has_else=bool(types))
            with ir.InsertionPoint(guard.then_block):
                end = scf.YieldOp(handed)
            if types:
                with ir.InsertionPoint(guard.else_block):
                    scf.YieldOp([zero(type_) for type_ in types])
            for op in alone:
                op.move_before(end.operation)
            inside.add(end.operation)
            for value, result in zip(handed, guard.results, strict=True):
                _replace(value, result, inside)
            for value in told:
                self._tell(value, end.operation, inside)
        self.guards.add(guard.operation)

    def _tell(self, value: Any, end: Any, inside: set[Any]) -> None:
        """Store a value where the first thread has it, and load it at the insertion point."""
        from polyblocks import mlir

        ir = mlir.ir
        arith, memref = mlir.dialect("arith"), mlir.dialect("memref")
        # A boolean takes a byte in memory.
        flag = str(value.type) == "i1"
        type_ = ir.IntegerType.get_signless(8) if flag else value.type
        place = self._share(type_)
        index = ir.IndexType.get()
        with ir.InsertionPoint(end):
            kept = arith.ExtUIOp(type_, value).result if flag else value
            stored = memref.StoreOp(kept, place, [arith.ConstantOp(index, 0).result])
        known = memref.LoadOp(place, [arith.ConstantOp(index, 0).result]).result
        if flag:
            known = arith.TruncIOp(value.type, known).result
        self._common.add(known)
        made = {stored.operation, kept.owner.operation} if flag else {stored.operation}
        _replace(value, known, inside | made)
        self._needed.add(known)


def _is_control(op: Any) -> bool:
    """Whether it is a loop or branch of the program with parallel kernels in it."""
    return len(op.regions) > 0 and has_shared(op)


def _is_pure(op: Any) -> bool:
    if op.name in _PURE_OPS:
        return True
    if not op.name.startswith(_PURE) or len(op.regions):
        return False
    if not len(op.operands):
        return True
    # Threads may round differently, or take denormal numbers for zero: what is computed of floats
    # could be true for one and false for another, which would wait forever.
    return not any(_is_memref(v) or _is_float(v) for v in (*op.operands, *op.results))


def _is_float(value: Any) -> bool:
    from polyblocks.mlir import ir

    type_ = value.type
    if isinstance(type_, (ir.VectorType, ir.ComplexType)):
        type_ = type_.element_type
    return isinstance(type_, (ir.FloatType, ir.ComplexType))


def _is_memref(value: Any) -> bool:
    from polyblocks.mlir import ir

    return isinstance(value.type, ir.MemRefType)


def _used_outside(value: Any, inside: set[Any]) -> bool:
    return any(use.owner.operation not in inside for use in value.uses)


def _replace(value: Any, by: Any, inside: set[Any]) -> None:
    """Let all users but some have another value."""
    uses = [(use.owner.operation, use.operand_number) for use in value.uses]
    for op, position in uses:
        if op not in inside:
            op.operands[position] = by
