"""Arguments of which a program updates a part in place: what it writes, and what it does not copy.

A cache of keys or values gets a row at each step; whole copies of it would take far more time than
the step itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Layers, rows and columns of a cache.
SHAPE = (3, 37, 19)


def caches() -> dict[str, Tensor]:
    """Caches of one shape and several layouts."""
    torch.manual_seed(3)
    return {
        "dense": torch.randn(SHAPE),
        "strided": torch.randn(3, 74, 40)[:, ::2, 1:20],
        "transposed": torch.randn(19, 37, 3).permute(2, 1, 0),
        "float64": torch.randn(SHAPE, dtype=torch.float64),
        "bfloat16": torch.randn(SHAPE).bfloat16(),
    }


def index_copied(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache.index_copy_(1, at, new)
    return cache.sum(2)


def assigned(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache[:, at] = new
    return cache.sum(2)


def sliced(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache[:, 7:8] = new
    return cache[:, :8].sum(2)


def scattered(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache.scatter_(1, at.view(1, 1, 1).expand_as(new), new)
    return cache.sum(2)


def copied_back(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache.copy_(torch.index_copy(cache, 1, at, new))
    return cache.sum(2)


def updated_twice(cache: Tensor, new: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    cache.index_copy_(1, at, new)
    first = cache.sum(2)
    cache.index_copy_(1, at + 1, first[:, :1, None] * new)
    return first, cache.sum(2)


def read_before(cache: Tensor, new: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    twice = cache * 2
    cache.index_copy_(1, at, cache[:, :1] + new)
    return twice, cache.sum(2)


def layer_by_layer(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    x = new[0]
    for layer in range(3):
        cache[layer, at] = x
        x = torch.tanh(x @ cache[layer].T @ cache[layer])
    return x


def layers_of_slices(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    x = new[0]
    for layer in range(3):
        cache[layer, 5:6] = x
        x = torch.tanh(x @ cache[layer].T @ cache[layer])
    return x


def added(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache.index_add_(1, at, new)
    return cache.sum(1)


IN_PLACE = [
    index_copied, assigned, sliced, scattered, copied_back, updated_twice, read_before,
    layer_by_layer, layers_of_slices, added,
]  # fmt: skip


def seen_after(cache: Tensor, new: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """The old contents are needed behind the update."""
    old = cache.clone()
    cache.index_copy_(1, at, new)
    return old @ cache.transpose(1, 2), old.sum(1)


def shifted(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache[:, 1:] = cache[:, :-1].clone()
    cache[:, :1] = new
    return cache.sum(2)


def exchanged(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache[:, [0, 1, 2]] = cache[:, [2, 0, 1]]
    return cache.sum(1)


def transposed_view(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    cache.transpose(1, 2).index_copy_(2, at, new.transpose(1, 2))
    return cache.sum(2)


def memory_of(tensor: Tensor) -> Tensor:
    """All elements of the memory that a tensor is in."""
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())


def check(function: Callable[..., Any], cache: Tensor, *more: Tensor) -> Any:
    """Compare results and the cache's memory with eager mode's; returns the report."""
    before = memory_of(cache).clone()
    expected = before.as_strided(cache.shape, cache.stride(), cache.storage_offset())
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    results, wanted = compiled(cache, *more), function(expected, *more)
    torch.testing.assert_close(results, wanted)
    torch.testing.assert_close(memory_of(cache), before)
    return compiled.polyblocks_report().to_json()


def row(cache: Tensor) -> tuple[Tensor, Tensor]:
    """A row for each layer, and its place."""
    return torch.randn(3, 1, 19).to(cache.dtype), torch.tensor([5])


@pytest.mark.parametrize(
    "layout", ["strided", pytest.param("transposed", marks=pytest.mark.extended)]
)
@pytest.mark.parametrize(
    "function", [*IN_PLACE, seen_after, shifted, exchanged, transposed_view],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_update(function: Callable[..., Any], layout: str) -> None:
    cache = caches()[layout]
    check(function, cache, *row(cache))


@pytest.mark.parametrize("function", [index_copied, scattered, added], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "layout", ["bfloat16", pytest.param("float64", marks=pytest.mark.extended)]
)
def test_update_of_other_types(function: Callable[..., Any], layout: str) -> None:
    cache = caches()[layout]
    check(function, cache, *row(cache))


@pytest.mark.parametrize(
    "function", [seen_after, shifted, exchanged, transposed_view], ids=lambda f: f.__name__
)
def test_old_contents_are_needed(function: Callable[..., Any]) -> None:
    cache = caches()["dense"]
    check(function, cache, *row(cache))


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda f: f.__name__)
def test_no_copy_of_the_cache(function: Callable[..., Any]) -> None:
    cache = caches()["dense"]
    report = check(function, cache, *row(cache))
    copies = [k for part in report["parts"] for k in part["kernels"] if k["kind"] == "copy"]
    moved = {k["name"]: k["estimate"]["floor_bytes"] for k in copies}
    assert all(nbytes < cache.nbytes for nbytes in moved.values()), moved


def test_one_tensor_twice() -> None:
    """Each cache is updated where both names reach it."""

    def both(a: Tensor, b: Tensor, new: Tensor, at: Tensor) -> Tensor:
        a.index_copy_(1, at, new)
        b.index_copy_(1, at + 1, new)
        return a.sum(2) + b.sum(2)

    compiled = polyblocks_jit_torch(both, compile_options={"strict_target": True})
    cache = torch.randn(SHAPE)
    for pick in (lambda c: (c, c), lambda c: (c[:, :30], c[:, 3:33]), lambda c: (c, c.clone())):
        mine, other = cache.clone(), cache.clone()
        new, at = row(cache)
        pair, wanted = pick(mine), pick(other)
        torch.testing.assert_close(compiled(*pair, new, at), both(*wanted, new, at))
        torch.testing.assert_close(mine, other)
        torch.testing.assert_close(pair, wanted)


def test_place_out_of_range() -> None:
    cache = torch.randn(SHAPE)
    new, _ = row(cache)
    compiled = polyblocks_jit_torch(index_copied)
    with pytest.raises(IndexError, match="out of range"):
        compiled(cache, new, torch.tensor([37]))
