"""Lowerings of element-wise ops that torch-mlir does not know.

Before torch-mlir's pipelines such an op is replaced by a ``linalg.generic`` whose body is
built here::

    %1 = torch.operator "torch.aten.erfc"(%0) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>

becomes::

    %b = torch_c.to_builtin_tensor %0 : !torch.vtensor<[4],f32> -> tensor<4xf32>
    %g = linalg.generic ... { math.erfc } -> tensor<4xf32>
    %1 = torch_c.from_builtin_tensor %g : tensor<4xf32> -> !torch.vtensor<[4],f32>
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from polyblocks import mlir
from polyblocks_torch.torch_dialect import (
    Lowering,
    builtin_type,
    from_builtin,
    tensor_type,
    to_builtin,
)

Body = Callable[[list[Any], Any], Any]


def _is_of_floats(op: Any) -> bool:
    """Whether all are floating-point numbers that ``arith`` converts to one another."""
    types = [tensor_type(op.results[0].type)]
    types += [kind for kind in (builtin_type(o.type) for o in op.operands) if kind is not None]
    elements = {str(kind.element_type) for kind in types}
    return elements <= {"f16", "bf16", "f32", "f64"} and elements != {"f16", "bf16"}


def _replace(body: Body, op: Any) -> None:
    ir = mlir.ir
    linalg, tensor = mlir.dialect("linalg"), mlir.dialect("tensor")
    (result,) = op.results
    out_type = tensor_type(result.type)
    with ir.InsertionPoint(op), op.location:
        operands = []
        for operand in op.operands:
            if builtin_type(operand.type) is not None:
                operands.append(to_builtin(operand))
        rank = len(out_type.shape)
        maps = [_broadcast(ir.RankedTensorType(o.type).shape, out_type.shape) for o in operands]
        maps.append(ir.AffineMap.get_identity(rank))
        empty = tensor.EmptyOp(list(out_type.shape), out_type.element_type)
        generic = linalg.GenericOp(
            [out_type],
            operands,
            [empty.result],
            ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank),
        )
        elements = [ir.RankedTensorType(o.type).element_type for o in operands]
        elements.append(out_type.element_type)
        block = ir.Block.create_at_start(
            generic.regions[0], elements, arg_locs=[op.location] * len(elements)
        )
        with ir.InsertionPoint(block):
            scalars = [block.arguments[i] for i in range(len(operands))]
            linalg.YieldOp([body(scalars, out_type.element_type)])
        back = from_builtin(generic.results[0], result.type)
    result.replace_all_uses_with(back)
    op.erase()


def _broadcast(operand: Any, result: Any) -> Any:
    """Map of an operand's dimensions, aligned at the right, extents of 1 read at 0."""
    ir = mlir.ir
    lead = len(result) - len(operand)
    exprs = [
        ir.AffineConstantExpr.get(0)
        if extent == 1 and result[lead + i] != 1
        else ir.AffineDimExpr.get(lead + i)
        for i, extent in enumerate(operand)
    ]
    return ir.AffineMap.get(len(result), 0, exprs)


def _bitcast(scalars: list[Any], kind: Any) -> Any:
    (x,) = scalars
    return x if x.type == kind else mlir.dialect("arith").BitcastOp(kind, x).result


def _erfc(scalars: list[Any], kind: Any) -> Any:
    return mlir.dialect("math").ErfcOp(scalars[0]).result


def _copysign(scalars: list[Any], kind: Any) -> Any:
    return mlir.dialect("math").CopySignOp(*scalars).result


def _fmod(scalars: list[Any], kind: Any) -> Any:
    return mlir.dialect("arith").RemFOp(*scalars).result


def _convert(scalars: list[Any], kind: Any) -> Any:
    """A conversion that :mod:`polyblocks_torch.opmath` has added; there and back is nothing."""
    (x,) = scalars
    if x.type == kind:
        return x
    arith = mlir.dialect("arith")
    convert = arith.ExtFOp if x.type.width < kind.width else arith.TruncFOp
    return convert(kind, x, fastmath=mlir.ir.Attribute.parse("#arith.fastmath<contract>")).result


#: Op name (torch-mlir's spelling) -> its lowering to a scalar body. Operands and result have the
#: dtypes that the decompositions of this package leave: equal ones, except for casts. Of the last
#: two, torch-mlir lowers the integer forms rightly.
ELEMENTWISE: dict[str, Lowering] = {
    "aten.view.dtype": Lowering(partial(_replace, _bitcast)),
    "aten.erfc": Lowering(partial(_replace, _erfc)),
    "aten.copysign.Tensor": Lowering(partial(_replace, _copysign)),
    "aten.fmod.Tensor": Lowering(partial(_replace, _fmod), _is_of_floats),
    "prims.convert_element_type": Lowering(partial(_replace, _convert), _is_of_floats),
}
