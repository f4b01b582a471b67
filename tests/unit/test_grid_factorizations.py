"""Factorizations of large matrices on a grid of threads: all of it works on every step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import polyblocks
from polyblocks.algorithms.factorizations import lu
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

CPU = {"target": "cpu", "strict_target": True}
OPTIONS = {"target": "nvgpu", "arch": "sm_90a"}


def kernels(function: Callable[..., Any], *operands: Tensor) -> list[dict[str, Any]]:
    with torch.no_grad():
        artifact = polyblocks.aot(function, operands, OPTIONS, frontend="torch")
    found: list[dict[str, Any]] = artifact.manifest["kernels"]
    return found


def seconds(found: list[dict[str, Any]]) -> float:
    return sum(float(kernel["estimate"]["predicted_seconds"]) for kernel in found)


def test_cholesky_of_a_large_matrix_is_products_and_panels() -> None:
    found = kernels(torch.linalg.cholesky, torch.empty(320, 320))
    assert any(kernel["kind"] == "contraction" for kernel in found)
    # 12 µs for each 64 columns; 20 ms for a step of one thread's products.
    assert seconds(found) < 0.3e-3


@pytest.mark.parametrize("columns", [1, 100])
def test_a_large_triangular_system_is_products_and_rows(columns: int) -> None:
    def solved(a: Tensor, b: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(a, b, upper=False)

    found = kernels(solved, torch.empty(320, 320), torch.empty(320, columns))
    # 8 µs for each 64 rows; 1 ms by one group of threads.
    assert seconds(found) < 0.1e-3


def test_lu_of_a_large_matrix_is_columns_and_products() -> None:
    found = kernels(torch.linalg.lu_factor_ex, torch.empty(320, 320))
    # 120 µs for each 32 columns; 33 ms by one group of threads.
    assert seconds(found) < 2e-3


@pytest.fixture
def on_a_grid(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiled_in_this_process: None
) -> None:
    """CPUs run the algorithm of grids, and no other test's programs."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(lu, "by_grid", lambda n: True)


def special(shape: tuple[int, ...], name: str) -> Tensor:
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if name == "a column of zeros, and equal magnitudes":
        a[..., 50] = 0
        a[..., 7] = a[..., 7].sign()
    elif name == "zeros":
        a.zero_()
    elif name == "NaN in the first place":
        a[..., 0, 0] = torch.nan
    elif name == "infinite":
        a[..., 30, 20] = torch.inf
    elif name == "tiny":
        a *= torch.finfo(a.dtype).tiny
    return a


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((2, 193, 193), "a column of zeros, and equal magnitudes"),
        ((200, 256), "infinite"),
        ((256, 200), "tiny"),
        ((192, 192), "NaN in the first place"),
        ((192, 192), "zeros"),
    ],
)
def test_lu_by_columns_and_products_is_that_of_lapack(
    on_a_grid: None, shape: tuple[int, ...], name: str
) -> None:
    a = special(shape, name)
    found = polyblocks_jit_torch(torch.linalg.lu_factor_ex, compile_options=CPU)(a)
    expected = torch.linalg.lu_factor_ex(a)
    assert torch.equal(found.pivots, expected.pivots)
    assert torch.equal(found.info, expected.info)
    scale = expected.LU[expected.LU.isfinite()].abs().max() if name == "tiny" else 1
    torch.testing.assert_close(found.LU / scale, expected.LU / scale, equal_nan=True)


@pytest.mark.parametrize("shape", [(160, 160), (4, 160, 160)])
def test_smaller_matrices_are_left_to_a_group_each(shape: tuple[int, ...]) -> None:
    found = kernels(torch.linalg.cholesky, torch.empty(shape))
    assert not any(kernel["kind"] == "contraction" for kernel in found)
