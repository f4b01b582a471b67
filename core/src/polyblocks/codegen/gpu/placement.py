"""Where the buffers of one iteration of a group live."""

from __future__ import annotations

from polyblocks.affine.model import Alloca, Buffer, For, LoadAt, Store, StoreAt, walk
from polyblocks.codegen.gpu.kernel import Kernel, Place

#: Bytes of a buffer of which every thread of a group may have a copy.
COPY_BYTES = 128


def place_buffers(kernel: Kernel) -> None:
    """Fill ``kernel.places``.

    A buffer of a shared iteration belongs to the thread. One of the whole group is private too if
    all its elements are stored by uniform code, which every thread runs: then every thread has a
    copy, and none waits for another. All others live in workgroup memory.
    """
    kernel.places = {}
    owned = set()
    uniform = list(kernel.uniform())
    for node in uniform:
        if isinstance(node, Alloca):
            owned.add(node.buffer)
    for node in walk(kernel.body):
        if isinstance(node, Alloca) and node.buffer not in owned:
            kernel.places[node.buffer] = Place.PRIVATE
    by_threads = _stored_by_threads(uniform, kernel)
    for buffer in sorted(owned, key=lambda b: b.number):
        copied = buffer not in by_threads and buffer.nbytes <= COPY_BYTES
        private = kernel.group == 1 or copied
        kernel.places[buffer] = Place.PRIVATE if private else Place.WORKGROUP


def _stored_by_threads(uniform: list[object], kernel: Kernel) -> set[Buffer]:
    """Buffers that shared iterations store to, or that are used at run-time indices."""
    found: set[Buffer] = set()
    for node in uniform:
        if isinstance(node, For) and node in kernel.shared:
            for inner in walk([node]):
                if isinstance(inner, (Store, StoreAt)):
                    found.add(inner.buffer)
        elif isinstance(node, (StoreAt, LoadAt)):
            found.add(node.buffer)
    return found
