"""merge-rare-branches: one branch for all the rare arguments of a loop's functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from polyblocks.attributes import RARE_ATTRIBUTE
from polyblocks.codegen.builder import rarely
from polyblocks.codegen.straight_line import is_read, is_straight_line, is_write
from polyblocks.codegen.walk import nested
from polyblocks.mlir import dialect, ir


@dataclass(frozen=True)
class MergeRareBranchesPass:
    """Compute the common case of everything first, and ask once whether it was.

    Elementary functions branch where a vector has an argument that takes more work. Each branch
    divides a loop's body in parts that cannot be reordered, and what is alive across the code that
    hardly ever runs is kept out of the way of its registers. Here all of the common case is one
    block, which `schedule-vectors` may order; if any branch would have been taken, the whole body
    is computed once more, as it was written.

    For loops that carry no values and whose stores come last; others stay as they are.

    Before::

        %a = scf.if %rare_f { slow f } else { yield %fast_f }
        %b = scf.if %rare_g { slow g of %a } else { yield %fast_g of %a }
        vector.store %b

    After::

        %any = or %rare_f, %rare_g of %fast_f
        %r = scf.if %any { everything as before; yield %b } else { yield %fast_g of %fast_f }
        vector.store %r
    """

    name: ClassVar[str] = "merge-rare-branches"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do."""
        parents = dict.fromkeys(op.parent for op in nested(module.operation) if is_rare_branch(op))
        changed = False
        for loop in (parent.operation for parent in parents):
            if loop.name == "scf.for" and not len(loop.results):
                changed |= _merge(loop.regions[0].blocks[0])
        return changed


def is_rare_branch(op: Any) -> bool:
    """Whether it serves arguments that are hardly ever there."""
    return op.name == "scf.if" and RARE_ATTRIBUTE in op.attributes


def _merge(block: Any) -> bool:
    ops = [op.operation for op in block.operations][:-1]
    branches = [op for op in ops if is_rare_branch(op)]
    if not branches or not all(is_rare_branch(op) or is_straight_line(op) for op in ops):
        return False
    writes = [op for op in ops if is_write(op)]
    rest = [op for op in ops if not is_write(op)]
    if not writes or any(is_read(op) for op in ops[ops.index(writes[0]) :]):
        return False
    if any(_condition(branch) is None for branch in branches):
        return False
    common, rare = _common_case(rest, writes[0])
    inside = set(rest)
    needed = list(
        dict.fromkeys(
            operand for op in writes for operand in op.operands if operand.owner in inside
        )
    )
    changed = [value for value in needed if _depends(value, inside)]
    location = writes[0].location
    with location, ir.InsertionPoint(writes[0]):
        branch = _if_any(rare, [value.type for value in changed])
    for region, values in (
        (branch.regions[0], changed),
        (branch.regions[1], [common[value] for value in changed]),
    ):
        body = region.blocks.append()
        with location, ir.InsertionPoint(body):
            end = ir.Operation.create("scf.yield", operands=values)
        if values is changed:
            for op in rest:
                op.move_before(end)
    results = dict(zip(changed, branch.results, strict=True))
    for op in writes:
        _remap(op, {value: results.get(value, common[value]) for value in needed})
    return True


def _common_case(ops: Sequence[Any], before: Any) -> tuple[dict[Any, Any], list[Any]]:
    """Copies of ``ops`` with no branch taken, placed before an op.

    Returns:
        The values of the copies by those of the originals, and the conditions of the branches.
    """
    common: dict[Any, Any] = {}
    conditions: list[Any] = []
    for op in ops:
        if is_rare_branch(op):
            end = op.regions[1].blocks[0].operations[0].operation
            for result, value in zip(op.results, end.operands, strict=True):
                common[result] = common.get(value, value)
            condition = _condition(op)
            conditions.append(common.get(condition, condition))
        else:
            with ir.InsertionPoint(before):
                copy = op.clone()
            _remap(copy, common)
            common.update(zip(op.results, copy.results, strict=True))
    return common, conditions


def _condition(branch: Any) -> Any | None:
    """The vector condition of a rare branch; None if it has another form."""
    if len(branch.regions[1].blocks[0].operations) != 1:
        return None
    op = branch.operands[0].owner
    while not isinstance(op, ir.Block) and op.name in ("llvm.intr.expect", "llvm.freeze"):
        op = op.operands[0].owner
    if isinstance(op, ir.Block) or op.name != "vector.reduction":
        return None
    return op.operands[0]


def _if_any(conditions: Sequence[Any], types: Sequence[Any]) -> Any:
    """A rare branch on any lane of any condition."""
    by_type: dict[Any, Any] = {}
    for condition in conditions:
        # One function's garbage in the lanes of another's rare arguments decides nothing.
        value = ir.Operation.create(
            "llvm.freeze", results=[condition.type], operands=[condition]
        ).result
        found = by_type.get(condition.type)
        by_type[condition.type] = value if found is None else _or(found, value)
    bit = ir.IntegerType.get_signless(1)
    kind = dialect("vector").CombiningKind.OR
    some = [dialect("vector").ReductionOp(bit, kind, value).result for value in by_type.values()]
    return ir.Operation.create(
        "scf.if",
        results=types,
        operands=[rarely(reduce(_or, some))],
        attributes={RARE_ATTRIBUTE: ir.UnitAttr.get()},
        regions=2,
    )


def _or(left: Any, right: Any) -> Any:
    return ir.Operation.create("arith.ori", results=[left.type], operands=[left, right]).result


def _depends(value: Any, inside: set[Any]) -> bool:
    """Whether a value comes out of a rare branch."""
    waiting, seen = [value], set()
    while waiting:
        op = waiting.pop().owner
        if op in seen or op not in inside:
            continue
        if is_rare_branch(op):
            return True
        seen.add(op)
        waiting.extend(op.operands)
    return False


def _remap(op: Any, values: Mapping[Any, Any]) -> None:
    for i, operand in enumerate(op.operands):
        if operand in values:
            op.operands[i] = values[operand]
