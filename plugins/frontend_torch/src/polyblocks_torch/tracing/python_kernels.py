"""Operations that PyTorch replaces while it traces by others than those of its kernels.

PyTorch's replacements give other results than its kernels, or another order of strides.
Captured graphs keep the operation, or an equivalent of the kernel.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table

from polyblocks_torch.decomp.checks import linalg_check_errors
from polyblocks_torch.importing.checks import require

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)

#: Packets; the modules ``resampling``, ``linear_resampling``, ``byte_resampling``,
#: ``resampling_gradients`` and ``losses`` of :mod:`polyblocks_torch.decomp` have them, and their
#: gradients.
_KEPT = (
    *(f"upsample_nearest{dims}d" for dims in (1, 2, 3)),
    *(f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    "multilabel_margin_loss_forward",
)


def _one_hot(x: Tensor, classes: int = -1) -> Tensor:
    """The kernel writes into zeros whose rows lie one after another, and checks the classes."""
    if classes >= 0:
        require(x >= 0, "Class values must be non-negative.")
        require(x < classes, "Class values must be smaller than num_classes.")
    return _made_of_others(torch.ops.aten.one_hot.default, x.contiguous(), classes)


def _max_pool1d(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where no gradient is asked for, PyTorch has a kernel of its own for it on CPUs."""
    made = _made_of_others(torch.ops.aten.max_pool1d.default, x, *args, **kwargs)
    asked = x.requires_grad and torch.is_grad_enabled()
    return made if asked or x.device.type != "cpu" else made.contiguous()


def _made_of_others(op: Any, *args: Any, **kwargs: Any) -> Tensor:
    """PyTorch's decomposition of a composite operation."""
    made: Tensor = op._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    return made


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """Filled where a mask says so: PyTorch's gradient of the value counts different indices."""
    op = torch.ops.aten.index_fill.int_Tensor
    if not torch.is_grad_enabled() or not (x.requires_grad or value.requires_grad):
        with torch._C._AutoDispatchBelowAutograd():
            made: Tensor = op(x, dim, index, value)
            return made
    shape = [1] * x.dim()
    if shape:
        shape[dim] = x.shape[dim]
    filled = torch.zeros(math.prod(shape), dtype=torch.bool, device=x.device)
    filled = filled.index_fill(0, index, True).reshape(shape)
    return torch.where(filled, value.to(x.dtype), x)


def _cov(
    x: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Sums are divided by a number of observations, or by a sum of weights that is checked.

    Of weights with too few degrees of freedom eager mode warns, too; results are the same. Too few
    observations, and what is refused, are left to what PyTorch makes of it.
    """
    rows = x.reshape(1, -1) if x.dim() < 2 else x
    kinds = fweights is None or fweights.dtype in _INTEGERS
    kinds &= aweights is None or aweights.is_floating_point()
    weights = [w for w in (fweights, aweights) if w is not None]
    simple = x.dim() <= 2 and x.dtype != torch.bool and kinds
    simple &= all(w.dim() <= 1 and w.numel() == rows.shape[1] for w in weights)
    if not simple or rows.shape[1] <= (0 if weights else correction):
        return _made_of_others(
            torch.ops.aten.cov.default,
            x,
            correction=correction,
            fweights=fweights,
            aweights=aweights,
        )
    if weights:
        return _weighted_cov(rows, correction, fweights, aweights)
    count = rows.shape[1]
    rows = rows - (rows.sum(1) / count).unsqueeze(1)
    return (rows.mm(rows.t().conj()) / (count - correction)).squeeze()


def _weighted_cov(
    rows: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None
) -> Tensor:
    """Of rows [variables, observations] and weights [observations], one or both of the two."""
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None:
            require(weights >= 0, f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        w = aweights if fweights is None else fweights
        assert w is not None
    else:
        w = fweights * aweights
    total = w.sum()
    require(total != 0, "cov(): weights sum to zero, can't be normalized")
    rows = rows - ((rows * w).sum(1) / total).unsqueeze(1)
    lost: Tensor | int = correction
    if aweights is not None and correction:
        lost = correction * (w * aweights).sum() / total
    freedom = total - lost
    # A NaN stays one.
    freedom = torch.where(freedom <= 0, torch.zeros_like(freedom), freedom)
    return (rows.mm((rows * w).t().conj()) / freedom).squeeze()


def _combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Which elements are combined is known without looking at them."""
    if x.dim() != 1 or r < 1:
        return _made_of_others(torch.ops.aten.combinations.default, x, r, with_replacement)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(range(x.shape[0]), r))
    if not chosen:
        return x.new_empty((0, r))
    places = torch.tensor(chosen, device=x.device)
    return x.index_select(0, places.reshape(-1)).reshape(places.shape)


#: Overloads of operations that PyTorch replaces by others, and what is put there instead.
_REPLACED: dict[Any, Callable[..., Any]] = {
    # It would become an effect in an order with others, which a program does not have.
    torch.ops.aten._linalg_check_errors.default: linalg_check_errors,
    torch.ops.aten.one_hot.default: _one_hot,
    torch.ops.aten.max_pool1d.default: _max_pool1d,
    torch.ops.aten.index_fill.int_Tensor: _index_fill,
}

#: Operations whose decomposition reads data without need -> one that does not.
_WITHOUT_LOOKING: dict[Any, Callable[..., Tensor]] = {
    torch.ops.aten.cov.default: _cov,
    torch.ops.aten.combinations.default: _combinations,
}


def _sizes_of_windows(grad: Tensor, input_sizes: list[int], *_: Any) -> Tensor:
    return grad.new_empty(input_sizes)


#: Operations that PyTorch runs step by step to know what their results look like -> what these look
#: like. The steps of ``istft`` are four additions for every element of a window.
_SHAPES: dict[Any, Callable[..., Tensor]] = {
    torch.ops.aten.unfold_backward.default: _sizes_of_windows,
}


_thread = threading.local()


@contextmanager
def made_without_looking() -> Iterator[None]:
    """Let this thread trace operations that PyTorch makes of looks at data, but need none.

    Results of tensors without data come without the steps to them.
    """
    _install()
    before = getattr(_thread, "without_looking", False)
    _thread.without_looking = True
    try:
        yield
    finally:
        _thread.without_looking = before


@functools.cache
def _install() -> None:
    """Ask in the operations whether they look; they stay what they are everywhere else."""
    for op, kernel in _WITHOUT_LOOKING.items():
        op.py_kernels.update(dict.fromkeys(_KEYS, _asking(kernel, partial(_made_of_others, op))))
        op._dispatch_cache.clear()
    for op, shapes in _SHAPES.items():
        original = decomposition_table[op]
        # Tensors without data look it up there, by the name of the function.
        decomposition_table[op] = functools.wraps(original)(_asking(shapes, original))


def _asking(kernel: Callable[..., Tensor], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        wanted = getattr(_thread, "without_looking", False)
        return kernel(*args, **kwargs) if wanted else original(*args, **kwargs)

    return run


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
        # One that is no composite has kernels below autograd, which stay.
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), _KEYS[1].name)
        op.py_kernels.update(dict.fromkeys(_KEYS if composite else _KEYS[:1], kernel))
        op._dispatch_cache.clear()
        taken.append((op, kernels))
    try:
        with made_without_looking():
            yield
    finally:
        for op, kernels in taken:
            for key in _KEYS:
                op.py_kernels.pop(key, None)
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
