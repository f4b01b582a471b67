"""Which dimensions of one shape make up those of another; numbers as arrays of one element."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.stablehlo_programs import run

pytest.importorskip("torch_mlir")

from polyblocks.stablehlo.shapes import association


@pytest.mark.parametrize(
    "short, long, groups",
    [
        ((6,), (2, 3), [[0, 1]]),
        ((2, 12), (2, 3, 4), [[0], [1, 2]]),
        ((6,), (2, 3, 1), [[0, 1, 2]]),
        ((), (1, 1), []),
        ((6, 1), (2, 3, 1), [[0, 1], [2]]),
        # Nothing is left that the last dimension could be made of: no group is empty.
        ((240, 1), (2, 12, 10), None),
        ((4,), (2, 3), None),
    ],
)
def test_association(short, long, groups):
    assert association(short, long) == groups


@pytest.mark.parametrize(
    "operation",
    [
        "stablehlo.reshape %n : (tensor<f32>) -> tensor<{shape}xf32>",
        "stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<{shape}xf32>",
    ],
)
@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_a_computed_number_as_an_array(operation, shape):
    pytest.importorskip("polyblocks_cpu")
    # No tensor yet: what is computed of numbers is a number until an array is needed.
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    text = f"""
    func.func @main(%x: {kind}) -> ({kind}, {kind}, tensor<1xf32>) {{
      %a = stablehlo.constant dense<2.0> : tensor<f32>
      %n = stablehlo.sqrt %a : tensor<f32>
      %y = {operation.format(shape="x".join(map(str, shape)))}
      %z = stablehlo.concatenate %y, %x, dim = 0 : ({kind}, {kind}) -> {_doubled(shape)}
      %s = stablehlo.slice %z {_first(shape)} : ({_doubled(shape)}) -> {kind}
      %r = stablehlo.reshape %y : ({kind}) -> tensor<1xf32>
      return %y, %s, %r : {kind}, {kind}, tensor<1xf32>
    }}
    """
    root = np.sqrt(np.float32(2))
    results = run(text, np.zeros(shape, np.float32))
    for result, wanted in zip(results, (shape, shape, (1,)), strict=True):
        np.testing.assert_array_equal(result, np.full(wanted, root))


def _doubled(shape):
    return f"tensor<{'x'.join(map(str, (2, *shape[1:])))}xf32>"


def _first(shape):
    return f"[{', '.join(['0:1'] * len(shape))}]"


def test_what_surrounds_an_empty_array_is_the_number():
    pytest.importorskip("polyblocks_cpu")
    text = """
    func.func @main(%x: tensor<0x2xf32>) -> tensor<3x4xf32> {
      %a = stablehlo.constant dense<2.0> : tensor<f32>
      %y = stablehlo.pad %x, %a, low = [3, 1], high = [0, 1], interior = [0, 0]
          : (tensor<0x2xf32>, tensor<f32>) -> tensor<3x4xf32>
      return %y : tensor<3x4xf32>
    }
    """
    got = run(text, np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(got, np.full((3, 4), 2, np.float32))
