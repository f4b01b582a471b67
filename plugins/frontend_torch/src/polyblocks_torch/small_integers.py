"""Conversions of floats to integers of 8 and 16 bits, as torch-mlir makes them.

It makes them in one step, which is not defined for what the type with a sign does not hold:
unsigned ones from 128 on among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks import mlir

#: Operations that make integers of floats.
CONVERSIONS = frozenset({"arith.fptosi", "arith.fptoui"})


def convert_in_two_steps(conversions: Sequence[Any]) -> None:
    """Let floats become small integers by way of 32 bits, whose lower ones are taken, in place.

    That is what eager mode does: ``-1.5`` becomes the byte 255, and 300 the byte 44.

    Args:
        conversions: all :data:`CONVERSIONS` of a module.
    """
    ir = mlir.ir
    for op in conversions:
        type_ = op.results[0].type
        if not isinstance(type_, ir.IntegerType) or not 1 < type_.width < 32:
            continue
        with ir.InsertionPoint(op), op.location:
            wide = ir.Operation.create(
                "arith.fptosi", results=[ir.IntegerType.get_signless(32)], operands=[op.operands[0]]
            )
            narrow = ir.Operation.create(
                "arith.trunci", results=[op.results[0].type], operands=[wide.results[0]]
            )
        op.results[0].replace_all_uses_with(narrow.results[0])
        op.erase()
