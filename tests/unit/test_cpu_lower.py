"""S4 and S5 of the CPU target: whole small programs, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_kernels import assembly_of, compile_text, elementwise, load, pack, run

from polyblocks import mlir
from polyblocks.codegen import llvm
from polyblocks.codegen.only_with import MEMORY, Contents, OnlyWith, OnlyWithOps
from polyblocks.errors import PassError, UnsupportedError
from polyblocks.mlir import ir
from polyblocks.options import CompileOptions
from polyblocks.pipeline import FunctionPass, PassContext, run_stage
from polyblocks_cpu.describe import describe
from polyblocks_cpu.emit import checked_symbols, machine
from polyblocks_cpu.lower import stage_s4
from polyblocks_cpu.passes.emit_entry import EmitEntryPass
from polyblocks_cpu.passes.hold_halves_as_integers import (
    HoldHalvesAsIntegersPass,
    integer_literal,
)

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_pointwise_any_number_of_threads(threads: int) -> None:
    x = RNG.random(1001, dtype=np.float32)
    y = np.zeros_like(x)
    assert run(elementwise("%r0 = arith.addf %a0, %a0 : f32", [x], [y]), x, y, threads=threads) == 0
    np.testing.assert_array_equal(y, x + x)


def test_reduction_is_vectorized_when_it_may_be_reordered() -> None:
    text = """
    func.func @main(%x: memref<8x1024xf32>, %y: memref<8xf32>) {
      %zero = arith.constant 0.0 : f32
      affine.parallel (%i) = (0) to (8) {
        %s = affine.for %j = 0 to 1024 iter_args(%acc = %zero) -> (f32) {
          %v = affine.load %x[%i, %j] : memref<8x1024xf32>
          %a = arith.addf %acc, %v FLAGS : f32
          affine.yield %a : f32
        }
        affine.store %s, %y[%i] : memref<8xf32>
      } {polyblocks.level = "team", polyblocks.kernel = "sum"}
      return
    }
    """
    x = RNG.random((8, 1024), dtype=np.float32)
    y = np.zeros(8, np.float32)
    fast = text.replace("FLAGS", "fastmath<reassoc,contract>")
    assert run(fast, x, y) == 0
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-6)
    assert re.search(r"\bvaddps\b.*%zmm", assembly_of(fast, "x86-64-v4"))
    # In the order of the program, bit by bit, without the flags.
    strict = text.replace("FLAGS", "")
    assert run(strict, x, y) == 0
    np.testing.assert_array_equal(y, np.add.accumulate(x, axis=1)[:, -1])
    assert not re.search(r"\bvaddps\b.*%zmm", assembly_of(strict, "x86-64-v4"))


def test_workspace_gather_and_serial_code() -> None:
    text = """
    func.func @main(%x: memref<100xf32>, %i: memref<64xi64>, %y: memref<64xf32>,
                    %ws: memref<512xi8>) {
      %c256 = arith.constant 256 : index
      %t = memref.view %ws[%c256][] : memref<512xi8> to memref<64xf32>
      affine.parallel (%k) = (0) to (64) {
        %at = affine.load %i[%k] : memref<64xi64>
        %n = arith.index_cast %at : i64 to index
        %v = memref.load %x[%n] : memref<100xf32>
        affine.store %v, %t[%k] : memref<64xf32>
      } {polyblocks.level = "team", polyblocks.kernel = "gather"}
      affine.for %k = 0 to 64 {
        %v = affine.load %t[-%k + 63] : memref<64xf32>
        affine.store %v, %y[%k] : memref<64xf32>
      } {polyblocks.kernel = "reverse"}
      return
    }
    """
    x = RNG.random(100, dtype=np.float32)
    i = RNG.integers(0, 100, 64)
    y, ws = np.zeros(64, np.float32), np.zeros(512, np.int8)
    artifact = compile_text(text)
    kernels = artifact.manifest["kernels"]
    assert [(k["name"], k["parallel"]) for k in kernels] == [("gather", 64), ("reverse", 1)]
    assert all(k["code_bytes"] > 0 for k in kernels)
    assert load(artifact).entry(pack([x, i, y, ws]), 2) == 0
    np.testing.assert_array_equal(y, x[i][::-1])


def test_strided_arguments() -> None:
    text = """
    func.func @main(%x: memref<4x8xf32, strided<[1, 6]>>, %y: memref<4x8xf32>) {
      affine.parallel (%i) = (0) to (4) {
        affine.for %j = 0 to 8 {
          %v = affine.load %x[%i, %j] : memref<4x8xf32, strided<[1, 6]>>
          affine.store %v, %y[%i, %j] : memref<4x8xf32>
        }
      } {polyblocks.level = "team"}
      return
    }
    """
    base = RNG.random((8, 6), dtype=np.float32)
    y = np.zeros((4, 8), np.float32)
    assert run(text, base, y) == 0
    np.testing.assert_array_equal(y, base.T[:4])


GATHER_WITH_CHECK = """
    func.func @main(%i: memref<64xi64>, %x: memref<100xf32>, %y: memref<64xf32>) {
      %c100 = arith.constant 100 : i64
      affine.parallel (%k) = (0) to (64) {
        %at = affine.load %i[%k] : memref<64xi64>
        %ok = arith.cmpi ult, %at, %c100 : i64
        cf.assert %ok, "index out of range"
        %n = arith.index_cast %at : i64 to index
        %v = memref.load %x[%n] : memref<100xf32>
        affine.store %v, %y[%k] : memref<64xf32>
      } {polyblocks.level = "team", polyblocks.kernel = "gather"}
      return
    }
