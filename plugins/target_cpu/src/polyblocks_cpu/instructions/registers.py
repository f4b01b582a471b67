"""Instructions on vectors that fill one register, several, or a part of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.affine.vectors.vector_ops import shuffle
from polyblocks.mlir import ir


def call(name: str, *operands: Any) -> Any:
    """One of LLVM's intrinsics, whose result has the type of the first operand."""
    return invoke(name, operands, [operands[0].type]).result


def invoke(name: str, operands: Sequence[Any], results: Sequence[Any] = ()) -> Any:
    """The operation that calls one of LLVM's intrinsics with results of these types."""
    return ir.Operation.create(
        "llvm.call_intrinsic",
        results=results,
        operands=operands,
        attributes={
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )


def by_registers(width: int, instruction: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The joined results of an instruction on every ``width`` lanes of ``values``.

    Args:
        width: lanes of a register; it divides those of the values, by a power of two.
        instruction: a register of each value -> a register.
        values: vectors of the same number of lanes.
    """
    parts = []
    for first in range(0, values[0].type.shape[0], width):
        lane = list(range(first, first + width))
        parts.append(instruction(*(shuffle(v, v, lane) for v in values)))
    while len(parts) > 1:
        lane = list(range(2 * parts[0].type.shape[0]))
        parts = [shuffle(u, v, lane) for u, v in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def in_a_register(width: int, instruction: Callable[..., Any], values: Sequence[Any]) -> Any:
    """An instruction on vectors of fewer lanes than it takes, which the first ones are then.

    Args:
        width: lanes of a register.
        instruction: a register of each value -> a register.
        values: vectors of the same number of lanes.
    """
    (lanes,) = values[0].type.shape
    wide = [shuffle(v, v, [min(k, lanes - 1) for k in range(width)]) for v in values]
    whole = instruction(*wide)
    return shuffle(whole, whole, list(range(lanes)))
