"""Losses, and gradients of activations, that PyTorch's tables or torch-mlir get wrong."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import fail, require

aten = torch.ops.aten

#: ``Reduction`` of PyTorch's losses.
_NONE, _MEAN = 0, 1

_OF_PYTORCH = {
    op: decomposition_table[op]
    for op in (aten.binary_cross_entropy.default, aten.smooth_l1_loss.default)
}


# These two make no checks in PyTorch's table.


@decomposition(aten.binary_cross_entropy.default)
def binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN
) -> Tensor:
    for value, name in ((x, "input"), (target, "target")):
        inside = (value >= 0) & (value <= 1)
        require(inside, f"all elements of {name} should be between 0 and 1")
    made: Tensor = _OF_PYTORCH[aten.binary_cross_entropy.default](x, target, weight, reduction)
    return made


@decomposition(aten.smooth_l1_loss.default)
def smooth_l1_loss(x: Tensor, target: Tensor, reduction: int = _MEAN, beta: float = 1.0) -> Tensor:
    if beta < 0:
        fail(x, "smooth_l1_loss does not support negative values for beta.")
    made: Tensor = _OF_PYTORCH[aten.smooth_l1_loss.default](x, target, reduction, beta)
    return made


@decomposition(aten.rrelu_with_noise_backward.default)
def rrelu_with_noise_backward(
    grad: Tensor,
    x: Tensor,
    noise: Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    if training:
        return grad * noise
    return torch.where(x > 0, grad, grad * ((lower + upper) / 2))


def _targets(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of rows of classes that end at -1: a class each, whether it counts, and which are named.

    Args:
        target: [rows, classes].

    Returns:
        Classes, 0 where none counts; booleans of that shape; booleans by class.
    """
    counts = (target < 0).to(torch.int64).cumsum(1) == 0
    place = torch.where(counts, target, 0)
    classes = torch.arange(target.shape[1], device=target.device)
    named = ((place.unsqueeze(2) == classes) & counts.unsqueeze(2)).any(1)
    return place, counts, named


def _margins(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """How far each class is within the margin of each target, [rows, targets, classes]."""
    place, counts, named = _targets(target)
    margins = 1.0 - x.gather(1, place).unsqueeze(2) + x.unsqueeze(1)
    meant = counts.unsqueeze(2) & ~named.unsqueeze(1)
    return margins, meant & (margins > 0), place, named


@decomposition(aten.multilabel_margin_loss_forward.default)
def multilabel_margin_loss_forward(
    x: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    rows = x if x.dim() == 2 else x.reshape(1, -1)
    margins, counted, _, named = _margins(rows, target.reshape(rows.shape))
    loss = torch.where(counted, margins, 0).sum((1, 2)) / rows.shape[1]
    if reduction != _NONE:
        loss = loss.mean() if reduction == _MEAN else loss.sum()
    elif x.dim() < 2:
        loss = loss.reshape([])
    return loss, named.to(x.dtype).reshape(target.shape)


@decomposition(aten.multilabel_margin_loss_backward.default)
def multilabel_margin_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    rows = x if x.dim() == 2 else x.reshape(1, -1)
    _, counted, place, _ = _margins(rows, target.reshape(rows.shape))
    steps = counted.to(x.dtype)
    of_targets = torch.zeros_like(rows).scatter_add(1, place, steps.sum(2))
    found = steps.sum(1) - of_targets
    scale = rows.shape[1] * (rows.shape[0] if reduction == _MEAN else 1)
    return (found * grad.reshape(-1, 1) / scale).reshape(x.shape)


@decomposition(aten.soft_margin_loss_backward.default)
def soft_margin_loss_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    # PyTorch's table has sigmoid(t x) - 1, in which everything cancels where the loss is small.
    result = -(grad * target * torch.sigmoid(-(target * x)))
    return result / x.numel() if reduction == _MEAN else result


@decomposition(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """A row has one element that is not 0, which comparisons find: nothing is stored at its place.

    Eager mode and PyTorch's table store it among zeros.
    """
    dim = 0 if x.dim() < 2 else 1
    classes = x.shape[dim]
    if x.dim() == 1 and target.dim():
        target = target[0]
    if reduction == _MEAN:
        grad = grad / total_weight
    counts = target != ignore_index
    place = torch.where(counts, target, 0)
    require((place >= 0) & (place < classes), "Target is out of bounds.", IndexError)
    shape = [1] * x.dim()
    shape[dim] = classes
    if weight is not None:
        grad = grad * weight.index_select(0, place.reshape(-1)).reshape(place.shape)
    value = torch.where(counts, -grad, 0.0).unsqueeze(dim)
    named = torch.arange(classes, device=x.device).reshape(shape) == place.unsqueeze(dim)
    return torch.where(named, value, 0.0).to(x.dtype)
