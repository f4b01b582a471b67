"""Whole kernels, written once in the gpu dialect and lowered to both targets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from simt_kernels import TARGETS, launch, lower

rng = np.random.default_rng(5)
pytestmark = pytest.mark.parametrize("target", TARGETS)
SHARED = "#gpu.address_space<workgroup>"


def test_vector_add_of_an_odd_size(target):
    module = lower(
        """gpu.module @kernels {
      gpu.func @add(%a: memref<1000xf32>, %b: memref<1000xf32>, %c: memref<1000xf32>) kernel {
        %n = arith.constant 1000 : index
        %t = gpu.thread_id x
        %k = gpu.block_id x
        %d = gpu.block_dim x
        %o = arith.muli %k, %d : index
        %i = arith.addi %o, %t : index
        %in = arith.cmpi ult, %i, %n : index
        scf.if %in {
          %x = memref.load %a[%i] : memref<1000xf32>
          %y = memref.load %b[%i] : memref<1000xf32>
          %z = arith.addf %x, %y : f32
          memref.store %z, %c[%i] : memref<1000xf32>
        }
        gpu.return
      } }""",
        target,
    )
    a, b = rng.standard_normal((2, 1000)).astype(np.float32)
    run = launch(module, target, "add", (8,), (128,), a, b, a * 0, fresh=(2,))
    assert run.result.findings == ()
    np.testing.assert_array_equal(run.arrays[2], a + b)
    counts = run.result.counts
    assert (counts.global_loaded, counts.global_stored) == (8000, 4000)
    assert counts.global_floor == 12000
    assert counts.coalescing == 1
    assert counts.instructions["f32"] == 1000


def test_tree_reduction_in_shared_memory(target):
    module = lower(
        f"""gpu.module @kernels {{
      gpu.func @sum(%a: memref<4x128xf32>, %out: memref<4xf32>)
          workgroup(%s: memref<128xf32, {SHARED}>) kernel {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c7 = arith.constant 7 : index
        %c64 = arith.constant 64 : index
        %t = gpu.thread_id x
        %b = gpu.block_id x
        %v = memref.load %a[%b, %t] : memref<4x128xf32>
        memref.store %v, %s[%t] : memref<128xf32, {SHARED}>
        gpu.barrier
        %end = scf.for %i = %c0 to %c7 step %c1 iter_args(%half = %c64) -> index {{
          %low = arith.cmpi ult, %t, %half : index
          scf.if %low {{
            %o = arith.addi %t, %half : index
            %x = memref.load %s[%t] : memref<128xf32, {SHARED}>
            %y = memref.load %s[%o] : memref<128xf32, {SHARED}>
            %z = arith.addf %x, %y : f32
            memref.store %z, %s[%t] : memref<128xf32, {SHARED}>
          }}
          gpu.barrier
          %h = arith.divui %half, %c2 : index
          scf.yield %h : index
        }}
        %first = arith.cmpi eq, %t, %c0 : index
        scf.if %first {{
          %r = memref.load %s[%c0] : memref<128xf32, {SHARED}>
          memref.store %r, %out[%b] : memref<4xf32>
        }}
        gpu.return
      }} }}""",
        target,
    )
    a = rng.integers(0, 100, (4, 128)).astype(np.float32)
    run = launch(module, target, "sum", (4,), (128,), a, np.zeros(4, np.float32), fresh=(1,))
    assert run.result.findings == ()
    np.testing.assert_array_equal(run.arrays[1], a.sum(1))
    assert run.result.counts.barriers == 4 * 8
    assert run.result.counts.bank_conflicts == 0


def test_reduction_by_shuffles(target):
    steps = "\n".join(
        f"""%o{i} = arith.constant {1 << i} : i32
        %s{i}, %ok{i} = gpu.shuffle xor %v{i}, %o{i}, %w : f32
        %v{i + 1} = arith.addf %v{i}, %s{i} : f32"""
        for i in range(5)
    )
    module = lower(
        f"""gpu.module @kernels {{
      gpu.func @sum(%a: memref<256xf32>, %out: memref<256xf32>) kernel {{
        %w = arith.constant 32 : i32
        %t = gpu.thread_id x
        %v0 = memref.load %a[%t] : memref<256xf32>
        {steps}
        memref.store %v5, %out[%t] : memref<256xf32>
        gpu.return
      }} }}""",
        target,
    )
    a = rng.integers(0, 100, 256).astype(np.float32)
    run = launch(module, target, "sum", (1,), (256,), a, a * 0)
    assert run.result.findings == ()
    np.testing.assert_array_equal(run.arrays[1], np.repeat(a.reshape(8, 32).sum(1), 32))
    assert run.result.counts.instructions["shuffle"] == 5 * 256


@pytest.mark.parametrize("mode", ["up", "down", "idx"])
def test_shuffles_across_lanes(target, mode):
    module = lower(
        f"""gpu.module @kernels {{
      gpu.func @k(%a: memref<64xi32>, %out: memref<64xi32>, %by: i32) kernel {{
        %w = arith.constant 32 : i32
        %t = gpu.thread_id x
        %v = memref.load %a[%t] : memref<64xi32>
        %s, %ok = gpu.shuffle {mode} %v, %by, %w : i32
        %r = arith.select %ok, %s, %v : i32
        memref.store %r, %out[%t] : memref<64xi32>
        gpu.return
      }} }}""",
        target,
    )
    a = rng.integers(0, 1000, 64).astype(np.int32)
    run = launch(module, target, "k", (1,), (64,), a, a * 0, 5)
    assert run.result.findings == ()
    lane = np.arange(64) % 32
    source = {"up": lane - 5, "down": lane + 5, "idx": lane * 0 + 5}[mode]
    if (target, mode) == ("rocdl", "up"):
        # The upstream lowering does not compare with lane 0: what is below wraps around.
        source = source % 32
    source = np.where((source >= 0) & (source < 32), source, lane)
    np.testing.assert_array_equal(run.arrays[1], a[np.arange(64) - lane + source])


def test_histogram_by_atomics(target):
    module = lower(
        f"""gpu.module @kernels {{
      gpu.func @count(%a: memref<2048xi32>, %out: memref<16xi32>)
          workgroup(%s: memref<16xi32, {SHARED}>) kernel {{
        %one = arith.constant 1 : i32
        %zero = arith.constant 0 : i32
        %c16 = arith.constant 16 : index
        %t = gpu.thread_id x
        %b = gpu.block_id x
        %d = gpu.block_dim x
        %low = arith.cmpi ult, %t, %c16 : index
        scf.if %low {{ memref.store %zero, %s[%t] : memref<16xi32, {SHARED}> }}
        gpu.barrier
        %o = arith.muli %b, %d : index
        %i = arith.addi %o, %t : index
        %v = memref.load %a[%i] : memref<2048xi32>
        %bin = arith.index_cast %v : i32 to index
        %old = memref.atomic_rmw addi %one, %s[%bin] : (i32, memref<16xi32, {SHARED}>) -> i32
        gpu.barrier
        scf.if %low {{
          %n = memref.load %s[%t] : memref<16xi32, {SHARED}>
          %old2 = memref.atomic_rmw addi %n, %out[%t] : (i32, memref<16xi32>) -> i32
        }}
        gpu.return
      }} }}""",
        target,
    )
    a = rng.integers(0, 16, 2048).astype(np.int32)
    run = launch(module, target, "count", (8,), (256,), a, np.zeros(16, np.int32))
    assert run.result.findings == ()
    np.testing.assert_array_equal(run.arrays[1], np.bincount(a, minlength=16))


@pytest.mark.parametrize("type_,dtype", [("f16", np.float16), ("bf16", np.uint16)])
def test_half_precision(target, type_, dtype):
    module = lower(
        f"""gpu.module @kernels {{
      gpu.func @scale(%a: memref<100x{type_}>, %out: memref<100x{type_}>) kernel {{
        %n = arith.constant 100 : index
        %c = arith.constant 1.5 : f32
        %t = gpu.thread_id x
        %in = arith.cmpi ult, %t, %n : index
        scf.if %in {{
          %x = memref.load %a[%t] : memref<100x{type_}>
          %w = arith.extf %x : {type_} to f32
          %y = arith.mulf %w, %c : f32
          %z = arith.truncf %y : f32 to {type_}
          %s = arith.addf %z, %x : {type_}
          memref.store %s, %out[%t] : memref<100x{type_}>
        }}
        gpu.return
      }} }}""",
        target,
    )
    a = rng.standard_normal(100).astype(np.float32)
    if type_ == "f16":
        raw = a.astype(np.float16)
        half = (raw.astype(np.float32) * np.float32(1.5)).astype(np.float16)
        want = (half + raw).view(np.uint16)
    else:
        import ml_dtypes

        raw = a.astype(ml_dtypes.bfloat16).view(np.uint16)
        x = raw.view(ml_dtypes.bfloat16).astype(np.float32)
        half = (x * np.float32(1.5)).astype(ml_dtypes.bfloat16).astype(np.float32)
        want = (half + x).astype(ml_dtypes.bfloat16).view(np.uint16)
    run = launch(module, target, "scale", (1,), (128,), raw, raw * 0, fresh=(1,))
    assert run.result.findings == ()
    np.testing.assert_array_equal(run.arrays[1].view(np.uint16), want)


def test_loops_whose_trip_counts_are_data(target):
    module = lower(
        """gpu.module @kernels {
      gpu.func @rows(%start: memref<65xi32>, %values: memref<400xf32>, %out: memref<64xf32>)
          kernel {
        %c1 = arith.constant 1 : index
        %z = arith.constant 0.0 : f32
        %t = gpu.thread_id x
        %u = arith.addi %t, %c1 : index
        %a = memref.load %start[%t] : memref<65xi32>
        %b = memref.load %start[%u] : memref<65xi32>
        %from = arith.index_cast %a : i32 to index
        %to = arith.index_cast %b : i32 to index
        %s = scf.for %i = %from to %to step %c1 iter_args(%acc = %z) -> f32 {
          %v = memref.load %values[%i] : memref<400xf32>
          %w = arith.addf %acc, %v : f32
          scf.yield %w : f32
        }
        memref.store %s, %out[%t] : memref<64xf32>
        gpu.return
      } }""",
        target,
    )
    start = np.sort(rng.integers(0, 400, 65)).astype(np.int32)
    values = rng.integers(0, 9, 400).astype(np.float32)
    run = launch(module, target, "rows", (1,), (64,), start, values, np.zeros(64, np.float32))
    assert run.result.findings == ()
    want = [values[a:b].sum() for a, b in pairwise(start)]
    np.testing.assert_array_equal(run.arrays[2], want)


def test_private_arrays_and_wide_accesses(target):
    module = lower(
        """gpu.module @kernels {
      gpu.func @turn(%a: memref<64x4xf32>, %out: memref<64x4xf32>)
          private(%p: memref<4xf32, #gpu.address_space<private>>) kernel {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %c4 = arith.constant 4 : index
        %t = gpu.thread_id x
        %v = vector.load %a[%t, %c0] : memref<64x4xf32>, vector<4xf32>
        vector.store %v, %p[%c0] : memref<4xf32, #gpu.address_space<private>>, vector<4xf32>
        scf.for %i = %c0 to %c4 step %c1 {
          %j = arith.subi %c3, %i : index
          %x = memref.load %p[%j] : memref<4xf32, #gpu.address_space<private>>
          memref.store %x, %out[%t, %i] : memref<64x4xf32>
        }
        gpu.return
      } }""",
        target,
    )
    a = rng.standard_normal((64, 4)).astype(np.float32)
    run = launch(module, target, "turn", (1,), (64,), a, a * 0, fresh=(1,))
    assert run.result.findings == ()
    np.testing.assert_array_equal(run.arrays[1], a[:, ::-1])
    counts = run.result.counts
    assert (counts.private_loaded, counts.private_stored) == (1024, 1024)
    # One 16-byte load is one sector per two threads; the stores of 4 bytes are 16 apart.
    assert counts.sectors == 32 + 4 * 32


def test_blocks_beyond_one_batch(target):
    module = lower(
        """gpu.module @kernels {
      gpu.func @fill(%out: memref<200x96xi32>) kernel {
        %t = gpu.thread_id x
        %b = gpu.block_id x
        %g = gpu.grid_dim x
        %i = arith.muli %b, %g : index
        %j = arith.addi %i, %t : index
        %v = arith.index_cast %j : index to i32
        memref.store %v, %out[%b, %t] : memref<200x96xi32>
        gpu.return
      } }""",
        target,
    )
    run = launch(module, target, "fill", (200,), (96,), np.zeros((200, 96), np.int32), fresh=(0,))
    assert run.result.findings == ()
    want = np.arange(200)[:, None] * 200 + np.arange(96)
    np.testing.assert_array_equal(run.arrays[0], want)


BLUR = f"""gpu.module @kernels {{
  gpu.func @blur(%x: memref<66x66xf32>, %out: memref<64x64xf32>)
      workgroup(%s: memref<18xPITCHxf32, {SHARED}>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %c18 = arith.constant 18 : index
    %c256 = arith.constant 256 : index
    %c324 = arith.constant 324 : index
    %z = arith.constant 0.0 : f32
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %r0 = arith.muli %by, %c16 : index
    %q0 = arith.muli %bx, %c16 : index
    %l0 = arith.muli %ty, %c16 : index
    %l = arith.addi %l0, %tx : index
    scf.for %i = %l to %c324 step %c256 {{
      %a = arith.divui %i, %c18 : index
      %b = arith.remui %i, %c18 : index
      %ga = arith.addi %a, %r0 : index
      %gb = arith.addi %b, %q0 : index
      %v = memref.load %x[%ga, %gb] : memref<66x66xf32>
      memref.store %v, %s[%a, %b] : memref<18xPITCHxf32, {SHARED}>
    }}
    gpu.barrier
    %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %z) -> f32 {{
      %row = scf.for %j = %c0 to %c3 step %c1 iter_args(%acc2 = %acc) -> f32 {{
        %a = arith.addi %ty, %i : index
        %b = arith.addi %tx, %j : index
        %v = memref.load %s[%a, %b] : memref<18xPITCHxf32, {SHARED}>
        %w = arith.addf %acc2, %v : f32
        scf.yield %w : f32
      }}
      scf.yield %row : f32
    }}
    %oa = arith.addi %ty, %r0 : index
    %ob = arith.addi %tx, %q0 : index
    memref.store %sum, %out[%oa, %ob] : memref<64x64xf32>
    gpu.return
  }} }}"""


@pytest.mark.parametrize("pitch,conflicts", [(18, 9 * 8 * 16), (48, 0)])
def test_a_stencil_from_a_shared_tile(target, pitch, conflicts):
    module = lower(BLUR.replace("PITCH", str(pitch)), target)
    x = rng.integers(0, 9, (66, 66)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    run = launch(module, target, "blur", (4, 4), (16, 16), x, out, fresh=(1,))
    assert run.result.findings == ()
    want = sum(x[i : i + 64, j : j + 64] for i in range(3) for j in range(3))
    np.testing.assert_array_equal(run.arrays[1], want)
    counts = run.result.counts
    # Two rows of 16 threads share a cycle: 18 apart they meet in two banks, 48 apart in none.
    # Copying into rows of the wider pitch may meet too, once per subgroup at most.
    copying = counts.bank_conflicts - conflicts
    assert 0 <= copying <= 16 * 11
    assert counts.global_floor == -(-66 * 66 * 4 // 32) * 32 + 64 * 64 * 4
