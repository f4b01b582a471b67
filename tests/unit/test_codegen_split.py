"""Compiling the kernels of one program in several processes."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from cpu_kernels import compile_text, load, pack

from polyblocks.artifact import Artifact
from polyblocks.codegen import split
from polyblocks.codegen.loop_hints import SCALAR_LOOPS
from polyblocks.codegen.split import parts_for, run_parts, split_module
from polyblocks.isolation import isolation

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

IR = """\
@0 = private unnamed_addr constant [2 x i8] c"a\\00"

declare i32 @omp_get_thread_num()

define void @main(ptr %0) #9000 {
  call void @k(i64 0, ptr %0)
  call void @"long name"(ptr noalias %0, i64 8)
  ret void
}

define internal void @k(i64 %0, ptr noalias readonly dereferenceable(64) %1) #0 #9001 {
  ret void
}

define internal void @"long name"(ptr noalias %p.x, i64 %1) #9001 {
  store ptr @0, ptr %p.x
  ret void
}

attributes #0 = { nounwind }
"""


def names_of(text: str, word: str) -> list[str]:
    return re.findall(rf'^{word} .*@([\w"]+(?: name")?)\(', text, re.MULTILINE)


def test_split_moves_kernels_and_declares_them() -> None:
    first, second = split_module(IR, {"k", "long name"}, 2)
    assert names_of(first, "define") == ["main"]
    assert names_of(first, "declare") == ["omp_get_thread_num", '"long name"', "k"]
    assert "declare void @k(i64, ptr noalias readonly dereferenceable(64))\n" in first
    assert 'declare void @"long name"(ptr noalias, i64)\n' in first
    assert sorted(names_of(second, "define")) == ['"long name"', "k"]
    assert "internal" not in second
    assert all("attributes #0" in part for part in (first, second))


def test_a_part_has_the_constants_that_it_uses() -> None:
    table = "@table = private constant [1 x ptr] [ptr @0]\n"
    text = table + IR.replace("ret void", "load ptr, ptr @table\n  ret void", 1)
    first, second = split_module(text, {"k", "long name"}, 2)
    assert "@0 = private" in first
    assert "@table = private" in first
    assert "@0 = private" in second
    assert "@table = private" not in second
    assert "@0 = private" not in split_module(IR, {"k", "long name"}, 2)[0]


def test_split_in_more_parts_than_there_are_functions() -> None:
    assert len(split_module(IR, {"k", "long name"}, 8)) == 3
    assert split_module(IR, set(), 4) == [split_module(IR, set(), 1)[0]]


def test_scalar_loops_are_kept_apart() -> None:
    text = IR.replace("#0 #9001 {", f"#0 #9001 {SCALAR_LOOPS} {{")
    first, second = split_module(text, {"k", "long name"}, 1)
    assert names_of(first, "define") == ["main", '"long name"']
    assert names_of(second, "define") == ["k"]
    # What is fixed goes with them where there is nothing else.
    (whole,) = split_module(text, {"k"}, 1)
    assert names_of(whole, "define") == ["main", '"long name"', "k"]


def test_few_scalar_loops_leave_all_parts_to_the_others() -> None:
    body = IR[IR.index("define internal void @k") : IR.index('define internal void @"long name"')]
    body = body.replace("  ret void", "  store i64 %0, ptr %1\n" * 20 + "  ret void")
    others = [f"f{i}" for i in range(8)]
    text = IR.replace("#0 #9001 {", f"#0 #9001 {SCALAR_LOOPS} {{")
    text += "\n".join(body.replace("@k(", f"@{name}(") for name in others)
    parts = split_module(text, {"k", *others}, 2)
    defined = [names_of(part, "define") for part in parts]
    assert [len(names) for names in defined] == [4 + 2, 4, 1]
    assert defined[0][:2] == ["main", '"long name"']
    assert defined[2] == ["k"]


def test_only_an_isolated_child_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * 10_000_000
    assert parts_for(text) == 1
    monkeypatch.setattr(split, "is_isolated_child", lambda: True)
    assert 1 <= parts_for(text) <= split.MAX_PARTS
    assert parts_for("x" * (split.WORTH - 1)) == 1


@needs_fork
def test_results_come_in_order_and_from_other_processes() -> None:
    def job() -> bytes:
        return str(os.getpid()).encode()

    pids = [int(result) for result in run_parts([job, job, job])]
    assert pids[0] == os.getpid()
    assert len(set(pids)) == 3


@needs_fork
def test_large_results_cross() -> None:
    big = os.urandom(3 << 20)
    assert run_parts([lambda: b"", lambda: big]) == [b"", big]


@needs_fork
def test_a_job_whose_process_dies_is_run_here() -> None:
    here = os.getpid()

    def fragile() -> bytes:
        if os.getpid() != here:
            os._exit(3)
        return b"done here"

    assert run_parts([lambda: b"first", fragile]) == [b"first", b"done here"]


@needs_fork
def test_an_error_ends_the_other_processes() -> None:
    def fail() -> bytes:
        raise ValueError("this one")

    def slow() -> bytes:
        time.sleep(60)
        return b""

    begin = time.monotonic()
    with pytest.raises(ValueError, match="this one"):
        run_parts([fail, slow])
    assert time.monotonic() - begin < 30


@needs_fork
def test_a_program_in_parts_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels = "\n".join(
        f"""
        affine.parallel (%i) = (0) to (256) {{
          %c = arith.constant {k}.0 : f32
          %v = affine.load %x[%i] : memref<256xf32>
          %w = arith.addf %v, %c : f32
          affine.store %w, %x[%i] : memref<256xf32>
        }} {{polyblocks.level = "team", polyblocks.kernel = "add"}}
        """
        for k in range(1, 9)
    )
    text = f"func.func @main(%x: memref<256xf32>) {{ {kernels} return }}"
    monkeypatch.setattr(split, "WORTH", 1000)
    monkeypatch.setattr(split.os, "sched_getaffinity", lambda pid: range(3), raising=False)

    def job() -> bytes:
        artifact = compile_text(text)
        return Artifact({**artifact.manifest, **HEADER}, artifact.blobs).to_bytes()

    artifact = Artifact.from_bytes(isolation.run_isolated(job))
    assert sorted(artifact.blobs) == ["code-1.o", "code-2.o", "code.o"]
    assert all(kernel["code_bytes"] > 0 for kernel in artifact.manifest["kernels"])
    x = np.zeros(256, np.float32)
    assert load(artifact).entry(pack([x]), 2) == 0
    assert (x == 36).all()


HEADER = {
    "target": "cpu",
    "arch": "test",
    "name": "f",
    "workspace_bytes": 0,
    "versions": {},
    "report": {},
}
