"""Operations that captured graphs keep, which PyTorch would replace while it traces.

What it puts in their places, written in Python, does not give what its own kernels give.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._C import DispatchKey

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)

#: Packets; :mod:`polyblocks_torch.decomp.resampling` and ``losses`` have them.
_KEPT = (
    *(f"upsample_nearest{dims}d" for dims in (1, 2, 3)),
    *(f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)),
    "multilabel_margin_loss_forward",
)


@contextmanager
def operations_kept() -> Iterator[None]:
    """Let what is traced inside have these operations."""
    taken = []
    for name in _KEPT:
        packet = getattr(torch.ops.aten, name)
        for overload in {"default", "vec"} & set(packet.overloads()):
            op = getattr(packet, overload)
            kernels = {key: op.py_kernels.pop(key) for key in _KEYS if key in op.py_kernels}
            if kernels:
                op._dispatch_cache.clear()
                taken.append((op, kernels))
    try:
        yield
    finally:
        for op, kernels in taken:
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
