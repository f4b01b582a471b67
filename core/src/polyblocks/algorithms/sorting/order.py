"""The order that the comparator of a ``tm_tensor.sort`` describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Order:
    """Elements are sorted by some bits of the first operand, read as one integer.

    Attributes:
        bits: width of the first operand's type.
        shift: bits below this one are not part of the key.
        signed: whether the key is signed.
        descending: whether large keys come first.
    """

    bits: int
    shift: int = 0
    signed: bool = True
    descending: bool = False


def order_of(op: Any) -> Order | None:
    """The order of a ``tm_tensor.sort``; None if its comparator is of another form.

    Forms are ``cmpi slt``, ``sgt``, ``ult`` and ``ugt`` of the first operand's two elements, which
    may both be shifted to the right by a constant before.
    """
    from polyblocks.mlir import dialect, ir

    block = op.regions[0].blocks[0]
    left, right = list(block.arguments)[:2]
    (value,) = block.operations[len(block.operations) - 1].operation.operands
    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "arith.cmpi":
        return None
    compare = value.owner.operation
    predicates = dialect("arith").CmpIPredicate
    known = {
        predicates.slt: (True, False),
        predicates.sgt: (True, True),
        predicates.ult: (False, False),
        predicates.ugt: (False, True),
    }
    direction = known.get(predicates(ir.IntegerAttr(compare.attributes["predicate"]).value))
    sources = [_shifted(operand) for operand in compare.operands]
    if direction is None or sources[0][1] != sources[1][1]:
        return None
    if [source for source, _ in sources] != [left, right]:
        return None
    return Order(left.type.width, sources[0][1], *direction)


def _shifted(value: Any) -> tuple[Any, int]:
    """A value and by how many bits it was shifted to the right, keeping its sign."""
    from polyblocks.mlir import ir

    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "arith.shrsi":
        return value, 0
    source, amount = value.owner.operation.operands
    if isinstance(amount, ir.BlockArgument) or amount.owner.operation.name != "arith.constant":
        return value, 0
    return source, int(ir.IntegerAttr(amount.owner.operation.attributes["value"]).value)
