"""Gradients of compiled functions, against PyTorch's own in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu", "strict_target": True}


def gradients(function: Callable[..., Any], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Results, and gradients of every tensor that needs one."""
    given = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    results = function(*given)
    results = [results] if isinstance(results, Tensor) else list(results)
    weighted = [
        (r.double() * torch.cos(r.detach().double() + i)).sum() for i, r in enumerate(results)
    ]
    total = torch.stack(weighted).sum()
    return [*results, *torch.autograd.grad(total, [t for t in given if t.requires_grad])]


def check(function: Callable[..., Any], *tensors: Tensor, tolerance: float = 1e-10) -> None:
    """Compare one function's results and gradients with eager's."""
    want = gradients(function, tensors)
    got = gradients(polyblocks_jit_torch(compile_options=OPTIONS)(function), tensors)
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)


def randn(*shape: int, needs: bool = True) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_(needs)


#: Channels of the image, of the result, groups, sizes of the image, of the window, options.
CONVOLUTIONS: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (8, 16, 8, (9, 9), (3, 3), {"stride": 2, "padding": 1}),
    (8, 8, 8, (10, 7), (3, 3), {"stride": 2, "padding": 1}),
    (8, 8, 8, (6, 7), (5, 3), {"padding": (2, 1)}),
    (8, 4, 2, (11, 8), (2, 3), {"stride": (3, 4)}),
    (6, 9, 3, (9, 8), (3, 2), {"stride": 2, "dilation": (2, 3), "padding": 2}),
    (4, 6, 2, (5, 5), (1, 1), {"padding": 2, "stride": 3}),
    (4, 6, 1, (7, 6), (3, 3), {"stride": 2, "padding": 1}),
    (6, 4, 2, (11,), (4,), {"stride": 3, "padding": 2}),
    (4, 4, 2, (4, 5, 6), (2, 3, 2), {"stride": (2, 1, 3), "padding": 1}),
]
TRANSPOSED = [
    (4, 4, 4, (4, 5), (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    (6, 4, 2, (3, 4), (2, 3), {"stride": (3, 1), "dilation": 2, "output_padding": (2, 1)}),
    (4, 4, 2, (3, 2, 3), (2, 1, 2), {"stride": 2}),
]
USES: dict[str, Callable[[Tensor], Tensor]] = {
    "half": lambda w: w * 0.5,
    "standardized": lambda w: (w - w.mean((1, 2, 3), True)) / (w.std((1, 2, 3), keepdim=True) + 1),
}


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions(transposed: bool) -> None:
    torch.manual_seed(0)
    tensors: list[Tensor] = []
    calls: list[Callable[..., Tensor]] = []
    cases = TRANSPOSED if transposed else CONVOLUTIONS
    for inputs, outputs, groups, sizes, window, options in cases:
        first, second = (inputs, outputs) if transposed else (outputs, inputs)
        weight = randn(first, second // groups, *window)
        tensors += [randn(2, inputs, *sizes), weight, randn(outputs)]
        name = f"conv_transpose{len(sizes)}d" if transposed else f"conv{len(sizes)}d"
        calls.append(partial(getattr(functional, name), groups=groups, **options))

    def f(*tensors: Tensor) -> list[Tensor]:
        return [
            call(tensors[3 * i], tensors[3 * i + 1] * 0.5, tensors[3 * i + 2])
            for i, call in enumerate(calls)
        ]

    check(f, *tensors)


def test_what_else_the_graph_does_with_a_weight() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        kw = {"stride": 2, "padding": 1, "groups": 4}
        found = [functional.conv2d(x, use(w), **kw) for use in USES.values()]
        # Twice, and a penalty.
        return [*found, functional.conv2d(x.sin(), w, **kw), (w * w).sum()]

    check(f, randn(3, 4, 9, 8), randn(8, 1, 3, 3))


def test_autocast() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return functional.conv2d(x, w, stride=2, padding=1, groups=8).float()

    x, w = torch.randn(2, 8, 9, 9), torch.randn(16, 1, 3, 3).requires_grad_()
    check(f, x, w, tolerance=3e-2)


def test_a_convolution_of_windows_that_read_padding_alone() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        return functional.conv2d(x, w * 2, padding=3, stride=2)

    check(f, randn(1, 2, 2, 3), randn(3, 2, 1, 2))
