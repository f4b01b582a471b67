"""Factorizations of large matrices on a grid of threads: all of it works on every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import polyblocks

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


@pytest.mark.parametrize("shape", [(160, 160), (4, 160, 160)])
def test_smaller_matrices_are_left_to_a_group_each(shape: tuple[int, ...]) -> None:
    found = kernels(torch.linalg.cholesky, torch.empty(shape))
    assert not any(kernel["kind"] == "contraction" for kernel in found)
