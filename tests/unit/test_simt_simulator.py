"""The simulator's interface: launches, plans, memory, errors, places in the source."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import kernel_of, launch, lower

from polyblocks import mlir
from polyblocks.errors import InputError, TargetError, UnsupportedError
from polyblocks.simt import Chip, Simulator
from polyblocks.simt.location import describe
from polyblocks_nvgpu.simt import SEMANTICS

SCALE = """
gpu.module @kernels {
  gpu.func @scale(%a: memref<64xf32>, %out: memref<64xf32>, %by: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %a[%t] : memref<64xf32>
    %w = arith.mulf %v, %by : f32
    memref.store %w, %out[%t] : memref<64xf32>
    gpu.return
  }
}"""


@pytest.fixture(scope="module")
def scale():
    return lower(SCALE, "nvvm")


@pytest.fixture
def simulator(scale):
    return Simulator(scale, SEMANTICS, Chip(name="a chip", shared_bytes=1024, block_threads=128))


def row(role: str, **more):
    return {"role": role, "name": role, "dtype": "float32", "shape": [64], "strides": [1], **more}


def plan(**more):
    step = {"kernel": "scale", "grid": [1, 1, 1], "block": [64, 1, 1], "shared_bytes": 0}
    return {
        "arguments": [row("input"), row("workspace"), row("output", updates=None)],
        "workspace_bytes": 512,
        "launches": [
            {**step, "arguments": [{"argument": 0}, {"workspace": 256}, {"value": 2.0}]},
            {**step, "arguments": [{"workspace": 256}, {"argument": 2}, {"value": 0.5}]},
        ],
        **more,
    }


class TestPlans:
    def test_two_launches_meet_in_the_workspace(self, simulator):
        a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        results = simulator.run_plan(plan(), [a, out])
        assert [r.kernel for r in results] == ["scale", "scale"]
        assert all(r.findings == () and r.finished for r in results)
        np.testing.assert_array_equal(out, a)

    def test_reading_the_workspace_before_writing_it_is_found(self, simulator):
        launches = plan()["launches"][1:]
        a = np.zeros(64, np.float32)
        (result,) = simulator.run_plan(plan(launches=launches), [a, a.copy()])
        assert [f.kind for f in result.findings] == ["unwritten read"]
        assert "byte 256 of workspace" in result.findings[0].message

    def test_strided_arrays_keep_their_holes(self, simulator):
        arguments = [row("input"), row("output")]
        launches = [{**plan()["launches"][0],
                     "arguments": [{"argument": 0}, {"argument": 1}, {"value": 1.0}]}]  # fmt: skip
        wide = np.arange(128, dtype=np.float32)
        out = np.zeros(64, np.float32)
        results = simulator.run_plan(plan(arguments=arguments, launches=launches), [wide[::2], out])
        # The kernel reads rows of consecutive elements, and half of those are no elements.
        assert [f.kind for f in results[0].findings] == ["unwritten read"]
        assert results[0].findings[0].count == 32

    def test_an_output_that_updates_an_input_is_its_buffer(self, simulator):
        arguments = [row("input"), row("output", updates=0)]
        launches = [{**plan()["launches"][0],
                     "arguments": [{"argument": 0}, {"argument": 1}, {"value": 3.0}]}]  # fmt: skip
        a = np.ones(64, np.float32)
        (result,) = simulator.run_plan(plan(arguments=arguments, launches=launches), [a, a])
        assert result.findings == ()
        np.testing.assert_array_equal(a, 3)

    def test_buffers_of_a_plan_are_gone_afterwards(self, simulator):
        first, second = (simulator.buffer(4).region.base for _ in range(2))
        for _ in range(3):
            simulator.run_plan(plan(), [np.zeros(64, np.float32), np.zeros(64, np.float32)])
        assert simulator.buffer(4).region.base - second == second - first

    def test_a_wrong_number_of_arrays(self, simulator):
        with pytest.raises(InputError, match="the plan has 2 inputs and outputs, got 1 arrays"):
            simulator.run_plan(plan(), [np.zeros(64, np.float32)])

    def test_an_argument_that_the_plan_does_not_have(self, simulator):
        launches = [{**plan()["launches"][0], "arguments": [{"argument": 1}]}]
        with pytest.raises(InputError, match="expected an argument, a workspace offset or a value"):
            simulator.run_plan(plan(launches=launches), [np.zeros(64, np.float32)] * 2)


class TestErrors:
    def test_an_unknown_kernel(self, simulator):
        with pytest.raises(InputError, match=r"a kernel of the module \(scale\), got 'scall'"):
            simulator.launch("scall", (1,), (64,), [])

    def test_a_wrong_number_of_arguments(self, simulator):
        with pytest.raises(InputError, match="scale takes 3 arguments, got 0"):
            simulator.launch("scale", (1,), (64,), [])

    def test_a_number_for_a_pointer_and_a_buffer_for_a_number(self, simulator):
        with pytest.raises(InputError, match="argument 0 of scale is a pointer, expected a buffer"):
            simulator.launch("scale", (1,), (64,), [1, 1, 1.0])
        a = simulator.buffer(256)
        with pytest.raises(InputError, match="argument 2 of scale is a number .*, got a buffer"):
            simulator.launch("scale", (1,), (64,), [a, a, a])

    def test_another_block_than_the_kernel_was_compiled_for(self, simulator):
        with pytest.raises(
            InputError, match=r"compiled for blocks of \(64, 1, 1\), got \(32, 1, 1\)"
        ):
            simulator.launch("scale", (1,), (32,), [])

    def test_too_many_threads(self, simulator):
        with pytest.raises(TargetError, match="a chip runs at most 128 threads per block"):
            simulator.launch("scale", (1,), (256,), [])

    def test_too_much_shared_memory(self, simulator):
        with pytest.raises(
            TargetError, match="1024 bytes of shared memory per block, scale asks for 2048"
        ):
            simulator.launch("scale", (1,), (64,), [], shared_bytes=2048)

    def test_extents(self, simulator):
        with pytest.raises(InputError, match=r"positive extents of the grid, got \[0\]"):
            simulator.launch("scale", (0,), (64,), [])

    def test_a_grid_too_large_to_simulate(self, simulator):
        a = simulator.buffer(256)
        with pytest.raises(InputError, match="fewer than 2\\^30 threads"):
            simulator.launch("scale", (1 << 25,), (64,), [a, a, 1.0])

    def test_negative_strides(self, simulator):
        with pytest.raises(InputError, match="without negative strides"):
            simulator.buffer(np.zeros(4)[::-1])

    def test_wide_integers(self):
        module = kernel_of("%x = llvm.zext %t : i64 to i128", "")
        with pytest.raises(UnsupportedError, match="integers of 1 to 64 bits, not i128"):
            launch(module, "nvvm", "k", (1,), (1,))

    def test_private_arrays_of_varying_size(self):
        module = kernel_of("%p = llvm.alloca %t x f32 : (i64) -> !llvm.ptr", "")
        with pytest.raises(UnsupportedError, match="private arrays of constant size only"):
            launch(module, "nvvm", "k", (1,), (1,))

    def test_initializers(self):
        module = mlir.parse(
            """gpu.module @kernels { llvm.mlir.global internal @g() : !llvm.ptr {
              %0 = llvm.mlir.addressof @h : !llvm.ptr
              llvm.return %0 : !llvm.ptr }
            llvm.mlir.global internal @h(1 : i32) : i32 }"""
        )
        with pytest.raises(UnsupportedError, match="initializes globals from constants"):
            Simulator(module, SEMANTICS)


class TestMemory:
    def test_constant_tables(self):
        module = kernel_of(
            """%p = llvm.mlir.addressof @table : !llvm.ptr<4>
            %q = llvm.getelementptr %p[0, %t] : (!llvm.ptr<4>, i64) -> !llvm.ptr<4>,
              !llvm.array<4 x i32>
            %v = llvm.load %q : !llvm.ptr<4> -> i32
            %o = llvm.getelementptr %out[%t] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            llvm.store %v, %o : i32, !llvm.ptr""",
            "%out: !llvm.ptr",
            globals_="llvm.mlir.global internal constant @table(dense<[4, 3, 2, 1]> : "
            "tensor<4xi32>) {addr_space = 4 : i32} : !llvm.array<4 x i32>",
        )
        run = launch(module, "nvvm", "k", (1,), (4,), np.zeros(4, np.int32))
        assert run.kinds == []
        np.testing.assert_array_equal(run.arrays[0], [4, 3, 2, 1])

    def test_dynamic_shared_memory_has_the_size_of_the_launch(self):
        module = kernel_of(
            """%s = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
            %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
            llvm.store %t32, %p : i32, !llvm.ptr<3>""",
            "",
            globals_="llvm.mlir.global external @dynamic() {addr_space = 3 : i32} "
            ": !llvm.array<0 x i8>",
        )
        assert launch(module, "nvvm", "k", (3,), (32,), shared_bytes=128).kinds == []
        run = launch(module, "nvvm", "k", (3,), (32,), shared_bytes=124)
        assert run.kinds == ["out of bounds"]
        assert run.result.findings[0].count == 3
        assert "byte 124 of dynamic shared memory (124 bytes)" in run.result.findings[0].message

    def test_generic_pointers_to_all_memories(self):
        module = kernel_of(
            """%one = llvm.mlir.constant(1 : i64) : i64
            %l = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
            llvm.store %t32, %l : i32, !llvm.ptr
            %s0 = llvm.mlir.addressof @tile : !llvm.ptr<3>
            %s = llvm.addrspacecast %s0 : !llvm.ptr<3> to !llvm.ptr
            %c = llvm.mlir.constant(2 : i32) : i32
            %low = llvm.icmp "ult" %t32, %c : i32
            %b = llvm.mlir.constant(0 : i32) : i32
            %first = llvm.icmp "eq" %t32, %b : i32
            %x = llvm.select %low, %s, %l : i1, !llvm.ptr
            %y = llvm.select %first, %out, %x : i1, !llvm.ptr
            llvm.store %t32, %y : i32, !llvm.ptr
            %v = llvm.load %y : !llvm.ptr -> i32
            %p = llvm.getelementptr %out[%t] : (!llvm.ptr, i64) -> !llvm.ptr, i32
            llvm.store %v, %p : i32, !llvm.ptr""",
            "%out: !llvm.ptr",
            globals_="llvm.mlir.global internal @tile() {addr_space = 3 : i32} : i32",
        )
        run = launch(module, "nvvm", "k", (1,), (4,), np.full(4, 9, np.int32))
        assert run.kinds == []
        np.testing.assert_array_equal(run.arrays[0], [0, 1, 2, 3])

    def test_masked_and_scattered_accesses(self):
        module = kernel_of(
            """%mask = llvm.mlir.constant(dense<[true, false, true, false]> : vector<4xi1>)
              : vector<4xi1>
            %other = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
            %v = llvm.intr.masked.load %a, %mask, %other {alignment = 4 : i32}
              : (!llvm.ptr<1>, vector<4xi1>, vector<4xi32>) -> vector<4xi32>
            llvm.intr.masked.store %v, %out, %mask {alignment = 4 : i32}
              : vector<4xi32>, vector<4xi1> into !llvm.ptr<1>
            %s = "llvm.intr.vector.reduce.add"(%v) : (vector<4xi32>) -> i32
            %p = llvm.getelementptr %out[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
            llvm.store %s, %p : i32, !llvm.ptr<1>""",
            "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
        )
        # The last element is outside, where the mask says that nothing is read.
        a = np.array([1, 2, 3], np.int32)
        run = launch(module, "nvvm", "k", (1,), (1,), a, np.zeros(4, np.int32))
        assert run.kinds == []
        np.testing.assert_array_equal(run.arrays[1], [1, 1 + 7 + 3 + 7, 3, 0])

    def test_copies_and_fills_of_bytes(self):
        module = kernel_of(
            """%n = llvm.mlir.constant(6 : i64) : i64
            %b = llvm.mlir.constant(5 : i8) : i8
            "llvm.intr.memset"(%out, %b, %n) <{isVolatile = false}>
              : (!llvm.ptr<1>, i8, i64) -> ()
            %three = llvm.mlir.constant(3 : i64) : i64
            "llvm.intr.memcpy"(%out, %a, %three) <{isVolatile = false}>
              : (!llvm.ptr<1>, !llvm.ptr<1>, i64) -> ()""",
            "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
        )
        a = np.arange(3, dtype=np.int8)
        run = launch(module, "nvvm", "k", (1,), (1,), a, np.zeros(7, np.int8))
        assert run.kinds == []
        np.testing.assert_array_equal(run.arrays[1], [0, 1, 2, 5, 5, 5, 0])


class TestAtomics:
    def both(self, kind: str, type_: str, a: np.ndarray, start, used: bool = True) -> tuple:
        body = f"""%p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {type_}
          %x = llvm.load %p : !llvm.ptr<1> -> {type_}
          %old = llvm.atomicrmw {kind} %out, %x monotonic : !llvm.ptr<1>, {type_}"""
        if used:
            body += f"""\n%q = llvm.getelementptr %olds[%t] : (!llvm.ptr<1>, i64)
              -> !llvm.ptr<1>, {type_}
            llvm.store %old, %q : {type_}, !llvm.ptr<1>"""
        module = kernel_of(body, "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>, %olds: !llvm.ptr<1>")
        out = np.array([start], a.dtype)
        run = launch(module, "nvvm", "k", (1,), (len(a),), a, out, np.zeros_like(a))
        assert run.kinds == []
        return run.arrays[1][0], run.arrays[2]

    @pytest.mark.parametrize("used", [True, False])
    @pytest.mark.parametrize(
        "kind,start,function",
        [
            ("add", 5, lambda o, x: o + x),
            ("sub", 5, lambda o, x: o - x),
            ("max", -100, max),
            ("min", 100, min),
            ("_and", -1, lambda o, x: o & x),
            ("_or", 0, lambda o, x: o | x),
            ("_xor", 9, lambda o, x: o ^ x),
            ("nand", 9, lambda o, x: ~(o & x)),
            ("xchg", 9, lambda o, x: x),
            ("umin", -1, lambda o, x: min(o, x, key=lambda v: v % 2**32)),
        ],
    )
    def test_integers_one_lane_after_the_other(self, kind, start, function, used):
        a = np.random.default_rng(7).integers(-50, 50, 33).astype(np.int32)
        got, olds = self.both(kind, "i32", a, start, used)
        want, seen = start, []
        for x in a.tolist():
            seen.append(want)
            want = function(want, x)
        assert got == want
        if used:
            np.testing.assert_array_equal(olds, seen)

    @pytest.mark.parametrize("type_,dtype", [("f32", np.float32), ("f16", np.float16),
                                             ("f64", np.float64)])  # fmt: skip
    @pytest.mark.parametrize("kind,function", [("fadd", np.add), ("fmax", np.fmax),
                                               ("fmin", np.fmin)])  # fmt: skip
    def test_floats(self, type_, dtype, kind, function):
        a = np.random.default_rng(8).integers(-8, 8, 20).astype(dtype)
        got, olds = self.both(kind, type_, a, 1)
        want = dtype(1)
        for x, old in zip(a, olds, strict=True):
            assert old == want
            want = function(want, x)
        assert got == want

    def test_compare_and_exchange_takes_one_lane(self):
        module = kernel_of(
            """%z = llvm.mlir.constant(0 : i32) : i32
            %one = llvm.mlir.constant(1 : i32) : i32
            %v = llvm.add %t32, %one : i32
            %pair = llvm.cmpxchg %out, %z, %v acq_rel monotonic : !llvm.ptr<1>, i32
            %won = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
            %w = llvm.zext %won : i1 to i32
            %q = llvm.getelementptr %who[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
            llvm.store %w, %q : i32, !llvm.ptr<1>""",
            "%out: !llvm.ptr<1>, %who: !llvm.ptr<1>",
        )
        run = launch(
            module, "nvvm", "k", (1,), (40,), np.zeros(1, np.int32), np.zeros(40, np.int32)
        )
        assert run.kinds == []
        assert run.arrays[1].sum() == 1
        assert run.arrays[0][0] == run.arrays[1].argmax() + 1

    def test_an_atomic_races_with_a_plain_read(self):
        module = kernel_of(
            """%c = llvm.mlir.constant(1 : i32) : i32
            %old = llvm.atomicrmw add %out, %c monotonic : !llvm.ptr<1>, i32
            %v = llvm.load %out : !llvm.ptr<1> -> i32""",
            "%out: !llvm.ptr<1>",
        )
        run = launch(module, "nvvm", "k", (1,), (2,), np.zeros(1, np.int32))
        assert run.kinds == ["race"]


@pytest.mark.parametrize(
    "text,want",
    [
        ('loc("model.py":12:4)', "model.py:12"),
        ('loc("add"("model.py":12:4))', "model.py:12 (add)"),
        ('loc("add")', "add"),
        ("loc(unknown)", ""),
        ('loc(fused["a.py":1:1, "b.py":2:1, "a.py":1:1])', "a.py:1, b.py:2"),
        ('loc(fused["add"("a.py":1:1), unknown])', "a.py:1 (add)"),
        ('loc(callsite("f"("a.py":1:1) at "b.py":2:2))', "a.py:1 (f), called from b.py:2"),
    ],
)
def test_places_in_the_source(text, want):
    module = mlir.parse(f"func.func private @f() {text}")
    assert describe(module.body.operations[0].location) == want


SPREAD = """
gpu.module @kernels {
  gpu.func @spread(%a: memref<6400xf32>, %out: memref<6400xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %n = arith.constant 64 : index
    %first = arith.muli %b, %n : index
    %i = arith.addi %first, %t : index
    %v = memref.load %a[%i] : memref<6400xf32>
    memref.store %v, %out[%i] : memref<6400xf32>
    gpu.return
  }
}"""


@pytest.fixture
def spread():
    found = Simulator(lower(SPREAD, "nvvm"), SEMANTICS)
    return found, found.buffer(np.ones(6400, np.float32)), found.buffer(np.zeros(6400, np.float32))


class TestSamples:
    def test_counts_of_a_sample_stand_for_the_grid(self, spread):
        simulator, a, out = spread
        whole = simulator.launch("spread", (100,), (64,), [a, out]).counts
        part = simulator.launch("spread", (100,), (64,), [a, out], sample=10)
        assert part.findings == ()
        assert part.counts.global_loaded == whole.global_loaded == 25600
        assert part.counts.sectors == whole.sectors
        assert part.counts.instructions == whole.instructions

    def test_only_the_sample_runs(self, spread):
        simulator, a, out = spread
        simulator.launch("spread", (100,), (64,), [a, out], sample=10)
        blocks = out.read("float32", (100, 64)).any(axis=1)
        assert blocks.sum() == 10
        assert blocks[0]
        assert blocks[-1]

    def test_a_grid_that_is_smaller_runs_as_a_whole(self, spread):
        simulator, a, out = spread
        simulator.launch("spread", (100,), (64,), [a, out], sample=100)
        assert (out.read("float32", (6400,)) == 1).all()

    def test_a_sample_of_too_few(self, spread):
        simulator, a, out = spread
        with pytest.raises(InputError, match="a sample of at least 3 blocks, got 2"):
            simulator.launch("spread", (100,), (64,), [a, out], sample=2)

    def test_a_grid_of_parts_of_clusters(self, spread):
        simulator, a, out = spread
        with pytest.raises(InputError, match="a grid of whole clusters of 3 blocks, got 100"):
            simulator.launch("spread", (100,), (64,), [a, out], cluster=3)

    def test_a_sample_of_clusters(self, spread):
        simulator, a, out = spread
        simulator.launch("spread", (100,), (64,), [a, out], sample=5, cluster=4)
        blocks = out.read("float32", (25, 4, 64)).any(axis=2)
        assert (blocks.any(axis=1) == blocks.all(axis=1)).all()
        assert blocks.all(axis=1).sum() == 5
