"""Scatters, histograms and gathers of PyTorch programs against eager execution."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_kernels import runnable_levels
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True, **options})


def same(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> None:
    torch.testing.assert_close(compiled(function, **options)(*inputs), function(*inputs))


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(7)
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 100, shape).to(dtype)


def places(extent: int, *shape: int) -> torch.Tensor:
    """Indices with many duplicates."""
    torch.manual_seed(8)
    return torch.randint(0, extent, shape)


#: Destination and updates: fewer and more than one per element, rows short and long, tiny and not.
SIZES = [(4, 3, 10), (100, 64, 1000), (20_000, 3, 1000), (300, 1, 70_000), (1000, 16, 20_000)]


@pytest.mark.parametrize("size", sweep(SIZES, SIZES[1], SIZES[3], extended=[SIZES[0]]), ids=str)
def test_index_add(size: tuple[int, int, int]) -> None:
    extent, columns, count = size
    x, y = numbers(torch.float64, extent, columns), numbers(torch.float64, count, columns)
    same(lambda x, i, y: x.index_add(0, i, y), x, places(extent, count), y)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8],
        *(torch.bfloat16, torch.int64),
        extended=[torch.float32, torch.int8],
    ),
    ids=lambda d: str(d).removeprefix("torch."),
)
def test_index_put_of_every_dtype(dtype: torch.dtype) -> None:
    x, i = numbers(dtype, 50, 5) // 8, places(50, 30)
    y = numbers(dtype, 30, 5) // 8
    same(lambda x, i, y: x.index_put((i,), y, accumulate=True), x, i, y)


@pytest.mark.each_choice
@pytest.mark.parametrize("columns", sweep([4, 16, 19, 33], 4, 19))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool], ids=str)
def test_rows_in_vectors(columns: int, dtype: torch.dtype) -> None:
    """Rows that come again and again: each update sees what the one before it has left."""
    x, y, i = numbers(dtype, 30, columns), numbers(dtype, 900, columns), places(30, 900)
    if dtype is torch.bfloat16:
        x, y = (x * 4).round() / 4, (y * 4).round() / 4
    same(lambda x, i, y: x.index_add(0, i, y), x, i, y)
    last = torch.randperm(900)[:30]
    same(lambda x, i, y: x.index_copy(0, i, y), x, torch.randperm(30), y[last])
    same(lambda x, i, y: x.t().contiguous().index_add(1, i, y.t()), x, i, y)


@pytest.mark.parametrize("arch", runnable_levels())
def test_rows_of_every_level(arch: str) -> None:
    """Without masks what is left of a row is done element by element."""
    x, y, i = numbers(torch.float64, 30, 19), numbers(torch.float64, 900, 19), places(30, 900)
    same(lambda x, i, y: x.index_add(0, i, y), x, i, y, arch=arch)


@pytest.mark.parametrize("dim", sweep([0, 1], 1, extended=[0]))
def test_scatter_add(dim: int) -> None:
    x, y, i = numbers(torch.float64, 40, 40), numbers(torch.float64, 30, 25), places(40, 30, 25)
    same(lambda x, i, y: x.scatter_add(dim, i, y), x, i, y)


@pytest.mark.parametrize(
    "reduce", sweep(["sum", "prod", "amax", "amin"], "sum", extended=["prod", "amax", "amin"])
)
def test_booleans(reduce: str) -> None:
    """Of each place many are true, some are false."""
    torch.manual_seed(9)
    x, y, i = torch.rand(40) > 0.9, torch.rand(900) > 0.5, places(40, 900)
    few = torch.rand(900) > (0.05 if reduce in ("prod", "amin") else 0.95)
    same(lambda x, i, y: x.scatter_reduce(0, i, y, reduce), x, i, few)
    same(lambda x, i, y: x.scatter_reduce(0, i, y, reduce, include_self=False), x, i, few)
    if reduce == "sum":
        same(lambda x, i, y: x.index_put((i,), y, accumulate=True), x, i, y)
        same(lambda x, i, y: x.scatter_add(0, i, y), x, i, y)
        same(lambda x, i, y: x.put(i, y, accumulate=True), x, i, y)


@pytest.mark.parametrize(
    "reduce", sweep(["sum", "prod", "amax", "amin"], "prod", extended=["sum", "amax", "amin"])
)
def test_scatter_reduce(reduce: str) -> None:
    x, y, i = numbers(torch.float64, 40), numbers(torch.float64, 5000), places(40, 5000)
    same(lambda x, i, y: x.scatter_reduce(0, i, y, reduce), x, i, y)


@pytest.mark.each_choice
@pytest.mark.simulated
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_scatter_reduce_of_integers_of_both_signs(reduce: str, dtype: torch.dtype) -> None:
    x, y, i = numbers(dtype, 40) - 50, numbers(dtype, 90) - 50, places(40, 90)
    same(lambda x, i, y: x.scatter_reduce(0, i, y, reduce), x, i, y)


@pytest.mark.each_choice
@pytest.mark.simulated
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_scatter_reduce_of_booleans(reduce: str, include_self: bool) -> None:
    x, y, i = numbers(torch.bool, 40), numbers(torch.bool, 90), places(40, 90)
    same(lambda x, i, y: x.scatter_reduce(0, i, y, reduce, include_self=include_self), x, i, y)


@pytest.mark.simulated
def test_sums_of_booleans_are_true_if_any_of_them_is() -> None:
    x, y, i = numbers(torch.bool, 40), numbers(torch.bool, 90), places(40, 90)
    same(lambda x, i, y: x.index_put((i,), y, accumulate=True), x, i, y)
    same(lambda x, i, y: x.index_add(0, i, y), x, i, y)
    same(lambda x, i, y: x.scatter_add(0, i, y), x, i, y)
    same(lambda x, i: x.index_put((i,), torch.tensor(True), accumulate=True), x, i)


@pytest.mark.simulated
@pytest.mark.each_choice("extended")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8, torch.bool])
def test_the_last_of_the_stores_to_an_element_stays(dtype: torch.dtype) -> None:
    x, y, i = numbers(dtype, 100), numbers(dtype, 900), places(100, 900)
    same(lambda x, i, y: x.scatter(0, i, y), x, i, y)
    x, y = numbers(dtype, 100, 3), numbers(dtype, 400, 3)
    same(lambda x, i, y: x.index_copy(0, i, y), x, i[:400], y)


@pytest.mark.simulated
@pytest.mark.each_choice("extended")
@pytest.mark.parametrize("reduce", ["amax", "amin", "prod"])
def test_extrema_and_products_of_many_updates(reduce: str) -> None:
    x, y, i = torch.randn(50), torch.rand(700) + 0.5, places(50, 700)
    if reduce != "prod":
        y[::100], y[1::50] = float("nan"), -0.0

    def reduced(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.scatter_reduce(0, i, y, reduce)

    ours, theirs = compiled(reduced)(x, i, y), reduced(x, i, y)
    torch.testing.assert_close(ours, theirs, equal_nan=True)


def test_scatter_of_distinct_elements() -> None:
    x, y = numbers(torch.float32, 40), numbers(torch.float32, 30)
    same(lambda x, i, y: x.scatter(0, i, y), x, torch.randperm(40)[:30], y)


@pytest.mark.each_choice
@pytest.mark.parametrize("count", [0, 5, 1000, 200_000])
@pytest.mark.parametrize("bins", [1, 10, 3000])
def test_histogram(count: int, bins: int) -> None:
    # Values whose bin is not a matter of rounding.
    x = (places(300, count) - 150).float() / 64
    same(lambda x: torch.histc(x, bins, -2, 2), x)


def test_gradient_of_an_embedding() -> None:
    weight, tokens = numbers(torch.float32, 70, 12), places(70, 6, 50)

    def loss(weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.embedding(tokens, weight) ** 2).sum()

    ours, theirs = weight.clone().requires_grad_(), weight.clone().requires_grad_()
    compiled(loss)(ours, tokens).backward()
    loss(theirs, tokens).backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_scatter_into_an_intermediate_that_is_used_on() -> None:
    def program(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        table = (x * 2).index_add(0, i, y * y)
        return table / (1 + table.abs().sum(1, keepdim=True))

    x, y = numbers(torch.float64, 30, 7), numbers(torch.float64, 900, 7)
    same(program, x, places(30, 900), y)


def test_result_does_not_depend_on_the_run() -> None:
    x, y = torch.zeros(200), numbers(torch.float32, 300_000)
    i = places(200, 300_000)
    function = compiled(lambda x, i, y: x.index_add(0, i, y))
    first = function(x, i, y)
    assert all(torch.equal(function(x, i, y), first) for _ in range(5))


@pytest.mark.each_choice
@pytest.mark.parametrize("bad", [-1000, 200, 1 << 40])
@pytest.mark.parametrize("count", [10, 300_000])
def test_index_out_of_range(bad: int, count: int) -> None:
    x, y, i = torch.zeros(200, 2), torch.ones(count, 2), places(200, count)
    i[count // 2] = bad
    with pytest.raises(Exception, match="index out of range"):
        compiled(lambda x, i, y: x.index_add(0, i, y))(x, i, y)
    with pytest.raises(Exception, match="index out of range"):
        compiled(lambda x, i: x[i])(x, i)


@pytest.mark.parametrize("columns", sweep([1, 3, 64, 100], 1, 100, extended=[3]))
def test_rows(columns: int) -> None:
    table = numbers(torch.float32, 500, columns)
    same(lambda x, i: x[i], table, places(500, 3000) - 250)
    same(lambda x, i: torch.index_select(x, 0, i) * 2, table, places(500, 7))
    same(lambda x, i: x[i], table, places(500, 0))


@pytest.mark.simulated
def test_elements() -> None:
    x, i = numbers(torch.float32, 60, 70), places(70, 60, 90)
    same(lambda x, i: torch.gather(x, 1, i) + 1, x, i)
    same(lambda x, i: x[:, i[0]], x, i)
    same(lambda x, i: torch.take(x, i), x, i)


@pytest.mark.parametrize(
    "dtype", sweep([torch.int32, torch.int64], torch.int32, extended=[torch.int64])
)
def test_row_numbers_of_either_width(dtype: torch.dtype) -> None:
    x, i = torch.randn(9, 7), torch.tensor([6, 0, -1, 3, 3]).to(dtype)
    same(lambda x, i: x[i], x, i)
    same(lambda x, i: x[i, i], x, i)
    same(lambda x, i: x[:, i], x, i)
    same(lambda x, i: x[1:, None, i], x, i)


@pytest.mark.each_choice("extended")
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_masks_choose_places(dtype: torch.dtype, accumulate: bool) -> None:
    x, mask = torch.randn(5, 7, 3), torch.rand(5, 7) > 0.5
    # PyTorch refuses one value for a mask of bytes, unless it is added.
    shapes = [(3,), (1, 3), *([()] if dtype == torch.bool or accumulate else [])]
    for shape in shapes:
        y = torch.randn(shape)
        same(lambda x, m, y: x.index_put((m,), y, accumulate), x, mask.to(dtype), y)


def test_a_mask_with_as_many_values_as_places_is_left_to_the_framework() -> None:
    x, mask = torch.randn(5, 7), torch.tensor([True, False, True, True, False])
    compiled = polyblocks_jit_torch(lambda x, m, y: x.index_put((m,), y))
    for dtype in (torch.bool, torch.uint8):
        y = torch.randn(3, 7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = x.index_put((mask.to(dtype),), y)
            assert torch.equal(compiled(x, mask.to(dtype), y), expected)


def last_wins(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The result of updates that are made one after the other."""
    result = x.clone()
    last = torch.full((len(x),), -1)
    # In any order: a maximum.
    last.scatter_reduce_(0, i % len(x), torch.arange(len(i)), "amax")
    result[last >= 0] = y[last[last >= 0]]
    return result


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int64, torch.bool],
        *(torch.float32, torch.int8),
        extended=[torch.float64, torch.bfloat16, torch.int64],
    ),
    ids=lambda d: str(d).removeprefix("torch."),
)
@pytest.mark.parametrize("threads", [1, 2])
def test_updates_of_one_element_keep_their_order(dtype: torch.dtype, threads: int) -> None:
    """Threads that make the updates of a range of the places each, and see all of them."""
    extent, count = 4_000_037, 1_000_003
    x, y = numbers(dtype, extent), numbers(dtype, count)
    # Everywhere, from both ends; few in one range; all in one element.
    spread = places(2 * extent, count) - extent
    for i in (spread, spread.clamp(-5, 100), torch.full((count,), extent - 1)):
        put = compiled(lambda x, i, y: x.put(i, y), num_threads=threads)
        assert torch.equal(put(x, i, y), last_wins(x, i, y))


def test_updates_outside_of_every_range_are_refused() -> None:
    x, y = torch.zeros(4_000_000), torch.ones(1_000_000)
    put = compiled(lambda x, i, y: x.put(i, y))
    for wrong in (4_000_000, -4_000_001, 1 << 40):
        i = places(4_000_000, 1_000_000)
        i[-3] = wrong
        with pytest.raises(IndexError, match="out of range"):
            put(x, i, y)
