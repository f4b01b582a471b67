"""Walking over ops without MLIR's callback, whose exceptions lose their type."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any


def nested(op: Any, besides: Container[Any] = ()) -> Iterator[Any]:
    """``op`` and every op inside it, parents first; the caller must not erase ops on the way.

    Those of ``besides`` are left out, with all that is inside them.
    """
    waiting = [op]
    while waiting:
        op = waiting.pop()
        if op in besides:
            continue
        yield op
        if len(op.regions):
            inside = [
                inner.operation
                for region in op.regions
                for block in region.blocks
                for inner in block.operations
            ]
            waiting.extend(reversed(inside))
