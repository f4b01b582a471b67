"""Checks of factorizations by PyTorch against what they are defined by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}


def compiled(function: Callable[..., Any], *arguments: Tensor) -> Any:
    return polyblocks_jit_torch(function, compile_options=STRICT)(*arguments)


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype)


def definite(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    a = random(*shape, dtype=dtype)
    return a @ a.mT + torch.eye(shape[-1], dtype=dtype)


def residual(found: Tensor, expected: Tensor) -> float:
    """The largest distance of a batch, in units of the last place of the norm."""
    eps = torch.finfo(found.dtype).eps
    distance = torch.linalg.matrix_norm(found.double() - expected.double())
    norm = torch.linalg.matrix_norm(expected.double()).clamp_min(1e-300)
    return float((distance / norm).max()) / eps


def orthogonal(q: Tensor) -> float:
    return residual(q.mT @ q, torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1))


def factors_agree(a: Tensor) -> None:
    """LU, QR and singular values of many matrices multiply to these."""
    least = min(a.shape[-2:])
    factors, pivots = compiled(torch.linalg.lu_factor, a)
    p, lower, upper = torch.lu_unpack(factors, pivots)
    assert residual(p @ lower @ upper, a) < 8
    q, r = compiled(lambda a: torch.linalg.qr(a.mT.contiguous().mT), a)
    assert max(residual(q @ r, a), orthogonal(q)) < 20
    u, s, vh = compiled(lambda a: tuple(torch.linalg.svd(a, full_matrices=False)), a)
    assert residual(u[..., :least] * s.unsqueeze(-2) @ vh, a) < 30
    assert max(orthogonal(u), orthogonal(vh.mT)) < 30


def systems_agree(a: Tensor, b: Tensor) -> None:
    """Factors of definite matrices, and solutions for the right-hand sides ``b``."""
    bound = 16 * float(torch.linalg.cond(a.double()).max())
    exact = torch.linalg.solve(a.double(), b.double())
    assert residual(compiled(torch.linalg.solve, a, b), exact) < bound
    assert residual(compiled(torch.linalg.inv, a), torch.linalg.inv(a.double())) < bound
    lower = compiled(torch.linalg.cholesky, a)
    assert residual(lower @ lower.mT, a) < 8
    values, vectors = compiled(torch.linalg.eigh, a)
    assert residual(vectors * values.unsqueeze(-2) @ vectors.mT, a) < 20
    assert orthogonal(vectors) < 20


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "cholesky": lambda a: torch.linalg.cholesky(a @ a.mT).sum(),
    "inv": lambda a: torch.linalg.inv(a).sum(),
    "solve": lambda a: torch.linalg.solve(a, a.mT.sin()).sum(),
    "det": lambda a: torch.linalg.det(a).sum(),
    "slogdet": lambda a: torch.linalg.slogdet(a).logabsdet.sum(),
    "lu": lambda a: (torch.linalg.lu(a).L.sin() + torch.linalg.lu(a).U).sum(),
    "qr": lambda a: (torch.linalg.qr(a).Q.sin() + torch.linalg.qr(a).R).sum(),
    "eigvalsh": lambda a: (torch.linalg.eigvalsh(a @ a.mT) ** 2).sum(),
    "svdvals": lambda a: (torch.linalg.svdvals(a) ** 3).sum(),
    "pinv": lambda a: torch.linalg.pinv(a).sum(),
}


def gradients_agree(name: str, a: Tensor) -> None:
    """Those of a loss are eager's."""
    grads = []
    for run in (polyblocks_jit_torch(LOSSES[name], compile_options=STRICT), LOSSES[name]):
        x = a.clone().requires_grad_()
        run(x).backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)
