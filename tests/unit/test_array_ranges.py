"""Ranges of the elements of arrays, through the nests that compute them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from polyblocks import mlir
from polyblocks.affine.analysis.intervals import Interval
from polyblocks.affine.buffers.ranges import ArrayRanges
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Load, Sequence, walk
from polyblocks.affine.users import Users


@contextmanager
def read(body: str) -> Iterator[Sequence]:
    """Code with an argument and arrays."""
    text = (
        "func.func @main(%n: memref<8xi32>, %x: memref<8x8xf32>, %to: memref<8xi32>) {"
        " %a = memref.alloc() : memref<8xi32> %b = memref.alloc() : memref<8xi32>"
        " %c0 = arith.constant 0 : i32 %c7 = arith.constant 7 : i32 %one = arith.constant 1 : i32"
        f" %zero = arith.constant 0.0 : f32 {body} return }}"
    )
    module = mlir.parse(text)
    with module.context, mlir.ir.Location.unknown():
        yield reader.read(module)


def loaded(body: str) -> list[tuple[float, float] | None]:
    """The ranges of what the last nest loads, in order."""
    with read(body) as sequence:
        ranges = ArrayRanges(Users(sequence))
        loads = [n for n in walk(sequence.nests()[-1].body) if isinstance(n, Load)]
        found = [ranges.of_load(load) for load in loads]
        return [None if f is None else (f.low, f.high) for f in found]


def stored(nodes: str, to: str = "%a", until: int = 8) -> str:
    """A nest that stores %r in an array."""
    return f"affine.for %i = 0 to {until} {{ {nodes} affine.store %r, {to}[%i] : memref<8xi32> }} "


GIVEN = "%k = affine.load %n[%i] : memref<8xi32> "
CLAMPED = f"{GIVEN} %l = arith.maxsi %k, %c0 : i32 %r = arith.minsi %l, %c7 : i32 "
READ = stored("%r = affine.load %a[%i] : memref<8xi32>", "%to")


def carried(made: str, start: str = "%c0", type_: str = "i32") -> str:
    """A nest that stores what a loop carries; ``made`` is %s of %t, an iteration %j."""
    return (
        f"affine.for %i = 0 to 8 {{ %r = affine.for %j = 0 to 8 iter_args(%t = {start}) ->"
        f" ({type_}) {{ %v = affine.load %x[%i, %j] : memref<8x8xf32>"
        f" %g = arith.index_cast %j : index to i32 {made} affine.yield %s : {type_} }} "
    )


TO_A = " affine.store %r, %a[%i] : memref<8xi32> } "


def test_a_clamped_array() -> None:
    assert loaded(stored(CLAMPED) + READ) == [(0, 7)]


def test_arrays_of_arrays() -> None:
    more = "%q = affine.load %a[%i] : memref<8xi32> %r = arith.addi %q, %one : i32"
    again = stored("%r = affine.load %b[%i] : memref<8xi32>", "%to")
    assert loaded(stored(CLAMPED) + stored(more, "%b") + again) == [(1, 8)]


@pytest.mark.parametrize(
    "nests",
    [
        "",
        stored(GIVEN + "%r = arith.addi %k, %one : i32"),
        stored(CLAMPED, until=4),
        stored(CLAMPED) + stored(GIVEN + "%r = arith.addi %k, %one : i32", until=4),
    ],
    ids=["nothing", "any", "half", "twice"],
)
def test_what_may_be_any_number(nests: str) -> None:
    assert loaded(nests + READ) == [None]


def test_a_load_before_the_nest_that_writes() -> None:
    assert loaded(READ.replace("%i", "%h") + stored(CLAMPED) + READ) == [None]


@pytest.mark.parametrize(
    ("made", "start", "expected"),
    [
        ("%s = arith.minsi %t, %g : i32", "%c7", (0, 7)),
        ("%s = arith.maxsi %t, %g : i32", "%c0", (0, 7)),
        ("%s = arith.addi %t, %one : i32", "%c0", None),
        ("%u = arith.addi %t, %one : i32 %s = arith.minsi %u, %c7 : i32", "%c0", None),
        ("%u = arith.subi %c7, %t : i32 %s = arith.addi %u, %c0 : i32", "%c7", (0, 7)),
    ],
    ids=["least", "most", "count", "held late", "turned"],
)
def test_integers_that_a_loop_carries(
    made: str, start: str, expected: tuple[int, int] | None
) -> None:
    assert loaded(carried(made, start) + TO_A + READ) == [expected]


def test_a_sum_that_was_a_number_before_may_be_none_now() -> None:
    # What is checked is the number of this iteration, and not those that the sum has taken.
    made = (
        "%nan = arith.cmpf uno, %v, %v : f32 %w = arith.minimumf %v, %t : f32"
        " %s = arith.select %nan, %t, %w : f32"
    )
    after = (
        " %o = arith.cmpf ord, %r, %r : f32 %p = arith.extui %o : i1 to i32"
        " affine.store %p, %a[%i] : memref<8xi32> } "
    )
    assert loaded(carried(made, "%zero", "f32") + after + READ) == [(0, 1)]


def test_elements_that_are_left_out_are_zero() -> None:
    with read(stored(CLAMPED.replace("%c0", "%one")) + READ) as sequence:
        ranges = ArrayRanges(Users(sequence))
        (load,) = (n for n in walk(sequence.nests()[-1].body) if isinstance(n, Load))
        assert ranges.of_load(load) == Interval(1, 7, whole=True)
        some = Load(load.result, load.buffer, load.index, where=(load.index[0] - 1,))
        assert ranges.of_load(some) == Interval(0, 7, whole=True)
