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

import re
from collections.abc import Callable
from typing import Any

from polyblocks import mlir

Body = Callable[[list[Any], Any], Any]

_VTENSOR = re.compile(r"!torch\.vtensor<\[([\d,]*)\],(.+)>")


def lower_elementwise(module: Any) -> None:
    """Replace the ops of :data:`BODIES` in a module of the torch dialect, in place."""
    ir = mlir.ir
    found: list[Any] = []

    def visit(op: Any) -> Any:
        name = _name(op)
        if name in BODIES and not (name in _FLOAT_ONLY and _is_integer(op)):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        _load_conversion_dialect(module.context)
    for op in found:
        _replace(op, BODIES[_name(op)])


def _load_conversion_dialect(context: Any) -> None:
    """Load the dialect ``torch_c``, which has no Python binding: a pass that depends on it does."""
    ir = mlir.ir
    with context, ir.Location.unknown():
        empty = ir.Module.create()
        loader = mlir.passmanager.PassManager.parse(
            "builtin.module(torch-func-backend-type-conversion)"
        )
        loader.run(empty.operation)


def _name(op: Any) -> str:
    name: str = op.operation.name
    if name == "torch.operator":
        name = str(op.operation.attributes["name"]).strip('"')
    return name.removeprefix("torch.")


def _is_integer(op: Any) -> bool:
    return re.search(r",[su]?i\d+>", str(op.results[0].type)) is not None


def _builtin(kind: Any) -> Any | None:
    """The builtin tensor type of a ``!torch.vtensor``; None for another type."""
    match = _VTENSOR.fullmatch(str(kind))
    if match is None:
        return None
    extents = "".join(f"{extent}x" for extent in match.group(1).split(",") if extent)
    element = re.sub(r"\b[su]i(\d+)\b", r"i\1", match.group(2))
    return mlir.ir.Type.parse(f"tensor<{extents}{element}>", context=kind.context)


def _replace(op: Any, body: Body) -> None:
    ir = mlir.ir
    linalg, tensor = mlir.dialect("linalg"), mlir.dialect("tensor")
    (result,) = op.results
    out_type = _builtin(result.type)
    with ir.InsertionPoint(op), op.location:
        operands = []
        for operand in op.operands:
            kind = _builtin(operand.type)
            if kind is not None:
                cast = ir.Operation.create(
                    "torch_c.to_builtin_tensor", results=[kind], operands=[operand]
                )
                operands.append(cast.result)
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
        back = ir.Operation.create(
            "torch_c.from_builtin_tensor", results=[result.type], operands=[generic.results[0]]
        )
    result.replace_all_uses_with(back.result)
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


#: Ops whose integer forms torch-mlir lowers rightly.
_FLOAT_ONLY = frozenset({"aten.fmod.Tensor"})

#: Op name (torch-mlir's spelling) -> its scalar body. Operands and result have the dtypes that the
#: decompositions of this package leave: equal ones, except for the bit cast.
BODIES: dict[str, Body] = {
    "aten.view.dtype": _bitcast,
    "aten.erfc": _erfc,
    "aten.copysign.Tensor": _copysign,
    "aten.fmod.Tensor": _fmod,
}
