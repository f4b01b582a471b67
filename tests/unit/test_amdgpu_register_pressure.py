"""Kernels take no more registers than the blocks leave them that are to be held at once."""

from __future__ import annotations

import pytest
from tests.gpu_conformance.assemble import compiled

from polyblocks.affine.gpu.plans import kernel as plans
from polyblocks_amdgpu import lower

#: A convolution; a step of its reduction has the 7 products of a row of the window.
CONVOLUTION = """
func.func @main(%x: tensor<1x3x224x224xf32>, %w: tensor<64x3x7x7xf32>)
    -> tensor<1x64x112x112xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 3, 3] high[0, 0, 3, 3] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x3x224x224xf32> to tensor<1x3x230x230xf32>
  %empty = tensor.empty() : tensor<1x64x112x112xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x112x112xf32>)
    -> tensor<1x64x112x112xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : vector<2xi64>}
    ins(%padded, %w : tensor<1x3x230x230xf32>, tensor<64x3x7x7xf32>)
    outs(%start : tensor<1x64x112x112xf32>) -> tensor<1x64x112x112xf32>
  return %y : tensor<1x64x112x112xf32>
}
"""


def test_as_many_blocks_are_held_as_the_mapping_assumes() -> None:
    kernels = compiled(CONVOLUTION, "gfx1200").kernels
    assert max(kernel.assumed for kernel in kernels if kernel.registers > 64) == 4
    for kernel in kernels:
        assert kernel.resident >= kernel.assumed, kernel
        assert (kernel.spill_bytes, kernel.scratch_bytes) == (0, 0), kernel


def test_what_would_spill_keeps_its_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    # So many blocks leave a thread fewer registers than its tile has elements.
    requested = 8
    monkeypatch.setattr(plans, "resident_blocks", lambda *_: requested)
    kernels = compiled(CONVOLUTION, "gfx1200").kernels
    kernel = max(kernels, key=lambda kernel: kernel.registers)
    assert (kernel.spill_bytes, kernel.scratch_bytes) == (0, 0)
    assert 1 <= kernel.assumed < requested
    assert kernel.resident >= kernel.assumed


def test_kernels_are_asked_before_the_code_generator_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs once, unless something spills."""
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")
    runs = []
    run = lower.compile_object
    monkeypatch.setattr(lower, "compile_object", lambda *given: runs.append(1) or run(*given))
    compiled(CONVOLUTION, "gfx1200")
    assert len(runs) == 1
