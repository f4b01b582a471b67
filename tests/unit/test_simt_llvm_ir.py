"""What LLVM made of kernels, read back and run: each kind of instruction, and planted bugs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gpu_kernels import amdgpu, nvgpu
from llvmlite import binding
from simt_kernels import SEMANTICS, Run, launch, lower

from polyblocks.codegen.gpu.line_numbers import attach_tables
from polyblocks.codegen.gpu.machine_code import optimized, translated
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext
from polyblocks.simt import Simulator
from polyblocks.simt.decode import Decoder
from polyblocks.simt.llvm_ir.numbers import bits_of
from polyblocks.simt.llvm_ir.reader import as_mlir, read_module
from polyblocks.simt.types import Float, Int

rng = np.random.default_rng(3)
TID = "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%i = zext i32 %t to i64"


def printed(text: str) -> str:
    """LLVM IR as LLVM prints it, which it is then known to accept."""
    parsed = binding.parse_assembly(text)
    parsed.verify()
    return str(parsed)


def kernel(body: str, arguments: str, around: str = "") -> str:
    """A kernel ``@k``; ``%t`` is the thread's index as i32, ``%i`` as i64."""
    return printed(
        f"{around}\ndeclare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
        f"define ptx_kernel void @k({arguments}) {{\n{TID}\n{body}\n}}"
    )


def apply(body: str, ins: list[tuple[str, np.ndarray]], out: tuple[str, Any], around: str = "",
          extra: tuple[int, ...] = ()) -> np.ndarray:  # fmt: skip
    """``%r`` of each thread, computed from ``%x0``, ``%x1`` …"""
    lines = []
    for n, (type_, _) in enumerate(ins):
        lines.append(f"%p{n} = getelementptr {type_}, ptr addrspace(1) %a{n}, i64 %i")
        lines.append(f"%x{n} = load {type_}, ptr addrspace(1) %p{n}")
    lines += [
        body,
        f"%q = getelementptr {out[0]}, ptr addrspace(1) %out, i64 %i",
        f"store {out[0]} %r, ptr addrspace(1) %q",
        "ret void",
    ]
    names = [*(f"ptr addrspace(1) %a{n}" for n in range(len(ins))), "ptr addrspace(1) %out"]
    module = read_module(kernel("\n".join(lines), ", ".join(names), around))
    count = len(ins[0][1])
    result = np.zeros((count, *extra), out[1])
    run = launch(module, "nvvm", "k", (1,), (count,), *(a for _, a in ins), result)
    assert run.result.findings == ()
    return run.arrays[-1]


A = np.array([0, 1, 5, -7, 2**31 - 1, -(2**31)], np.int32)
B = np.array([3, -2, 5, 4, 1, 31], np.int32)
X = np.array([0.0, -1.5, 2.25, np.inf, np.nan, 3e38], np.float32)
Y = np.array([1.0, 0.5, -2.25, 1.0, 2.0, 3e38], np.float32)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("add nuw nsw", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul nsw", lambda a, b: a * b),
        ("and", lambda a, b: a & b),
        ("or disjoint", lambda a, b: a | b),
        ("xor", lambda a, b: a ^ b),
        ("udiv exact", lambda a, b: (a.view("u4") // b.view("u4")).view("i4")),
        ("urem", lambda a, b: (a.view("u4") % b.view("u4")).view("i4")),
        ("srem", lambda a, b: np.fmod(a, b)),
    ],
)
def test_integers(op: str, expected: Any) -> None:
    found = apply(f"%r = {op} i32 %x0, %x1", [("i32", A), ("i32", B)], ("i32", np.int32))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, expected(A, B))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("fadd reassoc contract", np.add),
        ("fsub", np.subtract),
        ("fmul fast", np.multiply),
        ("fdiv nnan ninf", np.divide),
    ],
)
def test_floats(op: str, expected: Any) -> None:
    found = apply(f"%r = {op} float %x0, %x1", [("float", X), ("float", Y)], ("float", "f4"))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, expected(X, Y))


