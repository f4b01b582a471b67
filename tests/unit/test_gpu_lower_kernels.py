"""S4 and S5 of both GPU targets: kernels whose threads work together, loops, shared memory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpu_kernels import (
    ROW_SUM,
    Kernel,
    amdgpu,
    assembly,
    elementwise,
    lower,
    module,
    nvgpu,
    program,
)

from polyblocks.simt.llvm_ir.reader import read_module
from polyblocks_amdgpu.code_object import metadata
from polyblocks_nvgpu import ptxas

WORKGROUP = "#gpu.address_space<workgroup>"

HISTOGRAM = Kernel(
    "histogram",
    """
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %wide = memref.load %i[%t] : memref<128xi64>
    %at = arith.index_cast %wide : i64 to index
    %v = memref.load %x[%t] : memref<128xf32>
    %n = memref.load %k[%t] : memref<128xi32>
    %h = memref.load %d[%t] : memref<128xf64>
    %r0 = memref.atomic_rmw addf %v, %x[%at] : (f32, memref<128xf32>) -> f32
    %r1 = memref.atomic_rmw addi %n, %k[%at] : (i32, memref<128xi32>) -> i32
    %r2 = memref.atomic_rmw maxs %n, %s[%c0] : (i32, memref<1xi32, WG>) -> i32
    %r3 = memref.atomic_rmw maximumf %v, %x[%c0] : (f32, memref<128xf32>) -> f32
    %r4 = memref.atomic_rmw mulf %v, %x[%c0] : (f32, memref<128xf32>) -> f32
    %r5 = memref.generic_atomic_rmw %d[%at] : memref<128xf64> {
      ^bb0(%old: f64):
        %new = arith.mulf %old, %h : f64
        memref.atomic_yield %new : f64
    }
    """.replace("WG", WORKGROUP),
    {
        "i": "memref<128xi64>",
        "x": "memref<128xf32>",
        "k": "memref<128xi32>",
        "d": "memref<128xf64>",
    },
    workgroup=f"%s : memref<1xi32, {WORKGROUP}>",
)
#: The Collatz steps of each number: a loop of unknown length.
COLLATZ = elementwise(
    """
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %three = arith.constant 3 : i64
    %r:2 = scf.while (%n = %a0, %s = %zero) : (i64, i64) -> (i64, i64) {
      %more = arith.cmpi sgt, %n, %one : i64
      scf.condition(%more) %n, %s : i64, i64
    } do {
    ^bb0(%n: i64, %s: i64):
      %bit = arith.andi %n, %one : i64
      %odd = arith.cmpi eq, %bit, %one : i64
      %next = scf.if %odd -> (i64) {
        %m = arith.muli %n, %three : i64
        %p = arith.addi %m, %one : i64
        scf.yield %p : i64
      } else {
        %h = arith.divui %n, %two : i64
        scf.yield %h : i64
      }
      %t1 = arith.addi %s, %one : i64
      scf.yield %next, %t1 : i64, i64
    }
    %r0 = arith.addi %r#1, %zero : i64
    """,
    ["i64"],
    ["i64"],
    name="collatz",
)
#: Reads a table, and copies by memref.copy through private memory.
TABLE = Kernel(
    "table",
    """
    %t = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %at = arith.remui %t, %c3 : index
    %w = memref.get_global @weights : memref<3xf32>
    %f = memref.load %w[%at] : memref<3xf32>
    %b = memref.alloca() : memref<4xf32>
    %row = memref.subview %x[0, 0] [1, 4] [1, 1] : memref<128x4xf32> to memref<4xf32, strided<[1]>>
    memref.copy %row, %b : memref<4xf32, strided<[1]>> to memref<4xf32>
    affine.for %j = 0 to 4 {
      %v = affine.load %b[%j] : memref<4xf32>
      %p = arith.mulf %v, %f : f32
      memref.store %p, %y[%t, %j] : memref<128x4xf32>
    }
    """,
    {"x": "memref<128x4xf32>", "y": "memref<128x4xf32>"},
    grid=1,
)
WEIGHTS = 'memref.global "private" constant @weights : memref<3xf32> = dense<[1.0, 2.0, 4.0]>'
KERNELS = [ROW_SUM, HISTOGRAM, COLLATZ, TABLE]


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_nvidia(arch: str) -> None:
    artifact = lower(module(KERNELS, WEIGHTS), nvgpu(arch))
    ptx = artifact.blobs[f"kernels.{arch}.ptx"].decode()
    assert ".reqntid 256, 1, 1" in ptx
    assert not re.search(r"\bcall\b|\.extern|\.local\b", ptx)
    assembler = ptxas.find()
    if assembler is None or arch not in ptxas.architectures(assembler):
        assert list(artifact.blobs) == [f"kernels.{arch}.ptx"]
    else:
        assert artifact.blobs[f"kernels.{arch}.cubin"].startswith(b"\x7fELF")
        for row in artifact.manifest["kernels"]:
            assert row["resources"]["spill_bytes"] == row["resources"]["stack_bytes"] == 0
        assert artifact.manifest["kernels"][0]["resources"]["shared_bytes"] >= 32


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1151", "gfx1201"])
def test_amd(arch: str) -> None:
    artifact = lower(module(KERNELS, WEIGHTS), amdgpu(arch))
    said = metadata(artifact.blobs[f"kernels.{arch}.hsaco"])
    assert said["amdhsa.target"] == f"amdgcn-amd-amdhsa--{arch}"
    assert said["amdhsa.version"] == [1, 2]
    rows = {row[".name"]: row for row in said["amdhsa.kernels"]}
    assert list(rows) == [k.name for k in KERNELS]
    for k in KERNELS:
        assert rows[k.name][".reqd_workgroup_size"] == [k.block, 1, 1]
        assert rows[k.name][".max_flat_workgroup_size"] == k.block
        assert rows[k.name][".wavefront_size"] == 32
        assert rows[k.name][".symbol"] == f"{k.name}.kd"
        # Bare pointers, and nothing hidden behind them.
        assert [a[".value_kind"] for a in rows[k.name][".args"]] == ["global_buffer"] * len(
            k.arguments
        )
    for row in artifact.manifest["kernels"]:
        assert row["resources"]["spill_bytes"] == row["resources"]["stack_bytes"] == 0
    assert artifact.manifest["kernels"][0]["resources"]["shared_bytes"] == 32


def test_a_block_reduction_is_made_of_wide_loads_shuffles_and_one_barrier() -> None:
    text = module([ROW_SUM])
    ptx = assembly(text, nvgpu("sm_80"))
    assert len(re.findall(r"ld\.global\.v4\.b32", ptx)) == 1
    assert ptx.count("ld.global") == 1
    assert ptx.count("shfl.sync.bfly.b32") == 5
    assert ptx.count("bar.sync") == 1
    code = assembly(text, amdgpu("gfx1100"))
    assert code.count("global_load_b128") == 1
    assert code.count("s_barrier") == 1
    artifact = lower(text, nvgpu("sm_80"))
    first, second = artifact.manifest["arguments"]
    assert first["alignment"] == 16
    assert "alignment" not in second


def test_atomic_additions_are_instructions() -> None:
    ptx = assembly(module([HISTOGRAM]), nvgpu("sm_80"))
    assert re.search(r"(?:atom|red)(?:\.relaxed)?(?:\.gpu)?\.global\.add\.f32", ptx)
    assert not re.search(r"\.sys\b", ptx)
    code = assembly(module([HISTOGRAM]), amdgpu("gfx1100"))
    assert "global_atomic_add_f32" in code
    assert "global_atomic_add_u32" in code
    assert "ds_max_i32" in code


#: The first blocks store what all threads of the others load from one place.
WAITING = """
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %is_first = arith.cmpi ult, %b, %c2 : index
    scf.if %is_first {
      %u = memref.load %w[%t] : memref<128xf32>
      memref.store %u, %x[%t] : memref<128xf32>
      gpu.barrier
      llvm.fence release
      %r = memref.atomic_rmw addi %one, %k[%c0] : (i32, memref<1xi32>) -> i32
    } else {
      scf.while : () -> () {
        %n = memref.atomic_rmw addi %zero, %k[%c0] : (i32, memref<1xi32>) -> i32
        %less = arith.cmpi ult, %n, %two : i32
        scf.condition(%less)
      } do {
        scf.yield
      }
      llvm.fence acquire
      gpu.barrier
      %v = memref.load %x[%c0] : memref<128xf32>
      memref.store %v, %y[%t] : memref<128xf32>
    }
