"""Loads that LLVM has put in front of the branch that decides whether their value is used.

An array that nothing has written, or that another thread writes, may be read so: a thread that
does not go where the value is used has not read it as far as the program is concerned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyblocks.simt.program import Step


def needed_where(load: Any) -> tuple[Any, bool] | None:
    """The condition on which the value of a load is used; None if that is not known.

    The value goes to an argument of the next block, which does nothing with it but branch on a
    condition that was known before the load; all uses of the argument are in one of the two blocks
    behind, which comes after no other.

    Args:
        load: an ``llvm.load``.

    Returns:
        the condition, and whether the value is used where it holds or where it does not.
    """
    block = load.block
    to = _single_use(load.results[0])
    if to is None or to.owner.operation.name != "llvm.br" or to.owner.operation.block != block:
        return None
    (after,) = to.owner.operation.successors
    argument = after.arguments[to.operand_number]
    branch = list(after.operations)[-1].operation
    if branch.name != "llvm.cond_br":
        return None
    used_in = [use.owner.operation.block for use in argument.uses]
    choices = [
        wanted
        for wanted, target in zip((True, False), branch.successors, strict=True)
        if used_in and all(user == target for user in used_in)
    ]
    condition = branch.operands[0]
    if len(choices) != 1 or not _is_before(condition, load, after):
        return None
    target = used_in[0]
    return (condition, choices[0]) if _predecessors(target) == 1 else None


def _single_use(value: Any) -> Any:
    uses = list(value.uses)
    return uses[0] if len(uses) == 1 else None


def _is_before(condition: Any, load: Any, after: Any) -> bool:
    """Whether a condition that is known in the block ``after`` is known before the load already."""
    owner = condition.owner
    if not hasattr(owner, "operation"):
        return bool(owner != after)
    if owner.operation.block == after:
        return False
    if owner.operation.block != load.block:
        # It dominates the block, and so the one before it.
        return True
    ops = [op.operation for op in load.block.operations]
    return ops.index(owner.operation) < ops.index(load)


def _predecessors(block: Any) -> int:
    """How many edges lead to a block."""
    ends = (list(each.operations)[-1].operation for each in block.region.blocks)
    return sum(successor == block for end in ends for successor in end.successors)


def where_needed(step: Step, condition: int, wanted: bool) -> Step:
    """The step of a load whose value is used where a register has a value."""

    def run(m: Any, r: list[Any]) -> None:
        m.needed = np.broadcast_to(r[condition] != 0, (m.lanes,)) == wanted
        step(m, r)
        m.needed = None

    return run
