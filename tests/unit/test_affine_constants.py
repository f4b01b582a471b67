"""Constants in memory: read where they are small, one value where all are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyblocks import mlir
from polyblocks.affine.mlir import reader
from polyblocks.api import compile_until
from polyblocks.options import CompileOptions


@pytest.mark.parametrize(
    ("kind", "literal", "expected"),
    [
        ("f16", "dense<1.5>", ["1.500000e+00 : f16"]),
        ("bf16", "dense<-2.0>", ["-2.000000e+00 : bf16"]),
        ("f32", "dense<3.0>", ["3.000000e+00 : f32"]),
        ("i1", "dense<true>", ["true"]),
        ("f16", "dense<[1.0, 2.0]>", None),
        ("f32", "dense<[1.0, 2.0]>", ["1.000000e+00 : f32", "2.000000e+00 : f32"]),
        ("i8", "dense<[1, -2]>", ["1 : i8", "-2 : i8"]),
    ],
)
def test_constants_are_read(kind: str, literal: str, expected: list[str] | None) -> None:
    module = mlir.parse(
        f"""
        memref.global "private" constant @c : memref<2x{kind}> = {literal}
        func.func @main(%out: memref<2x{kind}> {{polyblocks.arg = {{role = "output", name = "out",
            dtype = "float16", shape = array<i64: 2>, strides = array<i64: 1>, constant = false,
            updates = -1 : i64}}}}) {{
          %c = memref.get_global @c : memref<2x{kind}>
          affine.for %i = 0 to 2 {{
            %v = affine.load %c[%i] : memref<2x{kind}>
            affine.store %v, %out[%i] : memref<2x{kind}>
          }}
          return
        }}
        """
    )
    with module.context, mlir.ir.Location.unknown():
        sequence = reader.read(module)
    buffers = [b for b in sequence.buffers if b.constant is not None]
    found = [str(a) for a in buffers[0].constant] if buffers else None
    assert found == expected


def test_constants_that_nobody_reads_are_not_in_the_code(tmp_path: Path) -> None:
    path = tmp_path / "ones.mlir"
    path.write_text(
        """
        memref.global "private" constant @ones : memref<4000000xi32> = dense<1>
        memref.global "private" constant @few : memref<3xf32> = dense<[1.0, 2.0, 3.0]>
        memref.global "private" constant @dead : memref<3xf32> = dense<[1.0, 2.0, 4.0]>
        func.func @main(%at: memref<3xi64>, %y: memref<3xf32>) {
          %c = memref.get_global @ones : memref<4000000xi32>
          %f = memref.get_global @few : memref<3xf32>
          affine.for %i = 0 to 3 {
            %k = affine.load %at[%i] : memref<3xi64>
            %j = arith.index_cast %k : i64 to index
            %v = memref.load %f[%j] : memref<3xf32>
            %one = affine.load %c[%i] : memref<4000000xi32>
            %o = arith.sitofp %one : i32 to f32
            %w = arith.addf %v, %o : f32
            affine.store %w, %y[%i] : memref<3xf32>
          }
          return
        }
        """
    )
    text = compile_until(path, CompileOptions(), "S4")
    assert "@few" in text
    assert "@ones" not in text
    assert "@dead" not in text
