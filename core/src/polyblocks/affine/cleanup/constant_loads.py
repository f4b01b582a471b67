"""Loads from constant buffers as constants."""

from __future__ import annotations

from polyblocks.affine.model import (
    Load,
    Op,
)


def fold_constant_load(load: Load) -> Op | None:
    """The ``arith.constant`` that a load from a constant buffer is, if its index is constant."""
    buffer = load.buffer
    if buffer.constant is None:
        return None
    equal = all(v == buffer.constant[0] for v in buffer.constant[1:])
    if not equal and not all(e.is_constant for e in load.index):
        return None
    position = 0
    if not equal:
        for expr, extent in zip(load.index, buffer.shape, strict=True):
            position = position * extent + expr.const
    if not buffer.constant:
        return None
    return Op("arith.constant", [], {"value": buffer.constant[position]}, [load.result])
