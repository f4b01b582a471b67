"""Divisions by a number that a loop does not change, as multiplications by its reciprocal."""

from __future__ import annotations

from polyblocks.affine.cleanup.invariants import invariants
from polyblocks.affine.element import F32, F64, dtype_of
from polyblocks.affine.model import For, Node, Op, Value
from polyblocks.affine.ops import Floats, Ops, has_flag

#: For each type the exponents (of two) between which a number and its reciprocal are normal, and
#: by how much others are moved first.
RANGES = {F32: (-126, 126, 64), F64: (-1022, 1022, 512)}


def invert_divisors(shell: list[For]) -> tuple[list[Node], int]:
    """Let the innermost of perfectly nested loops multiply, in place.

    Args:
        shell: the loops, from the outside in; what does not change in them leaves them.

    Returns:
        the code in front of all of them, and the number of divisions that it replaces.
    """
    loop = shell[-1]
    taken, kept = _invariants(shell)
    varying = {r for n in kept for r in n.defines} | set(loop.arguments)
    divisions = [n for n in kept if isinstance(n, Op) and is_division(n)]
    divisions = [n for n in divisions if n.operands[1] not in varying]
    if not divisions:
        return [], 0
    front = list(taken)
    known: dict[Value, tuple[Value, Value]] = {}
    body: list[Node] = []
    for node in kept:
        if not isinstance(node, Op) or node not in divisions:
            body.append(node)
            continue
        x, d = node.operands
        if d not in known:
            known[d] = _invert(d, front)
        scale, reciprocal = known[d]
        # Without flags: rearranged, the factors would overflow again.
        moved = Ops(body, node.location).op("arith.mulf", [x, scale])
        body.append(Op("arith.mulf", [moved, reciprocal], {}, node.results, node.location))
    loop.body = body
    return front, len(divisions)


def is_division(op: Op) -> bool:
    """Whether an operation is a division that may be rearranged."""
    reassociates = op.name == "arith.divf" and has_flag(op, "reassoc")
    return reassociates and dtype_of(op.results[0].type) in RANGES


def _invariants(shell: list[For]) -> tuple[list[Node], list[Node]]:
    """The nodes in the innermost of these loops that depend on none of them, and the others."""
    inner = shell[-1]
    taken, kept = invariants(inner)
    for loop in reversed(shell[:-1]):
        taken, inside = invariants(For(loop.var, taken, lower=loop.lower, upper=loop.upper))
        kept = [*inside, *kept]
    return taken, kept


def _invert(d: Value, front: list[Node]) -> tuple[Value, Value]:
    """The scale and the reciprocal of the scaled divisor; their operations go to ``front``."""
    low, high, shift = RANGES[dtype_of(d.type)]
    ops = Ops(front)

    def constant(number: float) -> Value:
        return ops.constant(number, d.type)

    size = ops.op("math.absf", [d])
    small = ops.compare(Floats.LESS, size, constant(2.0**low))
    large = ops.compare(Floats.GREATER, size, constant(2.0**high))
    one = constant(1.0)
    scale = ops.select(large, constant(2.0**-shift), one)
    scale = ops.select(small, constant(2.0**shift), scale)
    reciprocal = ops.op("arith.divf", [one, ops.op("arith.mulf", [d, scale])])
    return scale, reciprocal
