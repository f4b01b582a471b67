"""Affine maps of run-time values are read as arithmetic."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import IndirectLoad, Op, walk

PROGRAM = """
#map = affine_map<()[s0] -> ({expr})>
func.func @main(%a: memref<9xf32>, %rows: memref<4xindex>, %out: memref<4xf32>) {{
  affine.for %i = 0 to 4 {{
    %r = affine.load %rows[%i] : memref<4xindex>
    %at = affine.apply #map()[%r]
    %x = memref.load %a[%at] : memref<9xf32>
    affine.store %x, %out[%i] : memref<4xf32>
  }}
  return
}}
"""


@pytest.mark.parametrize(
    ("expr", "names"),
    [
        ("s0 + 3", ["arith.addi"]),
        ("s0 * 2 + 1", ["arith.muli", "arith.addi"]),
        ("s0 floordiv 4", ["arith.floordivsi"]),
        ("s0 ceildiv 4", ["arith.ceildivsi"]),
        ("s0 mod 4", ["arith.floordivsi", "arith.muli", "arith.subi"]),
    ],
)
def test_operations(expr: str, names: list[str]) -> None:
    module = mlir.parse(PROGRAM.format(expr=expr))
    (nest,) = reader.read(module).nests()
    ops = [n for n in walk(nest.body) if isinstance(n, Op) and n.name != "arith.constant"]
    assert [op.name for op in ops] == names
    (load,) = [n for n in walk(nest.body) if isinstance(n, IndirectLoad)]
    assert load.index == ops[-1].results