"""


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_what_blocks_wait_for_is_not_loaded_by_the_scalar_unit(arch: str) -> None:
    """No fence clears its cache, whose lines may be older than what another block has stored."""
    arrays = dict.fromkeys("wxy", "memref<128xf32>") | {"k": "memref<1xi32>"}
    code = assembly(module([Kernel("waiting", WAITING, arrays)]), amdgpu(arch))
    assert "global_load_b32" in code
    assert "s_load_b32" not in code
    loop = WAITING[WAITING.index("      scf.while") : WAITING.index("      llvm.fence acquire")]
    code = assembly(module([Kernel("hasty", WAITING.replace(loop, ""), arrays)]), amdgpu(arch))
    assert "s_load_b32" in code


SHARED = """
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<128xf32>
    memref.store %v, %s[%t] : memref<SIZExf32, WG>
    gpu.barrier
    %c127 = arith.constant 127 : index
    %r = arith.subi %c127, %t : index
    %u = memref.load %s[%r] : memref<SIZExf32, WG>
    memref.store %u, %x[%t] : memref<128xf32>
""".replace("WG", WORKGROUP)


def _shared(elements: int) -> str:
    return program(
        SHARED.replace("SIZE", str(elements)),
        {"x": "memref<128xf32>"},
        workgroup=f"%s : memref<{elements}xf32, {WORKGROUP}>",
        grid=1,
    )


def test_shared_memory_beyond_what_a_kernel_may_declare_is_asked_for() -> None:
    small = lower(_shared(1024), nvgpu("sm_80"))
    assert small.manifest["launches"][0]["shared_bytes"] == 0
    assert b".extern" not in small.blobs["kernels.sm_80.ptx"]
    large = lower(_shared(24 * 1024), nvgpu("sm_80"))
    assert large.manifest["launches"][0]["shared_bytes"] == 96 * 1024
    assert b".extern .shared .align 16 .b8 " in large.blobs["kernels.sm_80.ptx"]
    if ptxas.find() is not None:
        assert small.manifest["kernels"][0]["resources"]["shared_bytes"] == 4096
        assert large.manifest["kernels"][0]["resources"]["shared_bytes"] == 0


def test_the_simulator_gets_what_llvm_made_of_the_kernels() -> None:
    for target in (nvgpu("sm_90a"), amdgpu("gfx1100")):
        artifact = lower(module([ROW_SUM]), target, simulate=True)
        assert list(artifact.blobs) == [f"kernels.{target.arch}.ll"]
        text = artifact.blobs[f"kernels.{target.arch}.ll"].decode()
        assert "_kernel void @row_sum" in text
        # Private memory has become registers.
        assert " alloca " not in text
        assert read_module(text).operation.verify()
        assert "resources" not in artifact.manifest["kernels"][0]


def test_without_an_assembler_there_is_ptx_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find", lambda: None)
    artifact = lower(module([ROW_SUM]), nvgpu("sm_90a"))
    assert list(artifact.blobs) == ["kernels.sm_90a.ptx"]


def test_kernels_say_what_they_are() -> None:
    named = 'polyblocks.kind = "reduction", polyblocks.sources = ["aten.sum model.py:3"]'
    for target in (nvgpu("sm_80"), amdgpu("gfx1100")):
        artifact = lower(module([replace(ROW_SUM, attributes=named)]), target)
        (row,) = artifact.manifest["kernels"]
        assert (row["name"], row["kind"]) == ("row_sum", "reduction")
        assert row["sources"] == ["aten.sum model.py:3"]
        assert (row["calls"], row["parallel"]) == (1, 64 * 256)


def test_a_program_without_kernels_has_no_code() -> None:
    text = "module { func.func @main(%x: memref<8xf32>) { return } }"
    for target in (nvgpu("sm_80"), amdgpu("gfx1100")):
        artifact = lower(text, target)
        assert artifact.blobs == {}
        assert artifact.manifest["launches"] == artifact.manifest["kernels"] == []


@pytest.mark.parametrize(
    ("target", "code"), [(nvgpu("sm_80"), "code.ptx"), (amdgpu("gfx1100"), "code.s")]
)
def test_debug_writes_the_last_stages(tmp_path: Path, target: Any, code: str) -> None:
    lower(module([ROW_SUM]), target, debug=str(tmp_path))
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"S5-input.ll", "S5-optimized.ll", f"S5-{code}"} <= names
    assert any(name.endswith("S4-target.mlir") for name in names)


def test_equal_programs_have_equal_code() -> None:
    for target, form in ((nvgpu("sm_80"), "ptx"), (amdgpu("gfx1100"), "hsaco")):
        name = f"kernels.{target.arch}.{form}"
        first, second = (lower(module(KERNELS, WEIGHTS), target).blobs[name] for _ in range(2))
        assert first == second


def test_buffers_of_more_than_4_gib_have_64_bit_addresses() -> None:
    body = """
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %v = memref.load %x[%b, %t] : memref<70000x70000xi8>
    memref.store %v, %y[%b, %t] : memref<70000x70000xi8>
    """
    arguments = {"x": "memref<70000x70000xi8>", "y": "memref<70000x70000xi8>"}
    text = program(body, arguments, grid=70000)
    ptx = assembly(text, nvgpu("sm_90a"))
    assert re.search(r"(mul|mad)\.(wide\.[us]32|lo\.s64)", ptx)
    assert not re.search(r"(mul|mad)\.lo\.[us]32", ptx)
    code = assembly(text, amdgpu("gfx1100"))
    assert re.search(r"v_mad_u64_u32|s_mul_hi_u32", code)
