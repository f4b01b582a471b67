"""Convolutions whose pixels are used in place, of sizes that one loop of pixels divides or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sweeps import sweep
from torch.nn import functional

from polyblocks.events import Event, listening
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu", "arch": "x86-64-v3", "strict_target": True}
#: Images, channels, filters, sizes of an image and of the window.
CASES: list[tuple[int, int, int, tuple[int, ...], int, dict[str, Any]]] = [
    (1, 64, 64, (14, 14), 3, {"padding": 1}),
    (2, 64, 40, (9, 14), 3, {"padding": 1}),
    (3, 48, 72, (7, 7), 3, {"padding": 1}),
    (1, 64, 64, (13, 29), 3, {"stride": 2, "padding": 1}),
    (1, 130, 33, (12, 12), 3, {"dilation": 2}),
    (1, 64, 64, (28, 28), 1, {"stride": 2}),
    (1, 96, 64, (14, 14), 3, {"groups": 2, "padding": 1}),
    (2, 64, 64, (42,), 5, {}),
    (1, 32, 32, (6, 8, 8), 3, {"padding": 1}),
]


# PyTorch has no such format of one dimension.
LAYOUTS = [(case, False) for case in CASES] + [(case, True) for case in CASES if len(case[3]) > 1]
#: Every second case with channels last, the others with them first, and both of the first one.
QUICK = [(case, len(case[3]) > 1 and number % 2 > 0) for number, case in enumerate(CASES)]
FURTHER = [*QUICK[1::3], *QUICK[2::3], LAYOUTS[len(CASES)]]


@pytest.mark.parametrize("layout", sweep(LAYOUTS, *QUICK[::3], extended=FURTHER), ids=str)
def test_convolutions(layout: tuple[tuple[Any, ...], bool]) -> None:
    case, channels_last = layout
    images, channels, filters, sizes, window, options = case
    rank = len(sizes)
    convolution = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    x = torch.randn(images, channels, *sizes)
    w = torch.randn(filters, channels // options.get("groups", 1), *[window] * rank)
    b = torch.randn(filters)
    if channels_last:
        last = (torch.channels_last, torch.channels_last_3d)[rank - 2]
        x, w = x.to(memory_format=last), w.to(memory_format=last)

    def f(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return convolution(x, w, b, **options).relu()

    exact = convolution(x.double(), w.double(), b.double(), **options).relu()
    result = polyblocks_jit_torch(compile_options=OPTIONS)(f)(x, w, b)
    assert result.stride() == f(x, w, b).stride()
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=2e-4)


def test_no_pixels_are_copied() -> None:
    x, w = torch.randn(1, 64, 14, 14), torch.randn(64, 64, 3, 3)
    events: list[Event] = []
    with listening(events.append):
        polyblocks_jit_torch(compile_options=OPTIONS)(functional.conv2d)(x, w)
    tiles = [e.data for e in events if e.data.get("what") == "register tiles"]
    assert [t["pack_rows"] for t in tiles] == [False]
    assert 12 % tiles[0]["rows"] == 0
    assert tiles[0]["depth"] == 9 * 64


def test_what_is_no_number_goes_where_it_does_in_pytorch() -> None:
    x, w = torch.randn(1, 64, 16, 16), torch.randn(64, 64, 3, 3)
    x[0, 3, 5, 5], x[0, 7, 9, 9] = float("nan"), float("inf")
    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(functional.conv2d)
    torch.testing.assert_close(
        compiled(x, w), functional.conv2d(x, w), rtol=1e-4, atol=2e-4, equal_nan=True
    )


@pytest.mark.each_choice
@pytest.mark.parametrize("size", [6, 24, 28])
@pytest.mark.parametrize("place", [(0, 1), (1, 0), (2, 2)], ids=str)
def test_padding_of_a_convolution_is_not_there(size: int, place: tuple[int, int]) -> None:
    # Rows of the window that are outside of the image: PyTorch leaves them out, and so do we;
    # columns only where a tile has a whole row of the image.
    x, w = torch.rand(2, 64, size, size) + 1, torch.randn(64, 64, 3, 3)
    w[:, :, place[0], place[1]] = float("inf")
    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(
        lambda x, w: functional.conv2d(x, w, padding=1)
    )
    result, expected = compiled(x, w), functional.conv2d(x, w, padding=1)
    if size > 6:
        result, expected = result[..., 1:-1], expected[..., 1:-1]
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=2e-4)


def test_padding_that_convolutions_share_is_not_there() -> None:
    # What both read is one buffer with one margin, in which each still knows its own padding.
    x, v, w = torch.rand(2, 64, 24, 24) + 1, torch.randn(64, 64, 3, 3), torch.randn(64, 64, 5, 5)
    v[:, :, 0, 1] = w[:, :, 1, 2] = w[:, :, 0, 2] = float("inf")

    def f(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.sqrt().softmax(1)
        a = functional.conv2d(y, v, padding=1)
        return a, functional.conv2d(y, w, padding=2)

    events: list[Event] = []
    with listening(events.append):
        results = polyblocks_jit_torch(compile_options=OPTIONS)(f)(x, v, w)
    whats = [e.data.get("what") for e in events]
    assert whats.count("margins merged") == 1
    assert sum(e.kind == "compile-begin" for e in events) == 1
    for result, expected in zip(results, f(x, v, w), strict=True):
        inner = (slice(None), slice(None), slice(None), slice(2, -2))
        assert expected[inner].isfinite().any()
        torch.testing.assert_close(result[inner], expected[inner], rtol=1e-4, atol=2e-4)


def test_zeros_of_a_program_are_multiplied_beside_padding() -> None:
    # The same operation, on the same line, reads both: its own zeros are not there, the others are.
    x, w = torch.rand(2, 64, 24, 24) + 1, torch.randn(64, 64, 3, 3)
    w[:, :, 0, 1] = float("inf")

    def f(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        y = x.sqrt().softmax(1)
        wider = functional.pad(y, (2, 2, 2, 2))
        return [functional.conv2d(z, w, padding=n) for z, n in ((y, 1), (wider, 0))]

    results = polyblocks_jit_torch(compile_options=OPTIONS)(f)(x, w)
    padded, expected = (both[0][..., 1:-1] for both in (results, f(x, w)))
    torch.testing.assert_close(padded, expected, rtol=1e-4, atol=2e-4)
    assert results[1][:, :, :2].isnan().all()


def test_zeros_of_a_program_are_multiplied() -> None:
    x, w = torch.rand(2, 64, 14, 14) + 1, torch.randn(64, 64, 3, 3)
    w[:, :, 0, 1] = float("inf")
    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(
        lambda x, w: functional.conv2d(functional.pad(x, (1, 1, 1, 1)), w)
    )
    assert compiled(x, w)[:, :, 0].isnan().all()


@pytest.mark.parametrize(
    ("images", "channels", "filters", "sizes", "options"),
    [
        (2, 64, 33, (75, 98), {"padding": [2, 1], "stride": [2, 1]}),
        *(
            pytest.param(*case, marks=pytest.mark.extended)
            for case in (
                (4, 64, 32, (56, 56), {"padding": [1, 1]}),
                (3, 48, 40, (61, 43), {"padding": [1, 0]}),
                (5, 96, 16, (47, 47), {"dilation": [1, 2]}),
            )
        ),
    ],
    ids=str,
)
def test_gradients_of_weights_in_passes(
    images: int, channels: int, filters: int, sizes: tuple[int, int], options: dict[str, Any]
) -> None:
    last = torch.channels_last
    x = torch.randn(images, channels, *sizes).to(memory_format=last)
    w = torch.randn(filters, channels, 3, 3).to(memory_format=last)
    g = torch.randn_like(functional.conv2d(x, w, **options)).to(memory_format=last)
    given = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], **options}

    def f(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.convolution_backward(
            *(g, x, w, None, given["stride"], given["padding"], given["dilation"]),
            *(False, [0, 0], 1, [False, True, False]),
        )[1]

    events: list[Event] = []
    with listening(events.append):
        result = polyblocks_jit_torch(compile_options=OPTIONS)(f)(g, x, w)
    (tiles,) = (e.data for e in events if e.data.get("what") == "register tiles")
    assert not tiles["pack_rows"]
    assert tiles["depth"] < images * g.shape[2] * g.shape[3]
    exact = f(g.double(), x.double(), w.double())
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=2e-3)
