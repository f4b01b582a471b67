"""What all groups of a block read: copied to shared memory once, when the block begins."""

from __future__ import annotations

from polyblocks.affine.access import is_whole
from polyblocks.affine.model import (
    Buffer,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Store,
    walk,
)
from polyblocks.codegen.gpu.mapping.kernel import Kernel

#: Bytes of all copies of a block together, at most.
BYTES = 32 << 10


def same_for_all(kernel: Kernel) -> list[Buffer]:
    """Buffers of the program of which every group reads all elements, whatever its iteration is."""
    nodes = list(walk(kernel.body))
    written = {
        n.buffer.base for n in nodes if isinstance(n, (Store, IndirectStore, IndirectAtomic))
    }
    found: dict[Buffer, bool] = {}
    for node in nodes:
        if not isinstance(node, (Load, IndirectLoad)) or node.buffer in kernel.places:
            continue
        whole = isinstance(node, Load) and _reads_all(node, kernel)
        found[node.buffer] = found.get(node.buffer, True) and whole
    return [
        b
        for b, whole in found.items()
        if whole and b.base is b and b not in written and is_whole(b)
    ]


def _reads_all(node: Load, kernel: Kernel) -> bool:
    """Whether the elements are the same in all outer iterations, and many are read in each."""
    variables = {v for e in node.index for v in e.variables()}
    if not variables or variables & set(kernel.order) or any(v.value for v in variables):
        return False
    ends = zip((e.range() for e in node.index), node.buffer.shape, strict=True)
    return all((low, high) == (0, n - 1) for (low, high), n in ends)
