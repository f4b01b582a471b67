"""Decompositions of convolutions and their gradients, run by PyTorch and compared with its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from polyblocks_torch.decomp.convolutions import convolution, convolution_backward

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


def sample(numbers: random.Random) -> tuple[torch.Tensor, torch.Tensor, list[Any]]:
    """An image, a weight, and the other arguments of ``aten.convolution`` behind the bias."""
    pick = numbers.choice
    dims, groups = pick([1, 2, 2, 3]), pick([1, 1, 2, 3, 4])
    inner, outer, images = pick([1, 1, 2, 3]), pick([1, 1, 2, 3]), pick([1, 2, 3])
    taps, extents = ([pick([1, 2, 3, 4, 5]) for _ in range(dims)] for _ in range(2))
    stride, dilation = ([pick([1, 1, 2, 3, 6]) for _ in range(dims)] for _ in range(2))
    padding = [pick([0, 1, 2, 3]) for _ in range(dims)]
    transposed, more = numbers.random() < 0.4, [0] * dims
    if transposed:
        more = [pick([0, max(step, gap) - 1]) for step, gap in zip(stride, dilation, strict=True)]
        # At least one element is left.
        padding = [
            min(pad, ((extent - 1) * step + gap * (n - 1) + rest) // 2)
            for pad, extent, step, gap, n, rest in zip(
                padding, extents, stride, dilation, taps, more, strict=True
            )
        ]
        shape = [groups * inner, outer, *taps]
    else:
        extents = [
            max(extent, gap * (n - 1) + 1 - 2 * pad, 1)
            for extent, gap, n, pad in zip(extents, dilation, taps, padding, strict=True)
        ]
        shape = [groups * outer, inner, *taps]
    x = torch.randn(images, groups * inner, *extents, dtype=torch.float64)
    weight = torch.randn(shape, dtype=torch.float64)
    return x, weight, [stride, padding, dilation, transposed, more, groups]


@pytest.mark.parametrize("seed", range(6))
def test_against_eager(seed: int) -> None:
    numbers = random.Random(seed)
    torch.manual_seed(seed)
    replaced = 0
    for _ in range(200):
        x, weight, rest = sample(numbers)
        y = aten.convolution(x, weight, None, *rest)
        grad = torch.randn_like(y)
        mine = convolution(x, weight, None, *rest)
        if mine is not NotImplemented:
            replaced += 1
            torch.testing.assert_close(mine, y)
        mask = [numbers.random() < 0.8 for _ in range(3)]
        sizes = [y.shape[1]]
        want = aten.convolution_backward(grad, x, weight, sizes, *rest, mask)
        got = convolution_backward(grad, x, weight, sizes, *rest, mask)
        for one, other, asked in zip(got, want, mask, strict=True):
            assert (one is not None) == asked
            if asked:
                assert one.shape == other.shape
                torch.testing.assert_close(one, other, msg=f"{rest} {mask}")
    assert replaced > 40


@pytest.mark.parametrize("shape", [(0, 4, 5, 5), (2, 0, 5, 5)])
@pytest.mark.parametrize("groups", [1, 2])
def test_nothing(shape: tuple[int, ...], groups: int) -> None:
    x = torch.randn(shape)
    weight = torch.randn(6, shape[1] // groups, 3, 3)
    grad = torch.randn(shape[0], 6, 3, 3)
    found = convolution_backward(
        grad, x, weight, [6], [1, 1], [0, 0], [1, 1], False, [0, 0], groups, [True] * 3
    )
    assert [f.shape for f in found] == [x.shape, weight.shape, (6,)]
    assert not any(gradient.any() for gradient in found[:2])


def test_sums_over_images_are_not_kept_apart_where_they_would_take_much_memory() -> None:
    x, weight = torch.randn(16, 128, 2, 2), torch.randn(128, 128, 3, 3)
    grad = torch.randn(16, 128, 2, 2)
    args = [[1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]]
    sizes: list[int] = []

    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            sizes.append(result.numel() if isinstance(result, torch.Tensor) else 0)
            return result

    with Sizes():
        convolution_backward(grad, x, weight, None, *args)
    assert max(sizes) <= 2 * weight.numel()
