"""Vector code against eager PyTorch: every size of the rest, every type, special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep

SIZES = sweep([1, 2, 7, 15, 16, 17, 31, 33, 64, 1000, 100003], 1, 7, 33, 1000)
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
#: Around multiples of what is interleaved: four vectors of 512, 256 or 128 bits.
AROUND_BLOCKS = sweep([63, 64, 65, 127, 129, 255, 256, 257, 1000], 63, 257, 1000)
#: One chip with masks, one with wide and one with narrow vectors without.
ARCHS = ["native", "x86-64-v3", "x86-64"]


def values(size: int, dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(size) > 0.5
    if dtype.is_floating_point:
        x = torch.randn(size, dtype=torch.float64).to(dtype)
        for k, special in enumerate((float("nan"), float("inf"), -float("inf"), -0.0)):
            x[3 + 5 * k :: 97] = special
        return x
    return torch.randint(-100 if dtype.is_signed else 0, 100, (size,), dtype=dtype)


def same_bits(ours: torch.Tensor, eager: torch.Tensor) -> None:
    """Equal, with -0 told from 0; NaN is NaN."""
    torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
    number = ~eager.isnan()
    assert torch.equal(ours.signbit()[number], eager.signbit()[number])


@pytest.mark.parametrize("size", SIZES)
def test_pointwise_of_every_size(check: Callable[..., Any], size: int) -> None:
    x, y = torch.randn(size), torch.randn(size)
    check(lambda x, y: torch.where(x > y, x * y + 1, torch.tanh(x)), x, y)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [*FLOATS, *INTEGERS, torch.bool],
        *(torch.float32, torch.bfloat16, torch.int8, torch.int64, torch.bool),
        extended=[torch.float64, torch.float16, torch.uint8, torch.int16, torch.int32],
    ),
    ids=str,
)
@pytest.mark.parametrize("size", sweep([7, 33, 1003], 33))
def test_types(check: Callable[..., Any], dtype: torch.dtype, size: int) -> None:
    x = values(size, dtype)

    def function(x: torch.Tensor, finite: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = x == x.flip(0), x.to(torch.float32) * 2, finite.to(torch.int64, copy=True)
        if dtype == torch.bool:
            return found
        return (*found, x + x, x * 3, torch.maximum(x, x.flip(0)))

    check(function, x, torch.where(x.isfinite(), x, x.new_ones(())))


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", sweep(FLOATS, torch.float32, extended=[*FLOATS[1:]]), ids=str)
def test_special_values_as_integers(check: Callable[..., Any], dtype: torch.dtype) -> None:
    """PyTorch leaves open what they become; here what the CPU's instructions make of them."""
    check(lambda x: x.to(torch.int64), values(1003, dtype))


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_keep_their_bits(dtype: torch.dtype, arch: str) -> None:
    from polyblocks_torch import polyblocks_jit_torch

    x = values(1003, dtype)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return -x, x * 0.5, torch.clamp(x, -0.5, 0.5), torch.where(x > 0, x, -x)

    ours = polyblocks_jit_torch(function, compile_options={"arch": arch})(x)
    for a, b in zip(ours, function(x), strict=True):
        same_bits(a, b)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", SIZES)
def test_reductions_of_every_size(check: Callable[..., Any], size: int, arch: str) -> None:
    x = torch.rand(3, size) + 0.5
    check(lambda x: (x.sum(1), x.amax(1), x.amin(1), x.pow(0.01).prod(1), x.sum()), x, arch=arch)


@pytest.mark.each_choice
@pytest.mark.simulated
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_negative_integers(dtype: torch.dtype) -> None:
    from polyblocks_torch import polyblocks_jit_torch

    limits = torch.iinfo(dtype)
    x = torch.tensor(
        [limits.min, limits.min + 1, 0, 1, 77, limits.max - 2, limits.max], dtype=dtype
    )
    assert torch.equal(polyblocks_jit_torch(lambda x: -x)(x), -x)


@pytest.mark.parametrize(
    "dtype",
    sweep(INTEGERS, torch.uint8, torch.int64, extended=[torch.int8, torch.int16, torch.int32]),
    ids=str,
)
def test_reductions_of_integers(check: Callable[..., Any], dtype: torch.dtype) -> None:
    x = values(3 * 217, dtype).reshape(3, 217)
    check(lambda x: (x.sum(1), x.amax(1), x.amin(1), (x != 0).all(1), (x > 50).any(1)), x)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("position", [0, 15, 16, 100, 998])
def test_maximum_finds_nan_in_every_lane(
    check: Callable[..., Any], dtype: torch.dtype, position: int
) -> None:
    x = torch.randn(2, 999).to(dtype)
    x[1, position] = float("nan")
    check(lambda x: (x.amax(1), x.amin(1)), x)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", AROUND_BLOCKS)
