"""Operations that PyTorch replaces while it traces by others than those of its kernels.

What it puts in their places does not give what its own kernels give, or in another order of
strides. Captured graphs keep the operation, or have what gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

from polyblocks_torch.decomp.linear_resampling import LINEAR, resample_linearly

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)

#: Packets; :mod:`polyblocks_torch.decomp.resampling` and ``losses`` have them.
_KEPT = (
    *(f"upsample_nearest{dims}d" for dims in (1, 2, 3)),
    *(f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)),
    "multilabel_margin_loss_forward",
)

#: Packets whose kernels for bytes compute with fixed points, which nothing here does.
_KEPT_OF_BYTES = ("upsample_bilinear2d", "upsample_bicubic2d")


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
    """Let what is traced inside have these operations, and linear weights as kernels have them."""
    taken = []
    for name in dict.fromkeys((*_KEPT, *LINEAR, *_KEPT_OF_BYTES)):
        packet = getattr(torch.ops.aten, name)
        for overload in {"default", "vec"} & set(packet.overloads()):
            op = getattr(packet, overload)
            kernels = {key: op.py_kernels.pop(key) for key in _KEYS if key in op.py_kernels}
            if kernels:
                op._dispatch_cache.clear()
                taken.append((op, kernels))
            for key, kernel in kernels.items():
                if name in LINEAR:
                    op.py_kernels[key] = resample_linearly
                if name in _KEPT_OF_BYTES:
                    op.py_kernels[key] = _but_for_bytes(packet, op.py_kernels.get(key, kernel))
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


def _but_for_bytes(packet: Any, kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A kernel that leaves an operation on bytes what it is."""

    def run(
        x: Tensor,
        output_size: Sequence[int] | None,
        align_corners: bool,
        *scales: Any,
        **named: Any,
    ) -> Tensor:
        if x.dtype is not torch.uint8:
            return kernel(x, output_size, align_corners, *scales, **named)
        factors = scales[0] if scales else named.get("scale_factors")
        if output_size is None:
            assert factors is not None, "a resize has a size or scales"
            pairs = zip(x.shape[2:], factors, strict=True)
            output_size = [int(extent * factor) for extent, factor in pairs]
        given = list(factors) if isinstance(factors, (list, tuple)) else list(scales)
        with torch._C._AutoDispatchBelowAutograd():
            made: Tensor = packet.default(x, output_size, align_corners, *given, **named)
        return made

    return run
