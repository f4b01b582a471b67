"""Loops and branches around whole nests: where they are, and what nests in them need of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polyblocks.affine.model import Access, Nest, walk
from polyblocks.attributes import REGION_ATTRIBUTE
from polyblocks.mlir import ir

#: Those that run their body again and again.
LOOPS = ("affine.for", "scf.for", "scf.while")


def nested_regions(block: Any) -> Iterator[Any]:
    """The loops and branches around nests in a block, outer before inner."""
    for op in block.operations:
        op = op.operation
        if REGION_ATTRIBUTE in op.attributes:
            yield op
            for region in op.regions:
                for inner in region.blocks:
                    yield from nested_regions(inner)


def stands_before(nest: Nest, place: Nest) -> bool:
    """Whether all that ``nest`` takes from elsewhere is there already where ``place`` stands.

    That are scalars computed between nests, and views that begin where such a scalar says.
    """
    needed: list[Any] = []
    for node in walk(nest.body):
        needed.extend(v.external for v in node.uses if v.external is not None)
        if isinstance(node, Access):
            buffer = node.buffer
            while buffer.value is None and buffer.viewed is not None:
                buffer = buffer.viewed
            if buffer.value is not None:
                needed.append(buffer.value)
    anchor = place.source[0] if place.source else None
    for value in dict.fromkeys(needed):
        owner = value.owner
        if isinstance(owner, ir.Block):
            continue
        made = owner.operation
        if anchor is None:
            if made.name not in ("memref.alloc", "memref.get_global"):
                return False
        elif made.block == anchor.block and not made.is_before_in_block(anchor):
            return False
    return True
