"""How much of the work of nests masks leave."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from polyblocks.affine.expr import Var
from polyblocks.affine.masks.absence import Absence, Number, constants_of
from polyblocks.affine.masks.constraints import Condition, conditions_of
from polyblocks.affine.model import For, Nest, Node, Value, walk

#: Values of each variable that are looked at.
SAMPLES = 8


def share_left(nests: Iterable[Nest]) -> float:
    """The part of all places to which no mask of some nests gives minus infinity, at least.

    By values of the variables at even distances.
    """
    return min((_left_by(nest) for nest in nests), default=1.0)


def _left_by(nest: Nest) -> float:
    conditions = conditions_of(nest.body)
    conditions = {v: c for v, c in conditions.items() if c.if_true or c.if_false}
    if not conditions:
        return 1.0
    constants = constants_of(nest.body)
    if not any(number.is_lowest for number in constants.values()):
        return 1.0
    for loop in walk(nest.body):
        if isinstance(loop, For) and any(v in conditions for n in loop.body for v in n.defines):
            return _left_in(loop.body, conditions, constants)
    return 1.0


def _left_in(
    nodes: list[Node], conditions: dict[Value, Condition], constants: dict[Value, Number]
) -> float:
    mine = {v: conditions[v] for n in nodes for v in n.defines if v in conditions}
    variables: dict[Var, None] = {}
    for condition in mine.values():
        for expr in (*condition.if_true, *condition.if_false):
            variables.update(dict.fromkeys(expr.variables()))
    if not variables or len(variables) > 3 or any(v.value is not None for v in variables):
        return 1.0
    axes = [
        sorted({(v.extent - 1) * k // (SAMPLES - 1) for k in range(SAMPLES)}) for v in variables
    ]
    left = count = 0
    for values in product(*axes):
        at = dict(zip(variables, values, strict=True))
        known = {v: Number(c.holds(at)) for v, c in mine.items()}
        absence = Absence({**constants, **known}, ())
        absence.run(nodes)
        count += 1
        left += not absence.masks
    return max(left, 1) / count
