"""Reductions: order of loops, strips, streams and parts must not show in the results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

Function = Callable[[Tensor], "Tensor | tuple[Tensor, ...]"]

REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "var": torch.var,
    "norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
    "logsumexp": torch.logsumexp,
}
PICKS: dict[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    "argmax": lambda x, dim: torch.argmax(x, dim),
    "argmin": lambda x, dim: torch.argmin(x, dim, keepdim=True),
    "max": lambda x, dim: tuple(torch.max(x, dim)),
    "min": lambda x, dim: tuple(torch.min(x, dim)),
}


def compiled(function: Function) -> Function:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True})


def errors(
    values: tuple[Tensor, ...], exact: tuple[Tensor, ...], scale: list[Tensor]
) -> list[float]:
    """Sums of squares of the errors, each relative to the sum of the magnitudes."""
    return [
        float(((v.double() - e) / s).square().sum())
        for v, e, s in zip(values, exact, scale, strict=True)
    ]


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "name",
    sweep(REDUCTIONS, "sum", "amax", "var", "logsumexp", extended=["mean", "amin", "norm"]),
)
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((37, 1031), (0, 1, [0, 1])),
        ((517, 3), (0, 1)),
        ((3, 5, 67), (1, [0, 2], [1, 2])),
        ((2, 9, 7, 5), ([0, 2, 3], [1], [0, 1])),
    ],
    ids=str,
)
def test_reductions_along_any_dimensions(
    name: str, shape: tuple[int, ...], dims: tuple[int | list[int], ...]
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(REDUCTIONS[name](x, dim=dim) for dim in dims)

    torch.testing.assert_close(compiled(function)(x), function(x), rtol=3e-6, atol=1e-5)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf")])
def test_special_values_wherever_they_stand(name: str, special: float) -> None:
    # Larger than the caches: rows are jammed, columns are done in strips, the whole in parts.
    x = torch.zeros(1027, 1033)
    where = torch.tensor([[0, 0], [256, 1032], [513, 511], [769, 512], [1026, 1], [1024, 1031]])
    x[where[:, 0], where[:, 1]] = special

    def function(x: Tensor) -> tuple[Tensor, ...]:
        reduce = REDUCTIONS[name]
        return reduce(x, dim=0), reduce(x, dim=1), reduce(x, dim=(0, 1))

    torch.testing.assert_close(compiled(function)(x), function(x), equal_nan=True)


def test_sums_of_minus_zeros_keep_the_sign_of_the_framework() -> None:
    x = torch.full((1027, 1033), -0.0)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(0), x.sum(1), x.sum(), x.amax(0), x.amax(1)

    for actual, expected in zip(compiled(function)(x), function(x), strict=True):
        assert torch.equal(actual, expected)
        assert torch.equal(torch.signbit(actual), torch.signbit(expected))


@pytest.mark.each_choice
@pytest.mark.parametrize("positive", [False, True], ids=["random", "positive"])
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((1 << 21,), (0,)),
        pytest.param((5, 1 << 18), (1, [0, 1]), marks=pytest.mark.extended),
        ((8191, 17), (0, 1, [0, 1])),
        ((5, 67, 129), ([1, 2], [0, 2], [0, 1, 2])),
        *(
            pytest.param(shape, dims, marks=[pytest.mark.large, pytest.mark.slow])
            for shape, dims in [
                ((4096, 512), (0, 1, [0, 1])),
                ((1 << 17, 17), (0, 1, [0, 1])),
                ((24, 257, 257), ([1, 2], [0, 2], [0, 1, 2])),
            ]
        ),
    ],
    ids=str,
)
def test_sums_are_as_accurate_as_the_frameworks(
    shape: tuple[int, ...], dims: tuple[int | list[int], ...], positive: bool
) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(x.sum(d) for d in dims)

    ours = compiled(function)
    eager_errors, our_errors = [0.0] * len(dims), [0.0] * len(dims)
    # A single sum is right or wrong by chance.
    for seed in range(12):
        torch.manual_seed(seed)
        x = torch.rand(shape) if positive else torch.randn(shape)
        exact = function(x.double())
        scale = [*function(x.double().abs())]
        for i, (a, b) in enumerate(
            zip(errors(function(x), exact, scale), errors(ours(x), exact, scale), strict=True)
        ):
            eager_errors[i] += a
            our_errors[i] += b
    for a, b in zip(eager_errors, our_errors, strict=True):
        assert b**0.5 <= 2 * a**0.5


@pytest.mark.parametrize("arch", ["native", "x86-64-v3", "x86-64"])
def test_long_sums_are_as_accurate_with_narrow_vectors(arch: str) -> None:
    length = 8192
    function = polyblocks_jit_torch(
        lambda x: x.sum(1), compile_options={"strict_target": True, "arch": arch}
    )
    error = 0.0
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(64, length)
        error += float((function(x).double() - x.double().sum(1)).square().mean()) / 4
    # After k of a chain's additions the sum is about sqrt(k), and an addition's rounding error
    # about 2^-24 / sqrt(3) of that. So chains of n numbers have squared errors of n / 6 * 2^-48 for
    # each number; this leaves room for chains of 128 and the levels above them.
    assert error < 32 * 2.0**-48 * length


@pytest.mark.each_choice
@pytest.mark.parametrize("name", PICKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.uint8])
@pytest.mark.parametrize("shape", sweep([(37, 1031), (1031, 37), (5, 1, 3)], (37, 1031)), ids=str)
def test_positions_of_extremes(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    # Few different values: the first of equal ones wins.
    x = torch.randint(0, 9, shape).to(dtype)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        found = [PICKS[name](x, dim) for dim in range(x.dim())]
        return tuple(t for f in found for t in (f if isinstance(f, tuple) else (f,)))

    assert all(map(torch.equal, compiled(function)(x), function(x)))


@pytest.mark.parametrize("name", sweep(PICKS, "argmin", "max"))
def test_the_first_nan_is_the_extreme(name: str) -> None:
    torch.manual_seed(3)
    x = torch.randn(67, 131)
    x[::3, 100] = float("nan")
    x[1::3, 7] = float("inf")
    x[::6, 130] = float("nan")
    x[2::3] = -float("inf")

    def function(x: Tensor) -> tuple[Tensor, ...]:
        found = [PICKS[name](x, dim) for dim in (0, 1)]
        return tuple(t for f in found for t in (f if isinstance(f, tuple) else (f,)))

    for actual, expected in zip(compiled(function)(x), function(x), strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        pytest.param(lambda x: x[::2, 1::3], marks=pytest.mark.extended),
        lambda x: x.unfold(1, 4, 2),
        pytest.param(lambda x: x[:, :1].expand(-1, 300), marks=pytest.mark.extended),
    ],
    ids=["transposed", "strided", "overlapping", "expanded"],
)
def test_views_are_reduced_in_place(view: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(4)
    x = torch.randn(129, 515)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        y = view(x)
        return y.sum(0), y.mean(1), y.amax(-1), y.argmax(0), y.sum()

    torch.testing.assert_close(compiled(function)(x), function(x), rtol=3e-6, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,)], ids=str)
def test_nothing_to_reduce(shape: tuple[int, ...]) -> None:
    x = torch.empty(shape)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(0), x.sum(), x.prod(0), (x > 0).any(0), (x > 0).all()

    torch.testing.assert_close(compiled(function)(x), function(x))


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [
            *(torch.float64, torch.float16, torch.bfloat16),
            *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool),
        ],
        *(torch.bfloat16, torch.int8),
        extended=[torch.float64, torch.int64, torch.bool],
    ),
    ids=str,
)
def test_all_dtypes(dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    x = torch.randint(0, 2 if dtype == torch.bool else 5, (301, 173)).to(dtype)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        extremes = (x.amax(0), x.amin(1)) if x.dtype != torch.bool else ()
        return x.sum(0), x.sum(1), x.sum(), *extremes, (x > 1).any(0), (x > 0).all(1)

    torch.testing.assert_close(compiled(function)(x), function(x))
