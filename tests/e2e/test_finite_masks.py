"""Masks of finite minima: those of libraries bound loops as minus infinity does, others weigh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from polyblocks.events import Event, listening
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

LEAST = torch.finfo(torch.float32).min
Function = Callable[..., Any]


def _distance(q: Tensor, k: Tensor) -> Tensor:
    return torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])[None, :]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5


def infinite(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = _scores(q, k).masked_fill(_distance(q, k) < 0, float("-inf"))
    return torch.softmax(scores, -1) @ v


def filled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(_scores(q, k).masked_fill(_distance(q, k) < 0, LEAST), -1) @ v


def chosen(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(torch.where(_distance(q, k) >= 0, _scores(q, k), 0.7 * LEAST), -1) @ v


def added(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    masked = torch.full((q.shape[-2], k.shape[-2]), LEAST).triu(1)
    return torch.softmax(_scores(q, k) + masked, -1) @ v


def multiplied(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    keep = torch.ones(q.shape[-2], k.shape[-2]).tril()
    return torch.softmax(_scores(q, k) + (1.0 - keep) * -1e9, -1) @ v


def library(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    masked = torch.full((q.shape[-2], k.shape[-2]), LEAST, dtype=q.dtype).triu(1)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=masked)


def scaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.where(_distance(q, k) >= 0, q @ k.transpose(-1, -2), -1e9)
    return torch.softmax(scores * q.shape[-1] ** -0.5, -1) @ v


def _inputs(queries: int = 640, keys: int = 640) -> list[Tensor]:
    torch.manual_seed(queries)
    return [torch.randn(1, 12, length, 32) for length in (queries, keys, keys)]


def _compiled(function: Function, inputs: list[Tensor]) -> tuple[Any, int, int]:
    """The result, how many loops have bounds of masks, and the number of kernels."""
    events: list[Event] = []
    with listening(events.append):
        fast = polyblocks_jit_torch(function, compile_options={"strict_target": True})
        ours = fast(*inputs)
    cut = sum(e.data["loops"] for e in events if e.data.get("what") == "bounds of masks")
    return ours, cut, len(fast.polyblocks_report().to_json()["parts"][-1]["kernels"])


def _check(ours: Tensor, function: Function, inputs: list[Tensor]) -> None:
    exact = function(*(x.double() if x.is_floating_point() else x for x in inputs))
    torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(f, marks=[] if f in (filled, multiplied) else pytest.mark.extended)
        for f in (filled, chosen, added, multiplied, library, scaled)
    ],
)
def test_kernels_are_those_of_minus_infinity(
    function: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    inputs = _inputs()
    _, *like = _compiled(infinite, inputs)
    ours, *found = _compiled(function, inputs)
    assert found == like
    assert found[0] >= 5
    _check(ours, function, inputs)


def late(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The first rows see nothing: their weights are equal."""
    return torch.softmax(_scores(q, k).masked_fill(_distance(q, k) < 100, LEAST), -1) @ v


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Rows behind the last key by a window see nothing."""
    distance = _distance(q, k)
    masked = (distance < 0) | (distance > 50)
    return torch.softmax(_scores(q, k).masked_fill(masked, LEAST), -1) @ v


def padded(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
    """The only keys that some rows see are padding."""
    keep = (_distance(q, k) >= 0) & real
    return torch.softmax(_scores(q, k).masked_fill(~keep, LEAST), -1) @ v


def padded_twice(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
    scores = torch.where(real, _scores(q, k), LEAST)
    return torch.softmax(torch.where(_distance(q, k) >= 0, scores, LEAST), -1) @ v


def biased(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    scores = _scores(q, k) + bias
    return torch.softmax(torch.where(_distance(q, k) >= 0, scores, LEAST), -1) @ v


def largest(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Masked scores leave the program."""
    scores = torch.where(_distance(q, k) >= 0, _scores(q, k), LEAST)
    return torch.softmax(scores, -1) @ v, scores


@pytest.mark.parametrize(
    "function",
    [
        late,
        padded,
        *(
            pytest.param(f, marks=pytest.mark.extended)
            for f in (window, padded_twice, biased, largest)
        ),
    ],
)
def test_rows_that_see_nothing_weigh_what_is_masked(
    function: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    inputs = _inputs(700, 601) if function is window else _inputs()
    real = torch.arange(640) >= 200
    if function in (padded, padded_twice):
        inputs.append(real)
    if function is biased:
        inputs.append(torch.where(real, 0.0, LEAST))
    ours, cut, _ = _compiled(function, inputs)
    assert cut == 0
    if function is largest:
        torch.testing.assert_close(ours[1], function(*inputs)[1])
        ours, function = ours[0], filled
    _check(ours, function, inputs)


def test_missing_and_infinite_values_behind_a_mask_are_absent() -> None:
    q, k, v = _inputs()
    k[..., 600, 0] = float("inf")
    v[..., 620, 1] = float("nan")
    fast = polyblocks_jit_torch(filled, compile_options={"strict_target": True})
    ours, exact = fast(q, k, v), infinite(q.double(), k.double(), v.double())
    torch.testing.assert_close(
        ours[:, :, :576, 2:].double(), exact[:, :, :576, 2:], rtol=1e-5, atol=1e-5
    )
    assert ours[:, :, 620:, 1].isnan().all()
