"""Operations that PyTorch replaces while it traces by others than those of its kernels.

What it puts in their places does not give what its own kernels give, or in another order of
strides. Captured graphs keep the operation, or have what gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)

#: Packets; the modules ``resampling``, ``linear_resampling``, ``resampling_gradients`` and
#: ``losses`` of :mod:`polyblocks_torch.decomp` have them, and their gradients.
_KEPT = (
    *(f"upsample_nearest{dims}d" for dims in (1, 2, 3)),
    *(f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    "multilabel_margin_loss_forward",
)


def _one_hot(x: Tensor, classes: int = -1) -> Tensor:
    """The kernel writes into zeros whose rows lie one after another."""
    return _made_of_others(torch.ops.aten.one_hot.default, x.contiguous(), classes)


def _max_pool1d(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where no gradient is asked for, PyTorch has a kernel of its own for it on CPUs."""
    made = _made_of_others(torch.ops.aten.max_pool1d.default, x, *args, **kwargs)
    asked = x.requires_grad and torch.is_grad_enabled()
    return made if asked or x.device.type != "cpu" else made.contiguous()


def _made_of_others(op: Any, *args: Any, **kwargs: Any) -> Tensor:
    """What PyTorch makes of a composite operation."""
    made: Tensor = op._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    return made


#: Overloads of operations that PyTorch replaces by others, and what is put there instead.
_REPLACED = {
    torch.ops.aten.one_hot.default: _one_hot,
    torch.ops.aten.max_pool1d.default: _max_pool1d,
}


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
    for op, kernel in _REPLACED.items():
        kernels = {key: op.py_kernels[key] for key in _KEYS if key in op.py_kernels}
        op.py_kernels.update(dict.fromkeys(_KEYS, kernel))
        op._dispatch_cache.clear()
        taken.append((op, kernels))
    try:
        yield
    finally:
        for op, kernels in taken:
            for key in _KEYS:
                op.py_kernels.pop(key, None)
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
