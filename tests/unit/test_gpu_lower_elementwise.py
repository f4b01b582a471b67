"""S4 and S5 of both GPU targets: element-wise kernels of all types, down to machine code."""

from __future__ import annotations

import re

import pytest
from gpu_kernels import amdgpu, assembly, elementwise, lower, module, nvgpu
from sweeps import sweep

from polyblocks.artifact import Artifact
from polyblocks_nvgpu import ptxas

NVIDIA = sweep(
    ["sm_75", "sm_80", "sm_90a", "sm_100a"], "sm_75", "sm_90a", extended=["sm_80", "sm_100a"]
)
AMD = sweep(["gfx1100", "gfx1200"], "gfx1100", extended=["gfx1200"])


def _unary(ops: str, kind: str) -> str:
    """A chain of unary ops of the math dialect."""
    names = ops.split()
    lines = [f"%x0 = arith.addf %a0, %a0 : {kind}"]
    lines += [f"%x{k + 1} = math.{name} %x{k} : {kind}" for k, name in enumerate(names)]
    lines.append(f"%r0 = arith.addf %x{len(names)}, %a0 : {kind}")
    return "\n".join(lines)


ARITHMETIC = [
    elementwise(
        f"%s = arith.addf %a0, %a1 : {t}\n%q = arith.divf %s, %a1 : {t}\n"
        f"%m = arith.maximumf %q, %a0 : {t}\n%n = arith.minnumf %m, %a1 : {t}\n"
        f"%c = arith.cmpf olt, %n, %a0 : {t}\n%r0 = arith.select %c, %n, %a1 : {t}",
        [t, t],
        [t],
        name=f"arithmetic_{t}",
    )
    for t in ("f16", "bf16", "f32", "f64")
]
INTEGERS = [
    elementwise(
        f"%s = arith.muli %a0, %a1 : {t}\n%q = arith.divsi %s, %a1 : {t}\n"
        f"%u = arith.shrui %q, %a0 : {t}\n%c = arith.cmpi slt, %u, %a0 : {t}\n"
        f"%f = arith.sitofp %u : {t} to f32\n%g = arith.fptosi %f : f32 to {t}\n"
        f"%r0 = arith.select %c, %g, %a1 : {t}\n%r1 = arith.xori %c, %c : i1",
        [t, t],
        [t, "i1"],
        name=f"integers_{t}",
    )
    for t in ("i8", "i16", "i32", "i64")
]
OTHERS = [
    elementwise(
        "%b = arith.andi %a0, %a1 : i1\n%r0 = arith.xori %b, %a0 : i1",
        ["i1", "i1"],
        ["i1"],
        name="booleans",
    ),
    elementwise(
        "%p = complex.mul %a0, %a1 : complex<f32>\n%q = complex.exp %p : complex<f32>\n"
        "%r1 = complex.abs %q : complex<f32>\n%r0 = complex.div %q, %a1 : complex<f32>",
        ["complex<f32>"] * 2,
        ["complex<f32>", "f32"],
        name="complex_f32",
    ),
    elementwise(
        "%r0 = complex.mul %a0, %a1 : complex<f64>",
        ["complex<f64>"] * 2,
        ["complex<f64>"],
        name="complex_f64",
    ),
    elementwise(
        "%d = arith.extf %a0 : bf16 to f64\n%r0 = arith.truncf %d : f64 to f16\n"
        "%r1 = arith.fptosi %a0 : bf16 to i32",
        ["bf16"],
        ["f16", "i32"],
        name="casts",
    ),
    elementwise("%r0 = arith.remf %a0, %a1 : f32", ["f32", "f32"], ["f32"], name="remainder"),
]
MATH = [
    elementwise(_unary(ops, kind), [kind], [kind], name=f"{name}_{kind}")
    for kind in ("f32", "f64")
    for name, ops in {
        "exponentials": "exp exp2 expm1 log log1p",
        "hyperbolic": "tanh sinh asinh erf",
        "trigonometry": "sin cos atan",
        "instructions": "sqrt rsqrt absf floor ceil trunc round roundeven",
    }.items()
]
MATH += [
    elementwise(_unary("exp tanh erf rsqrt", kind), [kind], [kind], name=f"math_{kind}")
    for kind in ("f16", "bf16")
]
MATH.append(
    elementwise("%r0 = math.powf %a0, %a1 : f32", ["f32", "f32"], ["f32"], name="power_f32")
)
KERNELS = [*ARITHMETIC, *INTEGERS, *OTHERS, *MATH]


