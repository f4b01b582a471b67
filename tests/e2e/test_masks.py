"""Affine masks between two contractions: what they leave out is not computed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import polyblocks
from polyblocks.events import Event, listening
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

LOW = float("-inf")
Function = Callable[..., Any]


def _distance(q: Tensor, k: Tensor) -> Tensor:
    return torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])[None, :]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5


def library(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def unbatched(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The library's operation of three dimensions, which PyTorch writes out."""
    return library(q[0], k[0], v[0])[None]


def boolean(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    keep = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep)


def triangle(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    masked = torch.full((q.shape[-2], k.shape[-2]), LOW).triu(1)
    return torch.softmax(_scores(q, k) + masked, -1) @ v


def chosen(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(torch.where(_distance(q, k) >= 0, _scores(q, k), LOW), -1) @ v


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    distance = _distance(q, k)
    masked = (distance < 0) | (distance >= 50)
    return torch.softmax(_scores(q, k).masked_fill(masked, LOW), -1) @ v


def shifted(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries are the last of the keys' positions."""
    seen = _distance(q, k) + (k.shape[-2] - q.shape[-2]) >= 0
    return torch.softmax(_scores(q, k).masked_fill(~seen, LOW), -1) @ v


def documents(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    ours, theirs = torch.arange(q.shape[-2]) // 100, torch.arange(k.shape[-2]) // 100
    same = ours[:, None] == theirs[None, :]
    return torch.softmax(_scores(q, k).masked_fill(~same, LOW), -1) @ v


def capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = 5 * torch.tanh(_scores(q, k) / 5)
    return torch.softmax(scores.masked_fill(_distance(q, k) < 0, LOW), -1) @ v


def heads_last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Tiles have rows of all heads, as in JAX, whose heads are behind the places."""
    return chosen(q, k, v).transpose(1, 2).contiguous()


ALL = (
    library,
    unbatched,
    boolean,
    triangle,
    chosen,
    window,
    shifted,
    documents,
    capped,
    heads_last,
)
#: A mask of the library, one with two ends, and one of blocks; the others are spelled otherwise.
FIRST = (library, window, documents)


def _inputs(heads: int, queries: int, keys: int, size: int, dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(queries)
    shapes = (queries, size), (keys, size), (keys, size)
    return [torch.randn(1, heads, *shape).to(dtype) for shape in shapes]


def _check(function: Function, inputs: list[Tensor]) -> Tensor:
    """Compare with float64; the result."""
    ours = polyblocks_jit_torch(function, compile_options={"strict_target": True})(*inputs)
    exact = function(*(x.double() for x in inputs))
    rounding = 32 * torch.finfo(ours.dtype).eps
    torch.testing.assert_close(ours.double(), exact, rtol=rounding, atol=rounding, equal_nan=True)
    return ours


@pytest.mark.parametrize(
    "function", [f if f in FIRST else pytest.param(f, marks=pytest.mark.extended) for f in ALL]
)
def test_masked_places_are_left_out(
    function: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    events: list[Event] = []
    with listening(events.append):
        _check(function, _inputs(12, 640, 640, 32, torch.float32))
    cut = [e.data["loops"] for e in events if e.data.get("what") == "bounds of masks"]
    assert sum(cut) >= 5


def test_an_operation_that_pytorch_writes_out_leaves_them_out_as_well() -> None:
    inputs = _inputs(12, 640, 640, 32, torch.float32)
    _check(unbatched, inputs)
    flops = [
        sum(kernel["estimate"]["flops"] for kernel in part["kernels"])
        for function in (library, unbatched)
        for part in polyblocks.explain(function, *inputs, frontend="torch").document()["parts"]
    ]
    assert flops[1] < 1.2 * flops[0]


@pytest.mark.parametrize(
    ("function", "queries", "keys"),
    [
        pytest.param(library, 509, 509, marks=pytest.mark.extended),
        pytest.param(documents, 509, 509, marks=pytest.mark.extended),
        (window, 1, 4099),
        pytest.param(shifted, 600, 701, marks=pytest.mark.extended),
        (window, 700, 601),
        pytest.param(capped, 700, 601, marks=pytest.mark.extended),
    ],
)
def test_lengths_that_no_tile_divides(function: Function, queries: int, keys: int) -> None:
    _check(function, _inputs(12, queries, keys, 17, torch.float32))


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (chosen, torch.float64),
        pytest.param(window, torch.bfloat16, marks=pytest.mark.extended),
        (chosen, torch.float16),
    ],
)
def test_other_types(function: Function, dtype: torch.dtype) -> None:
    inputs = _inputs(12, 520, 520, 24, dtype)
    ours = polyblocks_jit_torch(function, compile_options={"strict_target": True})(*inputs)
    exact = function(*(x.double() for x in inputs))
    eager = (function(*inputs).double() - exact).abs().max()
    assert (ours.double() - exact).abs().max() <= 2 * eager + 32 * torch.finfo(dtype).eps


def test_rows_without_keys_are_what_arithmetic_gives() -> None:
    # Queries behind the last key by a window, and before the first one.
    far = _inputs(12, 900, 500, 16, torch.float32)
    ours = _check(window, far)
    assert ours[:, :, 600:].isnan().all()
    early = _inputs(12, 900, 500, 16, torch.float32)
    ours = _check(shifted, early)
    assert ours[:, :, :400].isnan().all()
    assert not ours[:, :, 400:].isnan().any()


def test_missing_and_infinite_values_show_where_they_are_seen() -> None:
    for special in (float("nan"), float("inf")):
        q, k, v = _inputs(12, 640, 640, 32, torch.float32)
        k[..., 300, 0] = special
        v[..., 500, 1] = special
        exact = chosen(q.double(), k.double(), v.double())
        ours = polyblocks_jit_torch(chosen, compile_options={"strict_target": True})(q, k, v)
        # Masked places count as absent, or as the numbers that they are.
        assert torch.equal(ours[:, :, 500:].isnan(), exact[:, :, 500:].isnan())
        torch.testing.assert_close(
            ours[:, :, :300].double()[..., 2:], exact[:, :, :300][..., 2:], rtol=1e-5, atol=1e-5
        )


def test_zeros_of_a_mask_multiply_what_is_there() -> None:
    def product(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.transpose(-1, -2)).tril() @ v

    q, k, v = _inputs(12, 640, 640, 16, torch.float32)
    v[..., 639, 3] = float("nan")
    ours = polyblocks_jit_torch(product, compile_options={"strict_target": True})(q, k, v)
    assert ours[..., 3].isnan().all()
    assert not ours[..., :3].isnan().any()


def test_gradients() -> None:
    inputs = _inputs(12, 520, 520, 16, torch.float32)

    def step(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(window(*leaves).square().sum(), leaves)

    ours = polyblocks_jit_torch(step, compile_options={"strict_target": True})(*inputs)
    exact = step(*(x.double() for x in inputs))
    for mine, theirs in zip(ours, exact, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4)
