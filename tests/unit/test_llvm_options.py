"""Options of LLVM's command line: it ignores in silence those that it does not know."""

from __future__ import annotations

import importlib.resources
from dataclasses import replace

import pytest
from llvmlite import binding
from llvmlite.utils import get_library_name

from polyblocks.codegen import llvm
from polyblocks.codegen.loop_hints import ONLY_SCALAR
from polyblocks_cpu.emit import LLVM_OPTIONS, SCALAR_FEATURES

MACHINE = llvm.Machine(triple=llvm.host_triple(), cpu="")
TEXT = "define void @f() { ret void }"


@pytest.fixture(scope="module")
def library() -> bytes:
    return (importlib.resources.files("llvmlite.binding") / get_library_name()).read_bytes()


def test_llvm_has_every_option_that_is_set(library, monkeypatch):
    found = []
    monkeypatch.setattr(binding, "set_option", lambda name, option: found.append(option))
    family = MACHINE.triple.partition("-")[0]
    machine = replace(MACHINE, options=LLVM_OPTIONS.get(family, ()))
    module, target_machine = llvm.optimize(TEXT, machine)
    llvm.emit_object(module, target_machine)
    llvm.optimize_kernels(module, target_machine, 3)
    names = {option.partition("=")[0].lstrip("-") for option in found}
    assert {"enable-load-pre", "disable-lsr", "disable-vector-combine"} <= names
    assert [name for name in sorted(names) if name.encode() not in library] == []


LOOP = """define void @f(ptr noalias %x, ptr noalias %i, ptr noalias %y) {
  br label %next
next:
  %k = phi i64 [ 0, %0 ], [ %l, %next ]
  %p = getelementptr i64, ptr %i, i64 %k
  %n = load i64, ptr %p
  %q = getelementptr float, ptr %x, i64 %n
  %v = load float, ptr %q
  %r = getelementptr float, ptr %y, i64 %k
  store float %v, ptr %r
  %l = add i64 %k, 1
  %c = icmp slt i64 %l, 4096
  br i1 %c, label %next, label %end
end:
  ret void
}"""


def test_scalar_code_has_features_of_its_own():
    machine = llvm.Machine("x86_64-unknown-linux-gnu", "znver4", "+avx2", vector_bits=512)
    texts = []
    for features in ("", SCALAR_FEATURES["x86_64"]):
        spec = replace(machine, scalar_features=features)
        prepared = llvm.prepare(LOOP, spec, ["f"], [])
        assert ONLY_SCALAR in prepared
        texts.append(llvm.emit_assembly(*llvm.optimize(prepared, spec)))
    assert "gather" in texts[0]
    assert "gather" not in texts[1]
    # Vectors of the program are not touched.
    vector = "define void @f(ptr %x) {\n  store <4 x float> zeroinitializer, ptr %x\n  ret void\n}"
    spec = replace(machine, scalar_features=SCALAR_FEATURES["x86_64"])
    assert "prefer-no-gather" not in llvm.prepare(vector, spec, ["f"], [])
