"""What one thread of a block stores and the others use is loaded again behind the barrier.

Looked for in the code that LLVM has optimized: the simulator runs the module before that.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from polyblocks.api import compile_text
from polyblocks.options import CompileOptions

pytestmark = pytest.mark.cpu

TARGETS = {"sm_75": "nvgpu", "sm_90a": "nvgpu", "gfx1100": "amdgpu"}
BARRIER = re.compile(r"call void @llvm\.(nvvm\.barrier|amdgcn\.s\.barrier)")

#: A loop whose state is a number: one thread doubles it, all of them decide by it.
DOUBLE = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %r = scf.while (%v = %x) : (tensor<f32>) -> tensor<f32> {
    %limit = arith.constant 1.0e3 : f32
    %a = tensor.extract %v[] : tensor<f32>
    %p = arith.cmpf olt, %a, %limit : f32
    scf.condition(%p) %v : tensor<f32>
  } do {
  ^bb0(%v: tensor<f32>):
    %two = arith.constant 2.0 : f32
    %a = tensor.extract %v[] : tensor<f32>
    %b = arith.mulf %a, %two : f32
    %n = tensor.from_elements %b : tensor<f32>
    scf.yield %n : tensor<f32>
  }
  return %r : tensor<f32>
}"""
#: As in bisection or conjugate gradients: a sum over a row decides how all of its elements go on.
DESCEND = """
#row = affine_map<(i) -> (i)>
#number = affine_map<(i) -> ()>
func.func @main(%x: tensor<96xf32>) -> tensor<96xf32> {
  %r = scf.while (%v = %x) : (tensor<96xf32>) -> tensor<96xf32> {
    %zero = arith.constant 0.0 : f32
    %limit = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<f32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %s = linalg.generic {indexing_maps = [#row, #number], iterator_types = ["reduction"]}
        ins(%v : tensor<96xf32>) outs(%z : tensor<f32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.mulf %a, %a : f32
        %d = arith.addf %c, %b : f32
        linalg.yield %d : f32 } -> tensor<f32>
    %a = tensor.extract %s[] : tensor<f32>
    %p = arith.cmpf ogt, %a, %limit : f32
    scf.condition(%p) %v : tensor<96xf32>
  } do {
  ^bb0(%v: tensor<96xf32>):
    %half = arith.constant 0.5 : f32
    %e = tensor.empty() : tensor<96xf32>
    %n = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
        ins(%v : tensor<96xf32>) outs(%e : tensor<96xf32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.mulf %a, %half : f32
        linalg.yield %c : f32 } -> tensor<96xf32>
    scf.yield %n : tensor<96xf32>
  }
  return %r : tensor<96xf32>
}"""


def optimized(text: str, arch: str, folder: Path) -> str:
    """LLVM's optimized code of the kernel with the loop."""
    options = CompileOptions(target=TARGETS[arch], arch=arch, debug=str(folder))
    compile_text(text, options)
    (dump,) = folder.rglob("S5-optimized.ll")
    (loop,) = re.findall(r"^define [^\n]*@loop1\(.*?^}", dump.read_text(), re.M | re.S)
    return str(loop)


def stored_and_loaded(code: str) -> set[str]:
    """Arguments of a function that it stores to, and loads from."""
    (arguments,) = re.findall(r"@loop1\((.*)\)", code.splitlines()[0])
    names = re.findall(r"(%\d+)(?:,|$)", arguments)
    # Elements of arrays have addresses of their own.
    owner = {n: n for n in names}
    for address, base in re.findall(r"(%\S+) = getelementptr [^,]*, \S+ \S+ (%\d+),", code):
        owner[address] = owner.get(base, base)
    stored = {
        owner.get(a) for a in re.findall(r"store float [^,]*, ptr addrspace\(1\) (%\d+)", code)
    }
    loaded = {owner.get(a) for a in re.findall(r"load float, ptr addrspace\(1\) (%\d+)", code)}
    return (stored & loaded) - {None}  # type: ignore[return-value]


@pytest.mark.parametrize("arch", TARGETS)
def test_a_number_is_loaded_behind_every_barrier(arch: str, tmp_path: Path) -> None:
    code = optimized(DOUBLE, arch, tmp_path)
    lines = [line for line in code.splitlines() if "fence" not in line]
    after = [lines[i + 1] for i, line in enumerate(lines[:-1]) if BARRIER.search(line)]
    # Before the number is stored all threads have loaded it: that barrier has no load behind it.
    assert [bool(re.search(r"load float, ptr addrspace\(1\) %0", line)) for line in after] == [
        True,
        False,
        True,
    ]


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize("text", [DOUBLE, DESCEND])
def test_what_a_kernel_stores_is_not_noalias(arch: str, text: str, tmp_path: Path) -> None:
    code = optimized(text, arch, tmp_path)
    changed = stored_and_loaded(code)
    assert changed
    formals = re.findall(r"ptr addrspace\(1\) ([^%,]*)(%\d+)", code.splitlines()[0])
    for attributes, name in formals:
        assert ("noalias" in attributes) != (name in changed), code.splitlines()[0]
