"""Convolutions whose products say that they are padded.

torch-mlir makes ``tensor.pad`` and a named operation of a convolution, and does not say whether the
zeros are the convolution's or the program's. It gets convolutions without padding, behind
a ``tensor.pad`` that is marked; afterwards the products in their bodies are
(:class:`polyblocks.affine.padding.padded.Padded`)::

    %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {...} {polyblocks_torch.padding}
    %r = torch.aten.convolution %p, %w, ..., padding [0]

Named operations are printed without their bodies, so these are made general ones.
"""

from __future__ import annotations

from typing import Any

from polyblocks import mlir
from polyblocks.affine.padding.padded import Padded
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    builtin_type,
    find_ops,
    from_builtin,
    tensor_type,
    to_builtin,
)

#: On ``tensor.pad``: that it is of a convolution.
_MARK = "polyblocks_torch.padding"
_GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"


def _is_padded(op: Any) -> bool:
    """Whether a convolution has zeros around its input, of a shape that is known, and no others."""
    widths, transposed = _numbers(op.operands[4]), _number(op.operands[6])
    shaped = builtin_type(op.operands[0].type)
    if widths is None or transposed is None or transposed or not any(widths) or shaped is None:
        return False
    return shaped.has_static_shape and all(extent > 0 for extent in shaped.shape)


def _separate(op: Any) -> None:
    """Put the zeros around the input before the convolution."""
    ir, tensor, arith = mlir.ir, mlir.dialect("tensor"), mlir.dialect("arith")
    kind = op.operands[0].type
    shaped = tensor_type(kind)
    dims = shaped.rank - 2
    given = _numbers(op.operands[4]) or []
    widths = [0, 0, *(given if len(given) == dims else given * dims)]
    shape = [extent + 2 * width for extent, width in zip(shaped.shape, widths, strict=True)]
    element = shaped.element_type
    with ir.InsertionPoint(op), op.location:
        integer = isinstance(element, ir.IntegerType)
        number = ir.IntegerAttr.get(element, 0) if integer else ir.FloatAttr.get(element, 0.0)
        zero = arith.ConstantOp(element, number).result
        padded = ir.RankedTensorType.get(shape, element)
        pad = tensor.PadOp(padded, to_builtin(op.operands[0]), [], [], widths, widths)
        pad.operation.attributes[_MARK] = ir.UnitAttr.get()
        block = pad.regions[0].blocks.append(*[ir.IndexType.get()] * shaped.rank)
        with ir.InsertionPoint(block):
            tensor.YieldOp(zero)
        # Of the same elements, which may be unsigned.
        rest = str(kind).rpartition("]")[2]
        wanted = ir.Type.parse(f"!torch.vtensor<[{','.join(map(str, shape))}]{rest}")
        op.operands[0] = from_builtin(pad.result, wanted)
        none = ir.Operation.create(
            "torch.constant.int",
            results=[ir.Type.parse("!torch.int")],
            attributes={"value": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)},
        )
        op.operands[4] = ir.Operation.create(
            "torch.prim.ListConstruct",
            results=[ir.Type.parse("!torch.list<int>")],
            operands=[none.result] * dims,
        ).result


def mark_products(module: Any) -> None:
    """Mark the products of padded convolutions, and take the marks off what pads.

    Args:
        module: of operations on tensors, as torch-mlir leaves it.
    """
    pads = [op for op in find_ops(module, frozenset({"tensor.pad"})) if _MARK in op.attributes]
    if not pads:
        return
    convolutions: list[Any] = []
    on = mlir.ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        if op.name.startswith("linalg.") and "conv_" in op.name:
            convolutions.append(op)
        return on

    module.operation.walk(visit)
    for op in convolutions:
        pad = _maker(op.operands[0])
        if pad is None or pad.name != "tensor.pad" or _MARK not in pad.attributes:
            continue
        source = mlir.ir.RankedTensorType(pad.operands[0].type)
        low = list(mlir.ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
        what = Padded(tuple(low), tuple(source.shape), (1,) * len(low))
        for inner in op.regions[0].blocks[0].operations:
            if inner.operation.name in ("arith.mulf", "arith.muli"):
                what.mark(inner.operation)
    for pad in pads:
        del pad.attributes[_MARK]
    manager = mlir.passmanager.PassManager.parse(_GENERALIZE)
    manager.enable_verifier(False)
    manager.run(module.operation)


def _maker(value: Any) -> Any | None:
    """The operation that makes an array, by whatever name its dimensions go."""
    while not isinstance(value.owner, mlir.ir.Block):
        maker = value.owner.operation
        if maker.name not in ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"):
            return maker
        value = maker.operands[0]
    return None


def _number(value: Any) -> int | None:
    """A constant; None for another value."""
    owner = value.owner
    known = not isinstance(owner, mlir.ir.Block) and "value" in owner.attributes
    return int(owner.attributes["value"].value) if known else None


def _numbers(value: Any) -> list[int] | None:
    """The elements of a list of constants; None for another value."""
    if isinstance(value.owner, mlir.ir.Block):
        return None
    numbers = [_number(operand) for operand in value.owner.operation.operands]
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else None


#: Op name -> its lowering, after which torch-mlir lowers the op itself.
PADDINGS = {"aten.convolution": Lowering(_separate, _is_padded)}
