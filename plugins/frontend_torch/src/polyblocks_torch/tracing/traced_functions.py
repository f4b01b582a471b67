"""PyTorch's functions that branch on data, as Dynamo sees them, written without such a branch.

``gaussian_nll_loss`` raises an error for a negative variance; here that is a check of the graph.
``linalg.lstsq`` gives residuals only of matrices of full rank; the driver ``gels`` takes all for
such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from polyblocks_torch.importing.checks import described

_NEGATIVE_VARIANCE = described("var has negative entry/entries", ValueError)
_NOT_OF_FULL_RANK = described(
    "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix "
    "does not have full rank",
    torch.linalg.LinAlgError,
)


def instead_of(function: Any, keywords: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function that is traced instead of one of PyTorch; None for that one itself.

    Args:
        function: any.
        keywords: Dynamo's variables of the arguments that have names.
    """
    if function is F.gaussian_nll_loss:
        return _gaussian_nll_loss
    if function is torch.linalg.lstsq and "driver" in keywords and "out" not in keywords:
        driver = keywords["driver"]
        if driver.is_python_constant() and driver.as_python_constant() == "gels":
            return _lstsq
    return None


def _gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``torch.nn.functional.gaussian_nll_loss``, whose check of ``var`` is part of the graph."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    else:
        torch._assert_async(~(var < 0).any(), _NEGATIVE_VARIANCE)
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = torch.unsqueeze(var, -1)
        elif (
            input.ndim != var.ndim
            or sum(y for x, y in zip(input.size(), var.size(), strict=True) if x != y) != 1
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str) -> Any:
    """``torch.linalg.lstsq`` of the driver ``gels``, by QR.

    Of more columns than rows the solution is the shortest one.
    """
    rows, columns = input.shape[-2:]
    is_vector = b.dim() == input.dim() - 1 and b.shape == input.shape[:-1]
    right = b.unsqueeze(-1) if is_vector else b
    # LAPACK's solution of these is zero.
    zero = (input == 0).flatten(-2).all(-1)[..., None, None]
    unit = torch.eye(min(rows, columns), dtype=input.dtype, device=input.device)
    if rows < columns:
        q, r = torch.linalg.qr(input.mT)
        r = torch.where(zero, unit, r)
        x = q @ torch.linalg.solve_triangular(r.mT, right, upper=False)
    else:
        q, r = torch.linalg.qr(input)
        r = torch.where(zero, unit, r)
        x = torch.linalg.solve_triangular(r, q.mT @ right, upper=True)
    full = (r.diagonal(dim1=-2, dim2=-1) != 0).all()
    torch._assert_async(full, _NOT_OF_FULL_RANK)
    x = torch.where(zero, 0.0, x)
    residuals = (right - input @ x).square().sum(-2) if rows > columns else x.new_empty(0)
    x = x.squeeze(-1) if is_vector else x
    rank = torch.empty(0, dtype=torch.int64, device=x.device)
    kinds: Any = torch.return_types
    return kinds.linalg_lstsq((x, residuals, rank, x.new_empty(0)))
