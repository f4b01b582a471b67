"""Images that are made larger or smaller: places of pixels are tables that are known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

SIZES = [(40, 66), (20, 33), (60, 99), (31, 57), (80, 132), (7, 5), (160, 264)]


def check(f, x: Tensor, **tolerances: float) -> None:
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(f)
    torch.testing.assert_close(compiled(x), f(x), equal_nan=True, **tolerances)


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "nearest-exact", "bicubic"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes(mode: str, size: tuple[int, int]) -> None:
    x = torch.randn(1, 3, 20, 33, generator=torch.Generator().manual_seed(1))
    if size != x.shape[2:]:
        # Of the size that there is, PyTorch makes a copy, in which it does not spread.
        x[0, 1, 4, 7] = float("nan")
    check(lambda x: functional.interpolate(x, size=size, mode=mode), x, rtol=1e-4, atol=1e-5)


@pytest.mark.each_choice
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("scale", [2, 3, 4, 8, 1.5])
def test_scales(scale: float, corners: bool) -> None:
    x = torch.randn(2, 1, 17, 40, generator=torch.Generator().manual_seed(2))

    def f(x: Tensor) -> Tensor:
        larger = functional.interpolate(
            x, scale_factor=scale, mode="bilinear", align_corners=corners
        )
        return larger * 2 - larger.mean()

    check(f, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32], ids=str)
def test_a_table_of_the_program(dtype: torch.dtype) -> None:
    """Whoever wrote it; also one that goes on evenly in a part only, and one backwards."""
    places = (torch.arange(90) / 3 - 0.4).clamp(0, 28).long()
    other = torch.where(torch.arange(90) < 40, places, 29 - places)

    def f(x: Tensor) -> Tensor:
        return x[:, places] + x[:, other] * x[:, places.flip(0)] + x[:, (places + 5).clamp(max=29)]

    x = (10 * torch.randn(6, 30, generator=torch.Generator().manual_seed(3))).to(dtype)
    # Sums are rounded once in between.
    check(f, x, **({"rtol": 2e-2, "atol": 0.2} if dtype == torch.bfloat16 else {}))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_infinities_are_weighted_as_by_eager_mode(dims, align_corners, dtype):
    """PyTorch's own decomposition subtracts neighbours, of which two may be infinite."""

    def function(x):
        return functional.interpolate(
            x,
            size=[9, 7, 8][:dims],
            mode=("linear", "bilinear", "trilinear")[dims - 1],
            align_corners=align_corners,
        )

    x = torch.randn([1, 2, *[5, 4, 6][:dims]], generator=torch.Generator().manual_seed(dims))
    x.view(-1)[3:6] = torch.inf
    x.view(-1)[8] = -torch.inf
    x = x.to(dtype)
    ours = polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})(function)
    torch.testing.assert_close(ours(x), function(x), equal_nan=True)
