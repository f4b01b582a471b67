"""The decompositions of variances against PyTorch's own, degrees of freedom below zero included."""

from __future__ import annotations

import warnings

import pytest
import torch

from polyblocks_torch.decomp.variance import _part, std, var, var_mean


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5, 2), (0, 3)])
@pytest.mark.parametrize("correction", [None, 0, 1, 2, 4, 0.5])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_variance(
    shape: tuple[int, ...], correction: float | None, keepdim: bool, dtype: torch.dtype
) -> None:
    x = (torch.randn(shape) + 3).to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dim in [None, [-1]] if x.dim() < 2 else [None, [-1], [0, x.dim() - 1]]:
            # Without dimensions PyTorch's op has no keepdim of its own.
            keep = keepdim and dim is not None
            ours = var_mean(x, dim, correction=correction, keepdim=keep)
            theirs = torch.var_mean(x, dim, correction=correction, keepdim=keep)
            torch.testing.assert_close(ours, theirs, equal_nan=True)
            torch.testing.assert_close(
                var(x, dim, correction=correction, keepdim=keep), theirs[0], equal_nan=True
            )
            torch.testing.assert_close(
                std(x, dim, correction=correction, keepdim=keep),
                torch.std(x, dim, correction=correction, keepdim=keep),
                equal_nan=True,
            )


@pytest.mark.parametrize(
    ("shape", "dim", "part"),
    [
        ((16, 1 << 15), [1], 4096),
        ((2, 16, 128, 129), [0, 2, 3], 2752),
        ((17, 5, 6, 2048), [1, 3, 2], 4096),
        ((40, 16, 29, 29), [-1, 0, 2], 841),
        ((3, 1 << 15), [1], 4096),
        ((160, 625), [0, 1], 4000),
        # Prime, few, or not side by side.
        ((16, 32771), [1], 0),
        ((16, 1 << 14), [1], 0),
        ((1 << 15, 16), [0], 0),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_many_elements_in_parts(
    shape: tuple[int, ...], dim: list[int], part: int, dtype: torch.dtype
) -> None:
    assert _part(shape, [d % len(shape) for d in dim]) == part
    x = (torch.randn(shape) + 3).to(dtype)
    for keepdim in (False, True):
        theirs = torch.var_mean(x.double(), dim, correction=0, keepdim=keepdim)
        ours = var_mean(x, dim, correction=0, keepdim=keepdim)
        torch.testing.assert_close(ours, tuple(y.to(dtype) for y in theirs))
        deviation = std(x, dim, correction=0, keepdim=keepdim)
        torch.testing.assert_close(deviation, theirs[0].sqrt().to(dtype))


def test_parts_far_from_zero_equal_and_not_numbers() -> None:
    x = torch.randn(16, 1 << 15) + 1e4
    want = x.double().var(1).float()
    torch.testing.assert_close(var(x, [1]), want, rtol=2e-6, atol=0)
    torch.testing.assert_close(var_mean(x, [1])[0], want, rtol=1e-4, atol=0)
    # One part is far from the others.
    x[:, :4096] -= 1e4
    torch.testing.assert_close(var(x, [1]), x.double().var(1).float(), rtol=1e-5, atol=0)
    # Parts begin far from each other.
    x += torch.arange(8).repeat_interleave(4096) * 100.0
    torch.testing.assert_close(var(x, [1]), x.double().var(1).float(), rtol=1e-5, atol=0)
    assert (var(torch.full((16, 40960), 0.1), [1]) == 0).all()
    assert var(torch.full((16, 40960), 0.1), None) == 0
    x[3, 70], x[5, 9000] = torch.nan, torch.inf
    assert var(x, [1]).isnan().nonzero().flatten().tolist() == [3, 5]


def test_far_from_zero() -> None:
    x = torch.randn(10001) + 1e4
    torch.testing.assert_close(var(x, None), x.double().var().float(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("shape", [(3, 4), (16, 1 << 15)])
def test_complex_numbers(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.complex64) + 2
    torch.testing.assert_close(var_mean(x, [1]), torch.var_mean(x, 1))
    torch.testing.assert_close(var(x, [1]), torch.var(x, 1))
    torch.testing.assert_close(std(x, [1]), torch.std(x, 1))
