"""Run-time checks: which are needed, and code that runs only where a check holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polyblocks import mlir
from polyblocks.codegen.walk import nested


def needed(asserts: Iterable[Any]) -> list[Any]:
    """Erase checks of true, and of what an earlier op of the same block has checked."""
    kept: list[Any] = []
    seen: set[tuple[int, Any]] = set()
    for op in asserts:
        condition = op.operands[0]
        key = (hash(op.block), condition)
        if _is_true(condition) or key in seen:
            op.erase()
            continue
        seen.add(key)
        kept.append(op)
    return kept


def _is_true(value: Any) -> bool:
    ir = mlir.ir
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return False
    return bool(ir.IntegerAttr(owner.operation.attributes["value"]).value)


def guard_tail(
    check: Any, failed: Callable[[], Any], stays: Callable[[Any], bool] | None = None
) -> None:
    """Run what follows a check in its block only where the check holds; erases the check.

    Args:
        check: a ``cf.assert``.
        failed: creates, at the insertion point, what happens where the check fails.
        stays: which ops run in any case, since all threads have to come to them; what is inside of
            such an op and need not run is guarded. Their operands from guarded ops are zero where
            the check fails.
    """
    block, condition = check.block, check.operands[0]
    operations = [other.operation for other in block.operations]
    tail = operations[operations.index(check) + 1 : -1]
    with check.location, mlir.ir.InsertionPoint(check):
        _guard(tail, operations[-1], condition, failed, stays or (lambda op: False))
    check.erase()


def _guard(
    tail: Sequence[Any],
    terminator: Any,
    condition: Any,
    failed: Callable[[], Any] | None,
    stays: Callable[[Any], bool],
) -> None:
    """Guard a block's ops; the insertion point is before them."""
    ir = mlir.ir
    scf = mlir.dialect("scf")
    end = next((i for i, op in enumerate(tail) if stays(op)), len(tail))
    part, rest = tail[:end], [*tail[end:], terminator]
    if part or failed is not None:
        yielded = _handed_on(part, rest)
        types = [value.type for value in yielded]
        has_else = failed is not None or bool(yielded)
        branch = scf.IfOp(condition, types, has_else=has_else)
        with ir.InsertionPoint(branch.then_block):
            inner = scf.YieldOp(yielded)
        if has_else:
            with ir.InsertionPoint(branch.else_block):
                if failed is not None:
                    failed()
                scf.YieldOp([zero(type_) for type_ in types])
        _replace(yielded, list(branch.results), rest)
        for op in part:
            op.move_before(inner.operation)
    if end == len(tail):
        return
    for region in tail[end].regions:
        for block in region.blocks:
            inside = [op.operation for op in block.operations]
            with ir.InsertionPoint.at_block_begin(block):
                _guard(inside[:-1], inside[-1], condition, None, stays)
    with ir.InsertionPoint(rest[1]):
        _guard(tail[end + 1 :], terminator, condition, None, stays)


def _handed_on(part: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
    """Values that ops make and later ones of the block, or its terminator, use."""
    made = {result for op in part for result in op.results}
    used = (v for later in rest for op in nested(later) for v in op.operands)
    return [v for v in dict.fromkeys(used) if v in made]


def _replace(values: Sequence[Any], by: Sequence[Any], users: Sequence[Any]) -> None:
    new = dict(zip(values, by, strict=True))
    for user in users:
        for op in nested(user):
            for position, value in enumerate(op.operands):
                if value in new:
                    op.operands[position] = new[value]


def zero(type_: Any) -> Any:
    """A zero of a scalar or vector type, created at the insertion point."""
    ir = mlir.ir
    if isinstance(type_, ir.ComplexType):
        part = zero(type_.element_type)
        return ir.Operation.create("complex.create", results=[type_], operands=[part, part]).result
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    value = (
        ir.FloatAttr.get(element, 0.0)
        if isinstance(element, ir.FloatType)
        else ir.IntegerAttr.get(element, 0)
    )
    if element is not type_:
        value = ir.DenseElementsAttr.get_splat(type_, value)
    return mlir.dialect("arith").ConstantOp(type_, value).result
