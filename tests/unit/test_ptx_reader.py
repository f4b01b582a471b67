"""PTX read back and run: against the LLVM IR that it is made of, and by instructions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_kernels import elementwise, module, nvgpu
from simt_kernels import launch
from tests.unit.test_gpu_lower_elementwise import KERNELS

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.simt.llvm_ir.reader import places_of, read_module
from polyblocks_nvgpu.emit import optimized_ir, ptx_of
from polyblocks_nvgpu.lower import stage_s4
from polyblocks_nvgpu.ptx_reader.reader import as_mlir, read_ptx
from polyblocks_nvgpu.ptx_reader.statements import parse

rng = np.random.default_rng(11)
_DTYPES = {
    "i1": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
    "bf16": "uint16", "f32": "float32", "f64": "float64", "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}  # fmt: skip


def values(type_: str, count: int) -> np.ndarray:
    """Numbers of a type, small and large, with zeros and signs; no integer is zero."""
    dtype = np.dtype(_DTYPES[type_])
    if type_ == "i1":
        return rng.integers(0, 2, count).astype(dtype)
    if type_ == "bf16":
        whole = rng.standard_normal(count).astype(np.float32)
        return (whole.view(np.uint32) >> 16).astype(np.uint16)
    if dtype.kind == "c":
        pair = rng.standard_normal((count, 2))
        return (pair[:, 0] + 1j * pair[:, 1]).astype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal(count) * 3).astype(dtype)
    numbers = rng.integers(-100, 100, count).astype(dtype)
    return np.where(numbers == 0, dtype.type(7), numbers)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_element_wise_kernels_of_all_types(kernel: Any, arch: str) -> None:
    """What LLVM's code generator made gives the bits of what it was made of."""
    target = nvgpu(arch)
    context = PassContext.create(target, CompileOptions(target="nvgpu", arch=arch))
    lowered = mlir.parse(module([kernel]))
    run_stage("S4", stage_s4(target), lowered, context)
    text = optimized_ir(lowered, context)
    ptx = ptx_of(text, target)
    given = []
    for name, type_ in kernel.arguments.items():
        count, element = type_.removeprefix("memref<").removesuffix(">").split("x", 1)
        array = values(element, int(count))
        given.append(array if name.startswith("i") else np.zeros_like(array))
    # A kernel that checks something has the status besides.
    while len(given) < ptx.split(")")[0].count(".param"):
        given.append(np.zeros(1, np.int32))
    runs = [
        launch(code, "nvvm", kernel.name, (8,), (128,), *given)
        for code in (read_module(text), read_ptx(ptx, places_of(text)))
    ]
    assert [str(f) for run in runs for f in run.result.findings] == []
    for found, wanted in zip(runs[1].arrays, runs[0].arrays, strict=True):
        # Sums of products may be rounded once.
        if found.dtype.kind in "fc":
            single = found.dtype in (np.float32, np.complex64)
            rtol = (
                1e-5 if single else 1e-12 if found.dtype.kind == "c" or found.itemsize > 2 else 1e-3
            )
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(found, wanted)


def run_lines(lines: str, inputs: list[np.ndarray], out: np.ndarray) -> np.ndarray:
    """``%r1`` … (of 32 bits) or ``%rd1`` … are the inputs; ``%r0`` or ``%rd0`` is stored."""
    wide = out.itemsize == 8
    body = []
    for number, array in enumerate(inputs, 1):
        register = f"%rd{number}" if array.itemsize == 8 else f"%r{number}"
        body += [
            f"ld.param.b64 %rd90, [k_param_{number - 1}];",
            f"mad.wide.u32 %rd91, %r90, {array.itemsize}, %rd90;",
            f"ld.global.b{8 * array.itemsize} {register}, [%rd91];",
        ]
    parameters = ",\n".join(f".param .u64 .ptr .global .align 1 k_param_{n}"
                            for n in range(len(inputs) + 1))  # fmt: skip
    text = "\n".join([
        ".version 8.0", ".target sm_90a", ".address_size 64",
        ".visible .entry k(", parameters, ")", "{",
        ".reg .pred %p<9>;", ".reg .b16 %rs<9>;", ".reg .b32 %r<99>;", ".reg .b64 %rd<99>;",
        "mov.u32 %r90, %tid.x;", *body, lines,
        f"ld.param.b64 %rd90, [k_param_{len(inputs)}];",
        f"mad.wide.u32 %rd91, %r90, {out.itemsize}, %rd90;",
        f"st.global.b{8 * out.itemsize} [%rd91], {'%rd0' if wide else '%r0'};", "ret;", "}",
    ])  # fmt: skip
    run = launch(read_ptx(text), "nvvm", "k", (1,), (len(out),), *inputs, out)
    assert run.result.findings == ()
    return run.arrays[-1]


