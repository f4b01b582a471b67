"""Gathers, scatters and slices at indices that are computed at run time."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.stablehlo_programs import lowered, random, run

from polyblocks.errors import ExecutionError

pytest.importorskip("polyblocks_cpu")

GATHER = """
func.func @main(%x: tensor<6x4xf32>, %i: tensor<5x1x{kind}>) -> tensor<5x4xf32> {{
  %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>}}> : (tensor<6x4xf32>, tensor<5x1x{kind}>) -> tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}}
"""


@pytest.mark.parametrize("kind", ["i32", "ui8", "i64"])
def test_gather_checks_where_it_is_asked_for(kind):
    dtype = {"i32": np.int32, "ui8": np.uint8, "i64": np.int64}[kind]
    text = GATHER.format(kind=kind).replace("4>}>", "4>}> {polyblocks.checked}")
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    rows = np.array([[3], [0], [5], [5], [1]], dtype)
    np.testing.assert_array_equal(run(text, x, rows), x[rows[:, 0].astype(int)])
    for wrong in (6, -1):
        rows[2] = np.array(wrong).astype(dtype)
        with pytest.raises(ExecutionError, match="at least 0 and less than 6"):
            run(text, x, rows)


@pytest.mark.parametrize(
    ("kind", "dtype", "rows"),
    [
        ("i32", np.int32, [3, -5, 99, 0, 5]),
        ("i8", np.int8, [3, -5, 99, 0, 5]),
        ("ui8", np.uint8, [3, 255, 99, 0, 5]),
        ("ui64", np.uint64, [3, 2**64 - 1, 99, 0, 5]),
    ],
)
def test_gather_clamps(kind, dtype, rows):
    x = random((6, 4))
    i = np.array(rows, dtype)
    signed = np.array([int(v) for v in i], object)
    want = x[np.clip(signed, 0, 5).astype(int)]
    np.testing.assert_array_equal(run(GATHER.format(kind=kind), x, i[:, None]), want)


def test_gather_of_batches():
    text = """
    func.func @main(%x: tensor<3x6xf32>, %i: tensor<3x2x1xi32>) -> tensor<3x2xf32> {
      %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<
          collapsed_slice_dims = [1], operand_batching_dims = [0],
          start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>,
          slice_sizes = array<i64: 1, 1>}>
          : (tensor<3x6xf32>, tensor<3x2x1xi32>) -> tensor<3x2xf32>
      return %r : tensor<3x2xf32>
    }
    """
    x = random((3, 6))
    i = np.array([[0, 5], [2, 2], [9, -1]], np.int32)
    want = np.take_along_axis(x, np.clip(i, 0, 5), 1)
    np.testing.assert_array_equal(run(text, x, i[..., None]), want)


SCATTER = """
func.func @main(%x: tensor<6x4xf32>, %i: tensor<5x1xi32>, %u: tensor<5x4xf32>) -> tensor<6x4xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      {body}
      stablehlo.return %c : tensor<f32>
  }}) : (tensor<6x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}}
"""

BODIES = {
    "add": ("%c = stablehlo.add %a, %b : tensor<f32>", lambda a, b: a + b),
    "multiply": ("%c = stablehlo.multiply %a, %b : tensor<f32>", lambda a, b: a * b),
    "maximum": ("%c = stablehlo.maximum %a, %b : tensor<f32>", np.maximum),
    "own": (
        "%d = stablehlo.add %a, %a : tensor<f32>\n%c = stablehlo.subtract %d, %b : tensor<f32>",
        lambda a, b: 2 * a - b,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_scatter_in_order_with_duplicates(name):
    body, combine = BODIES[name]
    x, u = random((6, 4)), random((5, 4), 1)
    i = np.array([3, 0, 3, 77, -1], np.int32)
    want = x.copy()
    for row, update in zip(i, u, strict=True):
        if 0 <= row < 6:
            want[row] = combine(want[row], update)
    got = run(SCATTER.format(body=body), x, i[:, None], u)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_scatter_that_adds_has_no_condition_on_what_is_stored():
    # Else it could not be shared among threads.
    text = lowered(SCATTER.format(body=BODIES["add"][0]))
    scatter = text[text.index("tm_tensor.scatter") :]
    assert "arith.select" not in scatter[: scatter.index("tm_tensor.yield")]


def test_scatter_that_replaces_keeps_what_is_beyond():
    text = SCATTER.format(body="%c = stablehlo.reshape %b : (tensor<f32>) -> tensor<f32>")
    x, u = random((6, 4)), random((5, 4), 1)
    i = np.array([3, 0, 5, 6, -1], np.int32)
    want = x.copy()
    want[[3, 0, 5]] = u[:3]
    np.testing.assert_array_equal(run(text, x, i[:, None], u), want)


def test_scatter_of_one_window_is_a_slice():
    text = """
    func.func @main(%x: tensor<6x4xf32>, %i: tensor<1xi32>, %u: tensor<4xf32>) -> tensor<6x4xf32> {
      %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [0], inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0]>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
      }) : (tensor<6x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<6x4xf32>
      return %r : tensor<6x4xf32>
    }
    """
    assert "tm_tensor.scatter" not in lowered(text)
    x, u = random((6, 4)), random((4,), 1)
    for i in (2, 5, 6, -1):
        want = x.copy()
        if 0 <= i < 6:
            want[i] += u
        np.testing.assert_allclose(run(text, x, np.array([i], np.int32), u), want, rtol=1e-6)


@pytest.mark.parametrize("start", [-3, 0, 2, 9])
def test_dynamic_slices_are_clamped(start):
    text = """
    func.func @main(%x: tensor<6xf32>, %i: tensor<i32>) -> (tensor<3xf32>, tensor<6xf32>) {
      %s = stablehlo.dynamic_slice %x, %i, sizes = [3]
          : (tensor<6xf32>, tensor<i32>) -> tensor<3xf32>
      %n = stablehlo.negate %s : tensor<3xf32>
      %u = stablehlo.dynamic_update_slice %x, %n, %i
          : (tensor<6xf32>, tensor<3xf32>, tensor<i32>) -> tensor<6xf32>
      return %s, %u : tensor<3xf32>, tensor<6xf32>
    }
    """
    x = random((6,))
    part, whole = run(text, x, np.array(start, np.int32))
    at = min(max(start, 0), 3)
    np.testing.assert_array_equal(part, x[at : at + 3])
    want = x.copy()
    want[at : at + 3] *= -1
    np.testing.assert_array_equal(whole, want)
