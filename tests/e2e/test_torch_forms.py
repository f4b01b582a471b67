"""Numbers before tensors, masks that store rows, memory that is read as another type."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)


def numbers(dtype: torch.dtype) -> Tensor:
    if dtype is torch.bool:
        return torch.tensor([True, False, True, True, False, True, False])
    if dtype.is_floating_point or dtype.is_complex:
        return torch.tensor([2.5, -0.0, -3.0, math.nan, math.inf, 0.0, 7.0]).to(dtype)
    limits = torch.iinfo(dtype)
    return torch.tensor([limits.max, limits.min, 3, 7, 2, 5, 1]).to(dtype)


def same(ours: Any, eager: Any) -> None:
    assert len(ours) == len(eager)
    for number, (mine, theirs) in enumerate(zip(ours, eager, strict=True)):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), number
        torch.testing.assert_close(
            mine, theirs, equal_nan=True, msg=lambda m, n=number: f"{n}: {m}"
        )


def test_numbers_before_tensors() -> None:
    def function(*xs: Tensor) -> list[Tensor]:
        made = []
        for x in xs:
            made += [7 // x, 7.5 // x, -7 // x, 7 % x, 7.5 % x]
        return made

    xs = [numbers(dtype) for dtype in FLOATS]
    xs += [numbers(dtype).clamp(min=1) for dtype in INTEGERS] + [torch.tensor([True, True])]
    same(polyblocks_jit_torch(compile_options=STRICT)(function)(*xs), function(*xs))


def stored(x: Tensor, at: Any, values: Tensor) -> Tensor:
    result = x.clone()
    result[at] = values
    return result


#: Types of each kind and size.
SOME = (torch.bool, torch.int8, torch.int64, torch.bfloat16, torch.float32, torch.complex64)
EVERY = (torch.bool, *INTEGERS, *FLOATS, *COMPLEX)


@pytest.mark.parametrize("dtypes", sweep([SOME, EVERY], SOME), ids=["some", "every"])
@pytest.mark.parametrize(
    "source", sweep(["argument", "constant"], "argument", extended=["constant"])
)
def test_masks_store_rows(source: str, dtypes: tuple[torch.dtype, ...]) -> None:
    rows = torch.tensor([True, False, True, True, False, False, True])
    pixels = torch.arange(21).reshape(7, 3) % 4 == 0
    columns = torch.tensor([False, True, True])

    def function(rows: Tensor, pixels: Tensor, columns: Tensor, *xs: Tensor) -> list[Tensor]:
        if source == "constant":
            rows = torch.tensor([True, False, True, True, False, False, True])
        made = []
        for x in xs:
            wide, put = x[:, None].expand(7, 3), torch.ops.aten.index_put
            made += [
                stored(x, rows, x[:4]),
                stored(wide, rows, wide[3:7]),
                stored(wide, rows, x[:4, None]),
                stored(wide, pixels, x[:6]),
                stored(wide, (slice(None), columns), wide[:, :2]),
                stored(wide[:, None], (slice(None), 0, columns), wide[:, :2]),
                stored(wide, rows, wide[0]),
                put(x, [rows], x[:4], True),
                put(wide, [pixels], x[:6], True),
            ]
        return made

    xs = [numbers(dtype) for dtype in dtypes]
    given = (rows, pixels, columns, *xs)
    same(polyblocks_jit_torch(compile_options=STRICT)(function)(*given), function(*given))


def test_masks_that_choose_another_number_of_places() -> None:
    ours = polyblocks_jit_torch(compile_options=STRICT)(stored)
    x, values = torch.arange(5.0), torch.tensor([7.0, 8.0])
    two, three = torch.tensor([0, 1, 0, 1, 0]) > 0, torch.tensor([0, 1, 1, 1, 0]) > 0
    assert torch.equal(ours(x, two, values), stored(x, two, values))
    for mask in (three, three & two.roll(1)):
        with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
            stored(x, mask, values)
        with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
            ours(x, mask, values)


@pytest.mark.parametrize("kinds", sweep([SOME[1:], EVERY[1:]], SOME[1:]), ids=["some", "every"])
def test_views_as_other_types(kinds: tuple[torch.dtype, ...]) -> None:
    def function(memory: Tensor, truth: Tensor) -> list[Tensor]:
        made = []
        for first in kinds:
            x = memory.view(first) if first is not torch.uint8 else memory
            # Of what the program makes, and of the argument's own memory.
            made += [bits(x.clone().view(second)) for second in kinds]
            made += [bits(x.clone()[0, 0].view(s)) for s in kinds if s.itemsize == x.itemsize]
        made += [truth.view(kind) for kind in (torch.uint8, torch.int8)]
        made.append((memory & 1).view(torch.bool))
        return made

    def bits(x: Tensor) -> Tensor:
        return torch.view_as_real(x) if x.is_complex() else x

    memory = torch.arange(96, dtype=torch.uint8).reshape(3, 32) * 5 + 3
    truth = torch.tensor([True, False])
    ours = polyblocks_jit_torch(compile_options=STRICT)(function)(memory, truth)
    for mine, theirs in zip(ours, function(memory, truth), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


def test_powers_of_nan() -> None:
    def function(*xs: Tensor) -> list[Tensor]:
        return [x**number for x in xs for number in (math.nan, math.inf, -math.inf)]

    xs = [numbers(dtype) for dtype in (*INTEGERS, *FLOATS)]
    same(polyblocks_jit_torch(compile_options=STRICT)(function)(*xs), function(*xs))


def test_common_divisors_and_multiples() -> None:
    def function(*xs: Tensor) -> list[Tensor]:
        return [f(x[:, None], x) for x in xs for f in (torch.gcd, torch.lcm)]

    values = (0, 1, 2, 3, 6, 12, 64, 100, 105, -1, -6, -64)
    xs = []
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        limits = torch.iinfo(dtype)
        inside = [v for v in values if v >= limits.min]
        xs.append(torch.tensor([*inside, limits.max, limits.max // 3, limits.min + 1]).to(dtype))
    same(polyblocks_jit_torch(compile_options=STRICT)(function)(*xs), function(*xs))


@pytest.mark.parametrize("target", sweep(["sm_90a", "gfx1100"], "gfx1100", extended=["sm_90a"]))
def test_common_multiples_on_a_gpu(target: str) -> None:
    options = {"target": "nvgpu" if target == "sm_90a" else "amdgpu", "arch": target}
    x = torch.arange(-30, 67)
    found = polyblocks_jit_torch(compile_options={**STRICT, **options, "simulate": True})(torch.lcm)
    assert torch.equal(found(x[:, None], x[:41]), torch.lcm(x[:, None], x[:41]))


def test_common_multiples_of_many_lanes() -> None:
    """An odd number of lanes, any numbers; C takes the lowest 64 bits of what is larger."""
    x, y = (torch.randint(-(2**62), 2**62, (1003,)) * n for n in (1, 2))
    x[:9], y[6:20] = 0, 0
    compiled = polyblocks_jit_torch(compile_options=STRICT)(torch.lcm)
    assert torch.equal(compiled(x, y), torch.lcm(x, y))


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.int64, torch.int16, torch.uint8], torch.int64, extended=[torch.int16, torch.uint8]
    ),
)
def test_common_divisors_that_take_the_most_steps(dtype: torch.dtype) -> None:
    """Neighbours of powers of two take a bit off at a time, and so do Fibonacci's numbers."""
    limits = torch.iinfo(dtype)
    powers = [1 << n for n in range(limits.bits - 1)]
    values = [
        0,
        limits.min,
        limits.max,
        *powers,
        *(p - 1 for p in powers),
        *(p + 1 for p in powers),
    ]
    first, second = 1, 2
    while second <= limits.max:
        values.append(first)
        first, second = second, first + second
    x = torch.tensor(values, dtype=torch.int64).to(dtype)
    x = x[x != limits.min] if limits.min else x
    found = polyblocks_jit_torch(compile_options=STRICT)(torch.gcd)(x[:, None], x)
    numbers_of = x.tolist()
    expected = [[math.gcd(a, b) for b in numbers_of] for a in numbers_of]
    assert found.tolist() == expected
