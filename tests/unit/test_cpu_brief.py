"""Vectors of brief programs are half as wide where full-width arithmetic lowers the clock."""

from __future__ import annotations

import re

import pytest

from polyblocks.api import compile_text
from polyblocks.options import CompileOptions

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

pytest.importorskip("polyblocks_cpu")

ADD = """
func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %e = tensor.empty() : tensor<{n}xf32>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}}
      ins(%x : tensor<{n}xf32>) outs(%e : tensor<{n}xf32>) {{
    ^bb0(%a: f32, %o: f32):
      %m = {op} : f32
      linalg.yield %m : f32
  }} -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}
"""
AGAIN = """
func.func @main(%x: tensor<64xf32>, %n: tensor<1xi32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = tensor.extract %n[%c0] : tensor<1xi32>
  %last = arith.index_cast %count : i32 to index
  %r = scf.for %i = %c0 to %last step %c1 iter_args(%y = %x) -> tensor<64xf32> {
    %s = linalg.add ins(%y, %x : tensor<64xf32>, tensor<64xf32>)
                    outs(%y : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
"""
PLAIN, EXP = "arith.addf %a, %a", "math.exp %a"


def add(n: int, op: str = PLAIN) -> str:
    return ADD.format(n=n, op=op)


@pytest.mark.parametrize(
    ("text", "arch", "width"),
    [
        (add(67), "sapphirerapids", "ymm"),
        pytest.param(add(67), "graniterapids", "ymm", marks=pytest.mark.slow),
        # They keep their clock.
        (add(67), "znver4", "zmm"),
        pytest.param(add(67), "x86-64-v4", "zmm", marks=pytest.mark.slow),
        (add(67), "skylake-avx512", "ymm"),
        # What is not over soon, or might not be.
        (add(1 << 20), "sapphirerapids", "zmm"),
        (AGAIN, "sapphirerapids", "zmm"),
        # A permutation of 16 numbers, and a scaling, are asked for by name.
        (add(67, EXP), "sapphirerapids", "zmm"),
    ],
)
def test_registers_that_additions_use(text, arch, width, tmp_path):
    compile_text(text, CompileOptions(arch=arch, debug=str(tmp_path)))
    (code,) = tmp_path.rglob("*code.s")
    used = set(re.findall(r"\bv(?:add|mul|fmadd\d+)ps\b.*%(xmm|ymm|zmm)", code.read_text()))
    assert max(used) == width
