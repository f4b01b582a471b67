"""Look-ups in short tables: of any length, of several places and of neighbours at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyblocks.errors import ExecutionError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu
OPTIONS = {"target": "cpu", "strict_target": True}


@pytest.mark.each_choice
@pytest.mark.parametrize("shape", [(3, 5, 7), (3, 33, 131), (4, 16, 64)])
@pytest.mark.parametrize("entries", [2, 17, 65, 129, 255, 256, 257, 258])
def test_a_curve(entries: int, shape: tuple[int, ...]) -> None:
    def bent(x: Tensor, curve: Tensor) -> Tensor:
        place = x * (entries - 1)
        below = place.to(torch.int64).clamp(0, entries - 2)
        part = place - below
        return curve[below] * (1 - part) + curve[below + 1] * part

    torch.manual_seed(entries)
    x, curve = torch.rand(shape), torch.randn(entries)
    result = polyblocks_jit_torch(compile_options=OPTIONS)(bent)(x, curve)
    exact = bent(x.double(), curve.double())
    error = (bent(x, curve) - exact).abs().max()
    assert (result - exact).abs().max() <= 2 * error + 1e-7


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("entries", [1, 16, 64, 128, 192, 256])
def test_bits_are_kept(entries: int, index: torch.dtype, dtype: torch.dtype) -> None:
    """NaN, infinity and -0 among them; negative places count from the end."""

    def looked_up(table: Tensor, i: Tensor, j: Tensor, k: Tensor) -> Tensor:
        return torch.stack([table[i], table[j], table[k]])

    torch.manual_seed(entries)
    bits = torch.randint(-(2**31), 2**31, (entries,), dtype=torch.int64).to(torch.int32)
    table = bits.view(dtype)
    if dtype.is_floating_point:
        table = torch.where(table.isnan(), torch.nan, table)
        table[0], table[-1], table[entries // 2] = -0.0, torch.inf, torch.nan
    places = [torch.randint(-entries, entries, (29, 71), dtype=index) for _ in range(3)]
    result = polyblocks_jit_torch(compile_options=OPTIONS)(looked_up)(table, *places)
    assert torch.equal(result.view(torch.int32), looked_up(table, *places).view(torch.int32))


def test_a_table_that_is_updated() -> None:
    def updated(table: Tensor, i: Tensor, j: Tensor) -> Tensor:
        found = table[i] + table[j]
        table.add_(1)
        return found

    table, (i, j) = torch.randn(256), torch.randint(0, 256, (2, 64, 64))
    copy = table.clone()
    result = polyblocks_jit_torch(compile_options=OPTIONS)(updated)(table, i, j)
    assert torch.equal(result, updated(copy, i, j))
    assert torch.equal(table, copy)


def test_a_place_outside_of_the_table() -> None:
    i, j = torch.zeros(2, 64, 64, dtype=torch.int64)
    j[63, 63] = 256
    both = polyblocks_jit_torch(compile_options=OPTIONS)(lambda t, i, j: t[i] + t[j])
    with pytest.raises(ExecutionError, match="less than 256"):
        both(torch.randn(256), i, j)
