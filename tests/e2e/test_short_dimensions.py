"""Coordinates, channels and small matrices: dimensions too short for a vector of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sweeps import sweep

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int32,
    torch.int64,
]
ARCHS = ["native", "x86-64-v3", "x86-64"]
INF, NAN = float("inf"), float("nan")


def matrices(count: int, rows: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Whole numbers whose products and their sums every type but int8 holds, which wraps around."""
    return torch.randint(-6, 7, (count, rows, rows)).to(dtype)


def compiled(function: Callable[..., Any], arch: str = "native") -> Callable[..., Any]:
    from polyblocks_torch import polyblocks_jit_torch

    options = {"arch": arch, "strict_target": True}
    return polyblocks_jit_torch(function, compile_options=options)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


@pytest.mark.each_choice
@pytest.mark.parametrize("rows", sweep([2, 3, 4, 5], 3, 4, extended=[2, 5]))
@pytest.mark.parametrize("count", sweep([1, 2, 15, 17, 31, 100, 1031], 17, 1031, extended=[1, 31]))
def test_products_of_many_small_matrices(rows: int, count: int) -> None:
    a, b = matrices(count, rows), matrices(count, rows)
    assert torch.equal(compiled(product)(a, b), a @ b)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("arch", ARCHS)
def test_products_of_every_type(dtype: torch.dtype, arch: str) -> None:
    a, b = matrices(77, 3, dtype), matrices(77, 3, dtype)
    assert torch.equal(compiled(product, arch)(a, b), a @ b)


def test_products_of_what_is_not_contiguous() -> None:
    a, b = matrices(202, 3)[::2], matrices(101, 3).transpose(1, 2)
    assert torch.equal(compiled(product)(a, b), a @ b)
    wide = torch.randint(-6, 7, (101, 3, 5)).float()
    assert torch.equal(compiled(product)(wide[:, :, :3], b), wide[:, :, :3] @ b)
    one = matrices(1, 3).expand(101, 3, 3)
    assert torch.equal(compiled(product)(one, b), one @ b)


def test_large_products_pass_the_caches_aligned_or_not() -> None:
    """Outputs of more bytes than the last cache keeps, at any place in memory."""
    a, b = matrices(1_000_003, 3), matrices(1_000_003, 3)
    assert torch.equal(compiled(product)(a, b), a @ b)


@pytest.mark.each_choice
@pytest.mark.parametrize("channels", sweep([2, 3, 5, 6, 7, 8], 3, 8, extended=[2, 5]))
@pytest.mark.parametrize("count", sweep([16, 19, 64, 1001], 19, 64, extended=[16, 1001]))
def test_rows_of_channels(check: Callable[..., Any], channels: int, count: int) -> None:
    """Each channel with a function of all of them: what is done after an operator of a few."""
    x = torch.randn(count, channels)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean = x.mean(1, keepdim=True)
        return x - mean, x * x.amax(1, keepdim=True), x.flip(1) + x[:, :1]

    check(function, x)


