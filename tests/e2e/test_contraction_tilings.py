"""Contractions in tiles of any size: whatever the model chooses, the result is the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from polyblocks.affine.contraction.choice import TilingCost
from polyblocks.affine.contraction.product import Product
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.passes.schedule import tile_contractions
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def tiling_of(product: Product, width: int, seed: int) -> Tiling:
    """Some tiling that the product can have."""
    draw = random.Random(seed)
    rows, columns, steps = (v.extent for v in (product.row, product.column, product.step))
    height = draw.randint(1, min(rows, 6))
    lanes = width * draw.choice([1, 2])
    inner = product.steps[-1] if len(product.steps) > 1 else 1
    depth = draw.choice([steps, max(1, steps // 3 // inner) * inner])
    by_rows = len(product.columns) > 1 and any(
        o.load is None for o in product.operands if not o.of_rows
    )
    column_block = columns
    if not by_rows and draw.random() < 0.7:
        column_block = min(columns, lanes * draw.randint(1, 3))
    row_block = min(rows, height * draw.randint(1, 4))
    row_pieces = draw.randint(1, -(-rows // row_block))
    column_pieces = draw.randint(1, -(-columns // column_block))
    return Tiling(
        rows=height,
        lanes=lanes,
        depth=depth,
        chain=draw.choice([depth, max(1, depth // 2)]),
        row_block=row_block,
        column_block=column_block,
        row_pieces=row_pieces,
        column_pieces=column_pieces,
        pack_rows=draw.random() < 0.5,
        pack_columns=draw.random() < 0.5,
        threads=draw.randint(1, 3),
    )


def check(
    function, *arguments: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> Tiling:
    """Compile with some tiling, compare with float64; returns the tiling."""
    chosen: list[Tiling] = []

    def choose(cost: TilingCost) -> Tiling:
        chosen.append(tiling_of(cost.product, cost.width, seed))
        (tmp_path / "chosen").touch()
        return chosen[-1]

    monkeypatch.setattr(tile_contractions, "choose_tiling", choose)
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    options = {"target": "cpu", "strict_target": True}
    result = polyblocks_jit_torch(compile_options=options)(function)(*arguments)
    assert (tmp_path / "chosen").exists()
    expected = function(*(a.double() for a in arguments))
    torch.testing.assert_close(result.double(), expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("seed", range(24))
def test_products(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1000 + seed)
    m, n, k = (draw.choice([4, 5, 7, 12, 16, 17, 33, 40, 65, 100]) for _ in range(3))
    a = torch.randn(k, m).T if draw.random() < 0.5 else torch.randn(m, k)
    b = torch.randn(n, k).T if draw.random() < 0.5 else torch.randn(k, n)
    if draw.random() < 0.3:
        a, b = a.repeat(3, 1, 1) * torch.randn(3, 1, 1), b.repeat(3, 1, 1)
    bias = torch.randn(n)
    check(
        lambda a, b, bias: functional.relu(a @ b + bias),
        *(a, b, bias),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("seed", range(24))
def test_convolutions(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(2000 + seed)
    rank = draw.choice([1, 2, 2, 2, 3])
    images, channels, filters = draw.choice([1, 2]), draw.choice([4, 5, 8]), draw.choice([4, 9, 16])
    sizes = [draw.choice([9, 11, 12, 16] if rank < 3 else [5, 6]) for _ in range(rank)]
    window = [draw.choice([1, 2, 3]) for _ in range(rank)]
    x, w = torch.randn(images, channels, *sizes), torch.randn(filters, channels, *window)
    if rank == 2 and draw.random() < 0.5:
        x = x.to(memory_format=torch.channels_last)
        w = w.to(memory_format=torch.channels_last)
    stride, padding = draw.choice([1, 1, 2]), draw.choice([0, 1])
    convolution = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    check(
        lambda x, w, b: convolution(x, w, b, stride=stride, padding=padding).sigmoid(),
        *(x, w, torch.randn(filters)),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )
