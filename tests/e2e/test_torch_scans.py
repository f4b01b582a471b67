"""Scans of PyTorch programs: every op, dimension and dtype against eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

SCANS: dict[str, Callable[..., Any]] = {
    "cumsum": torch.cumsum,
    "cumprod": torch.cumprod,
    "cummax": torch.cummax,
    "cummin": torch.cummin,
    "logcumsumexp": torch.logcumsumexp,
}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True})


def values(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    torch.manual_seed(5)
    if dtype.is_floating_point:
        return (torch.rand(shape) * 1.5 + 0.2).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 120, shape).to(dtype)


def same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(tuple(ours), tuple(theirs), equal_nan=True)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        FLOATS + INTEGERS,
        *(torch.float32, torch.int64),
        extended=[torch.float16, torch.uint8],
    ),
    ids=lambda d: str(d).removeprefix("torch."),
)
def test_every_dtype(dtype: torch.dtype) -> None:
    names = [n for n in SCANS if dtype.is_floating_point or n != "logcumsumexp"]

    def all_of_them(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out: list[torch.Tensor] = []
        for name in names:
            result = SCANS[name](x, 1)
            out.extend([result] if isinstance(result, torch.Tensor) else result)
        return tuple(out)

    x = values(dtype, 3, 37)
    same(compiled(all_of_them)(x), all_of_them(x))


@pytest.mark.each_choice
@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("shape", [(5,), (3, 1, 7), (2, 40, 67), (2, 0, 3), (0, 4, 3), (1, 70, 1)])
def test_every_dimension(name: str, shape: tuple[int, ...]) -> None:
    def all_dims(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out: list[torch.Tensor] = []
        for dim in range(-1, x.dim() - 1):
            if name in ("cummax", "cummin") and x.shape[dim] == 0:
                continue
            result = SCANS[name](x, dim)
            out.extend([result] if isinstance(result, torch.Tensor) else result)
        return tuple(out)

    x = values(torch.float64, *shape)
    same(compiled(all_dims)(x), all_dims(x))


@pytest.mark.parametrize(
    "shape",
    sweep(
        [(37, 33), (2, 33, 50), (64, 16), (40, 5)],
        (2, 33, 50),
        extended=[(37, 33), (64, 16), (40, 5)],
    ),
)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_many_rows(shape: tuple[int, ...], backward: bool) -> None:
    """Rows that are lanes, the last of them, and blocks of steps, of which the last is longer."""

    def of(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = torch.flip(x, (-1,)) if backward else x
        out = torch.logcumsumexp(x, -1), *torch.cummax(x, -1), *torch.cummin(x, -1)
        return tuple(torch.flip(y, (-1,)) for y in out) if backward else out

    torch.manual_seed(3)
    x = torch.randn(shape)
    x.view(-1)[::29] = torch.inf
    x.view(-1)[5::31] = -torch.inf
    x.view(-1)[7::61] = torch.nan
    same(compiled(of)(x), of(x))
    turned = x.transpose(0, -1).contiguous().transpose(0, -1)
    same(compiled(of)(turned), of(turned))


@pytest.mark.parametrize("name", SCANS)
def test_special_values(name: str) -> None:
    inf, nan = torch.inf, torch.nan
    rows = [
        [1.0, nan, 2.0, nan, 3.0, inf],
        [-inf, -inf, 0.0, -0.0, 5.0, 5.0],
        [inf, -inf, 1.0, 2.0, nan, inf],
        [-0.0, -0.0, 0.0, -0.0, -1.0, -1.0],
        [0.0, inf, 1.0, 2.0, -inf, 3.0],
    ]
    x = torch.tensor(rows).repeat(1, 11)

    def both_ways(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out: list[torch.Tensor] = []
        for result in (SCANS[name](x, 1), SCANS[name](x, 0)):
            out.extend([result] if isinstance(result, torch.Tensor) else result)
        return tuple(out)

    ours, theirs = compiled(both_ways)(x), both_ways(x)
    same(ours, theirs)
    for a, b in zip(ours, theirs, strict=True):
        number = ~torch.isnan(a)
        assert torch.equal(torch.signbit(a)[number], torch.signbit(b)[number])


@pytest.mark.parametrize(
    "shape", sweep([(3, 4096), (4096, 3), (100_003,)], (3, 4096), extended=[(4096, 3), (100_003,)])
)
def test_long_sums_are_as_accurate_as_eager(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    x = torch.randn(shape)
    for dim in range(len(shape)):
        function = compiled(lambda x, dim=dim: torch.cumsum(x, dim))
        exact = torch.cumsum(x.double(), dim)
        error = (function(x).double() - exact).abs().max()
        assert error <= 2 * (torch.cumsum(x, dim).double() - exact).abs().max()


@pytest.mark.each_choice
@pytest.mark.parametrize("name", ["cumsum", "cummax"])
@pytest.mark.parametrize(
    "shape",
    [
        (5003,),
        (2, 3001),
        (3001, 2),
        *(
            pytest.param(shape, marks=pytest.mark.large)
            for shape in [(1_000_003,), (2, 300_001), (300_001, 2)]
        ),
    ],
)
def test_long_scans_of_integers_are_exact(name: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    x = torch.randint(-1000, 1000, shape)
    for dim in range(len(shape)):
        ours = compiled(lambda x, dim=dim: SCANS[name](x, dim))(x)
        theirs = SCANS[name](x, dim)
        same(
            [ours] if isinstance(ours, torch.Tensor) else ours,
            [theirs] if isinstance(theirs, torch.Tensor) else theirs,
        )


def test_dtype_of_the_sum() -> None:
    def sums(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kinds = (torch.float64, torch.float16, torch.int32, torch.int8, torch.uint8)
        product = torch.cumprod(x, 0, dtype=torch.float64)
        return (product, *(torch.cumsum(x, 0, dtype=d) for d in kinds))

    x = values(torch.int64, 50)
    same(compiled(sums)(x), sums(x))


def test_scan_of_a_computed_row_and_what_follows() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        running = torch.cumsum(x * x, 1)
        return running / running[:, -1:], torch.cummax(x + 1, 0).values * 2

    x = torch.randn(33, 130)
    same(compiled(program)(x), program(x))


def tricky(*shape: int) -> torch.Tensor:
    """Equal numbers, zeros of both signs, infinities and NaN."""
    torch.manual_seed(9)
    x = torch.randint(-3, 3, shape).float()
    for value, part in ((-0.0, 0.1), (float("-inf"), 0.1), (float("nan"), 0.02)):
        x[torch.rand(shape) < part] = value
    return x


@pytest.mark.simulated
def test_running_extrema_of_equal_elements() -> None:
    def extrema(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            *torch.cummax(x, -1),
            torch.cummin(x, 0).values,
            torch.cummin(y, -1).indices,
            *torch.cummax(y, 0),
        )

    x, y = tricky(5, 300), torch.randint(-2, 2, (70, 33))
    ours, theirs = compiled(extrema)(x, y), extrema(x, y)
    same(ours, theirs)
    # Of equal zeros it is the later one that stays.
    assert torch.equal(torch.signbit(ours[0]), torch.signbit(theirs[0]))


@pytest.mark.simulated
@pytest.mark.parametrize("shape", [(4001,), (301, 5), (3, 700)])
def test_scans_in_parts(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    from polyblocks.passes.schedule.split_scans import SplitScansPass

    # Parts pay for far longer ones than can be simulated.
    monkeypatch.setattr(SplitScansPass.__init__, "__defaults__", (4, 64, 1e9))
    dim = 0 if len(shape) == 1 or shape[0] > shape[1] else 1
    x = tricky(*shape)
    x[..., :1] = float("-inf")
    same(compiled(lambda x: torch.cummax(x, dim))(x), torch.cummax(x, dim))
    same(compiled(lambda x: torch.cummin(x, dim))(x.long()), torch.cummin(x.long(), dim))
    x = x.nan_to_num(0, 0, 0)
    same([compiled(lambda x: torch.cumsum(x, dim))(x)], [torch.cumsum(x, dim)])
