"""F.grid_sample of images and volumes, with gradients."""

import math

import pytest
import torch
from sweeps import sweep
from torch.nn import functional as F

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.decomp.grid_sample_gradients import grid_sampler_backward
from polyblocks_torch.decomp.grid_samples import grid_sampler_3d

aten = torch.ops.aten


def gradients(function, *values):
    """Of the sum of the squares of a function's results."""
    given = [value.clone().requires_grad_() for value in values]
    function(*given).square().sum().backward()
    return [value.grad for value in given]


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (1, 2, 1, 3, 2)])
def test_grid_sample_3d_forms(mode, padding, aligned, shape):
    x = torch.rand(shape, dtype=torch.float64)
    grid = torch.rand(shape[0], 3, 4, 5, 3, dtype=torch.float64) * 5 - 2.5
    form = (mode, padding, aligned)
    expected = aten.grid_sampler_3d(x, grid, *form)
    torch.testing.assert_close(grid_sampler_3d(x, grid, *form), expected)
    grad = torch.rand_like(expected)
    torch.testing.assert_close(
        grid_sampler_backward(grad, x, grid, *form, [True, True]),
        aten.grid_sampler_3d_backward(grad, x, grid, *form, [True, True]),
    )
    grid[0, 0, 0, 0, 0], grid[0, 0, 0, 1, 1], grid[0, 0, 0, 2, 2] = math.nan, math.inf, -math.inf
    torch.testing.assert_close(
        grid_sampler_3d(x, grid, *form), aten.grid_sampler_3d(x, grid, *form), equal_nan=True
    )


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 2, 1, 3), (1, 1, 4, 1)])
def test_gradients_of_images(mode, padding, aligned, shape):
    x = torch.rand(shape, dtype=torch.float64)
    grid = torch.rand(shape[0], 3, 4, 2, dtype=torch.float64) * 5 - 2.5
    form = (mode, padding, aligned)
    grad = torch.rand(*shape[:2], 3, 4, dtype=torch.float64)
    for asked in ([True, True], [False, True]):
        torch.testing.assert_close(
            grid_sampler_backward(grad, x, grid, *form, asked),
            aten.grid_sampler_2d_backward(grad, x, grid, *form, asked),
        )
    if not mode and not padding:
        grid[0, 0, 0, 0], grid[0, 0, 1, 1], grid[0, 0, 2, 0] = math.nan, math.inf, -math.inf
        torch.testing.assert_close(
            grid_sampler_backward(grad, x, grid, *form, [True, True]),
            aten.grid_sampler_2d_backward(grad, x, grid, *form, [True, True]),
            equal_nan=True,
        )


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mode", sweep(["bilinear", "nearest", "bicubic"], "bilinear"))
def test_compiled_gradients_of_images(mode, dtype):
    def sample(x, grid):
        found = [
            F.grid_sample(
                x, grid, mode=mode, padding_mode=padding, align_corners=padding == "zeros"
            )
            for padding in ("zeros", "reflection")
        ]
        return torch.cat(found)

    fast = polyblocks_jit_torch(sample, compile_options={"strict_target": True})
    x, grid = torch.rand(2, 3, 5, 6).to(dtype), (torch.rand(2, 4, 3, 2) * 3 - 1.5).to(dtype)
    grads = [gradients(function, x, grid) for function in (sample, fast)]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


def test_grid_sample_3d_nearest():
    def sample(x, grid):
        return F.grid_sample(x, grid, mode="nearest", padding_mode="border", align_corners=True)

    x, grid = torch.rand(2, 3, 4, 5, 6), torch.rand(2, 2, 4, 3, 3) * 3 - 1.5
    fast = polyblocks_jit_torch(sample, compile_options={"strict_target": True})
    torch.testing.assert_close(fast(x, grid), sample(x, grid))


@pytest.mark.slow
def test_grid_sample_3d_gradients():
    def sample(x, grid):
        return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)

    fast = polyblocks_jit_torch(sample, compile_options={"strict_target": True})
    x, grid = torch.rand(2, 3, 4, 5, 6), torch.rand(2, 2, 4, 3, 3) * 3 - 1.5
    grads = [gradients(function, x, grid) for function in (sample, fast)]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)
