"""Loops and conditionals: which form they take, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.stablehlo_programs import lowered, random, run

pytest.importorskip("polyblocks_cpu")

COUNTED = """
func.func @main(%x: tensor<5xf32>) -> (tensor<i32>, tensor<5xf32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<{trips}> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<5xf32>
  cond {{
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %s = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %b = stablehlo.add %a, %s : tensor<5xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b : tensor<i32>, tensor<5xf32>
  }}
  return %r#0, %r#1 : tensor<i32>, tensor<5xf32>
}}
"""


@pytest.mark.parametrize("trips", [0, 1, 3, 100])
def test_counted_loop(trips):
    x = random((5,))
    count, total = run(COUNTED.format(trips=trips), x)
    assert int(count) == trips
    np.testing.assert_allclose(total, x + sum(range(trips)), rtol=1e-5)


def test_a_known_number_of_iterations_is_a_for_loop():
    text = lowered(COUNTED.format(trips=100))
    assert "scf.for" in text
    assert "scf.while" not in text
    # The counter is computed, not carried: one tensor is.
    assert text.count("iter_args") == 1
    assert "-> (tensor<5xf32>)" in text


def test_few_iterations_are_written_out():
    text = lowered(COUNTED.format(trips=3))
    assert "scf." not in text


def test_a_number_of_iterations_known_at_run_time_only():
    text = """
    func.func @main(%x: tensor<5xf32>, %n: tensor<i64>) -> tensor<5xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i64>
      %three = stablehlo.constant dense<3> : tensor<i64>
      %r:3 = stablehlo.while(%i = %n, %m = %zero, %a = %x)
          : tensor<i64>, tensor<i64>, tensor<5xf32>
      cond {
        %c = stablehlo.compare GT, %i, %m : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %b = stablehlo.add %a, %a : tensor<5xf32>
        %j = stablehlo.subtract %i, %three : tensor<i64>
        stablehlo.return %j, %m, %b : tensor<i64>, tensor<i64>, tensor<5xf32>
      }
      return %r#2 : tensor<5xf32>
    }
    """
    assert "scf.for" in lowered(text)
    x = random((5,))
    for n, trips in ((-4, 0), (0, 0), (1, 1), (3, 1), (4, 2), (9, 3)):
        np.testing.assert_array_equal(run(text, x, np.array(n)), x * 2**trips)


def test_a_condition_on_the_data():
    text = """
    func.func @main(%x: tensor<5xf32>, %most: tensor<f32>) -> (tensor<i32>, tensor<5xf32>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %none = stablehlo.constant dense<0.0> : tensor<f32>
      %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<5xf32>
      cond {
        %s = stablehlo.reduce(%a init: %none) applies stablehlo.add across dimensions = [0]
            : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
        %c = stablehlo.compare LT, %s, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %b = stablehlo.add %a, %a : tensor<5xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %b : tensor<i32>, tensor<5xf32>
      }
      return %r#0, %r#1 : tensor<i32>, tensor<5xf32>
    }
    """
    assert "scf.while" in lowered(text)
    x = np.ones(5, np.float32)
    count, total = run(text, x, np.float32(100))
    assert int(count) == 5
    np.testing.assert_array_equal(total, x * 32)


BRANCHES = """
func.func @main(%i: tensor<i32>, %x: tensor<5xf32>) -> tensor<5xf32> {
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.negate %x : tensor<5xf32>
    stablehlo.return %a : tensor<5xf32>
  }, {
    %a = stablehlo.add %x, %x : tensor<5xf32>
    stablehlo.return %a : tensor<5xf32>
  }, {
    stablehlo.return %x : tensor<5xf32>
  }) : (tensor<i32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}
"""


@pytest.mark.parametrize(("i", "factor"), [(0, -1), (1, 2), (2, 1), (3, 1), (-1, 1)])
def test_case_takes_the_last_branch_for_what_is_none(i, factor):
    x = random((5,))
    np.testing.assert_array_equal(run(BRANCHES, np.array(i, np.int32), x), factor * x)


def test_case_is_a_switch():
    assert "scf.index_switch" in lowered(BRANCHES)


@pytest.mark.parametrize("p", [True, False])
def test_if(p):
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
      %r:2 = "stablehlo.if"(%p) ({
        %a = stablehlo.negate %x : tensor<5xf32>
        stablehlo.return %a, %x : tensor<5xf32>, tensor<5xf32>
      }, {
        stablehlo.return %x, %x : tensor<5xf32>, tensor<5xf32>
      }) : (tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>)
      return %r#0, %r#1 : tensor<5xf32>, tensor<5xf32>
    }
    """
    x = random((5,))
    first, second = run(text, np.array(p), x)
    np.testing.assert_array_equal(first, -x if p else x)
    np.testing.assert_array_equal(second, x)


def test_a_counter_that_starts_a_slice_is_not_clamped():
    text = """
    func.func @main(%x: tensor<20x5xf32>) -> tensor<20x5xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %end = stablehlo.constant dense<20> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<20x5xf32>
      cond {
        %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %n = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %w = stablehlo.add %i, %end : tensor<i32>
        %k = stablehlo.select %n, %w, %i : tensor<i1>, tensor<i32>
        %s = stablehlo.dynamic_slice %a, %k, %zero, sizes = [1, 5]
            : (tensor<20x5xf32>, tensor<i32>, tensor<i32>) -> tensor<1x5xf32>
        %t = stablehlo.add %s, %s : tensor<1x5xf32>
        %b = stablehlo.dynamic_update_slice %a, %t, %k, %zero
            : (tensor<20x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<20x5xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %b : tensor<i32>, tensor<20x5xf32>
      }
      return %r#1 : tensor<20x5xf32>
    }
    """
    code = lowered(text)
    assert "minsi" not in code
    assert "select" not in code
    x = random((20, 5))
    np.testing.assert_array_equal(run(text, x), 2 * x)
