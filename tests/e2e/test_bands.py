"""Triangles and bands: rows are cut at masks, and what is outside of these does not matter."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from polyblocks.events import Event, listening
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu"}
LONG = (1037, 2050)


def compiled(function: Callable[..., Tensor], *arguments: Tensor) -> tuple[Tensor, int]:
    """What a compiled function gives, and how many loops were cut."""
    events: list[Event] = []
    with listening(events.append):
        result = polyblocks_jit_torch(function, compile_options=OPTIONS)(*arguments)
    made = [e.data for e in events if e.data.get("pass") == "split-masks"]
    return result, len(made)


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Numbers with NaN and infinities among them, if there are such."""
    made = torch.from_numpy(np.random.default_rng(0).integers(1, 100, shape)).to(dtype)
    if dtype.is_floating_point:
        flat = made.view(-1)
        flat[::7], flat[3::11], flat[5::13] = np.nan, np.inf, -np.inf
    return made


@pytest.mark.parametrize("k", [0, -7, 5, -900, 1500, 3000, -3000])
@pytest.mark.parametrize("function", [torch.tril, torch.triu])
def test_triangles(function: Callable[..., Tensor], k: int) -> None:
    x = numbers(LONG, torch.float32)
    found, _ = compiled(lambda a: function(a, k), x)
    torch.testing.assert_close(found, function(x, k), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(3, 600, 2063), (2048, 2048), (2500, 1100)])
def test_types_and_shapes(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = numbers(shape, dtype)
    found, _ = compiled(torch.tril, x)
    torch.testing.assert_close(found, torch.tril(x), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("least", "most"), [(-5, 3), (0, 0), (40, 90), (-90, -40), (9, -9)])
def test_bands(least: int, most: int) -> None:
    """The last one is empty: its end comes before its beginning."""

    def band(x: Tensor, y: Tensor) -> Tensor:
        distance = torch.arange(x.shape[0])[:, None] - torch.arange(x.shape[1])[None, :]
        return torch.where((distance >= least) & (distance <= most), x, y)

    x, y = numbers(LONG, torch.float32), numbers(LONG, torch.float32) * 2
    for other in (torch.tensor(-3.5), y):
        found, cut = compiled(band, x, other)
        torch.testing.assert_close(found, band(x, other), rtol=0, atol=0, equal_nan=True)
        assert cut


def test_columns_beside_each_other() -> None:
    def choice(x: Tensor, y: Tensor) -> Tensor:
        return torch.where(torch.arange(x.shape[1]) < 1001, x + 1, y * 2)

    x, y = (numbers(LONG, torch.float32) for _ in range(2))
    found, _ = compiled(choice, x, y)
    torch.testing.assert_close(found, choice(x, y), rtol=0, atol=0, equal_nan=True)


def test_what_is_multiplied_by_a_mask_is_loaded() -> None:
    def product(x: Tensor) -> Tensor:
        keep = torch.arange(x.shape[0])[:, None] >= torch.arange(x.shape[1])[None, :]
        return x * keep

    x = numbers(LONG, torch.float32)
    found, cut = compiled(product, x)
    torch.testing.assert_close(found, product(x), rtol=0, atol=0, equal_nan=True)
    assert not cut


def test_in_place() -> None:
    def update(x: Tensor) -> Tensor:
        x.tril_(-3)
        return x

    x = numbers(LONG, torch.float32)
    expected = torch.tril(x, -3)
    polyblocks_jit_torch(update, compile_options=OPTIONS)(x)
    torch.testing.assert_close(x, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("lower", "upper"), [*itertools.product([0, 3, -1], [0, 5, -1])])
def test_tables_of_places(lower: int, upper: int) -> None:
    """TensorFlow holds the places that it compares in a table."""
    tf = pytest.importorskip("tensorflow")
    from polyblocks_tf import polyblocks_jit_tf

    x = tf.constant(numbers(LONG, torch.float32).numpy())
    made = polyblocks_jit_tf(
        lambda a: tf.linalg.band_part(a, lower, upper), compile_options=OPTIONS
    )(x)
    np.testing.assert_array_equal(made.numpy(), tf.linalg.band_part(x, lower, upper).numpy())
