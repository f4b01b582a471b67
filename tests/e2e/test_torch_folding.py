"""Sums of overlapping windows: ``fold``, and the gradient of ``unfold``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sweeps import sweep
from torch.nn import functional as F

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Extents of an image, and what `unfold` takes.
WINDOWS: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "apart": ((8, 9), {"kernel_size": (2, 3), "stride": (2, 3)}),
    "overlapping": ((7, 11), {"kernel_size": 3, "padding": 1}),
    "in steps": ((11, 13), {"kernel_size": (5, 3), "stride": (2, 3), "padding": (2, 0)}),
    "dilated": ((13, 17), {"kernel_size": (3, 2), "dilation": (2, 5), "stride": (1, 2)}),
    "not everywhere": ((9, 10), {"kernel_size": (1, 2), "stride": (3, 4)}),
    "phases without windows": ((12, 9), {"kernel_size": 3, "dilation": 4, "stride": (4, 2)}),
    "one": ((5, 3), {"kernel_size": (5, 3)}),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("batch", [(2,), ()])
def test_fold(name: str, dtype: torch.dtype, batch: tuple[int, ...]) -> None:
    extents, options = WINDOWS[name]
    shape = F.unfold(torch.zeros(*batch, 3, *extents), **options).shape
    x = torch.randn(shape, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)
    compiled = polyblocks_jit_torch(
        lambda x: F.fold(x, extents, **options), compile_options={"strict_target": True}
    )
    found = compiled(x)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    expected = F.fold(x.to(wide), extents, **options)
    tolerance = 5e-2 if dtype is torch.bfloat16 else 1e-5
    torch.testing.assert_close(found.to(wide), expected, rtol=tolerance, atol=tolerance)
    assert found.dtype is dtype


@pytest.mark.parametrize(
    "name",
    sweep(
        WINDOWS,
        *("overlapping", "dilated", "phases without windows"),
        extended=["apart", "in steps", "not everywhere", "one"],
    ),
)
def test_gradient_of_unfold(name: str) -> None:
    extents, options = WINDOWS[name]
    x = torch.randn(2, 3, *extents, requires_grad=True)
    function = lambda x: F.unfold(x, **options)  # noqa: E731
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    result = function(x)
    weights = torch.randn_like(result)
    (expected,) = torch.autograd.grad(result, x, weights)
    (found,) = torch.autograd.grad(compiled(x), x, weights)
    torch.testing.assert_close(found, expected)


def test_windows_are_no_scatter() -> None:
    compiled = polyblocks_jit_torch(
        lambda x: F.fold(x, (16, 16), 3, padding=1), compile_options={"strict_target": True}
    )
    compiled(torch.randn(1, 18, 256))
    (part,) = compiled.polyblocks_report().parts
    assert [kernel["kind"] for kernel in part.kernels] == ["stencil"]
