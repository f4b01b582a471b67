"""Sorting with any comparator, short and long."""

from __future__ import annotations

import numpy as np
import pytest
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


@pytest.mark.parametrize("n", [2, 3, 17, 128, 129, 200, 256, 1000])
@pytest.mark.parametrize("order", ["LT", "GT"])
def test_equal_elements_keep_their_order(n, order):
    x = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
    values, places = run(SORT.format(n=n, order=order), x)
    want = np.argsort(x if order == "LT" else -x, kind="stable")
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, x[want])


def test_long_rows_are_sorted_by_a_network():
    assert "scf.for" in lowered(SORT.format(n=1000, order="LT"))
    assert "scf.for" not in lowered(SORT.format(n=100, order="LT"))


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