"""


def test_failed_check_is_the_status_and_nothing_is_read() -> None:
    x = RNG.random(100, dtype=np.float32)
    i, y = RNG.integers(0, 100, 64), np.full(64, -1, np.float32)
    artifact = compile_text(GATHER_WITH_CHECK)
    assert artifact.manifest["checks"] == ["index out of range"]
    executable = load(artifact)
    assert executable.entry(pack([i, x, y]), 2) == 0
    np.testing.assert_array_equal(y, x[i])
    # Far outside of any memory of this process.
    i[5] = 2**60
    y[:] = -1
    assert executable.entry(pack([i, x, y]), 2) == 1
    assert y[5] == -1
    # The next call starts afresh.
    i[5] = 0
    assert executable.entry(pack([i, x, y]), 2) == 0


def test_check_guards_later_kernels_and_a_status_argument_is_dropped() -> None:
    text = """
    func.func @main(
        %p: memref<i1> {polyblocks.arg = {role = "input", name = "p", dtype = "bool",
          shape = array<i64>, strides = array<i64>, constant = false, updates = -1 : i64}},
        %y: memref<64xf32> {polyblocks.arg = {role = "output", name = "y", dtype = "float32",
          shape = array<i64: 64>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
        %status: memref<1xi32> {polyblocks.arg = {role = "status", name = "status",
          dtype = "int32", shape = array<i64: 1>, strides = array<i64: 1>, constant = false,
          updates = -1 : i64}}) {
      %one = arith.constant 1.0 : f32
      %c7 = arith.constant 7 : i32
      %ok = affine.load %p[] : memref<i1>
      affine.store %c7, %status[0] : memref<1xi32>
      cf.assert %ok, "p holds"
      affine.parallel (%k) = (0) to (64) {
        affine.store %one, %y[%k] : memref<64xf32>
      } {polyblocks.level = "team", polyblocks.kernel = "fill"}
      return
    }
    """
    p, y = np.zeros(1, bool), np.zeros(64, np.float32)
    artifact = compile_text(text)
    assert [row["role"] for row in artifact.manifest["arguments"]] == ["input", "output"]
    assert [k["name"] for k in artifact.manifest["kernels"]] == ["fill"]
    executable = load(artifact)
    assert executable.entry(pack([p, y]), 2) == 1
    assert not y.any()
    p[:] = True
    # Not failed; what the program itself has left in the status comes out.
    assert executable.entry(pack([p, y]), 2) == 7
    assert y.all()


def test_every_turn_of_a_loop_uses_the_same_stack() -> None:
    text = """
    func.func @main(%x: memref<100000xf32>, %y: memref<100000xf32>) {
      affine.parallel (%i) = (0) to (100000) {
        %t = memref.alloca() : memref<1024xf32>
        affine.for %j = 0 to 1024 {
          %v = affine.load %x[%i] : memref<100000xf32>
          affine.store %v, %t[%j] : memref<1024xf32>
        }
        %v = affine.load %t[1023] : memref<1024xf32>
        affine.store %v, %y[%i] : memref<100000xf32>
      } {polyblocks.level = "team"}
      return
    }
    """
    x = RNG.random(100000, dtype=np.float32)
    y = np.zeros_like(x)
    assert run(text, x, y) == 0
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(("arch", "name"), [("x86-64-v3", "ymm"), ("x86-64-v4", "zmm")])
def test_spilled_vectors_lie_on_their_own_alignment(arch: str, name: str) -> None:
    """No vector on the stack reaches from one page, or line, into the next."""
    lanes = {"ymm": 32, "zmm": 64}[name]
    vector = f"vector<{lanes}xf32>"
    loads = [
        f"%x{i} = affine.vector_load %a[%i + {i * lanes}] : memref<65536xf32>, {vector}"
        for i in range(9)
    ]
    # More values than there are registers are used a second time, in the same order.
    once = ["%s0 = arith.addf %x0, %x1 : " + vector]
    for i in 2 * [*range(9)]:
        number = len(once)
        once.append(f"%s{number} = arith.divf %s{number - 1}, %x{i} : {vector}")
    body = "\n        ".join([*loads, *once])
    text = f"""
    func.func @main(%a: memref<65536xf32>, %b: memref<65536xf32>) {{
      affine.for %i = 0 to 4096 step {lanes} {{
        {body}
        affine.vector_store %s{len(once) - 1}, %b[%i] : memref<65536xf32>, {vector}
      }}
      return
    }}
    """
    code = assembly_of(text, arch)
    assert re.search(rf"vmovaps\s+%{name}\d+, -?\d*\(%rsp\)", code)
    assert not re.search(rf"vmovup[sd]\s+%{name}\d+, -?\d*\(%rsp\)", code)


def test_same_buffer_twice_as_an_input_is_fine() -> None:
    x = RNG.random(1000, dtype=np.float32)
    y = np.zeros_like(x)
    assert run(elementwise("%r0 = arith.addf %a0, %a1 : f32", [x, x], [y]), x, x, y) == 0
    np.testing.assert_array_equal(y, x + x)


def test_contraction_follows_the_flags() -> None:
    text = elementwise(
        "%m = arith.mulf %a0, %a1 FLAGS : f32\n%r0 = arith.addf %m, %a0 FLAGS : f32",
        [np.zeros(64, np.float32)] * 2,
        [np.zeros(64, np.float32)],
    )
    assert "vfmadd" in assembly_of(text.replace("FLAGS", "fastmath<contract>"), "x86-64-v3")
    assert "vfmadd" not in assembly_of(text.replace("FLAGS", ""), "x86-64-v3")


def test_half_precision_keeps_its_roundings_on_request() -> None:
    x = RNG.normal(size=512).astype(np.float16)
    y = np.zeros_like(x)
    text = elementwise(
        "%m = arith.mulf %a0, %a0 fastmath<contract> : f16\n"
        "%r0 = arith.addf %m, %a0 fastmath<contract> : f16",
        [x],
        [y],
    )
    strict = text.replace("fastmath<contract>", "")
    assert run(strict, x, y, mlir_disable_fast_math=True) == 0
    np.testing.assert_array_equal(y, x * x + x)


def test_debug_writes_the_last_stages(tmp_path: Path) -> None:
    x = np.zeros(64, np.float32)
    compile_text(elementwise("%r0 = arith.negf %a0 : f32", [x], [x]), debug=str(tmp_path))
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"S5-input.ll", "S5-optimized.ll", "S5-code.s"} <= names
    assert any(name.endswith("S4-target.mlir") for name in names)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("affine.parallel (%i, %j) = (0, 0) to (4, 4) { } {polyblocks.level = \"team\"}",
         "a team-level affine.parallel has one dimension and constant bounds"),
        ("affine.parallel (%i) = (0) to (4) step (2) { } {polyblocks.level = \"team\"}",
         "a team-level affine.parallel has step 1 and no reductions"),
        ("%t = affine.vector_load %m[%c0] : memref<8xi1>, vector<8xi1>",
         "affine.vector_load on a memref of i1 is not supported"),
        ("memref.copy %d, %d : memref<?xf32> to memref<?xf32>",
         "memref.copy of memref<\\?xf32> has no static shape"),
    ],
)  # fmt: skip
def test_refused_modules(body: str, reason: str) -> None:
    text = f"""
    func.func @main(%m: memref<8xi1>, %d: memref<?xf32>) {{
      %c0 = arith.constant 0 : index
      {body}
      return
    }}
    """
    with pytest.raises(PassError, match=reason):
        compile_text(text)


def test_halves_that_are_still_computed_with_are_refused() -> None:
    options = CompileOptions()
    context = PassContext.create(describe(options), options)
    module = mlir.parse("func.func @main(%x: bf16) { %y = arith.addf %x, %x : bf16 return }")
    with pytest.raises(PassError, match=r"arith\.addf still computes with bf16"):
        run_stage("S4", [HoldHalvesAsIntegersPass()], module, context)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("dense<[1.000000e+00, -2.5]> : tensor<2xbf16>", "bf16",
         "dense<[16256, -16352]> : tensor<2xi16>"),
        ("1.500000e+00 : f16", "f16", "15872 : i16"),
        ("0xFFC0 : bf16", "bf16", "-64 : i16"),
        ('dense<"0x803F00C0"> : tensor<2xbf16>', "bf16", 'dense<"0x803F00C0"> : tensor<2xi16>'),
    ],
)  # fmt: skip
def test_integer_literal(text: str, kind: str, expected: str) -> None:
    assert integer_literal(text, kind) == expected


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_integer_literal_of_every_number(kind: str, dtype: Any) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = bits.view(dtype).astype(np.float64)
    known = np.isfinite(numbers)
    with mlir.make_context(), ir.Location.unknown():
        type_ = ir.Type.parse(kind)
        texts = [str(ir.FloatAttr.get(type_, float(value))) for value in numbers[known]]
    found = [int(integer_literal(text, kind).split()[0]) for text in texts]
    np.testing.assert_array_equal(np.array(found, np.int16).view(np.uint16), bits[known])


def test_entry_needs_a_main_of_pointers() -> None:
    options = CompileOptions()
    context = PassContext.create(describe(options), options)
    with pytest.raises(PassError, match=r"the module has no llvm\.func @main"):
        run_stage("S4", [EmitEntryPass()], mlir.parse("module {}"), context)
    scalar = mlir.parse("llvm.func @main(%x: f32) { llvm.return }")
    with pytest.raises(PassError, match="@main takes pointers and a number of threads"):
        run_stage("S4", [EmitEntryPass()], scalar, context)


def test_foreign_calls_are_an_internal_error() -> None:
    text = """
    func.func private @sinf(f32) -> f32
    func.func @main(%x: memref<1xf32>) {
      %v = affine.load %x[0] : memref<1xf32>
      %s = func.call @sinf(%v) : (f32) -> f32
      affine.store %s, %x[0] : memref<1xf32>
      return
    }
    """
    with pytest.raises(UnsupportedError, match="internal error: the generated code calls sinf;"):
        compile_text(text)


def test_buffers_of_run_time_size_are_unsupported() -> None:
    text = """
    func.func @main(%n: memref<1xindex>, %x: memref<1xf32>) {
      %zero = arith.constant 0 : index
      %size = affine.load %n[0] : memref<1xindex>
      %m = memref.alloc(%size) : memref<?xf32>
      %v = affine.load %x[0] : memref<1xf32>
      memref.store %v, %m[%zero] : memref<?xf32>
      %w = memref.load %m[%size] : memref<?xf32>
      affine.store %w, %x[0] : memref<1xf32>
      return
    }
    """
    with pytest.raises(UnsupportedError, match="a buffer whose size depends on the data"):
        compile_text(text)


def test_symbols_of_an_unknown_format_are_not_checked() -> None:
    assert checked_symbols([b"\xcf\xfa\xed\xfe"]) == {}


def test_selects_on_what_a_loop_loads_are_no_branches() -> None:
    text = """
    define void @f(ptr %x, ptr %y) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %j = mul i64 %i, 7
      %from = getelementptr i32, ptr %x, i64 %j
      %read = load i32, ptr %from
      %bits = shl i32 %read, 16
      %number = bitcast i32 %bits to float
      %negative = fcmp olt float %number, 0.0
      %chosen = select i1 %negative, i32 0, i32 %read
      %to = getelementptr i32, ptr %y, i64 %j
      store i32 %chosen, ptr %to
      %next = add i64 %i, 1
      %done = icmp eq i64 %next, 1000
      br i1 %done, label %end, label %loop
    end:
      ret void
    }
    """
    spec = machine(describe(CompileOptions(arch="x86-64-v3")))
    assembly = llvm.emit_assembly(*llvm.optimize(text, spec))
    loop = assembly[assembly.index("f:") :]
    assert "cmov" in loop
    assert len(re.findall(r"\bj\w+\s", loop)) == 1


def test_llvm_rejects_what_is_not_ir() -> None:
    spec = machine(describe(CompileOptions(arch="x86-64-v3")))
    with pytest.raises(UnsupportedError, match="LLVM rejects the generated code"):
        llvm.optimize("define void @f() { nonsense }", spec)


def test_prepare_sets_linkage_and_attributes() -> None:
    spec = llvm.Machine("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2", vector_bits=256)
    body = "{\n  ret void\n}\n"
    text = f"define void @a(ptr %0) {body}\ndefine internal void @b.c() #0 {body}"
    prepared = llvm.prepare(text, spec, {"a"}, {"b.c"})
    assert "define void @a(ptr %0) #9000 {" in prepared
    assert "define internal void @b.c() #0 #9001 {" in prepared
    group = next(line for line in prepared.splitlines() if line.startswith("attributes #9001"))
    for piece in ("noinline", '"target-cpu"="x86-64-v3"', '"target-features"="+avx2"',
                  '"prefer-vector-width"="256"', '"no-builtins"', '"frame-pointer"'):  # fmt: skip
        assert piece in group


def test_stage_passes_have_unique_names() -> None:
    for arch in ("x86-64", "x86-64-v4"):
        names = [p.name for p in stage_s4(describe(CompileOptions(arch=arch)))]
        assert len(names) == len(set(names))
    assert "expand-fma" in [p.name for p in stage_s4(describe(CompileOptions(arch="x86-64")))]


@pytest.mark.parametrize(
    ("kinds", "runs"),
    [
        (("f32",), True),
        (("f16", "bf16"), True),
        (("complex",), False),
        ((f"{MEMORY}i1",), False),
        ((f"{MEMORY}f32",), True),
    ],
)
def test_a_pass_for_types_that_do_not_occur_is_left_out(kinds: tuple[str, ...], runs: bool) -> None:
    module = mlir.parse("""
    func.func @main(%x: memref<4xf32>, %h: vector<2xbf16>, %c: i1) {
      return
    }
    """)
    ran: list[Any] = []
    inner = FunctionPass("inner", lambda module, context: ran.append(module))
    only = OnlyWith(inner, kinds, Contents())
    assert only.name == "inner"
    assert only.run(module, None) is runs
    assert bool(ran) is runs


@pytest.mark.parametrize(("ops", "runs"), [({"arith.remf", "math.exp"}, True), ({"x.y"}, False)])
def test_a_pass_for_ops_that_do_not_occur_is_left_out(ops: set[str], runs: bool) -> None:
    module = mlir.parse("""
    func.func @main(%x: f32) -> f32 {
      %y = arith.remf %x, %x : f32
      return %y : f32
    }
    """)
    ran: list[Any] = []
    only = OnlyWithOps(FunctionPass("inner", lambda m, context: ran.append(m)), ops, Contents())
    assert only.name == "inner"
    assert only.run(module, None) is runs
    assert bool(ran) is runs


def test_ops_that_a_pass_for_some_types_adds_are_found() -> None:
    contents = Contents()
    module = mlir.parse("func.func @main(%x: complex<f32>) { return }")
    assert contents.ops(module) == {"builtin.module", "func.func", "func.return"}

    def add(module: Any, context: Any) -> None:
        with module.context, mlir.ir.Location.unknown():
            block = module.body.operations[0].regions[0].blocks[0]
            with mlir.ir.InsertionPoint.at_block_begin(block):
                mlir.dialect("complex").AbsOp(block.arguments[0])

    OnlyWith(FunctionPass("add", add), ("complex",), contents).run(module, None)
    assert "complex.abs" in contents.ops(module)


def test_types_are_those_of_the_module_at_hand() -> None:
    types = Contents()
    one = mlir.parse("func.func private @f(memref<2xcomplex<f32>>)")
    other = mlir.parse("memref.global @g : memref<2xf16>")
    assert types.types(one) >= {"complex<f32>", f"{MEMORY}complex<f32>"}
    assert types.types(other) >= {"f16", f"{MEMORY}f16"}
    assert "complex<f32>" not in types.types(other)
