"""Intervals of values, and what the outcome of a comparison says of them."""

from __future__ import annotations

import math

import pytest

from polyblocks import mlir
from polyblocks.affine.analysis.intervals import Interval, Intervals
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Store, Value, walk

ARGUMENTS = (
    "%a: memref<8xf32>, %n: memref<8xi32>, %f: memref<8xf32>, %b: memref<8xi1>, %w: memref<8xi64>"
)


def learned(body: str, type_: str = "f32") -> tuple[Interval, bool | None]:
    """The interval of what is stored, and its truth; of a float and an integer from memory."""
    to = {"f32": "%f", "i1": "%b", "i64": "%w"}[type_]
    text = (
        f"func.func @main({ARGUMENTS}) {{ affine.for %i = 0 to 8 {{"
        " %x = affine.load %a[%i] : memref<8xf32> %k = affine.load %n[%i] : memref<8xi32>"
        " %zero = arith.constant 0.0 : f32 %four = arith.constant 4.0 : f32"
        " %c0 = arith.constant 0 : i64 %c4 = arith.constant 4 : i64"
        f" {body} affine.store %r, {to}[%i] : memref<8x{type_}> }} return }}"
    )
    module = mlir.parse(text)
    with module.context, mlir.ir.Location.unknown():
        (nest,) = reader.read(module).nests()
        intervals = Intervals()
        for node in walk(nest.body):
            intervals.learn(node)
            if isinstance(node, Store):
                return intervals.get(node.value), intervals.truths.get(node.value)
    raise AssertionError("nothing is stored")


CLAMP = (
    "%low = arith.cmpf olt, %x, %zero : f32 %l = arith.select %low, %zero, %x : f32"
    " %high = arith.cmpf ogt, %l, %four : f32 %c = arith.select %high, %four, %l : f32 "
)
NUMBER = "%nan = arith.cmpf une, %x, %x : f32 %m = arith.select %nan, %four, %c : f32 "


def test_what_is_clamped_may_still_be_no_number() -> None:
    found, _ = learned(f"{CLAMP} %r = arith.addf %c, %zero : f32")
    assert found.nans
    assert not found.within(0.0, 4.0)


def test_what_is_no_number_is_replaced() -> None:
    found, _ = learned(f"{CLAMP} {NUMBER} %r = math.floor %m : f32")
    assert found.within(0.0, 4.0)
    assert found.whole


def test_whole_numbers_are_added_exactly_and_others_nearly() -> None:
    one = "%one = arith.constant 1.0 : f32"
    found, _ = learned(
        f"{CLAMP} {NUMBER} {one} %f0 = math.floor %m : f32 %r = arith.addf %f0, %one : f32"
    )
    assert (found.low, found.high, found.whole) == (1.0, 5.0, True)
    found, _ = learned(f"{CLAMP} {NUMBER} {one} %r = arith.addf %m, %one : f32")
    assert 0.999 < found.low < 1.0
    assert 5.0 < found.high < 5.001
    assert not found.whole


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("%m0 = arith.mulf %m, %four : f32 %r = arith.negf %m0 : f32", -16.1, 0.1),
        ("%s = arith.subf %zero, %m : f32 %r = math.absf %s : f32", 0.0, 4.1),
        ("%r = arith.divf %m, %four : f32", -0.1, 1.1),
    ],
)
def test_arithmetic(body: str, low: float, high: float) -> None:
    found, _ = learned(f"{CLAMP} {NUMBER} {body}")
    assert found.within(low, high)


def test_products_of_what_is_not_bounded_may_be_no_numbers() -> None:
    found, _ = learned("%r = arith.mulf %x, %zero : f32")
    assert found.nans
    assert found.high == math.inf


def test_conditions_say_what_numbers_are() -> None:
    body = (
        "%from = arith.cmpf oge, %x, %zero : f32 %to = arith.cmpf ole, %x, %four : f32"
        " %in = arith.andi %from, %to : i1 %r = arith.select %in, %x, %zero : f32"
    )
    found, _ = learned(body)
    assert found.within(0.0, 4.0)
    # Either of two says nothing of the number.
    found, _ = learned(body.replace("arith.andi", "arith.ori"))
    assert not found.within(0.0, 4.0)


def test_two_open_conditions_are_open_together() -> None:
    for name in ("arith.andi", "arith.ori"):
        _, truth = learned(
            "%p = arith.cmpf oge, %x, %zero : f32 %q = arith.cmpf ole, %x, %four : f32"
            f" %r = {name} %p, %q : i1",
            "i1",
        )
        assert truth is None


