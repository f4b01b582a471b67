"""Traffic: sectors, coalescing, bank conflicts, instructions."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import kernel_of, launch

from polyblocks.simt import Chip


def counts(body: str, arguments: str, *values, block: int = 32, globals_: str = "", chip=None):
    module = kernel_of(body, arguments, globals_=globals_)
    run = launch(module, "nvvm", "k", (1,), (block,), *values, chip=chip)
    assert run.kinds == []
    return run.result.counts


def load(stride: int, type_: str = "f32", offset: int = 0) -> str:
    return f"""%s = llvm.mlir.constant({stride} : i64) : i64
      %o = llvm.mlir.constant({offset} : i64) : i64
      %i0 = llvm.mul %t, %s : i64
      %i = llvm.add %i0, %o : i64
      %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {type_}
      %v = llvm.load %p : !llvm.ptr<1> -> {type_}"""


A = "%a: !llvm.ptr<1>"
DATA = np.zeros(4096, np.float32)


@pytest.mark.parametrize(
    "body,sectors,ideal",
    [
        (load(1), 4, 4),
        (load(1, offset=1), 5, 4),
        (load(2), 8, 4),
        (load(8), 32, 4),
        (load(0), 1, 1),
        (load(1, "vector<4xf32>"), 16, 16),
        (load(1, "i8"), 1, 1),
        (load(1, "f64"), 8, 8),
    ],
)
def test_sectors_of_a_subgroup(body, sectors, ideal):
    found = counts(body, A, DATA)
    assert (found.sectors, found.ideal_sectors) == (sectors, ideal)
    assert found.global_read_floor == 32 * sectors
    assert found.coalescing == sectors / ideal


def test_a_sector_counts_once_per_launch_towards_the_floor():
    found = counts(load(0), A, DATA, block=128)
    assert found.sectors == 4
    assert found.global_read_floor == 32
    assert found.global_loaded == 512


def test_the_width_of_a_sector_is_the_chip_s():
    found = counts(load(1), A, DATA, chip=Chip(sector_bytes=64))
    assert found.sectors == 2
    assert found.global_read_floor == 128


def shared(stride: int, type_: str) -> str:
    return f"""%s = llvm.mlir.constant({stride} : i64) : i64
      %i = llvm.mul %t, %s : i64
      %m = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %z = llvm.mlir.zero : {type_}
      %p = llvm.getelementptr %m[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, {type_}
      llvm.store %z, %p : {type_}, !llvm.ptr<3>"""


@pytest.mark.parametrize(
    "body,phases,conflicts",
    [
        (shared(1, "f32"), 1, 0),
        (shared(2, "f32"), 1, 1),
        (shared(32, "f32"), 1, 31),
        (shared(33, "f32"), 1, 0),
        # Bytes of one word are one access.
        (shared(1, "i8"), 1, 0),
        # Wide accesses take as many phases as words per thread.
        (shared(1, "vector<4xf32>"), 4, 0),
        (shared(1, "f64"), 2, 0),
        (shared(2, "vector<4xf32>"), 4, 4),
    ],
)
def test_banks(body, phases, conflicts):
    tile = "llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<8192 x f32>"
    found = counts(body, "", globals_=tile)
    assert (found.shared_accesses, found.bank_conflicts) == (phases, conflicts)


def test_all_lanes_reading_one_word_is_no_conflict():
    body = """%m = llvm.mlir.addressof @tile : !llvm.ptr<3>
      %v = llvm.load %m : !llvm.ptr<3> -> f32"""
    tile = "llvm.mlir.global internal @tile(0.0 : f32) {addr_space = 3 : i32} : f32"
    module = kernel_of(body, "", globals_=tile)
    found = launch(module, "nvvm", "k", (1,), (32,)).result.counts
    assert (found.shared_accesses, found.bank_conflicts) == (1, 0)


def test_instructions_by_kind():
    body = (
        load(1)
        + """
      %w = llvm.fadd %v, %v : f32
      %f = llvm.intr.fma(%w, %v, %v) : (f32, f32, f32) -> f32
      %d = llvm.fpext %f : f32 to f64
      %q = llvm.intr.sqrt(%d) : (f64) -> f64
      %c = llvm.fptrunc %q : f64 to f16
      %b = llvm.insertelement %c, %u[%t32 : i32] : vector<2xf16>
      %h = llvm.fadd %b, %b : vector<2xf16>"""
    )
    body = body.replace("%s =", "%u = llvm.mlir.undef : vector<2xf16>\n%s =", 1)
    found = counts(body, A, DATA, block=40).instructions
    # The index: read, extended, multiplied, added, and the address.
    assert found == {
        "integer": 4 * 40,
        "conversion": 3 * 40,
        "memory": 40,
        "f32": 40,
        "fma.f32": 40,
        "special": 40,
        "f16": 80,
    }


def test_only_active_threads_count():
    body = """%c = llvm.mlir.constant(5 : i64) : i64
      %low = llvm.icmp "ult" %t, %c : i64
      llvm.cond_br %low, ^in, ^end
    ^in:
      %v = llvm.load %a : !llvm.ptr<1> -> f32
      llvm.br ^end
    ^end:"""
    found = counts(body, A, DATA, block=64)
    assert found.instructions["memory"] == 5
    assert found.instructions["control"] == 64
    assert found.global_loaded == 20


def test_measuring_can_be_left_out():
    from polyblocks.simt import Simulator
    from polyblocks_nvgpu.simt import SEMANTICS

    simulator = Simulator(kernel_of(load(1), A), SEMANTICS, measure=False)
    result = simulator.launch("k", (1,), (32,), [simulator.buffer(DATA)])
    assert result.counts.sectors == result.counts.global_loaded == 0
    assert result.counts.instructions["memory"] == 32
