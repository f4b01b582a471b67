"""A target that comes with a matrix unit of its own: products by it, with no line in the core."""

from __future__ import annotations

from pathlib import Path

import dot4_target
import numpy as np
import pytest

from polyblocks import api
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.testing.conformance import Case, run

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")


@pytest.fixture
def options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_registry: None
) -> CompileOptions:
    """The vendor's target, installed."""
    info = tmp_path / "polyblocks_dot4-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: polyblocks-dot4\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[polyblocks.targets]\ndot4 = dot4_target\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "dot4")
    monkeypatch.setattr(dot4_target, "EMITTED", [])
    return CompileOptions(target="dot4")


def product(m: int, n: int, k: int) -> Case:
    """A matrix product of bytes with signs."""
    a, b, c = f"tensor<{m}x{k}xi8>", f"tensor<{k}x{n}xi8>", f"tensor<{m}x{n}xi32>"
    text = f"""
    func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %z = arith.constant 0 : i32
      %e = tensor.empty() : {c}
      %f = linalg.fill ins(%z : i32) outs(%e : {c}) -> {c}
      %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
      return %r : {c}
    }}"""
    return Case(
        f"product {m}x{n}x{k}",
        text,
        lambda draw: [draw.integers(-128, 128, s, np.int8) for s in ((m, k), (k, n))],
        lambda x, y: x.astype(np.int32) @ y.astype(np.int32),
    )


def convolution(channels: int, filters: int, size: int, window: int) -> Case:
    """A convolution of an image of bytes, with its channels last."""
    out = size - window + 1
    x, w = (
        f"tensor<1x{size}x{size}x{channels}xi8>",
        f"tensor<{window}x{window}x{channels}x{filters}xi8>",
    )
    r = f"tensor<1x{out}x{out}x{filters}xi32>"
    text = f"""
    func.func @main(%x: {x}, %w: {w}) -> {r} {{
      %z = arith.constant 0 : i32
      %e = tensor.empty() : {r}
      %f = linalg.fill ins(%z : i32) outs(%e : {r}) -> {r}
      %c = linalg.conv_2d_nhwc_hwcf {{strides = dense<1> : vector<2xi64>,
        dilations = dense<1> : vector<2xi64>}} ins(%x, %w : {x}, {w}) outs(%f : {r}) -> {r}
      return %c : {r}
    }}"""

    def reference(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(image[0], (window, window), (0, 1))
        return np.einsum("yxcij,ijcf->yxf", windows.astype(np.int32), weights.astype(np.int32))[
            None
        ]

    shapes = (1, size, size, channels), (window, window, channels, filters)
    return Case(
        f"convolution {channels} to {filters}",
        text,
        lambda draw: [draw.integers(-128, 128, s, np.int8) for s in shapes],
        reference,
    )


@pytest.mark.parametrize(
    "case",
    [product(64, 64, 64), product(37, 29, 67), convolution(16, 24, 12, 3), convolution(7, 5, 9, 2)],
    ids=str,
)
def test_the_unit_computes_it(case: Case, options: CompileOptions) -> None:
    artifact = run(case, options)
    assert artifact.manifest["target"] == "dot4"
    assert dot4_target.EMITTED, "the unit was used"
    assert all(rows <= 12 and columns <= 16 for rows, columns, _ in dot4_target.EMITTED)


def test_a_unit_without_instructions(
    options: CompileOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dot4_target, "EMITTERS", {"other": dot4_target.Dot4})
    message = "'dot4' describes the matrix unit 'dot4x4x4' and brings no .* one of: other"
    with pytest.raises(UnsupportedError, match=message):
        api.compile_text(product(64, 64, 64).module, options, "product")
