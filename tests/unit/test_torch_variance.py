"""The decompositions of variances against PyTorch's own, degrees of freedom below zero included."""

from __future__ import annotations

import warnings

import pytest
import torch

from polyblocks_torch.decomp.variance import std, var, var_mean


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


def test_far_from_zero() -> None:
    x = torch.randn(10001) + 1e4
    torch.testing.assert_close(var(x, None), x.double().var().float(), rtol=1e-4, atol=0)


def test_complex_numbers_are_left() -> None:
    x = torch.zeros(3, dtype=torch.complex64)
    assert [f(x) for f in (var, std, var_mean)] == [NotImplemented] * 3
