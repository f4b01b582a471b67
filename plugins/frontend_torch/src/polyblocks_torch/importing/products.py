"""Lowering of products of matrices whose result is wider than their operands.

torch-mlir has none; this one keeps the operands as they are, so that units which multiply 16-bit
numbers can be used. ``aten.mm.dtype`` of bfloat16 operands becomes::

    %r = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)],
                         iterators = [parallel, parallel, reduction]}
        ins(%a, %b : tensor<4x8xbf16>, tensor<8x5xbf16>) outs(%zeros : tensor<4x5xf32>) {
      ^bb0(%x: bf16, %y: bf16, %s: f32):
        %v = arith.extf %x {polyblocks.free_rounding} : bf16 to f32
        %w = arith.extf %y {polyblocks.free_rounding} : bf16 to f32
        %p = arith.mulf %v, %w : f32
        %t = arith.addf %s, %p : f32
        linalg.yield %t : f32 }

The attribute says that a factor which was computed in float32 need not be rounded on the way.
"""

from __future__ import annotations

from typing import Any

from polyblocks import mlir
from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    from_builtin,
    tensor_type,
    to_builtin,
)


def _replace(op: Any) -> None:
    ir = mlir.ir
    linalg, tensor, arith = (mlir.dialect(name) for name in ("linalg", "tensor", "arith"))
    kind = tensor_type(op.results[0].type)
    wide, batch = kind.element_type, len(kind.shape) - 2
    with ir.InsertionPoint(op), op.location:
        zero = arith.ConstantOp(wide, ir.FloatAttr.get(wide, 0.0)).result
        empty = tensor.EmptyOp(list(kind.shape), wide).result
        operands = [to_builtin(operand) for operand in list(op.operands)[:2]]
        *lead, i, j, k = (ir.AffineDimExpr.get(d) for d in range(batch + 3))
        maps = [
            ir.AffineMapAttr.get(ir.AffineMap.get(batch + 3, 0, [*lead, *dims]))
            for dims in ((i, k), (k, j), (i, j))
        ]
        generic = linalg.GenericOp(
            [kind],
            operands,
            [linalg.fill(zero, outs=[empty])],
            ir.ArrayAttr.get(maps),
            ir.ArrayAttr.get(
                [
                    ir.Attribute.parse(f"#linalg.iterator_type<{loop}>")
                    for loop in ["parallel"] * (batch + 2) + ["reduction"]
                ]
            ),
        )
        types = [*(ir.RankedTensorType(o.type).element_type for o in operands), wide]
        block = ir.Block.create_at_start(generic.regions[0], types, arg_locs=[op.location] * 3)
        with ir.InsertionPoint(block):
            factors = []
            for factor in list(block.arguments)[:2]:
                extended = arith.ExtFOp(wide, factor)
                extended.operation.attributes[FREE_ROUNDING_ATTRIBUTE] = ir.UnitAttr.get()
                factors.append(extended.result)
            product = arith.MulFOp(*factors).result
            linalg.YieldOp([arith.AddFOp(block.arguments[2], product).result])
        op.results[0].replace_all_uses_with(from_builtin(generic.results[0], op.results[0].type))
    op.erase()


#: Op name -> its lowering. Operands are of a floating-point type that is narrower than that of the
#: result.
PRODUCTS = {"aten.mm.dtype": Lowering(_replace), "aten.bmm.dtype": Lowering(_replace)}
