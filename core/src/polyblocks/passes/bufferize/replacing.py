"""Operations on buffers that become loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.passes.tensor.control_flow import besides_bodies


def replace_each(module: Any, name: str, write: Callable[[Any], None]) -> bool:
    """Replace operations without results by what is written in their places.

    Args:
        module: changed in place.
        name: of the operations.
        write: writes what replaces one, at the insertion point.

    Returns:
        Whether there were any.
    """
    from polyblocks.mlir import ir

    found = [op for op in besides_bodies(module) if op.name == name and not len(op.results)]
    with module.context:
        for op in found:
            with op.location, ir.InsertionPoint(op):
                write(op)
            op.erase()
    return bool(found)