@pytest.mark.parametrize("relation", ["ult", "sgt", "ne", "ule"])
def test_relations_of_integers(relation: str) -> None:
    found = apply(
        f"%c = icmp samesign {relation} i32 %x0, %x1\n%r = zext i1 %c to i32",
        [("i32", A), ("i32", B)], ("i32", np.int32),
    )  # fmt: skip
    a, b = (A.view("u4"), B.view("u4")) if relation[0] == "u" else (A, B)
    functions = {"lt": np.less, "gt": np.greater, "ne": np.not_equal, "le": np.less_equal}
    np.testing.assert_array_equal(found, functions[relation.lstrip("us")](a, b))


def test_relations_of_floats_and_choices() -> None:
    found = apply(
        "%c = fcmp uno float %x0, %x1\n%d = fcmp true float %x0, %x1\n"
        "%e = xor i1 %c, %d\n%r = select i1 %e, float %x0, float -1.0",
        [("float", X), ("float", Y)], ("float", "f4"),
    )  # fmt: skip
    np.testing.assert_array_equal(found, np.where(np.isnan(X), np.float32(-1), X))


def test_casts() -> None:
    found = apply(
        "%n = trunc nsw i32 %x0 to i16\n%s = sext i16 %n to i64\n%f = sitofp i64 %s to double\n"
        "%h = fptrunc double %f to float\n%b = bitcast float %h to i32\n"
        "%z = zext nneg i32 %b to i64\n%u = trunc i64 %z to i32\n%r = bitcast i32 %u to float",
        [("i32", A)], ("float", "f4"),
    )  # fmt: skip
    np.testing.assert_array_equal(found, A.astype(np.int16).astype(np.float32))


@pytest.mark.parametrize(
    ("token", "type_", "bits"),
    [
        ("-1", Int(32), 0xFFFFFFFF),
        ("true", Int(1), 1),
        ("1.000000e+00", Float("f32"), 0x3F800000),
        ("0x3FF7154760000000", Float("f32"), 0x3FB8AA3B),
        ("0xFFF0000000000000", Float("f32"), 0xFF800000),
        ("0x7FF8000020000000", Float("f32"), 0x7FC00001),
        ("0x7FF8000000000001", Float("f64"), 0x7FF8000000000001),
        ("0xH3C00", Float("f16"), 0x3C00),
        ("0xR3F80", Float("bf16"), 0x3F80),
        ("9.994500e-04", Float("bf16"), 0x3A83),
        ("-1.005000e+02", Float("bf16"), 0xC2C9),
        ("-2.500000e-01", Float("f64"), 0xBFD0000000000000),
        ("0x36A0000000000000", Float("f32"), 1),
    ],
)
def test_numbers(token: str, type_: Any, bits: int) -> None:
    assert bits_of(token, type_) == bits


def test_constants() -> None:
    """Vectors of numbers, with holes, of one number, and NaNs; a function's address is none."""
    found = apply(
        "%a = fadd <4 x float> <float 1.0, float 0x7FF0000000000000, float poison, float -0.0>, "
        "zeroinitializer\n"
        "%b = insertelement <4 x float> %a, float %x0, i64 2\n"
        "%c = fmul <4 x float> %b, splat (float 2.0)\n"
        "%d = shufflevector <4 x float> %c, <4 x float> undef, <4 x i32> <i32 3, i32 poison, "
        "i32 1, i32 0>\n"
        "%r = insertelement <4 x float> %d, float 5.0, i32 1",
        [("float", Y)], ("<4 x float>", "f4"), extra=(4,),
    )  # fmt: skip
    np.testing.assert_array_equal(found, np.tile(np.float32([0, 5, np.inf, 2]), (len(Y), 1)))


def test_loops_and_phis_that_exchange_their_values() -> None:
    """Fibonacci's numbers: two phis take each other's values at once."""
    body = """br label %loop
    loop:
      %n = phi i32 [ 0, %0 ], [ %n1, %loop ]
      %a = phi i32 [ 0, %0 ], [ %b, %loop ]
      %b = phi i32 [ 1, %0 ], [ %c, %loop ]
      %c = add i32 %a, %b
      %n1 = add nuw nsw i32 %n, 1
      %done = icmp eq i32 %n1, %x0
      br i1 %done, label %end, label %loop
    end:
      %r = phi i32 [ %b, %loop ]"""
    numbers = np.array([1, 2, 7, 30], np.int32)
    text = apply(body, [("i32", numbers)], ("i32", np.int32))
    np.testing.assert_array_equal(text, [1, 1, 13, 832040])


