"""Reductions, windows, running values, and what scatters to a window's best element."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.stablehlo_programs import lowered, random, run

pytest.importorskip("polyblocks_cpu")


def test_two_arrays_with_a_body_of_their_own():
    text = """
    func.func @main(%x: tensor<4x9xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
      %i = stablehlo.iota dim = 1 : tensor<4x9xi32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %none = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.reduce(%x init: %low), (%i init: %none) across dimensions = [1]
          : (tensor<4x9xf32>, tensor<4x9xi32>, tensor<f32>, tensor<i32>)
          -> (tensor<4xf32>, tensor<4xi32>)
        reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
          %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %v = stablehlo.select %c, %a, %b : tensor<i1>, tensor<f32>
          %w = stablehlo.select %c, %j, %k : tensor<i1>, tensor<i32>
          stablehlo.return %v, %w : tensor<f32>, tensor<i32>
        }
      return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
    }
    """
    x = random((4, 9))
    best, place = run(text, x)
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(place, x.argmax(1))


def test_nothing_to_reduce_is_the_first_value():
    text = """
    func.func @main(%x: tensor<3x0xf32>, %s: tensor<f32>) -> tensor<3xf32> {
      %r = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [1]
          : (tensor<3x0xf32>, tensor<f32>) -> tensor<3xf32>
      return %r : tensor<3xf32>
    }
    """
    got = run(text, np.zeros((3, 0), np.float32), np.float32(7))
    np.testing.assert_array_equal(got, [7, 7, 7])


WINDOW = """
func.func @main(%x: tensor<{rows}x{n}x{e}>) -> tensor<{rows}x{out}x{e}> {{
  %s = stablehlo.constant dense<{start}> : tensor<{e}>
  %r = "stablehlo.reduce_window"(%x, %s) <{{padding = dense<[[0, 0], [{low}, {high}]]>
      : tensor<2x2xi64>, window_dimensions = array<i64: 1, {window}>}}> ({{
    ^bb0(%a: tensor<{e}>, %b: tensor<{e}>):
      %c = stablehlo.{op} %a, %b : tensor<{e}>
      stablehlo.return %c : tensor<{e}>
  }}) : (tensor<{rows}x{n}x{e}>, tensor<{e}>) -> tensor<{rows}x{out}x{e}>
  return %r : tensor<{rows}x{out}x{e}>
}}
"""


def window(op="add", start="0.0", e="f32", n=9, window=9, low=8, high=0):
    out = n + low + high - window + 1
    return WINDOW.format(
        rows=3, n=n, out=out, e=e, start=start, op=op, window=window, low=low, high=high
    )


def test_a_window_from_the_first_element_on_is_a_scan():
    text = lowered(window())
    # Two outputs, one that is carried along: no window of zeros around.
    assert "tensor<3x17xf32>" not in text
    assert "arith.extf" in text
    x = random((3, 9))
    np.testing.assert_allclose(run(window(), x), np.cumsum(x, 1), rtol=1e-6, atol=1e-6)


def test_a_window_up_to_the_last_element_is_one_too():
    text = window(low=0, high=8)
    assert "tensor<3x17xf32>" not in lowered(text)
    x = random((3, 9))
    want = np.cumsum(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_allclose(run(text, x), want, rtol=1e-6, atol=1e-6)


def test_running_maximum_of_integers():
    x = np.random.default_rng(1).integers(-99, 99, (3, 9)).astype(np.int32)
    got = run(window("maximum", "-2147483648", "i32"), x)
    np.testing.assert_array_equal(got, np.maximum.accumulate(x, 1))


def test_other_windows_are_padded():
    text = window(window=3, low=1, high=1)
    assert "tensor<3x11xf32>" in lowered(text)
    x = random((3, 9))
    padded = np.pad(x, ((0, 0), (1, 1)))
    want = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    np.testing.assert_allclose(run(text, x), want, rtol=1e-5, atol=1e-6)


def test_select_and_scatter():
    text = """
    func.func @main(%x: tensor<6xf32>, %s: tensor<3xf32>) -> tensor<6xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{
          window_dimensions = array<i64: 3>, window_strides = array<i64: 2>,
          padding = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }, {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
      }) : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
      return %r : tensor<6xf32>
    }
    """
    # Windows 0..2, 2..4, 4..6; the last one has two elements. The best of the first two is 2.
    x = np.array([1, -1, 5, 2, -3, -4], np.float32)
    got = run(text, x, np.array([10, 20, 40], np.float32))
    np.testing.assert_array_equal(got, [0, 0, 30, 0, 40, 0])


def test_what_is_broadcast_is_reduced():
    text = """
    func.func @main(%s: tensor<f32>, %v: tensor<4xf32>) -> (tensor<3xf32>, tensor<3x2xf32>) {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %x = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
          : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
      %w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
      %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
      return %r, %d : tensor<3xf32>, tensor<3x2xf32>
    }
    """
    total, product = run(text, np.float32(1.5), random((4,)))
    np.testing.assert_array_equal(total, [6, 6, 6])
    np.testing.assert_array_equal(product, np.full((3, 2), 9))
