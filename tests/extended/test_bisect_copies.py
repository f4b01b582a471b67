"""The reference lowering of copies, waits and barriers: modules between passes stay runnable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.gpu_target import gpu_target
from tests.unit.test_staged_nests import CASES

from polyblocks import mlir, signature
from polyblocks.bisect.execute import VARIANTS, Program
from polyblocks.bisect.reference import lower
from polyblocks.options import CompileOptions
from polyblocks.passes.contraction.tile_contractions import TileContractionsPass
from polyblocks.passes.map.stage_operands import StageOperandsPass
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe


def results(module: Any) -> list[np.ndarray]:
    """The output of a module for inputs that are drawn by shape, and these."""
    signature.infer(module)
    lowered = lower(str(module).encode())
    numbers = np.random.default_rng(0)
    rows = [slot.row for slot in lowered.slots]
    assert [row["role"] for row in rows] == ["input", "input", "output"]
    arrays = [numbers.integers(-3, 4, row["shape"]).astype(row["dtype"]) for row in rows[:2]]
    return Program(lowered)(arrays, VARIANTS[0], 20.0)


@pytest.mark.parametrize("name", ["one through registers", "a part of a tile", "windows"])
def test_staged_operands(name: str) -> None:
    module, plain = mlir.parse(CASES[name]), mlir.parse(CASES[name])
    StageOperandsPass().run(module, PassContext.create(gpu_target(copying=True), CompileOptions()))
    assert "polyblocks.wait" in str(module)
    found, expected = results(module), results(plain)
    assert np.abs(expected[0]).max() > 0
    assert np.array_equal(found[0], expected[0])


PRODUCT = """
func.func @main(%a: memref<37x64xf32>, %b: memref<64x75xf32>, %c: memref<37x75xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 37 {
    affine.for %j = 0 to 75 {
      %s = affine.for %k = 0 to 64 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<37x64xf32>
        %y = affine.load %b[%k, %j] : memref<64x75xf32>
        %z = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      affine.store %s, %c[%i, %j] : memref<37x75xf32>
    }
  } {polyblocks.schedule = {
       register_tile = [4, 32], block_tile = [16, 64], k_block = 64, sum_chunk = 64,
       chunks = [1, 1], packed = [true, true], threads = 1, transposed = false}}
  return
}
"""


def test_packed_panels() -> None:
    module = mlir.parse(PRODUCT)
    options = CompileOptions(arch="x86-64-v4")
    context = PassContext.create(describe(options), options)
    TileContractionsPass().run(module, context)
    assert str(module).count('kind = "pack"') >= 3
    assert "upper = [" in str(module)
    found, expected = results(module), results(mlir.parse(PRODUCT))
    assert np.abs(expected[0]).max() > 0
    assert np.array_equal(found[0], expected[0])
