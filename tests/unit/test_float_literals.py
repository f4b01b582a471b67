"""The rewriting of LLVM IR's floating-point literals for older parsers."""

import struct

import pytest

from polyblocks.codegen.float_literals import rewrite_float_literals


def _double(bits: str) -> float:
    return struct.unpack("<d", struct.pack("<Q", int(bits, 16)))[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%1 = fadd float %0, 1.000000e-01", "%1 = fadd float %0, 0x3FB99999A0000000"),
        ("%1 = fadd double %0, 1.000000e-01", "%1 = fadd double %0, 0x3FB999999999999A"),
        ("%1 = fadd half %0, 9.997550e-02", "%1 = fadd half %0, 0xH2E66"),
        ("%1 = fadd bfloat %0, 1.000980e-01", "%1 = fadd bfloat %0, 0xR3DCD"),
        ("call float @f(float f0x3FB8AA3B)", "call float @f(float 0x3FF7154760000000)"),
        ("[float +inf, float -inf]", "[float 0x7FF0000000000000, float 0xFFF0000000000000]"),
        ("ret bfloat +qnan", "ret bfloat 0xR7FC0"),
        ("ret float +snan(0x1)", "ret float 0x7FF0000020000000"),
        ("ret double -nan(0x2)", "ret double 0xFFF8000000000002"),
        ("fptrunc double 5.000000e-01 to float", "fptrunc double 0x3FE0000000000000 to float"),
        ("splat (float -0.000000e+00)", "splat (float 0x8000000000000000)"),
    ],
)
def test_literal(line: str, expected: str) -> None:
    assert rewrite_float_literals(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "call void @kernel_1.5(i64 15, ptr %3)",
        '@text = constant [3 x i8] c"1.5"',
        "; float 1.5 in a comment",
        "%5 = add i64 %4, 10",
        'attributes #0 = { "target-cpu"="v1.5" }',
        "call float @llvm.fma.f32(float %23, float %24, float %25)",
    ],
)
def test_everything_else_stays(line: str) -> None:
    assert rewrite_float_literals(line) == line


def test_smallest_float_keeps_its_value() -> None:
    text = rewrite_float_literals("ret float f0x00000001")
    assert _double(text.split("0x")[1]) == 2.0**-149
