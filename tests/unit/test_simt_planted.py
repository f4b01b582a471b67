"""Planted bugs: each is found, and named with its op and the user's line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from simt_kernels import TARGETS, Run, kernel_of, launch, lower

SHARED = "#gpu.address_space<workgroup>"
rng = np.random.default_rng(6)


def only(run: Run, kind: str, op: str, location: str, message: str) -> None:
    """There is one finding, and it says this."""
    assert run.kinds == [kind], [str(f) for f in run.result.findings]
    finding = run.result.findings[0]
    assert finding.op.split(" = ")[-1].startswith(op), finding.op
    assert finding.location == location
    assert re.search(message, finding.message), finding.message
    assert finding.kernel in str(finding)
    assert location in str(finding)


def shift(
    barrier: str = "gpu.barrier", extent: int = 65, tile: int = 65, count: int = 65,
) -> str:  # fmt: skip
    """Each thread reads what its neighbour put into shared memory; 64 threads copy ``count``."""
    return f"""gpu.module @kernels {{
      gpu.func @shift(%a: memref<{extent}xf32>, %out: memref<64xf32>)
          workgroup(%s: memref<{tile}xf32, {SHARED}>) kernel {{
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %n = arith.constant {count} : index
        %t = gpu.thread_id x
        scf.for %i = %t to %n step %c64 {{
          %v = memref.load %a[%i] : memref<{extent}xf32> loc("pad"("model.py":3:1))
          memref.store %v, %s[%i] : memref<{tile}xf32, {SHARED}> loc("copy"("model.py":4:1))
        }}
        {barrier}
        %u = arith.addi %t, %c1 : index
        %w = memref.load %s[%u] : memref<{tile}xf32, {SHARED}> loc("conv"("model.py":7:1))
        memref.store %w, %out[%t] : memref<64xf32> loc("conv"("model.py":8:1))
        gpu.return
      }} }}"""


def run_shift(target: str, **changes) -> Run:
    a = rng.standard_normal(65).astype(np.float32)
    out = np.zeros(64, np.float32)
    run = launch(lower(shift(**changes), target), target, "shift", (2,), (64,), a, out)
    return run


@pytest.mark.parametrize("target", TARGETS)
class TestSharedTile:
    def test_the_right_kernel_has_no_finding_but_that_blocks_write_the_same_output(self, target):
        run = run_shift(target)
        only(run, "race", "llvm.store", "model.py:8 (conv)", "of block .* by the same op|block")

    def test_a_dropped_barrier(self, target):
        a = rng.standard_normal(65).astype(np.float32)
        module = lower(shift(barrier=""), target)
        run = launch(module, target, "shift", (1,), (64,), a, np.zeros(64, np.float32))
        only(
            run, "race", "llvm.load", "model.py:7 (conv)",
            r"reads 4 bytes at byte 4 of shared array @\S+, which thread \(1, 0, 0\) wrote by "
            r"'llvm.store .*model.py:4 \(copy\), and nothing orders",
        )  # fmt: skip
        assert run.result.findings[0].thread == (0, 0, 0)
        assert run.result.findings[0].count == 64

    def test_a_copy_that_starts_or_ends_one_off(self, target):
        a = rng.standard_normal(65).astype(np.float32)
        module = lower(shift(extent=66, count=66, tile=66), target)
        run = launch(module, target, "shift", (1,), (64,), a, np.zeros(64, np.float32))
        only(
            run, "out of bounds", "llvm.load", "model.py:3 (pad)",
            r"reads 4 bytes at byte 260 of argument 0 \(260 bytes\)",
        )  # fmt: skip

    def test_a_copy_that_stops_one_short(self, target):
        a = rng.standard_normal(65).astype(np.float32)
        module = lower(shift(count=64), target)
        run = launch(module, target, "shift", (1,), (64,), a, np.zeros(64, np.float32))
        only(run, "unwritten read", "llvm.load", "model.py:7 (conv)", "byte 256 of .* nothing has")
        assert run.result.findings[0].thread == (63, 0, 0)

    def test_a_tile_one_too_small(self, target):
        a = rng.standard_normal(65).astype(np.float32)
        module = lower(shift(tile=64), target)
        run = launch(module, target, "shift", (1,), (64,), a, np.zeros(64, np.float32))
        assert run.kinds == ["out of bounds", "out of bounds"]
        store, load = run.result.findings
        assert (store.location, load.location) == ("model.py:4 (copy)", "model.py:7 (conv)")
        assert re.search(r"writes 4 bytes at byte 256 of shared array .* \(256 bytes\)",
                         store.message)  # fmt: skip

    def test_a_barrier_that_not_all_threads_reach(self, target):
        barrier = """%c40 = arith.constant 40 : index
        %few = arith.cmpi ult, %t, %c40 : index
        scf.if %few { gpu.barrier loc("sync"("model.py":5:1)) }"""
        a = rng.standard_normal(65).astype(np.float32)
        module = lower(shift(barrier=barrier), target)
        run = launch(module, target, "shift", (1,), (64,), a, np.zeros(64, np.float32))
        assert "divergent barrier" in run.kinds
        finding = run.result.findings[run.kinds.index("divergent barrier")]
        assert finding.location == "model.py:5 (sync)"
        assert "40 of 64 threads of the block wait while 24 have ended" in finding.message
        assert "barrier" in finding.op


def test_threads_at_different_barriers():
    module = kernel_of(
        """%c32 = llvm.mlir.constant(32 : i32) : i32
        %low = llvm.icmp "ult" %t32, %c32 : i32
        llvm.cond_br %low, ^a, ^b
      ^a:
        nvvm.barrier loc("first"("model.py":1:1))
        llvm.br ^end
      ^b:
        nvvm.barrier loc("second"("model.py":2:1))
        llvm.br ^end
      ^end:""",
        "",
    )
    run = launch(module, "nvvm", "k", (1,), (64,))
    only(run, "divergent barrier", "nvvm.barrier", "model.py:1 (first)",
         r"32 of 64 threads .* 32 wait at another .*nvvm.barrier' at model.py:2 \(sec")  # fmt: skip


def copy_kernel(wait: str, commit: str = "nvvm.cp.async.commit.group", after: str = "nvvm.barrier"):
    return kernel_of(
        f"""%s = llvm.mlir.addressof @tile : !llvm.ptr<3>
        %p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
        %q = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, vector<4xf32>
        nvvm.cp.async.shared.global %q, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
        {commit}
        {wait}
        {after}
        %u0 = llvm.mlir.constant(63 : i64) : i64
        %u = llvm.sub %u0, %t : i64
        %r = llvm.getelementptr %s[%u] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, vector<4xf32>
        %v = llvm.load %r : !llvm.ptr<3> -> vector<4xf32> loc("matmul"("model.py":9:1))
        %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
        llvm.store %v, %o : vector<4xf32>, !llvm.ptr<1>""",
        "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
        globals_="llvm.mlir.global internal @tile() {addr_space = 3 : i32} "
        ": !llvm.array<64 x vector<4xf32>>",
    )


class TestAsynchronousCopies:
    def run(self, *changes: str) -> Run:
        a = rng.standard_normal((64, 4)).astype(np.float32)
        run = launch(copy_kernel(*changes), "nvvm", "k", (1,), (64,), a, a * 0)
        self.want = a[::-1]
        return run

    def test_data_arrives_with_the_wait(self):
        run = self.run("nvvm.cp.async.wait.group 0")
        assert run.result.findings == ()
        np.testing.assert_array_equal(run.arrays[1], self.want)
        assert run.result.counts.shared_stored == 1024
        assert run.result.counts.global_read_floor == 1024

    def test_a_missing_wait(self):
        only(self.run(""), "unwaited copy", "llvm.load", "model.py:9 (matmul)",
             r"reads 16 bytes at byte 1008 of shared array @tile, where an async")  # fmt: skip

    def test_a_wait_that_leaves_the_group_under_way(self):
        run = self.run("nvvm.cp.async.wait.group 1")
        assert run.kinds == ["unwaited copy"]

    def test_a_copy_whose_group_is_never_closed(self):
        run = self.run("nvvm.cp.async.wait.group 0", "")
        assert run.kinds == ["unwaited copy"]

    def test_a_wait_without_a_barrier_after_it(self):
        run = self.run("nvvm.cp.async.wait.group 0", "nvvm.cp.async.commit.group", "")
        only(run, "race", "llvm.load", "model.py:9 (matmul)", r"thread \(63, 0, 0\) wrote by "
             r"'nvvm.cp.async")  # fmt: skip

    def test_bytes_beyond_the_source_are_zero(self):
        module = kernel_of(
            """%s = llvm.mlir.addressof @tile : !llvm.ptr<3>
            %c = llvm.mlir.constant(8 : i32) : i32
            nvvm.cp.async.shared.global %s, %a, 16, cache = cg, %c : !llvm.ptr<3>, !llvm.ptr<1>, i32
            nvvm.cp.async.commit.group
            nvvm.cp.async.wait.group 0
            %v = llvm.load %s : !llvm.ptr<3> -> vector<4xf32>
            llvm.store %v, %out : vector<4xf32>, !llvm.ptr<1>""",
            "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
            globals_="llvm.mlir.global internal @tile() {addr_space = 3 : i32} : vector<4xf32>",
        )
        # Only two elements are there to be read.
        a, out = np.array([1, 2], np.float32), np.ones(4, np.float32)
        run = launch(module, "nvvm", "k", (1,), (1,), a, out)
        assert run.result.findings == ()
        np.testing.assert_array_equal(run.arrays[1], [1, 2, 0, 0])


@pytest.mark.parametrize("target", TARGETS)
def test_a_shuffle_from_a_lane_that_does_not_take_part(target):
    source = """gpu.module @kernels {
      gpu.func @k(%a: memref<64xf32>, %out: memref<64xf32>) kernel {
        %w = arith.constant 32 : i32
        %c20 = arith.constant 20 : index
        %lane = arith.constant 25 : i32
        %t = gpu.thread_id x
        %v = memref.load %a[%t] : memref<64xf32>
        %low = arith.cmpi ult, %t, %c20 : index
        scf.if %low {
          %s, %ok = gpu.shuffle idx %v, %lane, %w : f32 loc("sum"("model.py":6:1))
          memref.store %s, %out[%t] : memref<64xf32>
        }
        gpu.return
      } }"""
    a = rng.standard_normal(64).astype(np.float32)
    run = launch(lower(source, target), target, "k", (1,), (64,), a, a * 0)
    name = {"nvvm": "nvvm.shfl.sync", "rocdl": "rocdl.ds_bpermute"}[target]
    # On one target the mask of members already names lanes that are elsewhere.
    only(run, "inactive lane", name, "model.py:6 (sum)",
         "waits for lanes 20, 21.*elsewhere|lane 0 reads lane 25 of its subgroup")  # fmt: skip


def test_a_shuffle_whose_members_are_right_but_its_lane_is_not():
    module = kernel_of(
        """%c8 = llvm.mlir.constant(8 : i32) : i32
        %members = llvm.mlir.constant(255 : i32) : i32
        %lane = llvm.mlir.constant(9 : i32) : i32
        %clamp = llvm.mlir.constant(31 : i32) : i32
        %low = llvm.icmp "ult" %t32, %c8 : i32
        llvm.cond_br %low, ^in, ^end
      ^in:
        %v = nvvm.shfl.sync idx %members, %t32, %lane, %clamp : i32 -> i32
          loc("sum"("model.py":6:1))
        %p = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
        llvm.store %v, %p : i32, !llvm.ptr<1>
        llvm.br ^end
      ^end:""",
        "%out: !llvm.ptr<1>",
    )
    run = launch(module, "nvvm", "k", (1,), (32,), np.zeros(8, np.int32))
    only(run, "inactive lane", "nvvm.shfl.sync", "model.py:6 (sum)", "lane 0 reads lane 9 of its")


def test_a_wide_access_at_an_odd_address():
    module = kernel_of(
        """%p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %v = llvm.load %p : !llvm.ptr<1> -> vector<4xf32> loc("relu"("model.py":2:1))
        %q = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
        llvm.store %v, %q : vector<4xf32>, !llvm.ptr<1>""",
        "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
    )
    a = rng.standard_normal(8).astype(np.float32)
    run = launch(module, "nvvm", "k", (1,), (4,), a, np.zeros((4, 4), np.float32))
    only(run, "misaligned", "llvm.load", "model.py:2 (relu)",
         "reads 16 bytes at byte 4 of argument 0 .* not a multiple of 16")  # fmt: skip
    np.testing.assert_array_equal(run.arrays[1], [a[i : i + 4] for i in range(4)])


@pytest.mark.parametrize("target", TARGETS)
def test_a_result_that_nothing_wrote(target):
    source = """gpu.module @kernels {
      gpu.func @k(%a: memref<64xf32>, %b: memref<64xf32>) kernel {
        %t = gpu.thread_id x
        %v = memref.load %a[%t] : memref<64xf32> loc("add"("model.py":6:1))
        memref.store %v, %b[%t] : memref<64xf32>
        gpu.return
      } }"""
    a = np.zeros(64, np.float32)
    run = launch(lower(source, target), target, "k", (1,), (64,), a, a, fresh=(0,))
    only(run, "unwritten read", "llvm.load", "model.py:6 (add)", "byte 0 of argument 0, which")
    assert run.result.findings[0].count == 64


class TestOtherFindings:
    def test_a_null_pointer(self):
        module = kernel_of(
            "%p = llvm.mlir.zero : !llvm.ptr\nllvm.store %t32, %p : i32, !llvm.ptr", ""
        )
        run = launch(module, "nvvm", "k", (1,), (2,))
        assert run.kinds == ["out of bounds"]
        assert "address 0x0, which is in no memory of address space 0" in (
            run.result.findings[0].message
        )

    def test_a_pointer_of_another_memory(self):
        module = kernel_of(
            """%p = llvm.ptrtoint %a : !llvm.ptr<1> to i64
            %q = llvm.inttoptr %p : i64 to !llvm.ptr<3>
            %v = llvm.load %q : !llvm.ptr<3> -> i32""",
            "%a: !llvm.ptr<1>",
        )
        run = launch(module, "nvvm", "k", (1,), (1,), np.zeros(4, np.int32))
        assert run.kinds == ["out of bounds"]

    def test_division_by_zero(self):
        module = kernel_of(
            """%c = llvm.mlir.constant(3 : i32) : i32
            %d = llvm.sub %t32, %c : i32
            %v = llvm.sdiv %c, %d : i32""",
            "",
        )
        run = launch(module, "nvvm", "k", (1,), (32,))
        assert run.kinds == ["division by zero"]
        assert run.result.findings[0].thread == (3, 0, 0)
        assert run.result.findings[0].count == 1

    def test_traps_assumptions_and_unreachable_code(self):
        module = kernel_of(
            """%c = llvm.mlir.constant(3 : i32) : i32
            %low = llvm.icmp "ult" %t32, %c : i32
            llvm.intr.assume %low : i1
            llvm.cond_br %low, ^end, ^bad
          ^bad:
            "llvm.intr.trap"() : () -> ()
            llvm.unreachable
          ^end:""",
            "",
        )
        run = launch(module, "nvvm", "k", (1,), (8,))
        assert run.kinds == ["trap"] * 3
        assert [f.count for f in run.result.findings] == [5, 5, 5]

    def test_equal_values_still_race(self):
        module = kernel_of("llvm.store %c, %a : i32, !llvm.ptr<1>".replace("%c", "%five"),
                           "%a: !llvm.ptr<1>, %five: i32")  # fmt: skip
        run = launch(module, "nvvm", "k", (1,), (2,), np.zeros(1, np.int32), 5)
        assert run.kinds == ["race"]

    def test_blocks_race_where_a_barrier_orders_only_one_of_them(self):
        module = kernel_of(
            """%b = nvvm.read.ptx.sreg.ctaid.x : i32
            %zero = llvm.mlir.constant(0 : i32) : i32
            %first = llvm.icmp "eq" %b, %zero : i32
            llvm.cond_br %first, ^w, ^r
          ^w:
            %p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
            llvm.store %t32, %p : i32, !llvm.ptr<1>
            llvm.br ^join
          ^r:
            llvm.br ^join
          ^join:
            nvvm.barrier
            %q = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
            %v = llvm.load %q : !llvm.ptr<1> -> i32""",
            "%a: !llvm.ptr<1>",
        )
        run = launch(module, "nvvm", "k", (2,), (32,), np.zeros(32, np.int32))
        assert run.kinds == ["race"]
        finding = run.result.findings[0]
        assert finding.block == (1, 0, 0)
        assert "thread (0, 0, 0) of block (0, 0, 0) wrote" in finding.message

    @pytest.mark.parametrize("ordering,kinds", [("acq_rel", []), ("monotonic", ["race"])])
    def test_the_last_block_may_read_what_the_others_released(self, ordering, kinds):
        """Each block writes a part and counts; the one that counts last adds the parts up."""
        module = kernel_of(
            f"""%b = nvvm.read.ptx.sreg.ctaid.x : i32
            %one = llvm.mlir.constant(1 : i32) : i32
            %zero = llvm.mlir.constant(0 : i64) : i64
            %most = llvm.mlir.constant(3 : i32) : i32
            %p = llvm.getelementptr %parts[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
            llvm.store %b, %p : i32, !llvm.ptr<1>
            %old = llvm.atomicrmw add %count, %one {ordering} : !llvm.ptr<1>, i32
            %last = llvm.icmp "eq" %old, %most : i32
            llvm.cond_br %last, ^sum, ^end
          ^sum:
            %v = llvm.load %parts : !llvm.ptr<1> -> vector<4xi32>
            %s = "llvm.intr.vector.reduce.add"(%v) : (vector<4xi32>) -> i32
            llvm.store %s, %out : i32, !llvm.ptr<1>
            llvm.br ^end
          ^end:""",
            "%parts: !llvm.ptr<1>, %count: !llvm.ptr<1>, %out: !llvm.ptr<1>",
        )
        arrays = np.zeros(4, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
        run = launch(module, "nvvm", "k", (4,), (1,), *arrays)
        assert run.kinds == kinds
        assert run.arrays[2][0] == 6

    @pytest.mark.parametrize("ordering,kinds", [("acq_rel", []), ("monotonic", ["race"])])
    def test_the_last_block_may_read_and_replace_what_the_others_read(self, ordering, kinds):
        module = kernel_of(
            f"""%one = llvm.mlir.constant(1 : i32) : i32
            %most = llvm.mlir.constant(3 : i32) : i32
            %v = llvm.load %sum : !llvm.ptr<1> -> i32
            %old = llvm.atomicrmw add %count, %one {ordering} : !llvm.ptr<1>, i32
            %last = llvm.icmp "eq" %old, %most : i32
            llvm.cond_br %last, ^replace, ^end
          ^replace:
            %w = llvm.load %sum : !llvm.ptr<1> -> i32
            %s = llvm.add %w, %old : i32
            llvm.store %s, %sum : i32, !llvm.ptr<1>
            llvm.br ^end
          ^end:""",
            "%sum: !llvm.ptr<1>, %count: !llvm.ptr<1>",
        )
        arrays = np.full(1, 4, np.int32), np.zeros(1, np.int32)
        run = launch(module, "nvvm", "k", (4,), (1,), *arrays)
        assert run.kinds == kinds
        assert run.arrays[0][0] == 7

    def test_a_subgroup_barrier_orders_its_subgroup_only(self):
        def race(other: int) -> list[str]:
            module = kernel_of(
                f"""%s = llvm.mlir.addressof @tile : !llvm.ptr<3>
                %all = llvm.mlir.constant(-1 : i32) : i32
                %far = llvm.mlir.constant({other} : i64) : i64
                %u = llvm.xor %t, %far : i64
                %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
                %q = llvm.getelementptr %s[%u] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
                llvm.store %t32, %p : i32, !llvm.ptr<3>
                nvvm.bar.warp.sync %all : i32
                %v = llvm.load %q : !llvm.ptr<3> -> i32""",
                "",
                globals_="llvm.mlir.global internal @tile() {addr_space = 3 : i32} "
                ": !llvm.array<64 x i32>",
            )
            return launch(module, "nvvm", "k", (1,), (64,)).kinds

        assert race(5) == []
        assert race(37) == ["race"]
