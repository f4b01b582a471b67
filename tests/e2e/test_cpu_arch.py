"""Generated code per architecture: executed where this machine can, else its assembly read."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from cpu_kernels import assembly_of, compile_text, elementwise, run, runnable_levels
from sweeps import sweep

pytestmark = pytest.mark.cpu

LEVELS = [*runnable_levels(), "native"]
RNG = np.random.default_rng(7)


def floats(dtype: type, n: int = 4096) -> np.ndarray:
    """Every special value, all exponents, and ordinary numbers, shuffled."""
    wide = RNG.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    special = [0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, np.inf, -np.inf, np.nan, 1e-45, 8388607.5]
    special += [0.49999997, -8388607.5, 16777216, 4503599627370495.5, 1e-310, 65504, 65520, 6e-8]
    wide[: len(special)] = special
    wide[len(special) : n // 2] = RNG.normal(size=n // 2 - len(special)) * 10
    with np.errstate(all="ignore"):
        values = wide.astype(dtype)
    RNG.shuffle(values)
    return values


def same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal bit by bit, but for the bits of a NaN."""
    np.testing.assert_array_equal(actual, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(expected[number]))


def half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(abs(x))
    return np.copysign(whole + (abs(x) - whole >= 0.5), x).astype(x.dtype)


ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "round": half_away,
}


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding(arch: str, dtype: type) -> None:
    x = floats(dtype)
    outputs = [np.zeros_like(x) for _ in ROUNDINGS]
    type_ = "f32" if dtype is np.float32 else "f64"
    body = "\n".join(f"%r{k} = math.{name} %a0 : {type_}" for k, name in enumerate(ROUNDINGS))
    assert run(elementwise(body, [x], outputs), x, *outputs, arch=arch) == 0
    with np.errstate(all="ignore"):
        for reference, y in zip(ROUNDINGS.values(), outputs, strict=True):
            same(y, reference(x))


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainder(arch: str, dtype: type) -> None:
    x, y = floats(dtype), floats(dtype)
    r = np.zeros_like(x)
    type_ = "f32" if dtype is np.float32 else "f64"
    text = elementwise(f"%r0 = arith.remf %a0, %a1 : {type_}", [x, y], [r])
    assert run(text, x, y, r, arch=arch) == 0
    with np.errstate(all="ignore"):
        same(r, np.fmod(x, y))


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fused_multiply_add(arch: str, dtype: type) -> None:
    x, y, z = floats(dtype), floats(dtype), floats(dtype)
    # Products that cancel, where the rounding of an unfused product is all that is left.
    with np.errstate(all="ignore"):
        z[:1000] = -(x[:1000] * y[:1000])
    r = np.zeros_like(x)
    type_ = "f32" if dtype is np.float32 else "f64"
    text = elementwise(f"%r0 = math.fma %a0, %a1, %a2 : {type_}", [x, y, z], [r])
    assert run(text, x, y, z, r, arch=arch) == 0
    with np.errstate(all="ignore"):
        # x86's long double has 64 bits, too few where it rounds twice; there fractions decide.
        rough = (x.astype(np.longdouble) * y + z).astype(dtype)
    for i in np.flatnonzero((r != rough) & ~(np.isnan(r) & np.isnan(rough))):
        assert r[i] == dtype(
            float(Fraction(x[i].item()) * Fraction(y[i].item()) + Fraction(z[i].item()))
        )


@pytest.mark.parametrize("arch", LEVELS)
def test_half_conversions(arch: str) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    singles = np.zeros(65536, np.float32)
    text = elementwise("%r0 = arith.extf %a0 : f16 to f32", [halves], [singles])
    assert run(text, halves, singles, arch=arch) == 0
    same(singles, halves.astype(np.float32))

    x = floats(np.float32, 65536)
    x[:30000] = RNG.normal(size=30000) * 10.0 ** RNG.integers(-9, 6, 30000)
    y = np.zeros(65536, np.float16)
    assert run(elementwise("%r0 = arith.truncf %a0 : f32 to f16", [x], [y]), x, y, arch=arch) == 0
    with np.errstate(all="ignore"):
        same(y, x.astype(np.float16))


