"""Contractions in tiles of any size: whatever the model chooses, the result is the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from some_tilings import tiling_of
from sweeps import sweep
from torch.nn import functional

from polyblocks.affine.contraction import frame
from polyblocks.affine.contraction.tilings import choice
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.events import Event, listening
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def check(
    function, *arguments: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Compile as some product with some tiling, compare with float64."""
    draw = random.Random(seed)
    monkeypatch.setattr(choice, "choose_tiling", lambda cost: tiling_of(cost, draw))
    monkeypatch.setattr(TilingCost, "time", lambda *_: draw.random())
    monkeypatch.setattr(TilingCost, "least_time", lambda *_: 0.0)
    # Panels are on the stack, or parts of one allocation for all threads.
    monkeypatch.setattr(frame, "STACK_BYTES", draw.choice([1024, frame.STACK_BYTES]))
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    options = {"target": "cpu", "strict_target": True}
    tiled: list[Event] = []
    with listening(tiled.append):
        result = polyblocks_jit_torch(compile_options=options)(function)(*arguments)
    decisions = [e.data["what"] for e in tiled if e.data.get("pass") == "tile-contractions"]
    assert decisions == ["register tiles"]
    expected = function(*(a.double() for a in arguments))
    torch.testing.assert_close(result.double(), expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("seed", sweep(range(24), *range(3)))
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


@pytest.mark.parametrize("seed", sweep(range(32), *range(3)))
def test_heads(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads are side by side in the product, and one behind the other in the result."""
    draw = random.Random(4000 + seed)
    batch, places = draw.choice([1, 1, 2, 3]), draw.choice([7, 16, 33, 70, 100])
    heads, width, k = draw.randint(2, 7), draw.choice([8, 12, 16, 20, 40, 64, 9]), 48
    x, w = torch.randn(batch, places, k), torch.randn(heads * width, k)
    bias = torch.randn(heads * width)
    check(
        lambda x, w, bias: (
            functional.linear(x, w, bias)
            .view(batch, places, heads, width)
            .transpose(1, 2)
            .contiguous()
        ),
        *(x, w, bias),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("seed", sweep(range(32), *range(3)))
def test_einsums(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3000 + seed)
    letters = iter("abcdefghij")
    sizes: dict[str, int] = {}

    def some(count: int) -> str:
        found = "".join(next(letters) for _ in range(count))
        sizes.update({letter: draw.choice([4, 5, 7, 9]) for letter in found})
        return found

    def mixed(text: str) -> str:
        return "".join(draw.sample(text, len(text)))

    batch, rows, columns, steps = (some(draw.choice(n)) for n in ((0, 1), (1, 2), (1, 2), (1, 2)))
    left, right = mixed(batch + rows + steps), mixed(batch + columns + steps)
    equation = f"{left},{right}->{mixed(batch + rows + columns)}"
    # Short sums are no loop where operands have to be transposed first.
    sizes[steps[0]] = 40
    check(
        lambda a, b: torch.einsum(equation, a, b),
        *(torch.randn([sizes[letter] for letter in side]) for side in (left, right)),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("seed", sweep(range(48), *range(4)))
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
    groups = draw.choice([1, 1, 2])
    x = torch.cat([x] * groups, 1) if groups > 1 else x
    w = torch.cat([w] * groups, 0) if groups > 1 else w
    convolution = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    check(
        lambda x, w, b: convolution(
            x, w, b, stride=stride, padding=padding, groups=groups
        ).sigmoid(),
        *(x, w, torch.randn(groups * filters)),
        tmp_path=tmp_path,
        monkeypatch=monkeypatch,
        seed=seed,
    )


@pytest.mark.parametrize("k", [100, 300, 1500])
def test_sums_keep_their_order_where_they_must(k: int) -> None:
    a, b = torch.randn(30, k), torch.randn(k, 50)
    options = {"target": "cpu", "strict_target": True, "mlir_disable_fast_math": True}
    result = polyblocks_jit_torch(compile_options=options)(torch.matmul)(a, b)
    expected = torch.zeros(30, 50)
    for step in range(k):
        expected = expected + a[:, step, None] * b[step]
    assert torch.equal(result, expected)