def test_in_place(check: Callable[..., Any]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        first, second = x[:, :1].clone(), x[:, 1:2].clone()
        return x.add_(first).mul_(second)

    x = torch.randn(333, 3)
    ours, eager = x.clone(), x.clone()
    compiled(function)(ours)
    torch.testing.assert_close(ours, function(eager))


def pulls(place: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    apart = place[None, :, :] - place[:, None, :]
    squared = (apart * apart).sum(-1) + 0.05
    return ((mass / (squared * torch.sqrt(squared)))[:, :, None] * apart).sum(1)


def pulls_of_planes(x: torch.Tensor, y: torch.Tensor, mass: torch.Tensor) -> Any:
    dx, dy = x[None, :] - x[:, None], y[None, :] - y[:, None]
    squared = dx * dx + dy * dy + 0.05
    pull = mass / (squared * torch.sqrt(squared))
    return (pull * dx).sum(1), (pull * dy).sum(1)


@pytest.mark.each_choice
@pytest.mark.parametrize("count", sweep([1, 2, 7, 33, 100, 257], 7, 257, extended=[1, 33]))
@pytest.mark.parametrize("width", sweep([1, 2, 3, 5], 2, 3, extended=[1, 5]))
def test_sums_over_pairs_of_points(count: int, width: int) -> None:
    place, mass = torch.randn(count, width), torch.rand(count) + 0.1
    exact = pulls(place.double(), mass.double())
    least = 1e-6 * exact.abs().max()
    ours = (compiled(pulls)(place, mass) - exact).abs().max()
    assert ours <= 2 * (pulls(place, mass) - exact).abs().max() + least


@pytest.mark.parametrize("count", sweep([1, 33, 257], 33, extended=[1]))
def test_sums_over_pairs_of_points_in_planes(count: int) -> None:
    x, y, mass = torch.randn(count), torch.randn(count), torch.rand(count) + 0.1
    exact = pulls_of_planes(x.double(), y.double(), mass.double())
    for ours, eager, wanted in zip(
        compiled(pulls_of_planes)(x, y, mass), pulls_of_planes(x, y, mass), exact, strict=True
    ):
        least = 1e-6 * wanted.abs().max()
        assert (ours - wanted).abs().max() <= 2 * (eager - wanted).abs().max() + least


#: Each by itself: a root that is used twice stays a root. With the most units in the last place of
#: an error; of PyTorch's roundings at most 1.9, 2.8 and 1.9 were seen.
ROOTS: list[tuple[Callable[..., torch.Tensor], float]] = [
    (lambda x, s: x / torch.sqrt(s), 1.9),
    (lambda x, s: x / (s * torch.sqrt(s)), 3.2),
    (lambda x, s: torch.rsqrt(s) * x, 1.8),
]


@pytest.mark.parametrize("arch", sweep(ARCHS, "native", "x86-64"))
def test_quotients_by_roots_of_special_values(arch: str) -> None:
    tiny, largest = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max
    some = [0.0, -0.0, INF, -INF, NAN, tiny, 1e-45, 3e-39, 1.0, -1.0, 4.0, largest, 1e20, 1e-20]
    x, s = (
        t.flatten().contiguous() for t in torch.meshgrid(*2 * [torch.tensor(some)], indexing="ij")
    )
    product = s * torch.sqrt(s)
    held = (product.isfinite() & (product != 0)) | s.isinf() | (s == 0) | s.isnan()
    for function, _ in ROOTS:
        a, b = compiled(function, arch)(x, s), function(x, s)
        exact = function(x.double(), s.double())
        # Where the product of s and its root overflows, or is none, the quotient need not.
        assert torch.equal(a.isnan()[held], b.isnan()[held])
        same = (b.isinf() | (b == 0)) & (exact.isinf() | (exact == 0)) & held
        assert torch.equal(a[same], b[same])
        assert torch.equal(a[same].signbit(), b[same].signbit())
        normal = (exact.abs() >= tiny) & (exact.abs() <= largest) & (b.abs() >= tiny)
        normal &= b.isfinite()
        torch.testing.assert_close(a[normal].double(), exact[normal], rtol=1e-5, atol=0)


def test_quotients_by_roots_are_as_exact_as_their_instructions() -> None:
    x = torch.rand(1 << 20) + 1
    s = torch.exp(8 * torch.randn(1 << 20))
    for function, most in ROOTS:
        exact = function(x.double(), s.double())
        normal = exact > torch.finfo(torch.float32).tiny
        unit = 2.0 ** (torch.floor(torch.log2(exact)) - 23)
        error = (compiled(function)(x, s) - exact).abs() / unit
        assert error[normal].max() <= most


def test_products_of_jax() -> None:
    jax = pytest.importorskip("jax")
    from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

    a, b = (matrices(501, 3).numpy() for _ in range(2))

    def by_hand(a: Any, b: Any) -> Any:
        """The same, written as sums of products of columns and rows."""
        return sum(a[:, :, k : k + 1] * b[:, k : k + 1, :] for k in range(3))

    for function in (by_hand, jax.numpy.matmul):
        ours = polyblocks_jit_jax(function, compile_options={"strict_target": True})(a, b)
        np.testing.assert_array_equal(np.asarray(ours), a @ b)


def test_products_of_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

    a, b = (matrices(501, 3).numpy() for _ in range(2))
    function = polyblocks_jit_tf(compile_options={"strict_target": True})(
        lambda a, b: tf.linalg.matmul(a, b)
    )
    np.testing.assert_array_equal(np.asarray(function(tf.constant(a), tf.constant(b))), a @ b)