def test_switches() -> None:
    body = """switch i32 %x0, label %other [
        i32 1, label %one
        i32 -7, label %one
        i32 5, label %end
      ]
    one:
      br label %end
    other:
      br label %end
    end:
      %r = phi i32 [ 10, %one ], [ 20, %other ], [ %x0, %0 ]"""
    found = apply(body, [("i32", A)], ("i32", np.int32))
    np.testing.assert_array_equal(found, [20, 10, 5, 10, 20, 20])


def test_intrinsics() -> None:
    declared = """
    declare float @llvm.fma.f32(float, float, float)
    declare float @llvm.maximum.f32(float, float)
    declare i32 @llvm.fshl.i32(i32, i32, i32)
    declare i32 @llvm.usub.sat.i32(i32, i32)
    declare i32 @llvm.abs.i32(i32, i1)
    declare { i32, i1 } @llvm.uadd.with.overflow.i32(i32, i32)
    declare i1 @llvm.is.fpclass.f32(float, i32)
    declare void @llvm.assume(i1)
    declare void @llvm.experimental.noalias.scope.decl(metadata)
    """
    body = """call void @llvm.experimental.noalias.scope.decl(metadata !0)
      call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %a0, i64 16) ]
      %a = call i32 @llvm.fshl.i32(i32 %x0, i32 %x1, i32 7)
      %b = call i32 @llvm.usub.sat.i32(i32 %a, i32 %x1)
      %c = call { i32, i1 } @llvm.uadd.with.overflow.i32(i32 %b, i32 %x1)
      %d = extractvalue { i32, i1 } %c, 0
      %e = call range(i32 0, -2147483647) i32 @llvm.abs.i32(i32 %d, i1 false)
      %f = call nnan float @llvm.maximum.f32(float %x2, float 0.0)
      %g = tail call i1 @llvm.is.fpclass.f32(float %x2, i32 504)
      %s = sitofp i32 %e to float
      %h = tail call float @llvm.fma.f32(float %f, float 2.0, float %s)
      %r = select i1 %g, float %h, float %s"""
    around = declared + "!0 = !{!1}\n!1 = distinct !{!1, !2}\n!2 = distinct !{!2}"
    found = apply(body, [("i32", A), ("i32", B), ("float", X)], ("float", "f4"), around)
    a, b = A.astype(np.int64) & 0xFFFFFFFF, B.astype(np.int64) & 0xFFFFFFFF
    mixed = (a << 7 | b >> 25) & 0xFFFFFFFF
    total = (np.maximum(mixed - b, 0) + b) & 0xFFFFFFFF
    size = np.abs(total.astype(np.uint32).view(np.int32)).astype(np.float32)
    # 504: the classes of finite numbers.
    with np.errstate(all="ignore"):
        grown = (np.maximum(X, 0).astype(float) * 2 + size).astype(np.float32)
        wanted = np.where(np.isfinite(X), grown, size)
    np.testing.assert_array_equal(found, wanted)


def test_memory_of_all_kinds() -> None:
    """A private array, a shared one, a table, an atomic, and a volatile access."""
    around = """
    @table = internal unnamed_addr addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 -30, i32 40]
    @text = private constant [3 x i8] c"a\\00z"
    @rows = internal constant [2 x [2 x half]] [[2 x half] [half 0xH3C00, half 0xH4000], [2 x half] zeroinitializer]
    @s = internal addrspace(3) global [8 x i32] undef, align 16
    """  # noqa: E501
    body = """%p = alloca [4 x i32], align 16
      %at = getelementptr inbounds nuw [4 x i32], ptr %p, i64 0, i64 2
      store i32 %x0, ptr %at, align 8
      %mine = load i32, ptr %at, align 8
      %sp = getelementptr inbounds i32, ptr addrspace(3) @s, i64 %i
      store volatile i32 %mine, ptr addrspace(3) %sp, align 4
      %old = atomicrmw add ptr addrspace(3) %sp, i32 1 syncscope("block") monotonic, align 4
      %now = load atomic i32, ptr addrspace(3) %sp syncscope("block") monotonic, align 4
      %v = load i32, ptr addrspace(4) getelementptr inbounds (i8, ptr addrspace(4) @table, i64 8)
      %c = load i8, ptr getelementptr (i8, ptr @text, i64 2)
      %w = zext i8 %c to i32
      %hp = getelementptr [2 x [2 x half]], ptr @rows, i64 0, i64 0, i64 1
      %h = load half, ptr %hp
      %n = fptosi half %h to i32
      %pair = cmpxchg ptr addrspace(3) %sp, i32 %now, i32 9 monotonic monotonic, align 4
      %was = extractvalue { i32, i1 } %pair, 0
      fence syncscope("block") release
      %a = add i32 %was, %v
      %b = add i32 %a, %w
      %r = add i32 %b, %n"""
    found = apply(body, [("i32", A)], ("i32", np.int32), around)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, A + np.int32(1 - 30 + ord("z") + 2))


