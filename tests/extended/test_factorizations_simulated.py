"""Factorizations in generated GPU kernels, run by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import polyblocks_torch.algorithms.factorizations  # noqa: F401
from polyblocks.algorithms.factorizations import limits
from polyblocks.algorithms.factorizations.grid import lu as on_grid
from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

CHIPS = [("nvgpu", "sm_90a"), ("amdgpu", "gfx1100")]
OWN = torch.ops.polyblocks

#: A function, and what it has to give.
FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "cholesky": (lambda a: torch.linalg.cholesky_ex(a)[0], torch.linalg.cholesky),
    "lu": (lambda a: torch.linalg.lu_factor_ex(a)[0], lambda a: torch.linalg.lu_factor(a)[0]),
    "qr": (lambda a: torch.linalg.qr(a)[1], lambda a: torch.linalg.qr(a)[1]),
    "solve": (
        lambda a: torch.linalg.solve_ex(a, a.mT + 1)[0],
        lambda a: torch.linalg.solve(a, a.mT + 1),
    ),
    "eigenvalues": (lambda a: OWN.symmetric_eigen.default(a)[0], torch.linalg.eigvalsh),
    "singular values": (lambda a: OWN.singular_vectors.default(a, 5)[0], torch.linalg.svdvals),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_as_on_the_cpu(target: str, arch: str, name: str) -> None:
    function, expected = FUNCTIONS[name]
    a = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(0))
    a = a @ a.mT + torch.eye(5)
    options = {"target": target, "arch": arch, "simulate": True, "strict_target": True}
    found = polyblocks_jit_torch(function, compile_options=options)(a)
    torch.testing.assert_close(found, expected(a), rtol=1e-4, atol=1e-4)


@pytest.mark.each_choice
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_cholesky_of_matrices_of_several_blocks(target: str, arch: str) -> None:
    a = torch.randn(2, 193, 193, generator=torch.Generator().manual_seed(0))
    a = a @ a.mT + torch.eye(193)
    # What is above the diagonal is not read; the second matrix is not definite.
    above = torch.ones(193, 193).triu(1) > 0
    given = torch.where(above, torch.nan, a)
    given[1, 150, 150] = -1
    options = {"target": target, "arch": arch, "simulate": True, "strict_target": True}
    found, info = polyblocks_jit_torch(torch.linalg.cholesky_ex, compile_options=options)(given)
    expected = torch.linalg.cholesky(a[0].double())
    torch.testing.assert_close(found[0].double(), expected, rtol=1e-4, atol=1e-4)
    assert info.tolist() == [0, 151]


@pytest.mark.each_choice
@pytest.mark.parametrize("shape", [(2, 37, 37), (33, 45)])
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_lu_of_matrices_of_several_panels(
    target: str,
    arch: str,
    shape: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # Small panels, and no other test's programs.
    tmp_path.chmod(0o700)
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(limits, "BY_GRID", 20)
    for name, value in {"_PANEL": 8, "_COLUMNS": 8, "_PARTS": 16, "_FEW": 4}.items():
        monkeypatch.setattr(on_grid, name, value)
    dtype = torch.float32 if len(shape) == 3 else torch.float64
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    # A pivot of zero, and magnitudes that are equal.
    a[..., 25] = 0
    a[..., 0] = a[..., 0].sign()
    options = {"target": target, "arch": arch, "simulate": True, "strict_target": True}
    found = polyblocks_jit_torch(torch.linalg.lu_factor_ex, compile_options=options)(a)
    factors, pivots, info = torch.linalg.lu_factor_ex(a.double())
    assert torch.equal(found.pivots, pivots)
    assert torch.equal(found.info, info)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
    torch.testing.assert_close(found.LU.double(), factors, **close)


@pytest.mark.each_choice
@pytest.mark.parametrize(("upper", "unit", "columns"), [(False, False, 1), (True, True, 35)])
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_triangular_systems_of_several_blocks(
    target: str, arch: str, upper: bool, unit: bool, columns: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.rand(193, 193, generator=generator, dtype=torch.float64) / 193 + torch.eye(193)
    b = torch.rand(193, columns, generator=generator, dtype=torch.float64)
    # What is on the other side of the diagonal is not used, nor is a diagonal of ones.
    unused = torch.ones(193, 193).tril(-1 if not unit else 0) > 0
    given = torch.where(unused if upper else unused.mT, torch.nan, a)

    def solved(a: Tensor, b: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)

    options = {"target": target, "arch": arch, "simulate": True, "strict_target": True}
    found = polyblocks_jit_torch(solved, compile_options=options)(given, b)
    torch.testing.assert_close(found, solved(a, b))


@pytest.mark.parametrize(
    ("function", "most"),
    [(lambda a: torch.linalg.qr(a, "r").R, 384), (torch.linalg.svdvals, 8)],
)
def test_large_matrices_of_the_host_are_left_to_pytorch(
    function: Callable[[Tensor], Tensor], most: int
) -> None:
    options = {"target": "nvgpu", "arch": "sm_90a", "simulate": True, "strict_target": True}
    with pytest.raises(FallbackError, match=f"more than {most} rows and columns, for which"):
        polyblocks_jit_torch(function, compile_options=options)(torch.ones(most + 1, most + 1))