A = np.array([0, 1, 0x12345678, 0x80000001, 0xFFFFFFFF, 0xDEADBEEF], np.uint32)
B = np.array([3, 40, 7, 0xFFFFFFF0, 0x0F0F0F0F, 31], np.uint32)
C = np.array([5, 0, 0xFF, 1 << 31, 33, 9], np.uint32)


def shifted(a: np.ndarray, by: np.ndarray, left: bool, with_sign: bool) -> list[int]:
    """Shifts of Python's integers, cut off at 32 bits."""
    found = []
    for x, n in zip(a.tolist(), by.tolist(), strict=True):
        x = x - (1 << 32) if with_sign and x >> 31 else x
        found.append(((x << min(n, 64)) if left else (x >> min(n, 64))) & 0xFFFFFFFF)
    return found


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("shl.b32 %r0, %r1, %r2;", lambda: shifted(A, B, True, False)),
        ("shr.u32 %r0, %r1, %r2;", lambda: shifted(A, B, False, False)),
        ("shr.s32 %r0, %r1, %r2;", lambda: shifted(A, B, False, True)),
        ("shr.s32 %r0, %r1, 40;", lambda: shifted(A, np.full_like(A, 40), False, True)),
        ("shl.b32 %r0, %r1, 32;", lambda: [0] * len(A)),
        ("bfe.u32 %r0, %r1, 4, 9;", lambda: A >> 4 & 511),
        ("bfe.s32 %r0, %r1, 28, 4;", lambda: (A.view("i4") >> 28).view("u4")),
        ("bfi.b32 %r0, %r1, %r2, 8, 4;", lambda: B & ~np.uint32(0xF00) | (A & 15) << 8),
        ("prmt.b32 %r0, %r1, %r2, 0x5410;", lambda: A & 0xFFFF | (B & 0xFFFF) << 16),
        ("prmt.b32 %r0, %r1, %r2, 0x0123;", lambda: A.byteswap()),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0xCA;", lambda: A & B | ~A & C),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", lambda: A ^ B ^ C),
        ("shf.l.wrap.b32 %r0, %r1, %r2, 8;", lambda: B << 8 | A >> 24),
        ("shf.r.wrap.b32 %r0, %r1, %r2, 8;", lambda: A >> 8 | B << 24),
        ("mul.hi.u32 %r0, %r1, %r2;",
         lambda: (A.astype("u8") * B >> np.uint64(32)).astype("u4")),
        ("mad.lo.s32 %r0, %r1, %r2, %r3;", lambda: A * B + C),
        ("not.b32 %r0, %r1;", lambda: ~A),
        ("popc.b32 %r0, %r1;", lambda: [bin(x).count("1") for x in A]),
        ("clz.b32 %r0, %r1;", lambda: [32 - int(x).bit_length() for x in A]),
        ("min.s32 %r0, %r1, %r2;", lambda: np.minimum(A.view("i4"), B.view("i4")).view("u4")),
        ("max.u32 %r0, %r1, %r2;", lambda: np.maximum(A, B)),
        ("cvt.u16.u32 %rs1, %r1; cvt.s32.s16 %r0, %rs1;",
         lambda: A.astype("i2").astype("i4").view("u4")),
        ("cvt.s32.s8 %r0, %r1;", lambda: A.astype("i1").astype("i4").view("u4")),
        ("mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r0, {%rs2, %rs1};", lambda: A << 16 | A >> 16),
        ("mov.b32 {_, %rs2}, %r1; cvt.u32.u16 %r0, %rs2;", lambda: A >> 16),
        ("setp.lt.u32 %p1, %r1, %r2; setp.ne.and.s32 %p2, %r3, 0, %p1; selp.b32 %r0, 1, -1, %p2;",
         lambda: np.where((A < B) & (C != 0), 1, -1).astype("i4").view("u4")),
        ("setp.gt.u32 %p1, %r1, 7; not.pred %p2, %p1; selp.b32 %r0, %r2, %r3, %p2;",
         lambda: np.where(A > 7, C, B)),
        ("cvt.rn.f32.u32 %r4, %r1; cvt.rzi.u32.f32 %r0, %r4;",
         lambda: np.minimum(A.astype("f4").astype("f8"), 2.0**32 - 1).astype("u4")),
        ("cvt.rn.f32.s32 %r4, %r1; mul.rn.f32 %r5, %r4, 0f3F000000; cvt.rmi.s32.f32 %r0, %r5;",
         lambda: np.floor(A.view("i4").astype("f4") / 2).astype("i4").view("u4")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_words(lines: str, expected: Any) -> None:
    found = run_lines(lines.replace("; ", ";\n"), [A, B, C], np.zeros(len(A), np.uint32))
    np.testing.assert_array_equal(found, np.asarray(expected(), np.uint32))


@pytest.mark.parametrize("with_sign", [False, True])
def test_the_upper_half_of_a_product_of_64_bits(with_sign: bool) -> None:
    numbers = [0, 1, (1 << 63) + 12345, (1 << 64) - 1, 0xFEDCBA9876543210, 0x123456789]
    pairs = [(x, y) for x in numbers for y in numbers]
    a, b = (np.array(column, np.uint64) for column in zip(*pairs, strict=True))

    def read(x: int) -> int:
        return x - (1 << 64) if with_sign and x >> 63 else x

    wanted = [(read(x) * read(y) >> 64) & ((1 << 64) - 1) for x, y in pairs]
    lines = f"mul.hi.{'s' if with_sign else 'u'}64 %rd0, %rd1, %rd2;"
    found = run_lines(lines, [a, b], np.zeros(len(a), np.uint64))
    np.testing.assert_array_equal(found, np.array(wanted, np.uint64))


X = np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf, -3e38], np.float32)
Y = np.array([-0.0, 0.0, -4.0, 2.5, 1.0, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("copysign.f32 %r0, %r1, %r2;", lambda: np.copysign(Y, X)),
        ("max.f32 %r0, %r1, %r2;", lambda: np.fmax(X, Y)),
        ("min.NaN.f32 %r0, %r1, %r2;", lambda: np.minimum(X, Y)),
        ("neg.f32 %r3, %r1; abs.f32 %r0, %r3;", lambda: np.abs(X)),
        ("setp.ltu.f32 %p1, %r1, %r2; selp.f32 %r0, 0f3F800000, 0f00000000, %p1;",
         lambda: (~(X >= Y)).astype("f4")),
        ("setp.ne.f32 %p1, %r1, %r2; selp.f32 %r0, 0f3F800000, 0f00000000, %p1;",
         lambda: ((X < Y) | (X > Y)).astype("f4")),
        ("cvt.f64.f32 %rd1, %r1; mul.f64 %rd2, %rd1, 0d4000000000000000; cvt.rn.f32.f64 %r0, %rd2;",
         lambda: (X.astype("f8") * 2).astype("f4")),
        ("cvt.rn.f16.f32 %rs1, %r2; cvt.f32.f16 %r0, %rs1;",
         lambda: Y.astype("f2").astype("f4")),
        ("cvt.rn.f16x2.f32 %r3, %r1, %r2; mov.b32 {%rs1, %rs2}, %r3; cvt.f32.f16 %r0, %rs2;",
         lambda: X.astype("f2").astype("f4")),
        ("cvt.rni.f32.f32 %r0, %r1;", lambda: np.rint(X)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_floats(lines: str, expected: Any) -> None:
    out = np.zeros(len(X), np.float32)
    with np.errstate(all="ignore"):
        found = run_lines(lines.replace("; ", ";\n"), [X, Y], out)
        np.testing.assert_array_equal(found, expected().astype(np.float32))


def test_a_loop_whose_registers_are_written_in_several_places() -> None:
    """Fibonacci's numbers; one register is read where it may never have been written."""
    lines = """
    mov.b32 %r5, 0;
    mov.b32 %r0, 1;
    mov.b32 %r6, 0;
    setp.eq.b32 %p1, %r1, 99;
    @%p1 bra $L2;
    $L1:
    add.s32 %r7, %r5, %r0;
    mov.b32 %r5, %r0;
    mov.b32 %r0, %r7;
    add.s32 %r6, %r6, 1;
    mov.b32 %r9, %r6;
    setp.lt.u32 %p2, %r6, %r1;
    @%p2 bra $L1;
    bra.uni $L3;
    $L2:
    mov.b32 %r0, -1;
    $L3:
    setp.eq.b32 %p3, %r1, 99;
    @!%p3 bra $L4;
    bra.uni $L5;
    $L4:
    add.s32 %r0, %r0, %r9;
    $L5:
    """
    n = np.array([1, 2, 7, 99, 30], np.uint32)
    found = run_lines(lines, [n], np.zeros(5, np.int32))
    np.testing.assert_array_equal(found, [1 + 1, 2 + 2, 21 + 7, -1, 1346269 + 30])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("@%p1 add.s32 %r0, %r1, %r2;", "an instruction under a predicate"),
        ("vadd.s32.s32.s32 %r0, %r1, %r2;", "'vadd' is no instruction that it knows"),
        ("add.ftz.f32 %r0, %r1, %r2;", "'ftz' is not simulated"),
        ("add.rz.f32 %r0, %r1, %r2;", "'rz' is not simulated"),
        ("cvt.sat.u8.s32 %r0, %r1;", "'sat' is not simulated"),
        ("ld.shared::cluster.b32 %r0, [%rd1];", "'shared::cluster' is not simulated"),
        ("add.s32 %r0, %r1;", "it is not as expected"),
        ("bra $nowhere;", "there is no such label"),
    ],
)
def test_what_is_not_known_is_an_error(line: str, message: str) -> None:
    text = "\n".join([".visible .entry k(", ")", "{", ".reg .pred %p<3>;", ".reg .b32 %r<3>;",
                      ".reg .b64 %rd<3>;", line, "ret;", "}"])  # fmt: skip
    with pytest.raises(UnsupportedError, match=rf"^the simulator cannot read this PTX.*{message}"):
        as_mlir(text)


def test_tables_of_numbers() -> None:
    (table,), _ = parse(".global .align 4 .b32 table[3] = {1, 0xFF,\n 0f3F800000};")
    assert (table.space, table.size, table.width) == ("global", 12, 4)
    assert table.values == ("1", "0xFF", "0f3F800000")
    assert "01000000FF0000000000803F" in as_mlir(
        ".global .align 4 .b32 table[3] = {1, 0xFF,\n 0f3F800000};"
    )


def test_an_elementwise_kernel_is_counted_the_same() -> None:
    """Every access of the PTX is one of the LLVM IR."""
    target = nvgpu("sm_80")
    context = PassContext.create(target, CompileOptions(target="nvgpu", arch="sm_80"))
    kernel = elementwise("%r0 = arith.muli %a0, %a0 : i64", ["i64"], ["i64"])
    lowered = mlir.parse(module([kernel]))
    run_stage("S4", stage_s4(target), lowered, context)
    text = optimized_ir(lowered, context)
    x = np.arange(1001)
    counts = [
        launch(code, "nvvm", kernel.name, (8,), (128,), x, x * 0).result.counts
        for code in (read_module(text), read_ptx(ptx_of(text, target)))
    ]
    assert counts[0].global_accesses == counts[1].global_accesses
    assert counts[0].sectors == counts[1].sectors
