"""How many registers a thread of a kernel needs, and how many blocks then run at once."""

from __future__ import annotations

from collections.abc import Iterable

from polyblocks.affine.cost.block_cost import RESERVE
from polyblocks.affine.model import For, Node, Value
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel
from polyblocks.codegen.gpu.mapping.kernel import Kernel, Place
from polyblocks.codegen.gpu.matrix.kernel import MatrixKernel
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor

#: Registers of a thread of a contraction besides elements.
ADDRESSES = 32


def registers(kernel: Kernel) -> int:
    """32-bit registers that a thread needs, about, so that nothing waits in memory for room."""
    if isinstance(kernel, MatrixKernel):
        return kernel.words + ADDRESSES
    if isinstance(kernel, TiledKernel):
        return _of_contraction(kernel)
    private = sum(-(-b.nbytes // 4) for b, p in kernel.places.items() if p is Place.PRIVATE)
    return RESERVE + kernel.held + private + kernel.live * kernel.width


def live_registers(nodes: list[Node]) -> int:
    """The most 32-bit registers that values take at once while these nodes run."""
    return _peak(nodes, set())[0]


def resident_blocks(kernel: Kernel, chip: Multiprocessor, units: int) -> int:
    """Blocks that a multiprocessor holds at once; no more than the grid has for each of them.

    Args:
        kernel: with places for its buffers.
        chip: what runs it.
        units: multiprocessors of the chip.
    """
    found = occupancy(chip, registers(kernel), kernel.shared_bytes(), kernel.threads)
    return max(1, min(found.blocks, -(-kernel.blocks // units)))


def _of_contraction(kernel: TiledKernel) -> int:
    """The elements of a thread, what it copies for a step, a row and a column of operands."""
    r, c = kernel.of_thread
    results = _words(kernel.parts.reduction.loops[0].inits)
    copied = sum(
        -(-kernel.depth * kernel.tile[o.side] // kernel.threads)
        * max(1, o.load.buffer.bytes_per_element // 4)
        for o in kernel.parts.operands
    )
    return r * c * results + copied + r + c + ADDRESSES


def _peak(nodes: list[Node], after: set[Value]) -> tuple[int, set[Value]]:
    """The most words of values that live at once, and the values that live before the nodes."""
    live = set(after)
    most = _words(live)
    for node in reversed(nodes):
        live -= set(node.defines)
        if isinstance(node, For):
            inside, needed = _peak(node.body, live | set(node.yields))
            most = max(most, inside)
            live |= needed - set(node.arguments)
            live |= set(node.inits)
        else:
            live |= {v for v in node.uses if v.external is None}
        most = max(most, _words(live))
    return most, live


def _words(values: Iterable[Value]) -> int:
    """Registers of values; indices and 64-bit types take two."""
    return sum(2 if "64" in str(v.type) or str(v.type) == "index" else 1 for v in values)