def test_long_chains_of_every_size(check: Callable[..., Any], size: int, arch: str) -> None:
    """Several vectors side by side, single ones, the rest; and what reductions carry of them."""
    x = torch.randn(3, size)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        e, t = torch.exp(x), torch.tanh(x)
        return (
            *(e, t, torch.exp(x).sum(1), torch.tanh(x).amax(1), torch.exp(x).amin(1)),
            *(torch.exp(x * 0.01).prod(1), torch.tanh(x).sum(), (torch.exp(x) > 2).any(1)),
        )

    check(function, x, arch=arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_long_chains_over_several_loops(check: Callable[..., Any], arch: str) -> None:
    """What is carried from loop to loop are vectors of the usual width."""
    x = torch.randn(4, 6, 137)
    check(lambda x: (torch.exp(x).sum((1, 2)), torch.tanh(x).amax((0, 2))), x, arch=arch)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_long_chains_of_other_types(
    check: Callable[..., Any], dtype: torch.dtype, arch: str
) -> None:
    x = torch.randn(2, 329).to(dtype)
    check(lambda x: (torch.exp(x).sum(1, dtype=torch.float32), torch.exp(x).amax(1)), x, arch=arch)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("size", sweep([65, 129, 257, 1000], 129))
def test_long_chains_carry_special_values(
    check: Callable[..., Any], size: int, special: float, arch: str
) -> None:
    """In the first block, in the last one, among the single vectors and in the rest."""
    places = sorted({0, 17, 63, 64, 128, 255, 256, size - 10, size - 1} & set(range(size)))
    x = torch.randn(len(places), size)
    for row, place in enumerate(places):
        x[row, place] = special

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        e, t = torch.exp(x), torch.tanh(x)
        return e.sum(1), e.amax(1), e.amin(1), t.amax(1), t.amin(1), t.prod(1), e

    check(function, x, arch=arch)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", [5, 37, 64, 1003])
def test_extremes_of_mixed_zeros_are_a_zero(size: int, arch: str) -> None:
    """Which one is free; of zeros of one sign it is that one."""
    from polyblocks_torch import polyblocks_jit_torch

    x = torch.zeros(4, size)
    x[1, ::2], x[2, 1::2], x[3] = -0.0, -0.0, -0.0

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.amax(1), x.amin(1)

    for extremes in polyblocks_jit_torch(function, compile_options={"arch": arch})(x):
        assert torch.equal(extremes, torch.zeros(4))
        assert extremes.signbit()[[0, 3]].tolist() == [False, True]


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", sweep([37, 64, 257], 37, 257))
def test_extremes_of_infinities_are_infinite(
    check: Callable[..., Any], size: int, arch: str
) -> None:
    x = torch.full((2, size), -float("inf"))
    x[1] = float("inf")
    check(
        lambda x: (x.amax(1), x.amin(1), torch.exp(x).amax(1), torch.exp(x).amin(1)), x, arch=arch
    )


def test_extremes_of_rows_without_finite_numbers(check: Callable[..., Any]) -> None:
    x = torch.full((2, 37), -float("inf"))
    x[1] = float("inf")
    check(lambda x: (x.amax(1), x.amin(1), x.sum(1)), x)


@pytest.mark.parametrize("arch", ARCHS)
def test_one_nan_is_found_wherever_it_is(check: Callable[..., Any], arch: str) -> None:
    """Each row has it at another place: all lanes of all vectors, the rest included."""
    x = torch.randn(137, 137)
    x.fill_diagonal_(float("nan"))
    check(
        lambda x: (x.amax(1), x.amin(1), torch.exp(x).amax(1), torch.exp(x).amin(1)), x, arch=arch
    )


def test_sum_of_negative_zeros(check: Callable[..., Any]) -> None:
    from polyblocks_torch import polyblocks_jit_torch

    x = torch.full((3, 50), -0.0)
    same_bits(polyblocks_jit_torch(lambda x: x.amax(1))(x), x.amax(1))
    same_bits(polyblocks_jit_torch(lambda x: x.sum(1))(x), x.sum(1))


@pytest.mark.parametrize("position", sweep([0, 1, 16, 500, 1000], 16, extended=[0, 1000]))
def test_first_of_equal_maxima_wins(check: Callable[..., Any], position: int) -> None:
    x = torch.zeros(3, 1001)
    x[:, position] = 5
    x[:, 1000] = 5
    check(lambda x: (x.argmax(1), x.argmin(1)), x)


def test_in_place_update(check: Callable[..., Any]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2).add_(1)
        return x.sum()

    check(function, torch.randn(1003))


def test_rows_gathered(check: Callable[..., Any]) -> None:
    x, i = torch.randn(50, 67), torch.randint(0, 50, (101,))
    check(lambda x, i: (x[i], x.t()[:, i]), x, i)


def test_transposed_argument(check: Callable[..., Any]) -> None:
    x = torch.randn(67, 50).t()
    check(lambda x: (x + 1, x.sum(0), x.sum(1)), x)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8, torch.bool], ids=str)