def check(artifact: Artifact) -> None:
    """Every kernel is there, and lives in registers alone."""
    rows = {row["name"]: row for row in artifact.manifest["kernels"]}
    assert list(rows) == [k.name for k in KERNELS]
    for name, row in rows.items():
        used = row["resources"]
        assert 0 < used["registers"] <= 255, name
        assert used["spill_bytes"] == used["stack_bytes"] == 0, (name, used)
    assert [row["kernel"] for row in artifact.manifest["launches"]] == list(rows)


@pytest.mark.parametrize("arch", NVIDIA)
def test_nvidia(arch: str) -> None:
    artifact = lower(module(KERNELS), nvgpu(arch))
    ptx = artifact.blobs[f"kernels.{arch}.ptx"].decode()
    assert f".target {arch}\n" in ptx
    assert ptx.count(".visible .entry") == len(KERNELS)
    # Nothing is called, no number is rounded to zero, nothing is an approximation but what a step
    # corrects.
    rest = ptx.replace("rsqrt.approx.f32", "")
    assert not re.search(r"\bcall\b|\.extern \.func|\.ftz|\.approx|\.full", rest)
    assert not re.search(r"\.local\b", ptx)
    if ptxas.find() is not None:
        assert artifact.blobs[f"kernels.{arch}.cubin"].startswith(b"\x7fELF")
        check(artifact)


@pytest.mark.parametrize("arch", AMD)
def test_amd(arch: str) -> None:
    artifact = lower(module(KERNELS), amdgpu(arch))
    assert artifact.blobs[f"kernels.{arch}.hsaco"].startswith(b"\x7fELF")
    check(artifact)
    assert all(row["code_bytes"] > 0 for row in artifact.manifest["kernels"])


def test_a_division_checks_its_divisor() -> None:
    artifact = lower(module(INTEGERS), nvgpu("sm_80"))
    assert artifact.manifest["checks"] == ["ZeroDivisionError: an integer is divided by zero"]
    arguments = artifact.manifest["arguments"]
    assert arguments[-1]["role"] == "status"
    for row in artifact.manifest["launches"]:
        assert row["arguments"][-1] == {"argument": len(arguments) - 1}


FUSED = "%m = arith.mulf %a0, %a1 FLAGS : f32\n%r0 = arith.addf %m, %a1 FLAGS : f32"


def _fused(flags: str) -> str:
    return module([elementwise(FUSED.replace("FLAGS", flags), ["f32", "f32"], ["f32"])])


def test_contraction_follows_the_flags() -> None:
    contract = _fused("fastmath<contract>")
    assert "fma.rn.f32" in assembly(contract, nvgpu("sm_80"))
    assert "fma.rn.f32" not in assembly(_fused(""), nvgpu("sm_80"))
    assert re.search(r"v_fmac?_f32", assembly(contract, amdgpu("gfx1100")))
    assert not re.search(r"v_fmac?_f32", assembly(_fused(""), amdgpu("gfx1100")))


def test_divisions_roots_and_denormals_are_those_of_the_standard() -> None:
    body = "%q = arith.divf %a0, %a1 : f32\n%r0 = math.sqrt %q : f32"
    text = module([elementwise(body, ["f32", "f32"], ["f32"])])
    ptx = assembly(text, nvgpu("sm_80"))
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx
    code = assembly(text, amdgpu("gfx1100"))
    assert "v_div_fixup_f32" in code
    for width in ("32", "16_64"):
        assert f".amdhsa_float_denorm_mode_{width} 3" in code


def test_a_complex_number_is_one_access() -> None:
    body = "%r0 = complex.mul %a0, %a0 : complex<f32>"
    text = module([elementwise(body, ["complex<f32>"], ["complex<f32>"])])
    ptx = assembly(text, nvgpu("sm_80"))
    assert len(re.findall(r"\b(?:ld|st)\.global\.v2\.b32", ptx)) == 2
    assert len(re.findall(r"\b(?:ld|st)\.global", ptx)) == 2
    code = assembly(text, amdgpu("gfx1100"))
    assert "global_load_b64" in code
    assert "global_store_b64" in code


def test_an_integer_of_64_bits_is_one_access() -> None:
    text = module([elementwise("%r0 = arith.muli %a0, %a0 : i64", ["i64"], ["i64"])])
    ptx = assembly(text, nvgpu("sm_80"))
    assert len(re.findall(r"\b(?:ld|st)\.global\.(?:nc\.)?b64", ptx)) == 2
    assert len(re.findall(r"\b(?:ld|st)\.global", ptx)) == 2
