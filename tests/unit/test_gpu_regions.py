"""Loops and branches that memory decides about: what one block of threads cannot run."""

from __future__ import annotations

import pytest
from tests.support.emit_kernels import emit_kernels
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.errors import UnsupportedError

WHILE = """
func.func @main(%left: memref<i32>, %a: memref<64xf32>) {{
  %zero = arith.constant 0 : i32
  %two = arith.constant 2.0 : f32
  scf.while : () -> () {{
    %n = memref.load %left[] : memref<i32>
    %more = arith.cmpi sgt, %n, %zero : i32
    scf.condition(%more)
  }} do {{
    {body}
    scf.yield
  }} attributes {{polyblocks.region = "loop1"}}
  return
}}"""
#: Neighbours of neighbours, so that the whole row is in shared memory.
ROW = """
    affine.for %t = 0 to 1 {{
      %row = memref.alloca() : memref<{n}xf32>
      affine.for %i = 0 to {n} {{
        affine.store %two, %row[%i] : memref<{n}xf32>
      }}
      affine.for %i = 0 to 64 {{
        %x = affine.load %row[{n} - 1 - %i] : memref<{n}xf32>
        affine.store %x, %a[%i] : memref<64xf32>
      }}
    }}"""


def kernels_of(text: str) -> None:
    emit_kernels(mlir.parse(text), gpu_target())


def test_an_operation_between_nests_that_is_no_scalar() -> None:
    message = (
        "'memref.assume_alignment' is outside every loop nest, in a data-dependent loop or branch"
    )
    with pytest.raises(UnsupportedError, match=message):
        kernels_of(WHILE.format(body="%b = memref.assume_alignment %a, 16 : memref<64xf32>"))


def test_more_workgroup_memory_than_a_block_has() -> None:
    message = r"'scf.while' needs \d+ bytes of shared memory, and a block has 232448"
    with pytest.raises(UnsupportedError, match=message):
        kernels_of(WHILE.format(body=ROW.format(n=100_000)))


#: A number that is loaded before a loop of the host, where a kernel changes it.
CHANGED = """
func.func @main(%number: memref<f32>, %a: memref<64xf32>, %b: memref<64xf32>) {
  %n = memref.load %number[] : memref<f32>
  affine.for %t = 0 to 5 {
    affine.for %i = 0 to 64 {
      %x = affine.load %a[%i] : memref<64xf32>
      %y = arith.addf %x, %n : f32
      affine.store %y, %b[%i] : memref<64xf32>
    }
    affine.for %i = 0 to 1 {
      %x = affine.load %b[%i] : memref<64xf32>
      affine.store %x, %a[%i] : memref<64xf32>
    }
    %z = affine.load %b[0] : memref<64xf32>
    affine.store %z, %number[] : memref<f32>
  } {polyblocks.region = "loop1"}
  return
}"""


def test_a_number_that_changes_before_its_kernel_runs_again() -> None:
    with pytest.raises(UnsupportedError, match="'memref.load' stands outside of all loop nests"):
        kernels_of(CHANGED)
    kernels_of(CHANGED.replace("affine.store %z, %number[] : memref<f32>", ""))
