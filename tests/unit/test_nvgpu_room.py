"""Kernels that spill registers for the sake of other blocks get room."""

from __future__ import annotations

import pytest
from tests.gpu_conformance.assemble import compiled

from polyblocks.codegen.gpu import registers
from polyblocks_nvgpu import ptxas, room

TEXT = """
.visible .entry first(
	.param .u64 first_param_0
)
.reqntid 256, 1, 1
.minnctapersm 8
{
	ret;
}
.visible .entry first_1(
	.param .u64 first_1_param_0
)
.reqntid 256, 1, 1
.minnctapersm 4
{
	ret;
}
"""
#: A product of matrices, whose threads keep tiles of 64 sums.
PRODUCT = """
func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024x1024xf32>)
    -> tensor<1024x1024xf32>
  %z = linalg.matmul ins(%x, %y : tensor<1024x1024xf32>, tensor<1024x1024xf32>)
    outs(%start : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %z : tensor<1024x1024xf32>
}
"""


def test_only_the_named_kernels_may_take_all_registers() -> None:
    changed = room.with_room(TEXT, ["first"])
    assert changed == TEXT.replace(".minnctapersm 8\n", "")
    assert room.with_room(TEXT, []) == TEXT


def test_a_kernel_that_would_spill_gives_up_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assembler = ptxas.find()
    if assembler is None or "sm_80" not in ptxas.architectures(assembler):
        pytest.skip("no assembler for sm_80")
    (before,) = compiled(PRODUCT, "sm_80").kernels
    # So many blocks leave a thread fewer registers than its tile has elements.
    wish = 2048 // before.threads
    monkeypatch.setattr(registers, "resident_blocks", lambda *_: wish)
    (kernel,) = compiled(PRODUCT, "sm_80").kernels
    assert kernel.registers > 65536 // 2048
    assert (kernel.spill_bytes, kernel.scratch_bytes) == (0, 0)
    assert 1 <= kernel.assumed < wish
    assert kernel.resident >= kernel.assumed
