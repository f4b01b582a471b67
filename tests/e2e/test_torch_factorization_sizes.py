"""PyTorch: factorizations of matrices of random sizes are as exact as eager's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
from tests.support.sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
#: Distances of a sum of a few numbers, in units of the last place, that no size explains.
LEAST = 4.0


def sizes(count: int) -> list[int]:
    """Numbers of rows, small ones as often as large ones."""
    generator = random.Random(0)
    return [min(200, int(2 ** generator.uniform(0, 7.7))) for _ in range(count)]


def matrices(n: int, m: int, dtype: torch.dtype, kind: str) -> Tensor:
    """A matrix of this kind: random, singular or ill-conditioned."""
    generator = torch.Generator().manual_seed(n * 256 + m)
    a = torch.randn(n, m, generator=generator, dtype=torch.float64)
    if kind == "singular":
        a[:, m // 2] = 0
        a[n // 2] = a[0]
    elif kind == "ill-conditioned":
        least = min(n, m)
        u, _, vh = torch.linalg.svd(a, full_matrices=False)
        a = u * 10.0 ** (-8 * torch.arange(least) / least) @ vh
    return a.to(dtype)


def distance(found: Tensor, expected: Tensor) -> float:
    """In units of the last place of the norm."""
    expected = expected.double()
    eps = torch.finfo(found.dtype).eps
    norm = float(torch.linalg.norm(expected)) or 1.0
    return float(torch.linalg.norm(found.double() - expected)) / norm / eps


def of_lu(a: Tensor) -> tuple[Tensor, Tensor]:
    p, lower, upper = torch.linalg.lu(a)
    return p @ lower.to(p.dtype), upper


def of_qr(a: Tensor) -> tuple[Tensor, Tensor]:
    q, r = torch.linalg.qr(a)
    return q, r


def of_values(a: Tensor) -> Tensor:
    return torch.linalg.svdvals(a)


def of_symmetric_values(a: Tensor) -> Tensor:
    # What is above the diagonal is not used.
    least = min(a.shape[-2:])
    return torch.linalg.eigvalsh(a[..., :least, :least])


def of_cholesky(a: Tensor) -> Tensor:
    unit = torch.eye(a.shape[0], dtype=a.dtype)
    return torch.linalg.cholesky(a @ a.mT + a.shape[1] * unit)


def of_triangular(a: Tensor) -> Tensor:
    n = a.shape[0]
    t = a @ a.mT / a.shape[1] + n**0.5 * torch.eye(n, dtype=a.dtype)
    return torch.linalg.solve_triangular(t, a, upper=False)


def residuals(name: str, a: Tensor, found: object) -> float:
    """How far what a factorization gave is from the matrix that it is of."""
    if name in ("lu", "qr"):
        first, second = found  # type: ignore[misc]
        error = distance((first.double() @ second.double()).to(a.dtype), a)
        if name == "qr":
            unit = torch.eye(first.shape[1], dtype=torch.float64)
            error = max(error, distance((first.mT.double() @ first.double()).to(a.dtype), unit))
        return error
    assert isinstance(found, Tensor)
    return distance(found, FUNCTIONS[name](a.double()))  # type: ignore[arg-type]


FUNCTIONS: dict[str, Callable[[Tensor], object]] = {
    "cholesky": of_cholesky,
    "eigenvalues": of_symmetric_values,
    "lu": of_lu,
    "qr": of_qr,
    "singular values": of_values,
    "triangular": of_triangular,
}
KINDS = ("random", "singular", "ill-conditioned")


def cases(count: int) -> Iterator[tuple[str, int, int, str]]:
    numbers = sizes(2 * count)
    for i, (n, m) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
        for j, name in enumerate(FUNCTIONS):
            yield name, n, m, KINDS[(i + j) % len(KINDS)]


@pytest.mark.parametrize("case", sweep(list(cases(40)), *cases(2)), ids=str)
def test_residuals_are_at_most_three_times_those_of_eager_mode(
    case: tuple[str, int, int, str],
) -> None:
    name, n, m, kind = case
    function = FUNCTIONS[name]
    dtype = (torch.float32, torch.float64)[(n + m) % 2]
    a = matrices(n, m, dtype, kind)
    found = polyblocks_jit_torch(function, compile_options=STRICT)(a)
    # Values of float64 are compared with those that eager mode has, which are rounded, too.
    least = LEAST if dtype is torch.float32 else 3 * LEAST
    assert residuals(name, a, found) <= 3 * residuals(name, a, function(a)) + least


@pytest.mark.parametrize("name", ["lu", "qr", "singular values", "eigenvalues"])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 0)], ids=str)
def test_empty_matrices(name: str, shape: tuple[int, ...]) -> None:
    a = torch.zeros(shape)
    found = polyblocks_jit_torch(FUNCTIONS[name], compile_options=STRICT)(a)
    torch.testing.assert_close(found, FUNCTIONS[name](a))
