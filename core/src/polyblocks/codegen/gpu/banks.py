"""Rows of buffers in workgroup memory, padded so that a warp finds every bank free."""

from __future__ import annotations

from math import gcd

from polyblocks.affine.access import stride_along
from polyblocks.affine.model import Buffer, Load, Store
from polyblocks.codegen.gpu.kernel import Kernel, Place

#: Iterations that may be counted for each one that is done.
MOST_IDLE = 1.35


def padded_shape(kernel: Kernel, buffer: Buffer, banks: int = 32) -> list[int]:
    """The shape of a workgroup buffer: its last dimension is one longer where that helps.

    It does if neighbouring threads walk along another dimension than the last one, and rows begin
    in a few of the banks only.
    """
    shape = list(buffer.shape)
    if len(shape) < 2 or kernel.places.get(buffer) is not Place.WORKGROUP:
        return shape
    if conflicts(kernel, buffer, shape, banks) > conflicts(
        kernel, buffer, [*shape[:-1], shape[-1] + 1], banks
    ):
        shape[-1] += 1
    return shape


def conflicts(kernel: Kernel, buffer: Buffer, shape: list[int], banks: int = 32) -> int:
    """Turns that the worst access of a warp takes, with rows as long as ``shape`` says."""
    probe = Buffer(
        tuple(shape), buffer.element, buffer.kind, bytes_per_element=buffer.bytes_per_element
    )
    words = max(buffer.bytes_per_element // 4, 1)
    worst = 1
    for shared in kernel.shared.values():
        for node in shared.body:
            if not isinstance(node, (Load, Store)) or node.buffer is not buffer:
                continue
            fastest = next((v for v in reversed(shared.order) if v.extent > 1), None)
            stride = None if fastest is None else stride_along(probe, node.index, fastest)
            if stride:
                assert fastest is not None
                worst = max(worst, min(gcd(stride * words, banks), fastest.extent))
    return worst


def pitch_rows(kernel: Kernel) -> None:
    """Let threads step over the ends of rows as memory does.

    If a loop's rows are shorter than those of the buffers in workgroup memory that it walks, a warp
    at the end of a row would find the beginning of the next one in banks that it already uses. So
    the iterations are counted with rows as long as the buffer's, where not too many are idle then.
    """
    for shared in kernel.shared.values():
        shared.pitch = 0
        if shared.combiners or len(shared.order) < 2:
            continue
        accesses = [n for n in shared.body if isinstance(n, (Load, Store))]
        if any(kernel.places.get(n.buffer) is Place.OWN for n in accesses):
            continue
        last = shared.order[-1]
        rows = {
            padded_shape(kernel, n.buffer)[-1]
            for n in accesses
            if kernel.places.get(n.buffer) is Place.WORKGROUP
            and len(n.buffer.shape) > 1
            and n.index[-1].coefficient(last) == 1
        }
        longer = [row for row in rows if last.extent < row <= last.extent * MOST_IDLE]
        if longer and last.extent % kernel.warp:
            shared.pitch = max(longer)