@pytest.mark.parametrize("shape", sweep([(16, 16), (33, 70), (300, 129), (5, 200)], (33, 70)))
def test_transposes(
    check: Callable[..., Any], shape: tuple[int, int], dtype: torch.dtype, arch: str
) -> None:
    x = values(shape[0] * shape[1], dtype).reshape(shape)
    check(lambda x: x.t().contiguous(), x, arch=arch)


def test_mixed_orders(check: Callable[..., Any]) -> None:
    x, y, b = torch.randn(130, 130), torch.randn(130, 130), torch.randn(130, 1)
    check(
        lambda x, y, b: ((x + x.t()) * b, x.t() * y.t() - y, torch.where(x > y.t(), x, y)), x, y, b
    )


def test_orders_of_more_dimensions(check: Callable[..., Any]) -> None:
    x = torch.randn(3, 40, 50, 20)
    check(
        lambda x: (
            x.permute(0, 2, 3, 1).contiguous(),
            x.permute(3, 2, 1, 0).contiguous(),
            x.transpose(1, 2) + 1,
        ),
        x,
    )


@pytest.mark.extended
@pytest.mark.parametrize("shape", sweep([(4096, 4096), (4099, 4093)], (4099, 4093)))
def test_outputs_larger_than_the_caches(check: Callable[..., Any], shape: tuple[int, int]) -> None:
    x = torch.randn(shape)
    check(lambda x: (-x, x.t().contiguous()), x)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", sweep([5, 16, 33, 100, 1003], 33))
@pytest.mark.parametrize("step", [2, 3, 4])
def test_every_second_third_or_fourth(
    check: Callable[..., Any], step: int, size: int, arch: str
) -> None:
    x = torch.randn(size * step)
    y = torch.randn(step, size)
    check(lambda x: tuple(x[k::step] * 2 for k in range(step)), x, arch=arch)
    check(lambda x: sum(x[k::step] * (k + 1) for k in range(step)), x, arch=arch)
    check(lambda x: (x[::step].sum(), x[step - 1 :: step].amax()), x, arch=arch)
    check(lambda y: torch.stack([y[k] * y[0] for k in range(step)], 1).reshape(-1), y, arch=arch)
    # Both at once, the last ones first.
    check(lambda x: torch.stack([x[k::step] for k in range(step)][::-1], 1), x, arch=arch)


@pytest.mark.parametrize(
    "dtype",
    # A type of each size, which is all that vectors in turns depend on.
    sweep(
        [*FLOATS, *INTEGERS, torch.bool],
        *(torch.float32, torch.int8),
        extended=[torch.float64, torch.float16],
    ),
    ids=str,
)
def test_turns_of_every_type(check: Callable[..., Any], dtype: torch.dtype) -> None:
    x = values(3 * 217, dtype)
    check(lambda x: torch.stack([x[2::3], x[::3], x[1::3]], 1), x)
    check(lambda x: x.reshape(-1, 3).flip(1).to(torch.float32), x)


def test_turns_along_rows_of_odd_length(check: Callable[..., Any]) -> None:
    x = torch.randn(7, 45, 3)
    check(
        lambda x: (
            x[..., 0] * 0.3 + x[..., 1] * 0.6 + x[..., 2] * 0.1,
            torch.stack([x[..., 2], x[..., 1] + 1, x[..., 0]], -1),
            x[:, ::2, 1] + x[:, ::2, 2],
            (x[:, 1::2, :2] - x[:, :-1:2, :2]).sum(-1),
        ),
        x,
    )


def test_what_is_written_in_turns_in_place(check: Callable[..., Any]) -> None:
    def swap(x: torch.Tensor) -> torch.Tensor:
        even, odd = x[::2] * 2, x[1::2] + 1
        x[1::2] = even
        x[::2] = odd
        return x.sum()

    check(swap, torch.randn(2006))


@pytest.mark.parametrize("n", sweep([9, 17, 145], 17, 145))
def test_one_element_that_is_left_is_all_that_is_stored(n: int) -> None:
    from polyblocks_torch import polyblocks_jit_torch

    # Rows of the result are computed in another order than they lie in memory: what is written
    # beyond the end of one would change another.
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("gisah,ashw->ihsgw", a.to(torch.int32), b.to(torch.int32))

    a = torch.randint(-128, 127, (1, 11, 4, 2, 36), dtype=torch.int8)[..., ::3]
    b = torch.randint(-128, 127, (2, 4, 12, n), dtype=torch.int8)
    compiled = polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
    assert torch.equal(compiled(product)(a, b), product(a, b))
