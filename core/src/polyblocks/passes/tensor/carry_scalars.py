"""carry-scalars: counters and conditions of loops are scalars, not tensors of one element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import (
    LOOPS,
    control_flow_of,
    rebuild,
    set_operands,
    terminator,
)

#: Reshapes that an extraction can look through.
_RESHAPES = {"tensor.cast", "tensor.collapse_shape", "tensor.expand_shape"}


@dataclass(frozen=True)
class CarryScalarsPass:
    """Compute integers that loops and branches hand on without tensors around them.

    A tensor of one integer that a loop carries, or a branch gives, becomes the integer; what is
    extracted from an operation on such tensors is computed from what is extracted from its
    operands. So it can be seen how often a loop runs, and where in an array its iterations look.
    Programs without loops and branches stay as they are.

    Before::

        %r = scf.while (%i = %zero) : (tensor<i32>) -> tensor<i32> {
          %p = linalg.generic ... ins(%i, %ten : tensor<i32>, tensor<i32>) ... -> tensor<i1>
          %go = tensor.extract %p[] : tensor<i1>
          scf.condition(%go) %i : tensor<i32>

    After::

        %r = scf.while (%i = %c0) : (i32) -> i32 {
          %go = arith.cmpi slt, %i, %c10 : i32
          scf.condition(%go) %i : i32
    """

    name: ClassVar[str] = "carry-scalars"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was control flow."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        found = control_flow_of(module)
        if not found:
            return False
        with module.context, ir.Location.unknown():
            for op in found:
                _carry(op)
            # `from_elements` of one loop is extracted from by another one: fold, then go on.
            while _compute_extracted(module):
                mlir.run_textual(module, "canonicalize,cse")
            _inline_operands(module)
            mlir.run_textual(module, "canonicalize,cse")
        return True


def _is_counter(type_: Any) -> bool:
    """Whether it is a tensor without dimensions of integers or booleans."""
    from polyblocks.mlir import ir

    return (
        isinstance(type_, ir.RankedTensorType)
        and type_.rank == 0
        and isinstance(type_.element_type, (ir.IntegerType, ir.IndexType))
    )


def _scalar(type_: Any) -> Any:
    return type_.element_type if _is_counter(type_) else type_


def _carry(op: Any) -> None:
    """Carry scalars instead of tensors of one integer."""
    from polyblocks.mlir import ir

    first = 3 if op.name == "scf.for" else 0
    carried = list(op.operands)[first:] if op.name in LOOPS else []
    types = [v.type for v in (*carried, *op.results)]
    types += [a.type for r in op.regions for b in r.blocks for a in b.arguments]
    if not any(map(_is_counter, types)):
        return
    operands = list(op.operands)
    with ir.InsertionPoint(op):
        if op.name in LOOPS:
            operands[first:] = [_extracted(v) for v in carried]
    old_blocks = [list(r.blocks[0].arguments) if len(r.blocks) else [] for r in op.regions]
    new = rebuild(
        op,
        operands,
        [_scalar(r.type) for r in op.results],
        [[_scalar(a.type) for a in arguments] for arguments in old_blocks],
    )
    for region, old in zip(new.regions, old_blocks, strict=True):
        if not len(region.blocks):
            continue
        block = region.blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            for argument, before in zip(block.arguments, old, strict=True):
                before.replace_all_uses_with(_as_tensor(argument, before.type))
        end = terminator(block)
        with ir.InsertionPoint(end):
            # The first operand of a condition is the condition.
            set_operands(end, [_extracted(v) for v in end.operands])
    with ir.InsertionPoint(op):
        for result, before in zip(new.results, op.results, strict=True):
            before.replace_all_uses_with(_as_tensor(result, before.type))
    op.erase()


def _extracted(value: Any) -> Any:
    from polyblocks.mlir import dialect

    if not _is_counter(value.type):
        return value
    return dialect("tensor").ExtractOp(value, []).result


def _as_tensor(value: Any, type_: Any) -> Any:
    from polyblocks.mlir import dialect

    if value.type == type_:
        return value
    return dialect("tensor").FromElementsOp(type_, [value]).result


def _compute_extracted(module: Any) -> bool:
    """Extract from operands instead of results; whether anything changed."""
    from polyblocks.mlir import ir

    extracts: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "tensor.extract":
            extracts.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    changed = False
    for op in extracts:
        with ir.InsertionPoint(op), op.location:
            value = _element(op.operands[0], list(op.operands)[1:])
        if value is not None:
            op.results[0].replace_all_uses_with(value)
            op.erase()
            changed = True
    return changed


def _element(source: Any, index: list[Any]) -> Any:
    """The element of what an operation makes; None if it must be made first."""
    from polyblocks.mlir import dialect, ir

    owner = source.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    tensor, arith = dialect("tensor"), dialect("arith")
    if op.name in _RESHAPES:
        inner = op.operands[0]
        shape = inner.type.shape
        if any(extent != 1 for extent in shape):
            return None
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result if len(shape) else None
        return tensor.ExtractOp(inner, [zero] * len(shape)).result
    if op.name == "tensor.extract_slice" and not index and len(op.operands) > 1:
        return _sliced(op)
    if op.name == "linalg.generic":
        return _computed(op, source)
    return None


def _sliced(op: Any) -> Any:
    """The element that a slice of one element at run-time offsets is."""
    from polyblocks.mlir import dialect, ir

    offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    if any(size != 1 for size in sizes):
        return None
    given = iter(list(op.operands)[1:])
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    arith = dialect("arith")
    where = [
        next(given) if offset == dynamic else arith.ConstantOp(ir.IndexType.get(), offset).result
        for offset in offsets
    ]
    return dialect("tensor").ExtractOp(op.operands[0], where).result


def _computed(op: Any, result: Any) -> Any:
    """The scalar that a ``linalg.generic`` without loops computes."""
    from polyblocks.mlir import dialect, ir

    operands = list(op.operands)
    shaped = [isinstance(v.type, ir.RankedTensorType) for v in operands]
    if any(s and v.type.rank for s, v in zip(shaped, operands, strict=True)):
        return None
    block = op.regions[0].blocks[0]
    inner = [o.operation for o in block.operations]
    if any(len(o.regions) for o in inner):
        return None
    tensor = dialect("tensor")
    values: dict[Any, Any] = {}
    for argument, value, is_tensor in zip(block.arguments, operands, shaped, strict=True):
        if any(True for _ in argument.uses):
            values[argument] = tensor.ExtractOp(value, []).result if is_tensor else value
    for each in inner[:-1]:
        copy = each.clone()
        for position, operand in enumerate(each.operands):
            if operand in values:
                copy.operands[position] = values[operand]
        values.update(zip(each.results, copy.results, strict=True))
    value = inner[-1].operands[list(op.results).index(result)]
    return values.get(value, value)


def _inline_operands(module: Any) -> None:
    """Give operations on tensors the scalar that a tensor was made of."""
    from polyblocks.mlir import ir

    made: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "tensor.from_elements" and _is_counter(op.results[0].type):
            made.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in made:
        for use in list(op.results[0].uses):
            user = use.owner.operation
            if user.name != "linalg.generic":
                continue
            if use.operand_number < user.attributes["operandSegmentSizes"][0]:
                user.operands[use.operand_number] = op.operands[0]
