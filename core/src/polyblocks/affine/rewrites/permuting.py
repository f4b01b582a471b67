"""Arrays with their dimensions in another order."""

from __future__ import annotations

from polyblocks.affine.model import Access, Buffer, Node, walk


def permuted(buffer: Buffer, order: list[int]) -> Buffer:
    """A new allocation whose dimension ``k`` is dimension ``order[k]`` of a buffer."""
    shape = tuple(buffer.shape[d] for d in order)
    return Buffer(shape, buffer.element, "alloc", bytes_per_element=buffer.bytes_per_element)


def reorder(nodes: list[Node], old: Buffer, new: Buffer, order: list[int]) -> None:
    """Let nodes access ``new``, a permutation of ``old``, where they access ``old``."""
    for node in walk(nodes):
        if isinstance(node, Access) and node.buffer is old:
            node.permute(order)
            node.buffer = new