def test_a_function_that_is_called() -> None:
    around = """define internal fastcc noundef i32 @twice(i32 noundef %0) {
      %2 = shl i32 %0, 1
      ret i32 %2
    }"""
    found = apply(
        "%r = call fastcc noundef i32 @twice(i32 %x0)", [("i32", B)], ("i32", "i4"), around
    )
    np.testing.assert_array_equal(found, 2 * B)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%r = call i32 asm \"mov.u32 $0, %laneid;\", \"=r\"()", "it calls no function by name"),
        ("%r = va_arg ptr %p, i32", "'va_arg' is no instruction that it knows"),
        ("%r = load x86_amx, ptr null", "'x86_amx' is no type that it knows"),
        ("%r = load i32, ptr blockaddress(@f, %b)", "'blockaddress' is no constant that it knows"),
        ("%r = add i32 %a, $", "'.' is no constant that it knows"),
        ("%r = add i32 %a, \\1", r"this LLVM IR: \\1"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_an_error(body: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^the simulator cannot read.*{message}"):
        as_mlir(f"define ptx_kernel void @k() {{\n  {body}\n  ret void\n}}")


def test_an_unknown_intrinsic_is_an_error() -> None:
    text = kernel("%r = call i32 @llvm.nvvm.imaginary(i32 1)\nret void", "",
                  "declare i32 @llvm.nvvm.imaginary(i32)")  # fmt: skip
    with pytest.raises(UnsupportedError, match="no meaning of llvm.nvvm.imaginary"):
        launch(read_module(text), "nvvm", "k", (1,), (1,))


def test_an_op_with_attributes_is_never_taken_for_an_intrinsic_without() -> None:
    """A class of floats, a part of a vector: called by the name they would have none."""
    nothing: Any = None
    decoder = Decoder({}, nothing, SEMANTICS["nvvm"], nothing)
    assert decoder.intrinsic("llvm.is.fpclass.f32") is None
    assert decoder.intrinsic("llvm.vector.extract.v2f32.v4f32") is None
    assert decoder.intrinsic("llvm.fma.v4f32") is not None


# --- with LLVM's optimizer, and planted ---------------------------------------------------------

SHIFT = """gpu.module @kernels {
  gpu.func @shift(%a: memref<64xf32>, %out: memref<64xf32>)
      workgroup(%s: memref<65xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %t = gpu.thread_id x
    %v = memref.load %a[%t] : memref<64xf32> loc("pad"("model.py":3:1))
    memref.store %v, %s[%t] : memref<65xf32, #gpu.address_space<workgroup>> loc("copy"("model.py":4:1))
    gpu.barrier
    %u = arith.addi %t, %c1 : index
    %m = arith.minui %u, %c63 : index
    %w = memref.load %s[%m] : memref<65xf32, #gpu.address_space<workgroup>> loc("conv"("model.py":7:1))
    memref.store %w, %out[%t] : memref<64xf32> loc("conv"("model.py":8:1))
    gpu.return
  } }"""  # noqa: E501


def shifted(target: str, places: bool = True) -> str:
    """What LLVM makes of a kernel that reads what its neighbour wrote before a barrier."""
    package = {"nvvm": nvgpu("sm_90a"), "rocdl": amdgpu("gfx1100")}[target]
    context = PassContext.create(package, CompileOptions(target=package.name, arch=package.arch))
    module = lower(SHIFT, target)
    if target == "nvvm":
        from polyblocks_nvgpu.emit import machine

        textual = "convert-nvvm-to-llvm,reconcile-unrealized-casts"
    else:
        from polyblocks_amdgpu.emit import machine

        textual = ""
    spec = machine(package)
    text = translated(module, spec, context, textual, places=places)
    return str(optimized(text, spec, context)[0])


def run_shift(text: str, target: str) -> tuple[Run, np.ndarray]:
    a = rng.standard_normal(64).astype(np.float32)
    run = launch(read_module(text), target, "shift", (1,), (64,), a, np.zeros(64, np.float32))
    return run, a[np.minimum(np.arange(64) + 1, 63)]


BARRIER = r"(?m)^ *(?:tail )?call void @llvm\.(?:nvvm|amdgcn)\.(?:s\.)?barrier.*\n"


@pytest.mark.parametrize("target", ["nvvm", "rocdl"])
class TestOptimizedCode:
    def test_it_is_right(self, target: str) -> None:
        run, wanted = run_shift(shifted(target), target)
        assert run.result.findings == ()
        np.testing.assert_array_equal(run.arrays[1], wanted)
        assert run.result.counts.barriers == 1

    def test_places_of_the_source_change_nothing_else(self, target: str) -> None:
        texts = (re.sub(r",? !dbg !\d+", "", shifted(target)), shifted(target, places=False))
        (one,), (other,) = (
            re.findall(r"(?ms)^define .*?^}", re.sub(r"!\d+", "!N", text)) for text in texts
        )
        assert one == other

    def test_a_load_that_moved_before_the_barrier_is_found(self, target: str) -> None:
        text = shifted(target)
        (load,) = re.findall(r"(?m)^  %\d+ = load float, ptr addrspace\(3\).*\n", text)
        call = re.search(BARRIER, text)
        assert call is not None
        run, _ = run_shift(_moved(text, load, call[0]), target)
        assert "race" in run.kinds, run.kinds
        finding = run.result.findings[0]
        assert finding.location == "model.py:7 (conv)"
        assert "llvm.load" in finding.op
        assert "model.py:4 (copy)" in finding.message

    def test_a_load_that_is_dropped_after_the_barrier_is_found(self, target: str) -> None:
        """What the thread itself stored is forwarded, as if nothing could have come between."""
        text = shifted(target)
        (load,) = re.findall(r"(?m)^  (%\d+) = load float, ptr addrspace\(3\).*\n", text)
        stored = re.search(r"(?m)^  store float (%\d+), ptr addrspace\(3\)", text)
        assert stored is not None
        planted = re.sub(rf"store float {load},", f"store float {stored[1]},", text)
        run, wanted = run_shift(planted, target)
        assert (run.arrays[1] != wanted).sum() == 63

    def test_a_dropped_barrier_is_found(self, target: str) -> None:
        run, _ = run_shift(re.sub(BARRIER, "", shifted(target)), target)
        assert "race" in run.kinds


def _moved(text: str, load: str, barrier: str) -> str:
    """A load and what it needs, moved right before the barrier."""
    lines = text.splitlines(keepends=True)
    at, place = lines.index(load), lines.index(barrier)
    moved = [line for line in lines[place + 1 : at + 1] if "fence" not in line]
    rest = [line for line in lines[place + 1 : at + 1] if "fence" in line]
    return "".join([*lines[:place], *moved, barrier, *rest, *lines[at + 1 :]])


def test_blocks_and_places_are_carried_as_metadata() -> None:
    text = kernel("ret void", "")
    places = ['loc("a\\"b\\\\"("é.py":1:2))', "loc(fused[unknown])"]
    kept = printed(attach_tables(text, places, {"k": (32, 2, 1)}))
    simulator = Simulator(read_module(kept), SEMANTICS["nvvm"])
    with pytest.raises(Exception, match=r"compiled for blocks of \(32, 2, 1\), got \(64, 1, 1\)"):
        simulator.launch("k", (1,), (64,), [])
    assert simulator.launch("k", (1,), (32, 2), []).findings == ()
