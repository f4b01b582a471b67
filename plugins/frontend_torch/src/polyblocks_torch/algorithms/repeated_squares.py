"""Matrices that are squared as often as data says: an op, and its lowering to a loop.

``polyblocks.repeated_squares`` becomes, where ``%most`` is the largest of the counts::

    %r = scf.for %k = %c0 to %most step %c1 iter_args(%x = %a) -> (tensor<5x8x8xf32>) {
      %y = linalg.generic {maps, iterators} ins(%x, %x) outs(%zeros) { ... }   // x @ x
      %z = linalg.generic {maps, iterators} ins(%x, %y, %counts) outs(%empty) {
        %left = arith.cmpi slt, %k, %count
        %v = arith.select %left, %y, %x ... }
      scf.yield %z }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks import mlir
from polyblocks_torch.algorithms.factorizations import define
from polyblocks_torch.importing.torch_dialect import Lowering, from_builtin, to_builtin

#: ``a``, [b, n, n], ``counts``, [b] of int32, and the largest of these, [] of int32, to
#: ``a ^ (2 ^ count)``.
repeated_squares = define(
    "repeated_squares",
    "(Tensor a, Tensor counts, Tensor most) -> Tensor",
    lambda a, counts, most: a.new_empty(a.shape),
)


def _replace(op: Any) -> None:
    ir = mlir.ir
    scf, tensor, arith = (mlir.dialect(name) for name in ("scf", "tensor", "arith"))
    index = ir.IndexType.get(op.context)
    with ir.InsertionPoint(op), op.location:
        a, counts, most = [to_builtin(operand) for operand in op.operands]
        first, step = (arith.ConstantOp(index, number).result for number in (0, 1))
        last = arith.IndexCastOp(index, tensor.ExtractOp(most, []).result).result
        loop = scf.ForOp(first, last, step, [a])
        with ir.InsertionPoint(loop.body):
            (x,) = loop.inner_iter_args
            number = arith.IndexCastOp(counts.type.element_type, loop.induction_variable).result
            scf.YieldOp([_squared(x, counts, number)])
        kind = op.results[0].type
        op.results[0].replace_all_uses_with(from_builtin(loop.results[0], kind))
    op.erase()


def _squared(x: Any, counts: Any, number: Any) -> Any:
    """``x @ x`` where ``number`` is below the count of a matrix, else ``x``."""
    ir = mlir.ir
    linalg, tensor, arith = (mlir.dialect(name) for name in ("linalg", "tensor", "arith"))
    shape, element = list(x.type.shape), x.type.element_type
    zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
    zeros = linalg.fill(zero, outs=[tensor.EmptyOp(shape, element).result])
    b, i, j, k = (ir.AffineDimExpr.get(d) for d in range(4))

    def product(values: Sequence[Any]) -> Any:
        first, second, total = values
        return arith.AddFOp(total, arith.MulFOp(first, second).result).result

    square = _generic([x, x], zeros, [(b, i, k), (b, k, j), (b, i, j)], product)

    def chosen(values: Sequence[Any]) -> Any:
        before, after, count, _ = values
        left = arith.CmpIOp(arith.CmpIPredicate.slt, number, count).result
        return arith.SelectOp(left, after, before).result

    empty = tensor.EmptyOp(shape, element).result
    return _generic([x, square, counts], empty, [(b, i, j), (b, i, j), (b,), (b, i, j)], chosen)


def _generic(
    inputs: Sequence[Any],
    out: Any,
    indices: Sequence[Sequence[Any]],
    body: Callable[[Sequence[Any]], Any],
) -> Any:
    """A ``linalg.generic`` whose fourth loop, if there is one, is that of a reduction."""
    ir, linalg = mlir.ir, mlir.dialect("linalg")
    loops = len({str(dimension) for index in indices for dimension in index})
    maps = [ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, list(index))) for index in indices]
    kinds = ["parallel"] * 3 + ["reduction"] * (loops - 3)
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    generic = linalg.GenericOp(
        [out.type], list(inputs), [out], ir.ArrayAttr.get(maps), ir.ArrayAttr.get(iterators)
    )
    types = [value.type.element_type for value in (*inputs, out)]
    places = [ir.Location.current] * len(types)
    block = ir.Block.create_at_start(generic.regions[0], types, arg_locs=places)
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(list(block.arguments))])
    return generic.results[0]


#: Op name -> its lowering.
SQUARES = {"polyblocks.repeated_squares": Lowering(_replace)}
