"""Sorts, transforms and solves of PyTorch in generated GPU kernels, run by the simulator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import make_tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

CHIPS = [("nvgpu", "sm_90a"), ("amdgpu", "gfx1100")]

Function = Callable[[Tensor], "Tensor | tuple[Tensor, ...]"]

#: What any places of equal elements would be right for gives values alone.
RANKINGS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "stable sort": (lambda x: tuple(torch.sort(x, stable=True)), (3, 37)),
    "descending sort of columns": (lambda x: torch.sort(x, 0, descending=True)[0], (70, 3)),
    "sort of a long row": (lambda x: torch.sort(x)[0], (1, 1100)),
    "top k": (lambda x: torch.topk(x, 5)[0], (4, 300)),
    "least k": (lambda x: torch.topk(x, 3, largest=False)[0], (2, 41)),
    "k-th value": (lambda x: torch.kthvalue(x, 7)[0], (3, 50)),
    "median": (lambda x: torch.median(x, 1)[0], (3, 33)),
    "quantile": (lambda x: torch.quantile(x, 0.3, 1), (3, 21)),
    "running maximum": (lambda x: torch.cummax(x, 1)[0], (2, 90)),
}
TRANSFORMS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "fft of 60": (lambda x: torch.view_as_real(torch.fft.fft(x)), (3, 60)),
    "fft of 17": (lambda x: torch.view_as_real(torch.fft.fft(x)), (2, 17)),
    "rfft of 64": (lambda x: torch.view_as_real(torch.fft.rfft(x)), (2, 64)),
    "irfft of 30": (lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, n=30), (2, 30)),
    "fft2": (lambda x: torch.view_as_real(torch.fft.fft2(x, norm="ortho")), (2, 8, 12)),
    "convolution": (lambda x: torch.fft.irfft(torch.fft.rfft(x) ** 2, n=48), (2, 48)),
    "spectrogram": (
        lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs(),
        (2, 80),
    ),
}
SOLVES: dict[str, tuple[Function, tuple[int, ...]]] = {
    "triangular solve": (
        lambda a: torch.linalg.solve_triangular(a.tril(), a + 1, upper=False),
        (2, 6, 6),
    ),
    "inverse": (lambda a: torch.linalg.inv_ex(a)[0], (2, 6, 6)),
    "determinant": (torch.linalg.det, (3, 4, 4)),
    "logarithm of the determinant": (lambda a: torch.linalg.slogdet(a)[1], (3, 4, 4)),
    "Cholesky solve": (
        lambda a: torch.cholesky_solve(a + 1, torch.linalg.cholesky_ex(a)[0]),
        (2, 5, 5),
    ),
    "orthogonal factor": (lambda a: torch.linalg.qr(a)[0], (2, 7, 4)),
}


def _with_squared_eigenvalues(a: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(a)
    return (vectors * (values * values)[..., None, :]) @ vectors.mT


def _with_doubled_singular_values(a: Tensor) -> Tensor:
    u, s, v = torch.linalg.svd(a, full_matrices=False)
    return (u * (2 * s)[..., None, :]) @ v


SOLVES["from eigenvectors"] = _with_squared_eigenvalues, (2, 5, 5)
SOLVES["from singular vectors"] = _with_doubled_singular_values, (2, 6, 4)


def compiled(function: Function, target: str, arch: str) -> Function:
    options = {"target": target, "arch": arch, "simulate": True, "strict_target": True}
    return polyblocks_jit_torch(function, compile_options=options)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_rankings_are_those_of_pytorch(target: str, arch: str, name: str) -> None:
    function, shape = RANKINGS[name]
    torch.manual_seed(0)
    x = torch.randn(shape).round(decimals=1)  # some are equal
    torch.testing.assert_close(compiled(function, target, arch)(x), function(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_nan_is_the_largest_number_of_a_sort(target: str, arch: str) -> None:
    x = torch.tensor([[1.0, float("nan"), -0.0, float("inf"), 0.0, -float("inf"), float("nan"), 2]])

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return (*torch.sort(x, stable=True), torch.topk(x, 3)[0])

    found, expected = compiled(function, target, arch)(x), function(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_transforms_are_those_of_pytorch(target: str, arch: str, name: str) -> None:
    function, shape = TRANSFORMS[name]
    torch.manual_seed(0)
    x = torch.randn(shape)
    torch.testing.assert_close(
        compiled(function, target, arch)(x), function(x), rtol=1e-5, atol=2e-5
    )


@pytest.mark.each_choice
@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_solves_are_those_of_pytorch(target: str, arch: str, name: str) -> None:
    function, shape = SOLVES[name]
    torch.manual_seed(0)
    a = make_tensor(shape, dtype=torch.float32, device="cpu", low=-1, high=1)
    if shape[-2] == shape[-1]:
        a = a @ a.mT + torch.eye(shape[-1])
    torch.testing.assert_close(
        compiled(function, target, arch)(a), function(a), rtol=1e-4, atol=1e-4
    )
