"""Constants of half types: the bindings read only splats of them."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine import reader


@pytest.mark.parametrize(
    ("kind", "literal", "expected"),
    [
        ("f16", "dense<1.5>", ["1.500000e+00 : f16"] * 2),
        ("bf16", "dense<-2.0>", ["-2.000000e+00 : bf16"] * 2),
        ("f16", "dense<[1.0, 2.0]>", None),
        ("f32", "dense<[1.0, 2.0]>", ["1.000000e+00 : f32", "2.000000e+00 : f32"]),
        ("i8", "dense<[1, -2]>", ["1 : i8", "-2 : i8"]),
    ],
)
def test_small_constants_are_read(kind: str, literal: str, expected: list[str] | None) -> None:
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
