"""What operations compute of known numbers, at the edges of their types."""

from __future__ import annotations

import numpy as np
import pytest

from polyblocks.passes.tensor.constant_values import Evaluator
from polyblocks.passes.tensor.scalar_values import Unknown, compute

NAN, INF = np.float32("nan"), np.float32("inf")
X = np.array([1, 2, 2, NAN, 1], np.float32)
Y = np.array([2, 1, 2, 1, NAN], np.float32)
ORDERED = (*(X == Y, X > Y, X >= Y, X < Y, X <= Y),)
NEITHER = np.isnan(X) | np.isnan(Y)


@pytest.mark.parametrize("predicate", range(1, 6))
def test_comparisons_with_nan(predicate: int) -> None:
    ordered = compute("arith.cmpf", [X, Y], "i1", predicate)
    np.testing.assert_array_equal(ordered, ORDERED[predicate - 1] & ~NEITHER)
    unordered = compute("arith.cmpf", [X, Y], "i1", predicate + 7)
    np.testing.assert_array_equal(unordered, ORDERED[predicate - 1] | NEITHER)


def test_whether_numbers_can_be_compared_or_differ() -> None:
    np.testing.assert_array_equal(compute("arith.cmpf", [X, Y], "i1", 7), ~NEITHER)
    np.testing.assert_array_equal(compute("arith.cmpf", [X, Y], "i1", 14), NEITHER)
    np.testing.assert_array_equal(compute("arith.cmpf", [X, Y], "i1", 6), (X != Y) & ~NEITHER)
    np.testing.assert_array_equal(compute("arith.cmpf", [X, Y], "i1", 13), (X != Y) | NEITHER)


def test_comparisons_without_signs() -> None:
    x, y = np.array([-1, 1, 5], np.int32), np.array([1, -1, 5], np.int32)
    # slt, sge; ult, ule, ugt, uge.
    assert list(compute("arith.cmpi", [x, y], "i1", 2)) == [True, False, False]
    assert list(compute("arith.cmpi", [x, y], "i1", 5)) == [False, True, True]
    assert list(compute("arith.cmpi", [x, y], "i1", 6)) == [False, True, False]
    assert list(compute("arith.cmpi", [x, y], "i1", 7)) == [False, True, True]
    assert list(compute("arith.cmpi", [x, y], "i1", 8)) == [True, False, False]
    assert list(compute("arith.cmpi", [x, y], "i1", 9)) == [True, False, True]


def test_conversions_of_integers() -> None:
    truth, byte = np.array([True, False]), np.array([-1, 127], np.int8)
    assert list(compute("arith.extui", [truth], "i32")) == [1, 0]
    assert list(compute("arith.extsi", [truth], "i32")) == [-1, 0]
    assert list(compute("arith.uitofp", [truth], "f32")) == [1.0, 0.0]
    assert list(compute("arith.sitofp", [truth], "f32")) == [-1.0, 0.0]
    assert list(np.signbit(compute("arith.sitofp", [truth], "f32"))) == [True, False]
    assert list(compute("arith.extui", [byte], "i32")) == [255, 127]
    assert list(compute("arith.extsi", [byte], "i32")) == [-1, 127]
    assert list(compute("arith.uitofp", [byte], "f64")) == [255.0, 127.0]
    assert list(compute("arith.trunci", [np.array([511, 2], np.int32)], "i8")) == [-1, 2]
    assert list(compute("arith.trunci", [np.array([511, 2], np.int32)], "i1")) == [True, False]


def test_integers_wrap_around() -> None:
    x = np.array([2**31 - 1, -(2**31)], np.int32)
    assert list(compute("arith.addi", [x, np.int32([1, -1])], "i32")) == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize("element, low", [("i64", -(2**63)), ("i32", -(2**31)), ("i8", 0)])
@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0**63, -1e30])
def test_a_float_that_does_not_fit_becomes_the_lowest_integer(value, element, low):
    found = compute("arith.fptosi", [np.array([value, 300.0, -1.5])], element)
    assert found.tolist() == [low, 44 if element == "i8" else 300, -1]


@pytest.mark.parametrize("name", ["maximumf", "minimumf", "maxnumf", "minnumf"])
def test_zeros_of_both_signs_are_left(name: str) -> None:
    with pytest.raises(Unknown, match="the sign of a zero"):
        compute(f"arith.{name}", [np.float32([0.0, 1.0]), np.float32([-0.0, 2.0])], "f32")
    zeros = np.float32([0.0, -0.0])
    found = compute(f"arith.{name}", [zeros, zeros], "f32")
    np.testing.assert_array_equal(np.signbit(found), [False, True])


def test_the_larger_of_a_number_and_nan() -> None:
    found = compute("arith.maximumf", [np.float32([NAN, 1.0]), np.float32([1.0, 2.0])], "f32")
    np.testing.assert_array_equal(found, np.float32([NAN, 2.0]))
    found = compute("arith.maxnumf", [np.float32([NAN, 1.0]), np.float32([1.0, 2.0])], "f32")
    np.testing.assert_array_equal(found, np.float32([1.0, 2.0]))


def test_functions_are_rounded_once() -> None:
    x = np.random.default_rng(0).uniform(-4, 4, 1000).astype(np.float32)
    for name, function in (("exp", np.exp), ("sin", np.sin), ("tanh", np.tanh)):
        found = compute(f"math.{name}", [x], "f32")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, function(x.astype(np.float64)).astype(np.float32))
    erf = compute("math.erf", [np.float32([0.0, INF, NAN])], "f32")
    np.testing.assert_array_equal(erf, np.float32([0.0, 1.0, NAN]))


def test_types_and_operations_that_are_left() -> None:
    with pytest.raises(Unknown, match="numbers of type bf16"):
        compute("arith.addf", [X, Y], "bf16")
    with pytest.raises(Unknown, match=r"arith\.addi of truth values"):
        compute("arith.addi", [np.array([True]), np.array([True])], "i1")


def test_constants_that_are_resources_are_left() -> None:
    from polyblocks import mlir

    text = "%c = arith.constant dense_resource<blob> : tensor<4xf32>"
    module = mlir.parse(text)
    (constant,) = module.body.operations
    with pytest.raises(Unknown, match="constants whose elements are elsewhere"):
        Evaluator().value(constant.results[0])
