"""Sorts and selections of every dtype, order and extent against stable sorts of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True})


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Some of them equal, some the least and greatest, and of floats some are NaN or -0."""
    if not dtype.is_floating_point:
        limits = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        x = torch.randint(max(limits[0], -100), min(limits[1], 100) + 1, shape)
        for value in limits:
            x = torch.where(torch.rand(shape) < 0.02, value, x)
        return x.to(dtype)
    x = torch.randn(shape)
    x = torch.where(torch.rand(shape) < 0.3, x.round(), x)
    for value in (torch.nan, torch.inf, -torch.inf, -0.0, 0.0):
        x = torch.where(torch.rand(shape) < 0.03, value, x)
    return x.to(dtype)


def same(ours: Any, theirs: Any) -> None:
    """Equal, with the signs of zeros."""
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=0, equal_nan=True)
        assert x.dtype == y.dtype
        if x.is_floating_point():
            assert torch.equal(x.signbit() & (x == 0), y.signbit() & (y == 0))


def first(x: torch.Tensor, k: int, dim: int, largest: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements that a stable sort has first, as top-k has no order of equal ones of its own."""
    values, order = x.sort(dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), order.narrow(dim, 0, k)


@pytest.mark.parametrize(
    "dtype",
    # One of each size and kind; keys of two types of one size differ in their signs alone.
    sweep(
        FLOATS + INTEGERS,
        torch.float32,
        extended=[torch.bfloat16, torch.int64, torch.uint8, torch.bool],
    ),
    ids=lambda d: str(d).removeprefix("torch."),
)
def test_every_dtype(dtype: torch.dtype) -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        up, down = x.sort(stable=True), x.sort(stable=True, descending=True)
        return (*up, *down, *torch.topk(x, 5), *torch.topk(x, 3, largest=False))

    x = numbers(dtype, 3, 301)
    ours = compiled(both)(x)
    same(ours[:2], x.sort(stable=True))
    same(ours[2:4], x.sort(stable=True, descending=True))
    same(ours[4:6], first(x, 5, -1, True))
    same(ours[6:], first(x, 3, -1, False))


@pytest.mark.parametrize(
    "n",
    sweep([1, 2, 3, 17, 64, 65, 127, 256, 257, 1009, 4096], 17, 257, 1009, extended=[1, 65]),
)
def test_every_extent(n: int) -> None:
    x = numbers(torch.float32, 5, n)
    same(compiled(lambda x: x.sort(stable=True))(x), x.sort(stable=True))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize(
    "n, k",
    [
        *((257, 1), (5021, 50)),
        *(
            pytest.param(*case, marks=pytest.mark.extended)
            for case in ((65, 64), (1009, 8), (2000, 500))
        ),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2048, 50), (999, 998))),
    ],
)
def test_the_first_of_many(n: int, k: int, dtype: torch.dtype) -> None:
    x = numbers(dtype, 3, n)
    same(compiled(lambda x: torch.topk(x, k))(x), first(x, k, -1, True))


@pytest.mark.parametrize("dim", sweep([0, 1, -1], 0, extended=[1]))
def test_along_any_dimension_of_a_transposed_array(dim: int) -> None:
    x = numbers(torch.float32, 90, 70, 3).transpose(0, 1)
    same(compiled(lambda x: x.sort(dim=dim, stable=True))(x), x.sort(dim=dim, stable=True))
    same(compiled(lambda x: torch.topk(x, 2, dim))(x), first(x, 2, dim, True))


def test_one_long_row() -> None:
    x = numbers(torch.float32, 300_007)
    same(compiled(lambda x: x.sort(stable=True))(x), x.sort(stable=True))


@pytest.mark.parametrize(
    "dtype",
    sweep(FLOATS + INTEGERS, torch.float32, extended=[torch.uint8]),
    ids=lambda d: str(d)[6:],
)
def test_sorted_numbers_alone(dtype: torch.dtype) -> None:
    def values(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        down, up = (x.sort(descending=d, stable=True)[0] for d in (True, False))
        # Parts for several threads.
        return down, up, y.sort(descending=True, stable=True)[0], y.sort(0)[0]

    data = numbers(dtype, 3, 301), numbers(dtype, 70_001)
    ours, theirs = compiled(values)(*data), values(*data)
    same(ours[:3], theirs[:3])
    assert torch.equal(ours[3].nan_to_num(), theirs[3].nan_to_num())


@pytest.mark.parametrize("threads", sweep([4, 64], 4, extended=[64]))
def test_parts_of_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from polyblocks.algorithms.sorting import digits

    sort = digits.sort_by_digits
    monkeypatch.setattr(digits, "RUN", 256)
    monkeypatch.setattr(digits, "sort_by_digits", lambda x, o, _: sort(x, o, threads))

    def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*x.sort(stable=True), y.sort(descending=True, stable=True)[0])

    # Extents that no other test has: what is compiled here is kept under the program.
    data = numbers(torch.float32, 2, 4500 + threads), numbers(torch.float32, 5003 + threads)
    same(compiled(both)(*data), both(*data))


def test_the_order_of_order_statistics() -> None:
    def statistics(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.kthvalue(200, 1).values,
            x.median(1).values,
            x.nanmedian(1).values,
            x.quantile(0.3, 1),
            x.argsort(dim=1, stable=True),
            x.msort(),
        )

    x = torch.randn(6, 999)
    same(compiled(statistics)(x), statistics(x))


@pytest.mark.parametrize(
    "dtype",
    sweep(
        FLOATS + INTEGERS[:-1],
        torch.float32,
        extended=[torch.float64, torch.int64, torch.uint8],
    ),
    ids=lambda d: str(d).removeprefix("torch."),
)
def test_single_places(dtype: torch.dtype) -> None:
    def single(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*x.kthvalue(301, 1), *x.median(1), *x.kthvalue(40, 2), *y.kthvalue(50_001, 0))

    data = numbers(dtype, 2, 601, 51), numbers(dtype, 70_001)
    x, y = data
    places = [(x, 300, 1), (x, 300, 1), (x, 39, 2), (y, 50_000, 0)]
    theirs = []
    for number, (each, k, dim) in enumerate(places):
        ordered = each.sort(dim=dim, stable=True)
        index = torch.full_like(ordered[1].narrow(dim, 0, 1), k)
        if number == 1:  # The first NaN, if there is one.
            nans = (each != each).sum(dim, keepdim=True)
            index = torch.where(nans > 0, each.shape[dim] - nans, index)
        theirs += [part.gather(dim, index).squeeze(dim) for part in ordered]
    same(compiled(single)(*data), theirs)


def test_single_places_without_nan() -> None:
    x = numbers(torch.float32, 7, 700)
    x[0] = torch.nan
    nans = x.isnan().sum(1, keepdim=True)
    middle = ((699 - nans) // 2).clamp(min=0)
    theirs = [part.gather(1, middle).squeeze(1) for part in x.sort(dim=1, stable=True)]
    same(compiled(lambda x: x.nanmedian(1))(x), theirs)


@pytest.mark.parametrize(
    "dtype",
    sweep(INTEGERS, torch.int64, extended=[torch.uint8, torch.bool]),
    ids=lambda d: str(d)[6:],
)
def test_the_most_frequent_elements(dtype: torch.dtype) -> None:
    def frequent(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*x.mode(1, True), *x.mode(0, True), *y.mode(-1, True))

    # Short rows, one by one, and long ones.
    x, y = numbers(dtype, 9, 70), numbers(dtype, 3, 500)
    ours, theirs = compiled(frequent)(x, y), frequent(x, y)
    same(ours[::2], theirs[::2])
    for i, (row, dim) in enumerate(((x, 1), (x, 0), (y, -1))):
        value, place = ours[2 * i : 2 * i + 2]
        # Of equal elements eager mode has any one.
        position = torch.arange(row.shape[dim]).view(-1, *[1] * (dim == 0))
        last = torch.where(row == value, position, -1).amax(dim, True)
        assert torch.equal(place, last)
    one = compiled(lambda x: x.mode(1))(x[:, :1])
    same(one, x[:, :1].mode(1))


def test_what_is_sampled_from_the_most_likely_tokens() -> None:
    def kept(logits: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ordered, places = logits.softmax(-1).sort(-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        ordered = ordered.masked_fill(before > 0.9, 0.0)
        return ordered > 0, places, torch.searchsorted(before, torch.full((4, 1), 0.5))

    logits = (torch.randn(4, 3000) * 4).double()
    same(compiled(kept)(logits), kept(logits))


def test_the_report_says_how_rows_are_sorted() -> None:
    import polyblocks

    def all_(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*x.sort(), *x.topk(5), *x.median(1))

    with polyblocks.explain() as report:
        compiled(all_)(torch.randn(3, 2000))
    text = str(report.to_json())
    assert "{'extent': 2000, 'how': 'bisection'," in text
    assert "{'count': 2000, 'extent': 2000, 'how': 'digits'," in text
    assert "'count': 5, 'extent': 2000, 'how': 'blocks'," in text


def test_rows_that_were_just_computed() -> None:
    a, b = torch.randint(-9, 9, (33, 20)).float(), torch.randint(-9, 9, (20, 300)).float()
    same(compiled(lambda a, b: torch.topk(a @ b, 8))(a, b), first(a @ b, 8, -1, True))


@pytest.mark.simulated
def test_rows_of_every_kind() -> None:
    def all_(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*x.sort(stable=True), *y.sort(stable=True), *z.sort(stable=True))

    data = [numbers(*a) for a in ((torch.float32, 3, 20), (torch.float32, 2, 150))]
    data.append(numbers(torch.int64, 2, 70))
    same(compiled(all_)(*data), all_(*data))


@pytest.mark.simulated
@pytest.mark.parametrize("dtype", sweep([torch.float32, torch.int64], torch.float32))
def test_long_rows_on_every_target(dtype: torch.dtype) -> None:
    # Too many to be sorted by rank.
    x = numbers(dtype, 1, 1400)
    theirs = x.sort(stable=True, descending=True)
    same(compiled(lambda x: x.sort(stable=True, descending=True))(x), theirs)


@pytest.mark.simulated
def test_the_first_of_a_row() -> None:
    x = numbers(torch.float32, 3, 515)
    same(compiled(lambda x: torch.topk(x, 4))(x), first(x, 4, -1, True))