@pytest.mark.parametrize("arch", LEVELS)
def test_bfloat16_rounds_to_nearest_even(arch: str) -> None:
    x = floats(np.float32)
    y = np.zeros(len(x), np.uint16)
    assert run(elementwise("%r0 = arith.truncf %a0 : f32 to bf16", [x], [y]), x, y, arch=arch) == 0
    bits = x.view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    expected[np.isnan(x)] = 0x7FC0
    np.testing.assert_array_equal(y, expected)

    back = np.zeros(len(x), np.float32)
    text = elementwise(
        "%s = arith.addf %a0, %a0 : bf16\n%r0 = arith.extf %s : bf16 to f32", [y], [back]
    )
    assert run(text, y, back, arch=arch) == 0
    wide = (y.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        same(back, wide + wide)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize(("dtype", "type_"), [(np.float16, "f16"), (np.uint16, "bf16")])
def test_running_maximum_of_halves(arch: str, dtype: type, type_: str) -> None:
    """Selects, comparisons, loop-carried values and constants of a half type."""
    x = RNG.normal(size=(8, 100)).astype(np.float32)
    halves = x.astype(np.float16) if type_ == "f16" else (x.view(np.uint32) >> 16).astype(dtype)
    y, at = np.zeros(8, dtype), np.zeros(8, np.int64)
    text = f"""
    func.func @main(%x: memref<8x100x{type_}>, %y: memref<8x{type_}>, %at: memref<8xi64>) {{
      affine.parallel (%i) = (0) to (8) {{
        %low = arith.constant -1.0 : {type_}
        %none = arith.constant -1 : i64
        %r:2 = affine.for %j = 0 to 100 iter_args(%m = %low, %n = %none) -> ({type_}, i64) {{
          %v = affine.load %x[%i, %j] : memref<8x100x{type_}>
          %p = arith.cmpf ogt, %v, %m : {type_}
          %k = arith.index_cast %j : index to i64
          %a = arith.select %p, %v, %m : {type_}
          %b = arith.select %p, %k, %n : i64
          affine.yield %a, %b : {type_}, i64
        }}
        affine.store %r#0, %y[%i] : memref<8x{type_}>
        affine.store %r#1, %at[%i] : memref<8xi64>
      }} {{polyblocks.level = "team", polyblocks.kernel = "maximum"}}
      return
    }}
    """
    assert run(text, halves, y, at, arch=arch) == 0
    wide = halves if type_ == "f16" else (halves.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(at, wide.argmax(1))
    np.testing.assert_array_equal(y, halves[np.arange(8), at])


@pytest.mark.parametrize("arch", sweep(LEVELS, *LEVELS[::2]))
def test_booleans_and_integers(arch: str) -> None:
    p = RNG.integers(0, 2, 1000).astype(bool)
    q = np.zeros(1000, bool)
    text = elementwise("%t = arith.constant true\n%r0 = arith.xori %a0, %t : i1", [p], [q])
    assert run(text, p, q, arch=arch) == 0
    np.testing.assert_array_equal(q, ~p)
    # Any byte but 0 is true, as in a view of other bytes as booleans.
    odd = np.array([0, 1, 2, 128, 255] * 20, np.uint8).view(bool)
    out = np.zeros(100, np.int64)
    text = elementwise("%r0 = arith.extui %a0 : i1 to i64", [odd], [out])
    assert run(text, odd, out, arch=arch) == 0
    np.testing.assert_array_equal(out, np.array([0, 1, 1, 1, 1] * 20))

    a = RNG.integers(-(2**63), 2**63 - 1, 1000)
    b = RNG.integers(1, 2**40, 1000)
    quotient, single = np.zeros_like(a), np.zeros(1000, np.float32)
    body = "%r0 = arith.divsi %a0, %a1 : i64\n%r1 = arith.sitofp %a0 : i64 to f32"
    text = elementwise(body, [a, b], [quotient, single])
    assert run(text, a, b, quotient, single, arch=arch) == 0
    np.testing.assert_array_equal(quotient, np.sign(a) * (abs(a) // b))
    np.testing.assert_array_equal(single, a.astype(np.float32))

    u = RNG.integers(0, 256, 1000).astype(np.uint8)
    v = np.zeros_like(u)
    assert run(elementwise("%r0 = arith.muli %a0, %a0 : i8", [u], [v]), u, v, arch=arch) == 0
    np.testing.assert_array_equal(v, u * u)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_divisions_never_stop_the_process(arch: str, dtype: type) -> None:
    """Zero is reported, the lowest number by -1 wraps around; both trap on x86."""
    low = np.iinfo(dtype).min
    x = np.array([7, -7, low, low, 5, 0] * 10, dtype)
    y = np.array([2, 2, -1, 1, -1, 3] * 10, dtype)
    q, r = np.zeros_like(x), np.zeros_like(x)
    kind = f"i{8 * x.itemsize}"
    body = f"%r0 = arith.divsi %a0, %a1 : {kind}\n%r1 = arith.remsi %a0, %a1 : {kind}"
    text = elementwise(body, [x, y], [q, r])
    assert run(text, x, y, q, r, arch=arch) == 0
    np.testing.assert_array_equal(q, np.array([3, -3, low, low, -5, 0] * 10, dtype))
    np.testing.assert_array_equal(r, np.array([1, -1, 0, 0, 0, 0] * 10, dtype))
    y[7] = 0
    assert run(text, x, y, q, r, arch=arch) == 1
    assert compile_text(text).manifest["checks"] == [
        "ZeroDivisionError: an integer is divided by zero"
    ]


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", LEVELS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex(arch: str, dtype: type) -> None:
    z = (RNG.normal(size=1000) + 1j * RNG.normal(size=1000)).astype(dtype)
    part = "f32" if dtype is np.complex64 else "f64"
    product, exponential = np.zeros_like(z), np.zeros_like(z)
    size = np.zeros(1000, np.float32 if part == "f32" else np.float64)
    body = f"""
      %r0 = complex.mul %a0, %a0 : complex<{part}>
      %r1 = complex.exp %a0 : complex<{part}>
      %r2 = complex.abs %a0 : complex<{part}>
    """
    outputs = [product, exponential, size]
    assert run(elementwise(body, [z], outputs), z, *outputs, arch=arch) == 0
    tolerance = 1e-5 if part == "f32" else 1e-13
    np.testing.assert_allclose(product, z * z, rtol=tolerance)
    np.testing.assert_allclose(exponential, np.exp(z), rtol=tolerance)
    np.testing.assert_allclose(size, abs(z), rtol=tolerance)


ALL_MATH = """
  %h = arith.extf %a1 : f16 to f32
  %s = arith.addf %a0, %h : f32
  %e = math.exp %s : f32
  %f = math.floor %e : f32
  %g = math.round %f : f32
  %m = math.fma %g, %s, %e : f32
  %t = arith.remf %m, %s : f32
  %w = math.tanh %t : f32
  %b = arith.truncf %w : f32 to bf16
  %c = arith.extf %b : bf16 to f32
  %r0 = arith.truncf %c : f32 to f16
"""

VECTOR_REGISTERS = {
    "x86-64": r"\bmulps\b.*%xmm",
    "x86-64-v2": r"\bmulps\b.*%xmm",
    "x86-64-v3": r"\bvmulps\b.*%ymm",
    "x86-64-v4": r"\bvmulps\b.*%zmm",
    "znver4": r"\bvmulps\b.*%zmm",
    "armv8-a": r"\bfmul\s+v\d+\.4s",
    "neoverse-n1": r"\bfmul\s+v\d+\.4s",
    "apple-m1": r"\bfmul\s+v\d+\.4s",
    "neoverse-v1": r"\bfmul\s+z\d+\.s",
}


@pytest.mark.parametrize("arch", sorted(VECTOR_REGISTERS))
def test_vector_instructions(arch: str) -> None:
    x = np.zeros(4096, np.float32)
    text = elementwise("%r0 = arith.mulf %a0, %a0 : f32", [x], [x])
    assert re.search(VECTOR_REGISTERS[arch], assembly_of(text, arch))


@pytest.mark.parametrize("arch", ["x86-64", "x86-64-v2", "armv8-a", "neoverse-v1", "a64fx"])
def test_no_library_is_called(arch: str) -> None:
    x, h = np.zeros(4096, np.float32), np.zeros(4096, np.float16)
    text = elementwise(ALL_MATH, [x, h], [h])
    # Refuses objects with undefined symbols of its own accord; the assembly shows that it looked.
    artifact = compile_text(text, arch)
    assert artifact.manifest["kernels"][0]["code_bytes"] > 0
    calls = set(re.findall(r"^\s+(?:callq?|bl)\s+(\w+)", assembly_of(text, arch), re.M))
    assert {c for c in calls if not c.startswith(("GOMP_", "omp_"))} <= {
        "main",
        "elementwise",
        "elementwise_piece",
    }
