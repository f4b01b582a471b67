"""Contractions of narrow numbers by the chip's matrix units, in tiles of any size."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from some_tilings import tiling_of
from sweeps import sweep
from torch.nn import functional

from polyblocks.affine.contraction.tilings import choice
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.events import Event, listening
from polyblocks.options import CompileOptions
from polyblocks_cpu.describe import describe
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu", "strict_target": True}


def has_unit(operands: str) -> bool:
    """Whether this machine has a unit for operands of a type."""
    units = describe(CompileOptions()).matrix_units
    return any(operands in unit.both for unit in units)


def run(function, *arguments: torch.Tensor, tmp_path: Path, monkeypatch, seed: int | None = None):
    """The result, and the units by which it was computed; with a seed in some tiles."""
    if seed is not None:
        draw = random.Random(seed)
        monkeypatch.setattr(choice, "choose_tiling", lambda cost: tiling_of(cost, draw))
        # Whatever tiling, but one of a unit.
        monkeypatch.setattr(
            TilingCost, "time", lambda cost, _: draw.random() + (cost.product.unit is None)
        )
        monkeypatch.setattr(TilingCost, "least_time", lambda *_: 0.0)
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    tiled: list[Event] = []
    with listening(tiled.append):
        result = polyblocks_jit_torch(compile_options=OPTIONS)(function)(*arguments)
    decisions = [e.data for e in tiled if e.data.get("pass") == "tile-contractions"]
    return result, [d.get("unit") for d in decisions if d["what"] == "register tiles"]


def check_floats(function, *arguments: torch.Tensor, **context) -> None:
    """The error is no more than twice that of eager mode."""
    result, units = run(function, *arguments, **context)
    if has_unit("bfloat16"):
        assert units
        assert all(units)
    expected = function(*(a.double() for a in arguments))
    error = (result.double() - expected).abs().max()
    eager = (function(*arguments).double() - expected).abs().max()
    assert error <= 2 * eager + 1e-30


def check_integers(function, *arguments: torch.Tensor, **context) -> None:
    """The result is that of eager mode."""
    result, units = run(function, *arguments, **context)
    if has_unit("int8"):
        assert units
        assert all(units)
    assert torch.equal(result, function(*arguments))


def floats(draw: random.Random, *shape: int) -> torch.Tensor:
    """Numbers in some order of memory."""
    order = draw.sample(range(len(shape)), len(shape))
    whole = torch.randn([shape[i] for i in order]).bfloat16()
    return whole.permute([order.index(i) for i in range(len(shape))])


def integers(draw: random.Random, *shape: int) -> torch.Tensor:
    """Bytes with or without a sign, the extreme ones among them, in some order of memory."""
    type_ = draw.choice([torch.int8, torch.uint8])
    order = draw.sample(range(len(shape)), len(shape))
    info = torch.iinfo(type_)
    whole = torch.randint(info.min, info.max + 1, [shape[i] for i in order]).to(type_)
    whole.view(-1)[::7], whole.view(-1)[::5] = info.min, info.max
    return whole.permute([order.index(i) for i in range(len(shape))])


@pytest.mark.parametrize("seed", sweep(range(24), *range(3)))
def test_products_of_bfloat16(seed: int, tmp_path: Path, monkeypatch) -> None:
    draw = random.Random(1000 + seed)
    m, n = (draw.choice([4, 5, 7, 12, 16, 17, 33, 40, 65, 100]) for _ in range(2))
    # Shorter sums are unrolled.
    k = draw.choice([33, 34, 40, 65, 100, 101, 300])
    shape = draw.choice([(), (), (3,)])
    check_floats(
        lambda a, b, bias: functional.relu(a @ b + bias),
        *(floats(draw, *shape, m, k), floats(draw, *shape, k, n), floats(draw, n)),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("seed", sweep(range(32), *range(3)))
def test_products_of_bytes(seed: int, tmp_path: Path, monkeypatch) -> None:
    draw = random.Random(2000 + seed)
    m, n = (draw.choice([4, 5, 7, 12, 16, 17, 33, 40, 65, 100]) for _ in range(2))
    k = draw.choice([33, 35, 36, 40, 65, 100, 102, 300])
    check_integers(
        lambda a, b: a.to(torch.int32) @ b.to(torch.int32),
        *(integers(draw, m, k), integers(draw, k, n)),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("seed", sweep(range(16), *range(4)))
def test_convolutions_of_bfloat16(seed: int, tmp_path: Path, monkeypatch) -> None:
    draw = random.Random(3000 + seed)
    images, channels, filters = draw.choice([1, 2]), draw.choice([4, 5, 8]), draw.choice([4, 9, 16])
    height, width = (draw.choice([9, 11, 12, 16]) for _ in range(2))
    window = [draw.choice([1, 2, 3]) for _ in range(2)]
    if channels * window[0] * window[1] <= 32:
        channels = 36
    stride, padding = draw.choice([1, 1, 2]), draw.choice([0, 1])
    check_floats(
        lambda x, w, b: functional.conv2d(x, w, b, stride=stride, padding=padding).relu(),
        *(
            floats(draw, images, channels, height, width),
            floats(draw, filters, channels, *window),
            floats(draw, filters),
        ),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("k", sweep([33, 64, 65, 1500], 33, 65))
def test_special_values(k: int, tmp_path: Path, monkeypatch) -> None:
    """What fills groups up must not meet an infinity, and signs of zeros stay."""
    a, b = torch.randn(20, k).bfloat16(), torch.randn(k, 40).bfloat16()
    a[0, k - 1], a[1, 3], a[2, 5], a[3] = torch.inf, torch.nan, -torch.inf, 0.0
    b[k - 1, 7], b[4, 9] = torch.inf, torch.nan
    a[4:6], b[:, 11] = -0.0, 1.0
    result, _ = run(torch.matmul, a, b, tmp_path=tmp_path, monkeypatch=monkeypatch)
    expected = torch.matmul(a.float(), b.float()).bfloat16()
    torch.testing.assert_close(result, expected, atol=0.2, rtol=0.02, equal_nan=True)
    assert torch.equal(result.isnan(), expected.isnan())
    assert torch.equal(result.isinf(), expected.isinf())


def test_sums_of_bytes_wrap_around(tmp_path: Path, monkeypatch) -> None:
    a = torch.full((40, 140_000), -128, dtype=torch.int8)
    b = torch.full((140_000, 8), -128, dtype=torch.int8)
    a[::2] = 127
    check_integers(
        lambda a, b: a.to(torch.int32) @ b.to(torch.int32),
        *(a, b),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
    )


def test_sums_in_their_order_have_no_unit(tmp_path: Path, monkeypatch) -> None:
    """A unit adds up pairs, which is another order."""
    monkeypatch.setitem(OPTIONS, "mlir_disable_fast_math", True)
    a, b = torch.randn(20, 100).bfloat16(), torch.randn(100, 40).bfloat16()
    _, units = run(torch.matmul, a, b, tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert units == [None]


def test_numbers_that_are_computed_first(tmp_path: Path, monkeypatch) -> None:
    draw = random.Random(0)
    check_floats(
        lambda a, b: (a * 2).relu() @ (b + 1),
        *(floats(draw, 40, 70), floats(draw, 70, 50)),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
    )
