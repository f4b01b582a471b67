"""Rows of buffers in workgroup memory, padded so that a warp finds every bank free."""

from __future__ import annotations

from math import gcd

from polyblocks.affine.access import stride_along
from polyblocks.affine.model import Buffer, Load, Store
from polyblocks.codegen.gpu.kernel import Kernel, Place


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
