"""Modules whose @main works on memrefs: written by hand, without a frontend."""

from __future__ import annotations

import numpy as np
import pytest

import polyblocks
from polyblocks.api import compile_text
from polyblocks.errors import InputError
from polyblocks.options import CompileOptions

ADD = """
func.func @main(%x: memref<7xf32>, %sum: memref<7xf32>, %twice: memref<7xf32>) {
  affine.for %i = 0 to 7 {
    %a = affine.load %x[%i] : memref<7xf32>
    %b = affine.load %sum[%i] : memref<7xf32>
    %c = arith.addf %a, %b : f32
    affine.store %c, %sum[%i] : memref<7xf32>
    %d = arith.addf %a, %a : f32
    affine.store %d, %twice[%i] : memref<7xf32>
  }
  return
}
"""


def test_roles_come_from_what_the_loops_do() -> None:
    artifact = compile_text(ADD, CompileOptions())
    rows = [(r["role"], r["updates"]) for r in artifact.manifest["arguments"]]
    assert rows == [("input", None), ("input", 1), ("output", None)]
    x, total = np.arange(7, dtype=np.float32), np.ones(7, dtype=np.float32)
    twice = polyblocks.load(artifact)(x, total)
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_array_equal(total, x + 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @main(%x: memref<4xf32>, %y: tensor<4xf32>) { return }",
            "@main takes either tensors, or memrefs and returns nothing",
        ),
        (
            "func.func @main(%x: memref<?xf32>) { return }",
            r"@main takes and returns static tensors, not memref<\?xf32>",
        ),
        (
            "func.func @main(%x: memref<4xf32, strided<[2]>>) { return }",
            "@main takes and returns static tensors, not memref<4xf32, strided",
        ),
    ],
)
def test_what_cannot_be_an_argument(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile_text(text, CompileOptions())
