"""Factorizations of matrices: Cholesky, LU, QR, eigenvalues and singular values."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks.algorithms.factorizations.limits import (
    refused_decomposition,
    refused_reflections,
)
from polyblocks_torch.algorithms import factorizations
from polyblocks_torch.decomp.checks import linalg_check_errors
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import require

aten = torch.ops.aten


def is_real(*tensors: Tensor) -> bool:
    """Whether the algorithms are for these tensors."""
    return all(x.dtype in (torch.float32, torch.float64) for x in tensors)


# Cholesky


@decomposition(aten.linalg_cholesky_ex.default)
def linalg_cholesky_ex(
    a: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    if not is_real(a):
        return NotImplemented
    factor, info = _cholesky(a, upper)
    if check_errors:
        linalg_check_errors(info, "torch.linalg.cholesky_ex", is_matrix=a.dim() == 2)
    return factor, info


# PyTorch 2.15 has ``torch.linalg.cholesky`` only.
@decomposition(*([aten.cholesky.default] if hasattr(aten, "cholesky") else []))
def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    if not is_real(a):
        return NotImplemented
    factor, info = _cholesky(a, upper)
    linalg_check_errors(info, "cholesky", is_matrix=a.dim() == 2)
    return factor


def _cholesky(a: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    if not a.numel():
        return torch.empty_like(a), a.new_zeros(a.shape[:-2], dtype=torch.int32)
    factor, info = factorizations.cholesky(a.mT if upper else a)
    return (factor.mT if upper else factor), info


# LU


@decomposition(aten.linalg_lu_factor_ex.default)
def linalg_lu_factor_ex(
    a: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    if not is_real(a) or not pivot:
        return NotImplemented
    factors, pivots, info = lu(a)
    if check_errors:
        linalg_check_errors(info, "torch.linalg.lu_factor_ex", is_matrix=a.dim() == 2)
    return factors, pivots, info


def lu(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L and U in one, pivots and the number of the first pivot of zero."""
    if not a.numel():
        # Without columns or rows nothing is chosen.
        whole = a.new_zeros(a.shape[:-2], dtype=torch.int32)
        least = min(a.shape[-2:])
        return torch.empty_like(a), whole.unsqueeze(-1).expand(*whole.shape, least).clone(), whole
    result: tuple[Tensor, Tensor, Tensor] = factorizations.lu(a)
    return result


@decomposition(aten.linalg_lu.default)
def linalg_lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    if not is_real(a) or not pivot:
        return NotImplemented
    factors, pivots, _ = lu(a)
    return _unpacked(factors, pivots)


