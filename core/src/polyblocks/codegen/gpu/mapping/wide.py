"""Wide accesses: a thread does several neighbouring iterations, with one access for all of them."""

from __future__ import annotations

from polyblocks.affine.access import address, is_whole
from polyblocks.affine.model import Buffer, Index, Load, Op, Store
from polyblocks.codegen.gpu.mapping.kernel import Kernel
from polyblocks.target import Multiprocessor

#: Types of the elements that vectors are made of.
_ELEMENTS = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64")


def widest(kernel: Kernel, chip: Multiprocessor) -> int:
    """Iterations of a kernel of single threads that one access can be for; 1 if none can.

    All accesses must be of neighbours, or of one element for all, and begin at multiples of the
    width where the buffers do.
    """
    if kernel.group != 1 or not kernel.order:
        return 1
    if not all(isinstance(n, (Op, Index, Load, Store)) for n in kernel.body):
        return 1
    moved = wide_accesses(kernel)
    if not moved:
        return 1
    if any(str(n.buffer.element) not in _ELEMENTS for n in moved):
        return 1
    width = chip.access_bits // 8 // max(n.buffer.bytes_per_element for n in moved)
    if width < 2 or kernel.order[-1].extent % width:
        return 1
    last = kernel.order[-1]
    for node in (n for n in kernel.body if isinstance(n, (Load, Store))):
        if isinstance(node, Load) and node.where:
            return 1
        if not is_whole(node.buffer) or node.buffer in kernel.places:
            return 1
        place = address(node.buffer, node.index)
        factor = place.coefficient(last)
        if factor == 0 and isinstance(node, Load):
            continue
        others = [c for atom, c in place.terms if atom is not last]
        if factor != 1 or place.const % width or any(c % width for c in others):
            return 1
    return width


def wide_accesses(kernel: Kernel) -> list[Load | Store]:
    """The accesses that are of neighbouring elements in neighbouring iterations."""
    last = kernel.order[-1]
    return [
        n
        for n in kernel.body
        if isinstance(n, (Load, Store)) and address(n.buffer, n.index).coefficient(last) == 1
    ]


def wide_buffers(kernel: Kernel) -> list[Buffer]:
    """The buffers that must begin at a multiple of the width for it."""
    return list(dict.fromkeys(n.buffer for n in wide_accesses(kernel)))
