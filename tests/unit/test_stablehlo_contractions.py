"""Products of matrices, convolutions, normalization."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.stablehlo_programs import random, run

pytest.importorskip("polyblocks_cpu")


def test_batches_and_two_summed_dimensions():
    text = """
    func.func @main(%x: tensor<2x3x4x5xf32>, %y: tensor<5x2x6x4xf32>) -> tensor<2x3x6xf32> {
      %r = stablehlo.dot_general %x, %y, batching_dims = [0] x [1],
          contracting_dims = [2, 3] x [3, 0]
          : (tensor<2x3x4x5xf32>, tensor<5x2x6x4xf32>) -> tensor<2x3x6xf32>
      return %r : tensor<2x3x6xf32>
    }
    """
    x, y = random((2, 3, 4, 5)), random((5, 2, 6, 4), 1)
    want = np.einsum("bmij,jbni->bmn", x, y)
    np.testing.assert_allclose(run(text, x, y), want, rtol=1e-4, atol=1e-5)


def test_bytes_are_summed_up_in_the_type_of_the_result():
    text = """
    func.func @main(%x: tensor<3x200xui8>, %y: tensor<200x2xui8>) -> tensor<3x2xi32> {
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
          : (tensor<3x200xui8>, tensor<200x2xui8>) -> tensor<3x2xi32>
      return %r : tensor<3x2xi32>
    }
    """
    generator = np.random.default_rng(1)
    x, y = (generator.integers(0, 256, s).astype(np.uint8) for s in ((3, 200), (200, 2)))
    np.testing.assert_array_equal(run(text, x, y), x.astype(int) @ y.astype(int))


CONVOLUTION = """
func.func @main(%x: tensor<{x}xf32>, %w: tensor<{w}xf32>) -> tensor<{y}xf32> {{
  %r = "stablehlo.convolution"(%x, %w) <{{
      dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>,
      feature_group_count = {groups} : i64, batch_group_count = {batches} : i64,
      window_strides = array<i64: {stride}>, padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>,
      lhs_dilation = array<i64: {base}>, rhs_dilation = array<i64: {gap}>,
      window_reversal = array<i1: {reverse}>}}>
      : (tensor<{x}xf32>, tensor<{w}xf32>) -> tensor<{y}xf32>
  return %r : tensor<{y}xf32>
}}
"""


def convolve(x, w, stride=1, low=0, high=0, base=1, gap=1, reverse=False, groups=1, batches=1):
    """What the specification says, one sum after the other."""
    n, channels, length = x.shape
    wide = np.zeros((n, channels, (length - 1) * base + 1), np.float32)
    wide[:, :, ::base] = x
    wide = np.pad(wide, ((0, 0), (0, 0), (max(low, 0), max(high, 0))))
    wide = wide[:, :, max(-low, 0) : wide.shape[2] - max(-high, 0)]
    if reverse:
        w = w[:, :, ::-1]
    features, own, taps = w.shape
    out = (wide.shape[2] - (taps - 1) * gap - 1) // stride + 1
    y = np.zeros((n // batches, features, out), np.float32)
    for b in range(n // batches):
        for f in range(features):
            group = f // (features // groups)
            batch = f // (features // batches) * (n // batches) + b
            for o in range(out):
                for c in range(own):
                    for k in range(taps):
                        y[b, f, o] += (
                            wide[batch, group * own + c, o * stride + k * gap] * w[f, c, k]
                        )
    return y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "low": 1, "high": 2},
        {"base": 3, "gap": 2, "low": 2, "high": 1},
        {"reverse": True},
        {"low": -1, "high": -2},
        {"groups": 2, "w": (6, 2, 3)},
        {"groups": 4, "w": (8, 1, 3), "reverse": True},
        {"batches": 2, "w": (6, 4, 3), "stride": 2},
    ],
    ids=str,
)
def test_convolution(options):
    options = dict(options)
    x, w = random((2, 4, 11)), random(options.pop("w", (3, 4, 3)), 1)
    want = convolve(x, w, **options)
    settings = {
        "stride": 1, "low": 0, "high": 0, "base": 1, "gap": 1, "groups": 1, "batches": 1,
        "reverse": False,
    } | options  # fmt: skip
    settings["reverse"] = str(settings["reverse"]).lower()
    shapes = {name: "x".join(map(str, a.shape)) for name, a in {"x": x, "w": w, "y": want}.items()}
    got = run(CONVOLUTION.format(**settings, **shapes), x, w)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_batch_normalization_and_its_gradient():
    text = """
    func.func @main(%x: tensor<5x3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>, %g: tensor<5x3xf32>)
        -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<5x3xf32>, tensor<3xf32>) {
      %n:3 = "stablehlo.batch_norm_training"(%x, %s, %o)
          <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
          : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
          -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
      %d:3 = "stablehlo.batch_norm_grad"(%x, %s, %n#1, %n#2, %g)
          <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
          : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<5x3xf32>)
          -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
      return %n#0, %n#1, %n#2, %d#0, %d#1
          : tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<5x3xf32>, tensor<3xf32>
    }
    """
    x, g, (s, o) = random((5, 3)), random((5, 3), 1), random((2, 3), 2)
    y, mean, variance, dx, ds = run(text, x, s, o, g)
    inverse = 1 / np.sqrt(x.var(0) + 1e-3)
    normal = (x - x.mean(0)) * inverse
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, x.var(0), rtol=1e-5)
    np.testing.assert_allclose(y, normal * s + o, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ds, (g * normal).sum(0), rtol=1e-4, atol=1e-5)
    want = s * inverse * (g - g.mean(0) - normal * (g * normal).mean(0))
    np.testing.assert_allclose(dx, want, rtol=1e-4, atol=1e-5)
