"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.algorithms import factorizations
from polyblocks_torch.decomp.checks import linalg_check_errors
from polyblocks_torch.decomp.factorizations import (
    is_real,
    lu,
    ordered,
)
from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten


@decomposition(aten.linalg_solve_triangular.default)
def linalg_solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    if not is_real(a, b):
        return NotImplemented
    if not left:
        a, b, upper = a.mT, b.mT, not upper
    x = _solve(*_same_batch(a, b), upper=upper, unit=unitriangular)
    return x if left else x.mT


@decomposition(aten.triangular_solve.default)
def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    if not is_real(a, b):
        return NotImplemented
    a, b = _same_batch(a, b)
    if transpose:
        return _solve(a.mT, b, upper=not upper, unit=unitriangular), a.clone()
    return _solve(a, b, upper=upper, unit=unitriangular), a.clone()


def _same_batch(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two arrays of matrices with the batch that both broadcast to."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


def _solve(a: Tensor, b: Tensor, *, upper: bool, unit: bool = False) -> Tensor:
    if not b.numel():
        return b.new_empty(b.shape)
    return factorizations.solve_triangular(a, b, upper=upper, unit=unit)


@decomposition(aten.cholesky_solve.default)
def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    if not is_real(b, factor):
        return NotImplemented
    factor, b = _same_batch(factor, b)
    return _of_cholesky(factor.mT if upper else factor, b)


@decomposition(aten.cholesky_inverse.default)
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    if not is_real(factor):
        return NotImplemented
    return _of_cholesky(factor.mT if upper else factor, _unit(factor))


def _of_cholesky(lower: Tensor, b: Tensor) -> Tensor:
    """The solution for a product of a lower triangular matrix and its transpose."""
    return _solve(lower.mT, _solve(lower, b, upper=False), upper=True)


def _unit(a: Tensor) -> Tensor:
    """Unit matrices as large as the square ones of an array."""
    return torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)


@decomposition(aten.linalg_lu_solve.default)
def linalg_lu_solve(
    factors: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    if not is_real(factors, b):
        return NotImplemented
    if left:
        return _of_lu(factors, pivots, b, adjoint)
    return _of_lu(factors, pivots, b.mT, not adjoint).mT


def _of_lu(factors: Tensor, pivots: Tensor, b: Tensor, transposed: bool) -> Tensor:
    """The solution for a factorized matrix, or its transpose."""
    order, places = ordered(pivots, factors.shape[-1])
    factors, b = _same_batch(factors, b)
    if not transposed:
        b = _rows(b, order)
        return _solve(factors, _solve(factors, b, upper=False, unit=True), upper=True)
    x = _solve(factors.mT, b, upper=False)
    return _rows(_solve(factors.mT, x, upper=True, unit=True), places)


def _rows(b: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices in another order."""
    index = order.to(torch.int64).unsqueeze(-1).expand(b.shape)
    return b.gather(-2, index) if b.numel() else b


@decomposition(aten._linalg_solve_ex.default)
def linalg_solve_ex(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if not is_real(a, b):
        return NotImplemented
    is_vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    right = b.unsqueeze(-1) if is_vector else b
    left = left or is_vector
    if left and right.numel() and right.shape[:-2] == a.shape[:-2]:
        x, factors, pivots, info = factorizations.solve(a, right)
    else:
        factors, pivots, info = lu(a)
        x = linalg_lu_solve(factors, pivots, right, left=left)
    if check_errors:
        linalg_check_errors(info, "torch.linalg.solve_ex", is_matrix=a.dim() == 2)
    return (x.squeeze(-1) if is_vector else x), factors, pivots, info


@decomposition(aten.linalg_inv_ex.default)
def linalg_inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    if not is_real(a):
        return NotImplemented
    if a.numel():
        inverse, info = factorizations.invert(a)
    else:
        inverse, info = torch.empty_like(a), a.new_zeros(a.shape[:-2], dtype=torch.int32)
    if check_errors:
        linalg_check_errors(info, "torch.linalg.inv_ex", is_matrix=a.dim() == 2)
    return inverse, info


@decomposition(aten._linalg_det.default)
def linalg_det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if not is_real(a):
        return NotImplemented
    factors, pivots, _ = lu(a.mT if a.is_contiguous() else a)
    return _sign(pivots, a) * _diagonal(factors).prod(-1), factors, pivots


@decomposition(aten._linalg_slogdet.default)
def linalg_slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if not is_real(a):
        return NotImplemented
    factors, pivots, _ = lu(a.mT if a.is_contiguous() else a)
    diagonal = _diagonal(factors)
    sign = _sign(pivots, a) * diagonal.sign().prod(-1)
    return sign, diagonal.abs().log().sum(-1), factors, pivots


def _diagonal(factors: Tensor) -> Tensor:
    return factors.diagonal(dim1=-2, dim2=-1)


def _sign(pivots: Tensor, a: Tensor) -> Tensor:
    """1 for an even number of exchanges, else -1."""
    own = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    odd = (pivots != own).sum(-1) % 2
    return (1 - 2 * odd).to(a.dtype)
