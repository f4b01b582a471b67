"""Wide accesses: a thread does several neighbouring iterations, with one access for all of them."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.access import address, is_whole
from polyblocks.affine.model import Buffer, Index, Load, Op, Store
from polyblocks.codegen.gpu.kernel import Kernel
from polyblocks.target import Multiprocessor

#: Bytes of the elements that vectors are made of, by type.
_BYTES = {
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
}


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
    sizes = [_BYTES.get(str(n.buffer.element), 0) for n in moved]
    if not all(sizes):
        return 1
    width = chip.access_bits // 8 // max(sizes)
    if width < 2 or kernel.order[-1].extent % width:
        return 1
    last = kernel.order[-1]
    for node in (n for n in kernel.body if isinstance(n, (Load, Store))):
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


def bytes_of(element: Any, width: int) -> int:
    """Bytes of an access of so many elements."""
    return _BYTES[str(element)] * width