@pytest.mark.parametrize(
    ("predicate", "truth"),
    [("oge", True), ("uge", True), ("olt", False), ("ult", False), ("one", None), ("ord", True)],
)
def test_comparisons_with_one_outcome(predicate: str, truth: bool | None) -> None:
    _, found = learned(f"{CLAMP} {NUMBER} %r = arith.cmpf {predicate}, %m, %zero : f32", "i1")
    assert found is truth


@pytest.mark.parametrize(
    ("predicate", "truth"), [("oge", None), ("uge", True), ("olt", False), ("ult", None)]
)
def test_comparisons_of_what_may_be_no_number(predicate: str, truth: bool | None) -> None:
    _, found = learned(f"{CLAMP} %r = arith.cmpf {predicate}, %c, %zero : f32", "i1")
    assert found is truth


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("%r = arith.fptosi %m : f32 to i64", 0, 4),
        ("%r = arith.fptosi %c : f32 to i64", -(1 << 63), (1 << 63) - 1),
        ("%r = arith.extsi %k : i32 to i64", -(1 << 31), (1 << 31) - 1),
        ("%e = arith.extsi %k : i32 to i64 %r = arith.minsi %e, %c4 : i64", -(1 << 31), 4),
        ("%e = arith.extsi %k : i32 to i64 %r = arith.remsi %e, %c4 : i64", None, None),
        ("%e = arith.extui %k : i32 to i64 %r = arith.remsi %e, %c4 : i64", None, None),
        ("%e = arith.fptosi %m : f32 to i64 %r = arith.divsi %e, %c4 : i64", 0, 1),
        ("%e = arith.fptosi %m : f32 to i64 %r = arith.muli %e, %c4 : i64", 0, 16),
        ("%e = arith.fptosi %m : f32 to i64 %r = arith.subi %c4, %e : i64", 0, 4),
        ("%e = arith.fptosi %m : f32 to i64 %r = arith.maxsi %c4, %e : i64", 4, 4),
        ("%e = arith.cmpf olt, %x, %zero : f32 %r = arith.extui %e : i1 to i64", 0, 1),
    ],
)
def test_integers(body: str, low: int | None, high: int | None) -> None:
    found, _ = learned(f"{CLAMP} {NUMBER} {body}", "i64")
    least, most = -(1 << 63), (1 << 63) - 1
    assert (found.low, found.high) == (
        least if low is None else low,
        most if high is None else high,
    )


def test_what_is_below_without_a_sign_is_not_negative() -> None:
    found, _ = learned(
        "%e = arith.extsi %k : i32 to i64 %in = arith.cmpi ult, %e, %c4 : i64"
        " %r = arith.select %in, %e, %c0 : i64",
        "i64",
    )
    assert (found.low, found.high) == (0, 3)


def test_what_is_negative_is_above_all_without_a_sign() -> None:
    _, truth = learned(
        "%e = arith.minsi %c0, %c0 : i64 %l = arith.constant -5 : i64"
        " %u = arith.addi %l, %e : i64 %r = arith.cmpi ult, %u, %c4 : i64",
        "i1",
    )
    assert truth is False


def test_what_is_assumed_changes_nothing_else() -> None:
    known = Intervals()
    value = Value("i64")
    trial = known.assuming(value, Interval(3, 3, whole=True))
    assert trial.get(value).within(3, 3)
    assert not known.get(value).within(3, 3)


EXTREMES = "%l = arith.maximumf %x, %zero : f32 %c = arith.minimumf %l, %four : f32 "


def test_extremes_clamp_and_may_be_no_number() -> None:
    found, _ = learned(f"{EXTREMES} %r = arith.addf %c, %zero : f32")
    assert found.nans
    assert -0.001 < found.low <= 0.0
    assert 4.0 <= found.high < 4.001


def test_integers_of_what_is_a_number_where_that_is_asked() -> None:
    convert = "%e = arith.fptosi %c : f32 to i64 "
    asked = "%nan = arith.cmpf uno, %c, %c : f32 %r = arith.select %nan, %c0, %e : i64"
    found, _ = learned(f"{EXTREMES} {convert} {asked}", "i64")
    assert found.within(0, 4)
    # Of another one it is not asked.
    asked = "%nan = arith.cmpf uno, %zero, %x : f32 %r = arith.select %nan, %c0, %e : i64"
    found, _ = learned(f"{EXTREMES} {convert} {asked}", "i64")
    assert not found.within(0, 4)
