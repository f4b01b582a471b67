"""Sorting with any comparator, short and long."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep
from tests.support.stablehlo_programs import lowered, run

pytest.importorskip("polyblocks_cpu")

SORT = """
func.func @main(%x: tensor<{n}xi32>) -> (tensor<{n}xi32>, tensor<{n}xi32>) {{
  %i = stablehlo.iota dim = 0 : tensor<{n}xi32>
  %r:2 = "stablehlo.sort"(%x, %i) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %j: tensor<i32>, %k: tensor<i32>):
      %c = stablehlo.compare {order}, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }}) : (tensor<{n}xi32>, tensor<{n}xi32>) -> (tensor<{n}xi32>, tensor<{n}xi32>)
  return %r#0, %r#1 : tensor<{n}xi32>, tensor<{n}xi32>
}}
"""


@pytest.mark.each_choice
@pytest.mark.parametrize("n", [2, 3, 17, 128, 129, 200, 256, 1000])
@pytest.mark.parametrize("order", ["LT", "GT"])
def test_equal_elements_keep_their_order(n, order):
    x = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
    values, places = run(SORT.format(n=n, order=order), x)
    want = np.argsort(x if order == "LT" else -x, kind="stable")
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, x[want])


TWO_KEYS = """
func.func @main(%x: tensor<{n}xi32>, %y: tensor<{n}xf32>) -> (tensor<{n}xi32>, tensor<{n}xf32>) {{
  %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %j: tensor<f32>, %k: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %d = stablehlo.compare EQ, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %e = stablehlo.compare GT, %j, %k : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %f = stablehlo.and %d, %e : tensor<i1>
      %g = stablehlo.or %c, %f : tensor<i1>
      stablehlo.return %g : tensor<i1>
  }}) : (tensor<{n}xi32>, tensor<{n}xf32>) -> (tensor<{n}xi32>, tensor<{n}xf32>)
  return %r#0, %r#1 : tensor<{n}xi32>, tensor<{n}xf32>
}}
"""

# The comparator of jnp.sort: NaN are equal, and so are zeros.
COMPUTED = """
func.func @main(%x: tensor<3x{n}x{e}>) -> tensor<3x{n}x{e}> {{
  %r = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<{e}>, %b: tensor<{e}>):
      %zero = stablehlo.constant dense<0.0> : tensor<{e}>
      %0 = stablehlo.compare EQ, %a, %zero, FLOAT : (tensor<{e}>, tensor<{e}>) -> tensor<i1>
      %1 = stablehlo.select %0, %zero, %a : tensor<i1>, tensor<{e}>
      %2 = stablehlo.compare EQ, %b, %{other}, FLOAT : (tensor<{e}>, tensor<{e}>) -> tensor<i1>
      %3 = stablehlo.select %2, %zero, %b : tensor<i1>, tensor<{e}>
      %4 = stablehlo.compare LT, %1, %3, {kind} : (tensor<{e}>, tensor<{e}>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
  }}) : (tensor<3x{n}x{e}>) -> tensor<3x{n}x{e}>
  return %r : tensor<3x{n}x{e}>
}}
"""


def test_sorts_by_one_key_are_one_operation():
    assert "tm_tensor.sort" in lowered(SORT.format(n=1000, order="LT"))
    total = COMPUTED.format(n=1000, e="f32", other="zero", kind="TOTALORDER")
    assert "tm_tensor.sort" in lowered(total)


def test_other_comparators_take_a_network_for_long_rows():
    assert "scf.for" in lowered(TWO_KEYS.format(n=1000))
    assert "scf.for" not in lowered(TWO_KEYS.format(n=100))
    # Neither an order with NaN, nor two elements of which different keys are computed.
    partial = COMPUTED.format(n=1000, e="f32", other="zero", kind="FLOAT")
    unlike = COMPUTED.format(n=1000, e="f32", other="b", kind="TOTALORDER")
    for text in (partial, unlike):
        assert "tm_tensor.sort" not in lowered(text)
        assert "scf.for" in lowered(text)


@pytest.mark.parametrize("n", sweep([2, 50, 128, 129, 1000], 2, 129, 1000))
def test_two_keys(n):
    random = np.random.default_rng(n)
    x, y = random.integers(0, 9, n).astype(np.int32), random.random(n).astype(np.float32)
    first, second = run(TWO_KEYS.format(n=n), x, y)
    order = np.lexsort((-y, x))
    np.testing.assert_array_equal(first, x[order])
    np.testing.assert_array_equal(second, y[order])


@pytest.mark.each_choice
@pytest.mark.parametrize("e", ["f16", "f32", "f64"])
@pytest.mark.parametrize("n", [5, 700])
def test_keys_that_are_computed(n, e):
    x = np.random.default_rng(n).normal(size=(3, n)).astype(f"{e[0]}{int(e[1:]) // 8}")
    x[:, ::5] = 0.0
    x[1, ::3] *= -0.0
    x[2, 1::3] = np.nan
    got = run(COMPUTED.format(n=n, e=e, other="zero", kind="TOTALORDER"), x)
    want = np.sort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_along_the_first_dimension():
    text = """
    func.func @main(%x: tensor<300x3xf32>) -> tensor<300x3xf32> {
      %r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (tensor<300x3xf32>) -> tensor<300x3xf32>
      return %r : tensor<300x3xf32>
    }
    """
    x = np.random.default_rng(1).standard_normal((300, 3)).astype(np.float32)
    x[5] = np.nan
    np.testing.assert_array_equal(run(text, x), np.sort(x, 0))


@pytest.mark.parametrize("kind", ["f32", "ui8", "i32"])
def test_few_of_many(kind):
    text = f"""
    func.func @main(%x: tensor<4x300x{kind}>) -> (tensor<4x5x{kind}>, tensor<4x5xi32>) {{
      %v, %i = chlo.top_k(%x, k = 5) : tensor<4x300x{kind}> -> (tensor<4x5x{kind}>, tensor<4x5xi32>)
      return %v, %i : tensor<4x5x{kind}>, tensor<4x5xi32>
    }}
    """
    assert "scf.for" not in lowered(text)
    dtype = {"f32": np.float32, "ui8": np.uint8, "i32": np.int32}[kind]
    # Many are equal: the first of them come first. All of one row are the least number.
    x = np.random.default_rng(3).integers(0, 200, (4, 300)).astype(dtype)
    x[3] = -np.inf if kind == "f32" else np.iinfo(dtype).min
    if kind == "f32":
        x[0, 7] = np.nan
    values, places = run(text, x)
    wide = np.where(np.isnan(x), np.inf, x).astype(np.float64)
    want = np.argsort(-wide, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))
