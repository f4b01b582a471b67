"""Options of LLVM's command line: it ignores in silence those that it does not know."""

from __future__ import annotations

import importlib.resources
from dataclasses import replace

import pytest
from llvmlite import binding
from llvmlite.utils import get_library_name

from polyblocks.codegen import llvm
from polyblocks_cpu.emit import LLVM_OPTIONS

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
