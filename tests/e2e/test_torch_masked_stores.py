"""Stores at masks of values that need gradients: as many places as values, as the mask says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

STRICT = {"target": "cpu", "strict_target": True}


def gradients(function: Callable[..., Tensor], x: Tensor, mask: Tensor, values: Tensor) -> list:
    x, values = (t.detach().clone().requires_grad_() for t in (x, values))
    y = function(x, mask, values)
    weights = torch.arange(1.0, y.numel() + 1, dtype=y.dtype).view(y.shape)
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), (x, values))]


def store(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    x = x * 2
    x[mask] = values
    return x


def store_behind(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    x = x * 2
    x[:, mask] = values
    return x


def store_last(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    x = x * 2
    x[..., mask] = values
    return x


def store_column(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    x = x * 2
    x[mask, 1] = values
    return x


def store_between(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    x = x * 2
    x[-1, ..., mask, 1:3] = values
    return x


def store_in_view(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    x = x * 2
    x[1:][mask[1:]] = values
    return x


def add(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    return (x * 2).index_put_((mask,), values, accumulate=True)


TWO = torch.tensor([[True, False, True], [False, True, False]])
CASES = [
    (store, (5,), torch.tensor([True, False, True, False, True]), (3,)),
    (store, (2, 3, 4), TWO, (4,)),  # one row for all places, as of a mask token
    (store, (2, 3, 4), TWO, ()),
    (store, (2, 3, 4), TWO, (3, 4)),
    (store, (2, 3, 4), TWO, (3, 1)),
    (store, (2, 3), TWO, (1, 1, 3)),
    (store, (2, 3, 4), TWO & False, (4,)),
    (store, (2, 3, 4), TWO & False, (0, 4)),
    (store, (2, 3), TWO | True, (6,)),
    (store_behind, (2, 3, 4), TWO[0], (2, 2, 4)),
    (store_behind, (2, 2, 3), TWO, (3,)),
    (store_last, (4, 2, 3), TWO[0], (2,)),
    (store_last, (4, 2, 3), TWO, (3,)),
    (store_column, (5, 4), torch.tensor([True, False, True, False, True]), (3,)),
    (store_column, (2, 3, 4, 5), TWO, (3, 5)),
    (store_column, (2, 3, 4, 5), TWO, ()),
    (store_between, (2, 4, 3, 5), TWO[0], (4, 2, 2)),
    (store_between, (2, 3, 5), TWO[0], (2, 2)),
    (store_in_view, (3, 4), torch.tensor([True, False, True]), (1, 4)),
    (add, (2, 3), TWO, (3,)),
]


@pytest.mark.parametrize(("function", "shape", "mask", "values"), CASES)
def test_gradients(
    function: Callable[..., Tensor], shape: tuple[int, ...], mask: Tensor, values: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    x, values_ = torch.randn(shape).double(), torch.randn(values).double()
    want = gradients(function, x, mask, values_)
    got = gradients(polyblocks_jit_torch(function, compile_options=STRICT), x, mask, values_)
    for mine, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_as_many_values_as_places() -> None:
    compiled = polyblocks_jit_torch(store, compile_options=STRICT)
    x, mask = torch.randn(5), torch.tensor([True, False, True, False, True])
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[2\]"):
        compiled(x, mask, torch.randn(2).requires_grad_())


def test_other_stores_stay_with_pytorch() -> None:
    places = torch.tensor([1, 3])

    def at_mask_and_index(x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
        x = x * 2
        x[mask, places] = values
        return x

    compiled = polyblocks_jit_torch(at_mask_and_index, compile_options={"target": "cpu"})
    x, mask, values = torch.randn(3, 4), torch.tensor([True, False, True]), torch.randn(2)
    want = gradients(at_mask_and_index, x, mask, values)
    for mine, theirs in zip(gradients(compiled, x, mask, values), want, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert "nonzero" in str(compiled.polyblocks_report().fallbacks)
