"""Conditions that have one outcome within the bounds of the loops around them."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr
from polyblocks.affine.masks.constraints import Condition
from polyblocks.affine.model import For, Node, Op, Value
from polyblocks.affine.ops import constant


def decide_conditions(
    nodes: list[Node], conditions: dict[Value, Condition], around: tuple[For, ...] = ()
) -> int:
    """Make constants of conditions with one outcome, in place; returns how many.

    Args:
        nodes: the code.
        conditions: the comparisons of affine integers in it.
        around: loops around it.
    """
    count = 0
    for position, node in enumerate(nodes):
        if isinstance(node, For):
            count += decide_conditions(node.body, conditions, (*around, node))
        elif isinstance(node, Op) and len(node.results) == 1 and node.results[0] in conditions:
            (result,) = node.results
            outcome = _outcome(conditions[result], around)
            if outcome is not None:
                nodes[position] = constant(outcome, result.type, node.location, result=result)
                count += 1
    return count


def _outcome(condition: Condition, around: Sequence[For]) -> bool | None:
    for outcome in (True, False):
        needed = condition.needed_for(outcome)
        if needed and all(_never_negative(number, around) for number in needed):
            return outcome
    return None


def _never_negative(number: Expr, around: Sequence[For]) -> bool:
    """Whether the least value within bounds is no negative number."""
    if number.tight_range()[0] >= 0:
        return True
    for position in range(len(around) - 1, -1, -1):
        loop = around[position]
        factor = number.coefficient(loop.var)
        if not factor:
            continue
        # The first iteration has the least value, or the last one.
        ends = loop.lower if factor > 0 else [end - 1 for end in loop.upper]
        if any(_never_negative(number.substitute({loop.var: e}), around[:position]) for e in ends):
            return True
    return False
