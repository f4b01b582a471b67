"""What a transposed convolution puts between and around elements meets no infinite weight."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch.nn import functional

from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

#: Shapes of images and weights, and options, of so few channels that no tile computes them.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 1, 3), (1, 1, 2), {"stride": 2}),
    ((2, 1, 7), (1, 1, 5), {"stride": 3, "padding": 1, "output_padding": 2}),
    ((1, 2, 9), (2, 1, 3), {"dilation": 2}),
    ((2, 1, 5, 6), (1, 1, 3, 3), {}),
    ((2, 1, 5, 7), (1, 1, 3, 3), {"stride": 2}),
    ((1, 1, 5, 4), (1, 1, 4, 3), {"stride": (1, 3), "padding": (5, 1), "dilation": (2, 1)}),
    ((1, 6, 5, 7), (6, 1, 4, 4), {"stride": 2, "padding": 1, "groups": 6}),
    ((1, 3, 5, 3), (3, 2, 3, 2), {"padding": 1, "groups": 3}),
    ((1, 1, 3, 5), (1, 1, 9, 9), {"stride": 5, "dilation": 2, "output_padding": 3}),
    ((1, 1, 3, 4, 3), (1, 1, 2, 3, 3), {"stride": (2, 1, 3), "padding": (0, 1, 1)}),
    ((1, 2, 3, 3, 4), (2, 1, 3, 3, 2), {"stride": 2, "groups": 2, "output_padding": 1}),
    ((1, 1, 2, 2, 2), (1, 1, 1, 1, 1), {"stride": 5}),
]


def compiled(f: Any) -> Any:
    return polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})(f)


# Of one to three dimensions, of groups, and with strides and gaps.
@pytest.mark.parametrize("case", sweep(CASES, *CASES[::4], extended=CASES[2::4]), ids=str)
def test_weights_that_are_no_numbers(case: Any) -> None:
    shape, window, options = case
    convolution = getattr(functional, f"conv_transpose{len(shape) - 2}d")
    x, w = torch.randn(shape), torch.randn(window)
    # All corners, and NaN somewhere else; a zero of the image is multiplied.
    w.flatten(2)[0, :, [0, -1]] = math.inf
    w.view(-1)[w.numel() // 2] = math.nan
    x.view(-1)[x.numel() // 2] = 0.0
    x.view(-1)[0] = -math.inf

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return convolution(x, w, **options)

    # PyTorch computes float64 without zeros in between.
    exact = f(x.double(), w.double())
    assert not exact.isnan().all()
    result = compiled(f)(x, w)
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float64, torch.float16, torch.bfloat16],
        torch.bfloat16,
        extended=[torch.float64, torch.float16],
    ),
    ids=str,
)
def test_types(dtype: torch.dtype) -> None:
    x, w, b = torch.randn(1, 2, 5, 6), torch.randn(2, 1, 3, 3), torch.randn(1)
    w[1, 0, 0, 2], w[0, 0, 1, 1] = math.inf, math.nan
    x, w, b = x.to(dtype), w.to(dtype), b.to(dtype)

    def f(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose2d(x, w, b, stride=2, padding=1)

    exact = f(x.double(), w.double(), b.double())
    result = compiled(f)(x, w, b)
    torch.testing.assert_close(result, exact.to(dtype), equal_nan=True)


def test_integers() -> None:
    x, w = torch.randint(-9, 9, (2, 4, 5, 6)), torch.randint(-9, 9, (4, 2, 3, 3))

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose2d(x, w, stride=2, padding=1, groups=2)

    assert torch.equal(compiled(f)(x, w), f(x, w))


def test_constant_weights() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose1d(x, torch.tensor([[[math.inf, 1.0]]]), stride=2)

    x = torch.randn(1, 1, 3)
    torch.testing.assert_close(compiled(f)(x), f(x))


@pytest.mark.parametrize(
    ("shape", "window", "options"),
    [
        ((2, 1, 9, 8), (1, 1, 3, 3), {"stride": 2, "padding": 1}),
        ((1, 4, 9, 7), (4, 1, 3, 2), {"stride": (2, 3), "groups": 4}),
        pytest.param(*((1, 1, 11), (1, 1, 4), {"stride": 3, "padding": 3}), marks=pytest.mark.slow),
        *(
            pytest.param(*case, marks=pytest.mark.extended)
            for case in (
                ((1, 1, 5, 6, 5), (1, 1, 2, 2, 3), {"stride": 2, "padding": 1}),
                ((1, 1, 5, 5), (1, 1, 1, 1), {"stride": 2, "padding": 3}),
            )
        ),
    ],
    ids=str,
)
def test_gradients_of_strided_convolutions(shape: Any, window: Any, options: Any) -> None:
    convolution = getattr(functional, f"conv{len(shape) - 2}d")
    x, w = torch.randn(shape), torch.randn(window)
    w.flatten(2)[0, 0, [0, -1]] = math.inf

    def gradient(f: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        x = x.clone().requires_grad_()
        result = f(x, w)
        (found,) = torch.autograd.grad(result, x, torch.randn(result.shape).to(result.dtype))
        return found

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return convolution(x, w, **options)

    result, exact = gradient(compiled(f), x, w), gradient(f, x.double(), w.double())
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize(
    "options",
    sweep([{"stride": 2}, {"stride": 3}], {"stride": 2}, extended=[{"stride": 3}]),
    ids=str,
)
def test_zeros_between_elements_in_tiles(options: Any) -> None:
    x, w = torch.randn(1, 32, 7, 9), torch.randn(32, 16, 3, 3)
    w[1, 2, 1, 0] = math.inf

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose2d(x, w, **options)

    # Where the windows are all inside: tiles may multiply what is around an image.
    inside = (..., slice(2, -2), slice(2, -2))
    result, exact = compiled(f)(x, w)[inside], f(x.double(), w.double())[inside]
    assert exact[0, 2].isinf().any()
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("padding", sweep([3, 4, 6], 4, extended=[3, 6]))
def test_padding_that_cuts_elements_off(padding: int) -> None:
    x, w = torch.randn(1, 2, 6, 5), torch.randn(2, 3, 3, 2)

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose2d(x, w, stride=(3, 4), padding=padding)

    torch.testing.assert_close(compiled(f)(x, w), f(x, w), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("target", "arch"),
    [
        ("nvgpu", "sm_90a"),
        pytest.param("amdgpu", "gfx1100", marks=pytest.mark.extended),
    ],
)
def test_on_gpus(target: str, arch: str) -> None:
    options = {"target": target, "arch": arch, "simulate": True, "strict_target": True}
    x, w = torch.randn(1, 4, 5, 6), torch.randn(4, 1, 3, 3)
    w[1, 0, 2, 0], w[2, 0, 1, 1] = math.inf, math.nan

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose2d(x, w, stride=(2, 1), padding=1, groups=4)

    result = polyblocks_jit_torch(compile_options=options)(f)(x, w)
    exact = f(x.double(), w.double())
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-4, equal_nan=True)
