"""Transposed convolutions multiply no zeros between pixels, nor do gradients of strided ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from sweeps import sweep
from torch.nn import functional

from polyblocks.events import Event, listening
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu", "arch": "x86-64-v3", "strict_target": True}
#: Channels, filters, sizes of an image, of the window, options, and nests that are expected.
CASES: list[tuple[int, int, tuple[int, ...], tuple[int, ...], dict[str, Any], int]] = [
    (32, 24, (7, 9), (4, 4), {"stride": 2, "padding": 1}, 4),
    (32, 24, (5, 6), (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}, 4),
    (16, 24, (6, 5), (2, 2), {"stride": 2}, 1),
    (16, 8, (3, 4), (4, 6), {"stride": (4, 3)}, 1),
    (16, 40, (5, 7), (5, 4), {"stride": (3, 1), "padding": (1, 2)}, 3),
    (32, 16, (6, 6), (1, 2), {"stride": 2}, 2),
    (32, 24, (5, 6), (3, 2), {"stride": 2, "dilation": (1, 3), "padding": 2}, 4),
    (32, 24, (5, 6), (3, 3), {"stride": 2, "dilation": 2}, 4),
    (64, 24, (19,), (5,), {"stride": 3, "padding": 2}, 2),
    (8, 12, (3, 4, 5), (3, 3, 3), {"stride": 2, "padding": 1}, 8),
    (13, 7, (5, 5), (7, 7), {"stride": 2, "padding": 5}, 4),
]
#: Of those with channels last, the first and the last one.
OTHER = [(case, True) for case in CASES if len(case[2]) > 1]
FIRST = [(case, False) for case in CASES]
#: The slow ones differ from those before them in the size of the window alone.
LAYOUTS = sweep(
    FIRST, FIRST[0], FIRST[4], FIRST[6], FIRST[9], extended=[FIRST[1], *FIRST[7:9], FIRST[10]]
) + sweep(OTHER, OTHER[0], extended=OTHER[-1:])


def phases(events: list[Event]) -> list[tuple[str, int]]:
    """What was decided, and how many nests there are."""
    found = [e.data for e in events if e.data.get("pass") == "split-phases"]
    return [(data["what"], data["nests"]) for data in found]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_torch(layout: tuple[tuple[Any, ...], bool]) -> None:
    case, channels_last = layout
    channels, filters, sizes, window, options, nests = case
    rank = len(sizes)
    convolution = getattr(functional, f"conv_transpose{rank}d")
    x, w = torch.randn(2, channels, *sizes), torch.randn(channels, filters, *window)
    b = torch.randn(filters)
    if channels_last:
        x = x.to(memory_format=(torch.channels_last, torch.channels_last_3d)[rank - 2])

    def f(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return convolution(x, w, b, **options).relu()

    events: list[Event] = []
    with listening(events.append):
        result = polyblocks_jit_torch(compile_options=OPTIONS)(f)(x, w, b)
    exact = convolution(x.double(), w.double(), b.double(), **options).relu()
    assert result.stride() == f(x, w, b).stride()
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=2e-4)
    assert phases(events) == [("split", nests)]


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.bfloat16, torch.float16, torch.float64],
        torch.bfloat16,
        extended=[torch.float16, torch.float64],
    ),
    ids=str,
)
def test_types(dtype: torch.dtype) -> None:
    x, w = torch.randn(1, 64, 6, 7).to(dtype), torch.randn(64, 40, 4, 4).to(dtype)
    exact = functional.conv_transpose2d(x.double(), w.double(), stride=2)
    eager = functional.conv_transpose2d(x, w, stride=2)
    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(functional.conv_transpose2d)
    error = (compiled(x, w, stride=2).double() - exact).abs().max()
    assert error <= 2 * (eager.double() - exact).abs().max() + 1e-12


def test_few_products_are_left_whole() -> None:
    x, w = jnp.ones((1, 2, 6, 7)), jnp.ones((2, 2, 2, 3))

    def f(x: Any, w: Any) -> Any:
        return jax.lax.conv_transpose(
            x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "HWIO", "NCHW")
        )

    events: list[Event] = []
    with listening(events.append):
        result = polyblocks_jit_jax(compile_options=OPTIONS)(f)(x, w)
    np.testing.assert_allclose(result, f(x, w))
    assert phases(events) == [("left whole", 1)]


def test_marked_products_are_split_however_few_they_are() -> None:
    x, w = torch.randn(1, 2, 6, 7), torch.randn(2, 3, 2, 2)
    events: list[Event] = []
    with listening(events.append):
        polyblocks_jit_torch(compile_options=OPTIONS)(functional.conv_transpose2d)(x, w, stride=2)
    assert phases(events) == [("split", 1)]


def test_what_is_no_number_goes_where_it_does_in_pytorch() -> None:
    x, w = torch.randn(1, 64, 8, 8), torch.randn(64, 24, 4, 4)
    x[0, 3, 5, 5], x[0, 7, 2, 1] = float("nan"), float("inf")
    w[1, 2, 3, 0] = float("inf")

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv_transpose2d(x, w, stride=2, padding=1)

    # Where the window is all inside: what is around an image may be multiplied.
    inside = (..., slice(2, -2), slice(2, -2))
    result, expected = (
        polyblocks_jit_torch(compile_options=OPTIONS)(f)(x, w)[inside],
        f(x, w)[inside],
    )
    assert expected[0, 2].isinf().any()
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=2e-4, equal_nan=True)


def test_zeros_of_the_program_are_multiplied() -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        spread = torch.zeros(1, 64, 13, 13)
        spread[:, :, ::2, ::2] = x
        return functional.conv2d(spread, w)

    x, w = torch.randn(1, 64, 7, 7), torch.randn(24, 64, 3, 3)
    w[5, 6, 1, 1] = float("inf")
    result = polyblocks_jit_torch(compile_options=OPTIONS)(f)(x, w)
    assert result[0, 5].isnan().any()
    torch.testing.assert_close(result, f(x, w), rtol=1e-4, atol=2e-4, equal_nan=True)


@pytest.mark.parametrize("stride", sweep([2, 3], 3))
def test_gradients_of_a_strided_convolution(stride: int) -> None:
    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, w, stride=stride, padding=1).square().sum()

    def gradients(f: Any, dtype: torch.dtype) -> list[torch.Tensor]:
        torch.manual_seed(0)
        x, w = torch.randn(2, 16, 13, 15), torch.randn(32, 16, 3, 3)
        x, w = (t.to(dtype).requires_grad_() for t in (x, w))
        return list(torch.autograd.grad(f(x, w), (x, w)))

    events: list[Event] = []
    with listening(events.append):
        found = gradients(polyblocks_jit_torch(compile_options=OPTIONS)(loss), torch.float32)
    for mine, exact in zip(found, gradients(loss, torch.float64), strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=1e-4, atol=1e-2)
    assert [what for what, _ in phases(events)] == ["split"]


def test_jax() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 7, 9, 32), np.float32)
    w = random.standard_normal((4, 4, 32, 24), np.float32)

    def f(x: Any, w: Any) -> Any:
        return jax.lax.conv_transpose(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    events: list[Event] = []
    with listening(events.append):
        result = polyblocks_jit_jax(compile_options=OPTIONS)(f)(x, w)
    np.testing.assert_allclose(result, f(jnp.asarray(x), w), rtol=1e-4, atol=2e-4)
    assert phases(events) == [("split", 4)]


def test_tensorflow() -> None:
    x, w = tf.random.normal((2, 7, 9, 32)), tf.random.normal((4, 4, 24, 32))

    def f(x: Any, w: Any) -> Any:
        return tf.nn.conv2d_transpose(x, w, (2, 14, 18, 24), 2)

    events: list[Event] = []
    with listening(events.append):
        result = polyblocks_jit_tf(compile_options=OPTIONS)(f)(x, w)
    np.testing.assert_allclose(result, f(x, w), rtol=1e-4, atol=2e-4)
    assert phases(events) == [("split", 4)]
