"""lower-scatters: a scatter becomes a nest of affine loops with stores at run-time indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.bufferize.replacing import replace_each


@dataclass(frozen=True)
class LowerScattersPass:
    """Lower ``tm_tensor.scatter`` on buffers to loops over the updates, in their order.

    The upstream lowering makes ``scf`` loops, which later passes would have to leave as they are.

    Before::

        tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false)
            ins(%updates, %rows : memref<1000x1x64xf32>, memref<1000x1xi64>)
            outs(%table : memref<100x64xf32>) { ^bb0(%u: f32, %old: f32): ... }

    After::

        affine.for %i = 0 to 1000 { affine.for %j = 0 to 64 {
          %u = affine.load %updates[%i, 0, %j]
          %r = affine.load %rows[%i, 0]
          %row = arith.index_cast %r : i64 to index
          %old = memref.load %table[%row, %j] ...
          memref.store %new, %table[%row, %j] } }
    """

    name: ClassVar[str] = "lower-scatters"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PROGRAM_LOOPS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was a scatter."""
        del context
        return replace_each(module, "tm_tensor.scatter", _lower)


def _lower(op: Any) -> None:
    """Write the loops at the insertion point."""
    from polyblocks.mlir import ir

    updates = op.operands[0]
    extents = list(updates.type.shape)
    if 0 in extents:
        return
    _loops(extents, [], lambda at: _body(op, at, ir.IndexType.get()))


def _loops(extents: list[int], variables: list[Any], body: Any) -> None:
    """Loops over the extents; one of a single iteration has the variable None."""
    from polyblocks.mlir import dialect, ir

    if not extents:
        body(variables)
        return
    if extents[0] == 1:
        _loops(extents[1:], [*variables, None], body)
        return
    affine = dialect("affine")
    loop = affine.AffineForOp(0, extents[0], 1, [])
    with ir.InsertionPoint(loop.body):
        _loops(extents[1:], [*variables, loop.induction_variable], body)
        affine.AffineYieldOp([])


def _body(op: Any, at: list[Any], index: Any) -> None:
    """One update; the meaning of the operands is that of the upstream lowering."""
    from polyblocks.mlir import dialect, ir

    arith, memref = dialect("arith"), dialect("memref")
    updates, indices, original = op.operands
    update = _load(updates, at)
    rank = len(original.type.shape)
    # The dimensions of an update behind the first one are the last ones of the original.
    where: list[Any] = [None] * (rank - len(at) + 1) + at[1:]
    for i, dim in enumerate(ir.DenseI64ArrayAttr(op.attributes["dimension_map"])):
        start = _load(indices, [at[0], i])
        start = arith.IndexCastOp(index, start).result
        if where[dim] is not None:
            start = arith.AddIOp(start, where[dim]).result
        where[dim] = start
    where = [arith.ConstantOp(index, 0).result if w is None else w for w in where]
    block = op.regions[0].blocks[0]
    old = memref.LoadOp(original, where).result
    values = dict(zip(block.arguments, (update, old), strict=True))
    for inner in block.operations:
        if inner.operation.name == "tm_tensor.yield":
            result = inner.operation.operands[0]
            memref.StoreOp(values.get(result, result), original, where)
            continue
        copy = inner.operation.clone()
        for i, operand in enumerate(inner.operation.operands):
            if operand in values:
                copy.operands[i] = values[operand]
        values.update(zip(inner.operation.results, copy.results, strict=True))


def _load(buffer: Any, index: list[Any]) -> Any:
    """``affine.load`` at loop variables (None for the only element) and numbers."""
    from polyblocks.mlir import ir

    exprs: list[Any] = []
    operands: list[Any] = []
    for position in index:
        if position is None or isinstance(position, int):
            exprs.append(ir.AffineConstantExpr.get(position or 0))
        else:
            exprs.append(ir.AffineDimExpr.get(len(operands)))
            operands.append(position)
    amap = ir.AffineMapAttr.get(ir.AffineMap.get(len(operands), 0, exprs))
    load = ir.Operation.create(
        "affine.load",
        results=[buffer.type.element_type],
        operands=[buffer, *operands],
        attributes={"map": amap},
    )
    return load.results[0]
