"""Stencils in PyTorch: rows that are computed together, sums that are shared, margins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweeps import sweep
from torch import Tensor
from torch.nn import functional

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

Program = Callable[[Tensor], "Tensor | tuple[Tensor, ...]"]
#: Widths are for vectors, heights for groups of rows and what is left of them.
SHAPES = [(5, 70), (6, 128), (33, 257), (131, 1031), (9, 64)]


def box(x: Tensor) -> Tensor:
    """Sums of 3 x 3, and of their squares."""
    ones = torch.ones(1, 1, 3, 3, dtype=x.dtype)
    return functional.conv2d(torch.stack([x, x * x])[:, None], ones)[:, 0]


def gradients(x: Tensor) -> tuple[Tensor, Tensor]:
    """Sobel's filter and its transpose, which have zeros."""
    sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=x.dtype) / 3
    gx, gy = (functional.conv2d(x[None, None], k[None, None])[0, 0] for k in (sobel, sobel.T))
    return gx * gy, gx - gy


def written_out(x: Tensor) -> Tensor:
    """A separable filter as sums of slices."""
    rows = x[:-4] + 4 * x[1:-3] + 6 * x[2:-2] + 4 * x[3:-1] + x[4:]
    return (rows[:, :-2] - rows[:, 2:]) / 32


def corners(x: Tensor) -> Tensor:
    """Products of gradients, summed: everything in one nest."""
    gx, gy = x[1:, 1:] - x[1:, :-1], x[1:, 1:] - x[:-1, 1:]
    sums = [functional.avg_pool2d(p[None, None], 3, 1)[0, 0] for p in (gx * gx, gy * gy, gx * gy)]
    return sums[0] * sums[1] - sums[2] * sums[2] - 0.04 * (sums[0] + sums[1]) ** 2


def smallest(x: Tensor) -> Tensor:
    """Minima, which are no sums."""
    rows = torch.minimum(torch.minimum(x[:-2], x[1:-1]), x[2:])
    return torch.minimum(torch.minimum(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])


def padded(x: Tensor) -> tuple[Tensor, Tensor]:
    """An array of the program with margins of several widths, and the array itself."""
    y = torch.tanh(x)
    one, other = functional.pad(y, (1, 1)), functional.pad(y, (0, 0, 2, 1))
    return one[:, :-2] + one[:, 2:] - other[1:-2] * other[3:] + y, y


def steps(x: Tensor) -> Tensor:
    """States with margins, of which the last one is the result."""
    for _ in range(3):
        wide = functional.pad(x, (1, 2, 2, 1))
        x = 0.25 * (wide[1:-2, 1:-2] + wide[3:, 1:-2] - wide[2:-1, 3:] * x)
    return x


PROGRAMS = [box, gradients, written_out, corners, smallest, padded, steps]
#: Shared sums, chains of them, extremes, and margins.
SOME = sweep(PROGRAMS, box, corners, smallest, steps)


def compiled(f: Program, x: Tensor) -> tuple[Tensor, ...]:
    return listed(polyblocks_jit_torch(compile_options={"strict_target": True})(f)(x))


def listed(results: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.each_choice
@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_near_float64(f: Program, shape: tuple[int, int]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    wanted, eager = listed(f(x.double())), listed(f(x))
    for got, exact, other in zip(compiled(f, x), wanted, eager, strict=True):
        allowed = 2 * (other - exact).abs().max() + 4e-7 * exact.abs().max()
        assert (got - exact).abs().max() <= allowed


@pytest.mark.each_choice
@pytest.mark.parametrize("f", SOME)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_other_types(f: Program, dtype: torch.dtype) -> None:
    x = torch.randn(19, 150, generator=torch.Generator().manual_seed(2)).to(dtype)
    wanted = listed(f(x.double()))
    for got, exact in zip(compiled(f, x), wanted, strict=True):
        assert got.dtype == dtype
        scale = exact.abs().max() * torch.finfo(dtype).eps
        assert (got.double() - exact).abs().max() <= 8 * scale


@pytest.mark.each_choice
@pytest.mark.parametrize("f", SOME)
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_spreads_as_far_as_in_the_framework(f: Program, number: float) -> None:
    """Also to where it is multiplied by zero."""
    x = torch.randn(37, 131, generator=torch.Generator().manual_seed(3))
    x[11, 50], x[30, 129] = number, -number
    for got, other in zip(compiled(f, x), listed(f(x)), strict=True):
        assert torch.equal(got.isfinite(), other.isfinite())
        torch.testing.assert_close(got, other, rtol=1e-3, atol=1e-4, equal_nan=True)


def test_not_contiguous() -> None:
    x = torch.randn(140, 60, generator=torch.Generator().manual_seed(4)).T[:, ::2]
    torch.testing.assert_close(compiled(corners, x)[0], corners(x))


@pytest.mark.parametrize("f", [box, smallest])
def test_integers(f: Program) -> None:
    x = torch.randint(-99, 99, (23, 99), generator=torch.Generator().manual_seed(5))
    x = x.to(torch.int32)
    if f is box:
        f = lambda x: x[:-2] + x[1:-1] * 3 + x[2:]  # noqa: E731
    assert torch.equal(compiled(f, x)[0], listed(f(x))[0])


def test_a_chosen_layer_is_computed_where_it_is_read() -> None:
    """What is computed of layers that nobody chooses is not; indices from the end as well."""

    def chosen(x: Tensor, which: Tensor) -> Tensor:
        layers = torch.stack([torch.exp(-x * k) + x.roll(1, 1) for k in range(4)])
        scaled = layers * torch.arange(4.0)[:, None, None] - x
        return scaled.gather(0, which[None])[0] + scaled.index_select(0, which[0, :1])[0]

    generator = torch.Generator().manual_seed(6)
    x = torch.randn(21, 133, generator=generator)
    which = torch.randint(0, 4, (21, 133), generator=generator)
    f = polyblocks_jit_torch(compile_options={"strict_target": True})(chosen)
    torch.testing.assert_close(f(x, which), chosen(x, which))
    with pytest.raises(Exception, match="index"):
        f(x, which + 3)


def waves(now: Tensor, before: Tensor) -> Tensor:
    """Steps of a wave in space whose planes do not fit a first cache."""
    for _ in range(4):
        wide = functional.pad(now, (2, 2, 2, 2, 2, 2))
        sums = -7.5 * now
        for axis, extent in enumerate(now.shape):
            for far, factor in ((1, 4 / 3), (2, -1 / 12)):
                for start in (2 - far, 2 + far):
                    part = [slice(2, -2)] * 3
                    part[axis] = slice(start, start + extent)
                    sums = sums + factor * wide[tuple(part)]
        before, now = now, 2 * now - before + 0.1 * sums
    return now


@pytest.mark.parametrize(
    "shape",
    sweep([(64, 128, 256), (37, 201, 263), (19, 37, 261), (4, 130, 131)], (4, 130, 131)),
)
def test_planes_that_are_computed_together_and_updated_in_place(
    shape: tuple[int, int, int],
) -> None:
    now, before = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
    got = polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})(waves)(
        now, before
    )
    expected = waves(now.double(), before.double())
    eager = (waves(now, before) - expected).abs().max()
    assert (got - expected).abs().max() <= 2 * eager