@decomposition(aten.lu_unpack.default)
def lu_unpack(
    factors: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    if not is_real(factors):
        return NotImplemented
    p, lower, upper = _unpacked(factors, pivots if unpack_pivots else None)
    none = factors.new_empty(0)
    return (p, lower, upper) if unpack_data else (p, none, none.clone())


def _unpacked(factors: Tensor, pivots: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U."""
    rows, columns = factors.shape[-2:]
    least = min(rows, columns)
    lower = factors[..., :least].tril(-1) + torch.eye(
        rows, least, dtype=factors.dtype, device=factors.device
    )
    upper = factors[..., :least, :].triu()
    if pivots is None:
        return factors.new_empty(0), lower, upper
    order, _ = ordered(pivots, rows)
    number = torch.arange(rows, dtype=torch.int32, device=factors.device)
    p = (number.unsqueeze(-1) == order.unsqueeze(-2)).to(factors.dtype)
    return p, lower, upper


def ordered(pivots: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Which row comes to each place, and the place of each row: [..., rows] of int32."""
    if not pivots.numel():
        number = torch.arange(rows, dtype=torch.int32, device=pivots.device)
        number = number.expand(*pivots.shape[:-1], rows)
        return number, number
    result: tuple[Tensor, Tensor] = factorizations.permutation(pivots, rows)
    return result


# QR


@decomposition(aten.linalg_qr.default)
def linalg_qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    if not is_real(a) or mode not in ("reduced", "complete", "r"):
        return NotImplemented
    if refused_reflections(a.shape):
        return NotImplemented
    rows, columns = a.shape[-2:]
    least = rows if mode == "complete" else min(rows, columns)
    if not a.numel():
        q = torch.eye(rows, least, dtype=a.dtype, device=a.device).expand(
            *a.shape[:-2], rows, least
        )
        q = a.new_empty(0) if mode == "r" else q.clone()
        return q, a.new_zeros([*a.shape[:-2], least, columns])
    packed, factors = factorizations.householder(a)
    r = packed[..., :least, :].triu()
    if mode == "r":
        return a.new_empty(0), r
    return factorizations.reflections(packed, factors, least), r


@decomposition(aten.geqrf.default)
def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    if not is_real(a) or refused_reflections(a.shape):
        return NotImplemented
    if not a.numel():
        return torch.empty_like(a), a.new_empty([*a.shape[:-2], min(a.shape[-2:])])
    result: tuple[Tensor, Tensor] = factorizations.householder(a)
    return result


@decomposition(aten.linalg_householder_product.default)
def linalg_householder_product(vectors: Tensor, factors: Tensor) -> Tensor:
    if not is_real(vectors, factors) or refused_reflections(vectors.shape):
        return NotImplemented
    return _reflections(vectors, factors, vectors.shape[-1])


def _reflections(vectors: Tensor, factors: Tensor, columns: int) -> Tensor:
    """The first columns of the product of reflections."""
    rows = vectors.shape[-2]
    if not vectors.numel() or not factors.numel():
        unit = torch.eye(rows, columns, dtype=vectors.dtype, device=vectors.device)
        return unit.expand(*vectors.shape[:-2], rows, columns).clone()
    result: Tensor = factorizations.reflections(vectors, factors, columns)
    return result


@decomposition(aten.ormqr.default)
def ormqr(
    vectors: Tensor, factors: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    if not is_real(vectors, factors, other) or refused_reflections(vectors.shape):
        return NotImplemented
    q = _reflections(vectors, factors, vectors.shape[-2])
    q = q.mT if transpose else q
    return q @ other if left else other @ q


# Eigenvalues and singular values


@decomposition(aten._linalg_eigh.default)
def linalg_eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    if not is_real(a) or refused_decomposition(a.shape, vectors=compute_v):
        return NotImplemented
    if not a.numel():
        return a.new_empty(a.shape[:-1]), torch.empty_like(a) if compute_v else a.new_empty(0)
    require(
        a.isfinite(),
        "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned "
        "or has too many repeated eigenvalues: it contained non-finite values.",
        torch.linalg.LinAlgError,
    )
    a = a if uplo.upper() == "L" else a.mT
    if not compute_v:
        return factorizations.symmetric_values(a), a.new_empty(0)
    values, rows = factorizations.symmetric_eigen(a)
    return values, rows.mT


@decomposition(aten._linalg_svd.default)
def linalg_svd(
    a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    if not is_real(a) or driver is not None:
        return NotImplemented
    if refused_decomposition(a.shape, vectors=compute_uv):
        return NotImplemented
    if not a.numel():
        return _empty_svd(a, full_matrices, compute_uv)
    require(
        a.isfinite(),
        "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite"
        " values.",
        torch.linalg.LinAlgError,
    )
    wide = rows < columns
    if not compute_uv:
        none = a.new_empty(0)
        return none, factorizations.singular_values(a if wide else a.mT), none.clone()
    if full_matrices or max(rows, columns) < 2 * least:
        return _rotated(a, full_matrices)
    # Reflections reduce long columns to a small triangular matrix.
    tall = a.mT if wide else a
    packed, factors = factorizations.householder(tall)
    q = factorizations.reflections(packed, factors, least)
    u, lengths, vh = _rotated(packed[..., :least, :].triu(), full_matrices=False)
    longer = q @ u
    return (vh.mT, lengths, longer.mT) if wide else (longer, lengths, vh)


def _rotated(a: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Singular values and vectors by rotations."""
    rows, columns = a.shape[-2:]
    least, longer = sorted((rows, columns))
    wide = rows < columns
    width = longer if full_matrices else least
    lengths, left, right = factorizations.singular_vectors(a if wide else a.mT, width)
    return (left.mT, lengths, right) if wide else (right.mT, lengths, left)


def _empty_svd(a: Tensor, full_matrices: bool, compute_uv: bool) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    batch = a.shape[:-2]
    lengths = a.new_empty([*batch, least])
    if not compute_uv:
        return a.new_empty(0), lengths, a.new_empty(0)

    def unit(first: int, second: int) -> Tensor:
        eye = torch.eye(first, second, dtype=a.dtype, device=a.device)
        return eye.expand(*batch, first, second).clone()

    if full_matrices:
        return unit(rows, rows), lengths, unit(columns, columns)
    return unit(rows, least), lengths, unit(least, columns)


@decomposition(aten.linalg_pinv.atol_rtol_tensor)
def linalg_pinv(
    a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    if not is_real(a):
        return NotImplemented
    if not a.numel():
        return a.new_empty(a.mT.shape)
    least = torch.finfo(a.dtype).eps * max(a.shape[-2:])
    if rtol is None:
        default = torch.full((), least, dtype=torch.float64, device=a.device)
        rtol = (
            default if atol is None else torch.where(atol > 0, torch.zeros_like(default), default)
        )
    if atol is None:
        atol = torch.zeros((), dtype=torch.float64, device=a.device)
    if hermitian:
        values, vectors = torch.linalg.eigh(a)
        sizes = values.abs()
        u, vh = vectors, vectors.mT
    else:
        u, values, vh = torch.linalg.svd(a, full_matrices=False)
        sizes = values
    largest = sizes.amax(-1, keepdim=True)
    bound = torch.maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest)
    inverse = torch.where(sizes > bound, values.reciprocal(), 0).to(a.dtype)
    return (vh.mT * inverse.unsqueeze(-2)) @ u.mT
