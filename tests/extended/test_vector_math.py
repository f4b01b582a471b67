"""Accuracy, special values and code shape of the vector-math expansions."""

from __future__ import annotations

import functools
import itertools
import math
import platform
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp
from sweeps import sweep
from vector_math_coefficients import TARGET, coefficients_file
from vector_math_jit import (
    CALL,
    Compiled,
    Loop,
    compile_text,
    host_has_ldexp,
    host_scale,
    host_table,
    specials,
    spread,
    ulp_error,
)
from vector_math_sweep import own_reference

from polyblocks.codegen import llvm
from polyblocks.codegen.vector_math.accuracy import MAX_ULP

BINARY = ("math.powf", "math.atan2")
FLOAT_OPS = [op for op in MAX_ULP if op != "math.fpowi"]

_NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "powf": "power",
}


def _short(op: str) -> str:
    return op.split(".")[1]


def _numpy_reference(op: str) -> Callable[..., np.ndarray]:
    name = _short(op)
    if name == "rsqrt":
        return lambda x: 1 / np.sqrt(x)
    if name in ("erf", "erfc"):
        return np.vectorize(getattr(math, name), otypes=[np.float64])
    return getattr(np, _NUMPY.get(name, name))


def _loops(kind: str, lanes: int) -> dict[str, Loop]:
    return {
        _short(op): Loop(op, (kind,) * (1 + (op in BINARY)), (kind,), lanes) for op in FLOAT_OPS
    } | {"fpowi": Loop("math.fpowi", (kind, "i32"), (kind,), lanes)}


@functools.cache
def _compiled(kind: str, chip: str) -> Compiled:
    # The oldest chip that this machine can stand in for.
    old = chip == "no-fma" and platform.machine() in ("x86_64", "AMD64")
    # The chip's own instruction for powers of two is for vectors that fill a register.
    lanes = {"f32": 16, "f64": 8}[kind] if chip == "vectors" else 0
    return Compiled(
        _loops(kind, lanes),
        fma=chip != "no-fma",
        ldexp=chip in ("native", "vectors") and host_has_ldexp(),
        scale=host_scale() if chip == "vectors" else None,
        table=host_table() if chip == "vectors" else None,
        machine=llvm.Machine("", "x86-64") if old else None,
    )


CHIPS = ["native", "vectors", "fma", "no-fma"]


@pytest.fixture(params=sweep(CHIPS, "native", "vectors", "no-fma"))
def chip(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def f32(chip: str) -> Compiled:
    return _compiled("f32", chip)


@pytest.fixture
def f64(chip: str) -> Compiled:
    return _compiled("f64", chip)


def _samples(kind: str, count: int, seed: int) -> np.ndarray:
    """All exponents, and densely where functions have their features."""
    generator = np.random.default_rng(seed)
    float_type = np.float32 if kind == "f32" else np.float64
    pieces = [spread(kind, count, seed)]
    for low, high in ((-1, 1), (0.5, 3), (-10, 10), (-110, 110), (-750, 750)):
        pieces.append(generator.uniform(low, high, count // 4).astype(float_type))
    return np.concatenate(pieces)


def _arguments(op: str, kind: str, count: int) -> list[np.ndarray]:
    x = _samples(kind, count, 0)
    if op not in BINARY:
        return [x]
    y = _samples(kind, count, 1)
    left, right = (grid.ravel() for grid in np.meshgrid(specials(kind), specials(kind)))
    return [np.concatenate([x, np.abs(x), left]), np.concatenate([y, y, right])]


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_float32_error(f32: Compiled, op: str) -> None:
    arguments = _arguments(op, "f32", 100_000)
    (result,) = f32(_short(op), *arguments)
    with np.errstate(all="ignore"):
        exact = _numpy_reference(op)(*(a.astype(np.float64) for a in arguments))
    error = ulp_error(result, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= MAX_ULP[op][0], [float(a[worst]) for a in arguments]


def _mp_reference(op: str, *arguments: float) -> tuple[float, float]:
    """The exact value as the sum of two doubles."""
    name = _short(op)
    numbers = [mp.mpf(a) for a in arguments]
    if name == "powf":
        exact = mp.power(*numbers)
    elif name == "exp2":
        exact = mp.power(2, *numbers)
    elif name == "log2":
        exact = mp.log(numbers[0]) / mp.log(2)
    elif name == "rsqrt":
        exact = 1 / mp.sqrt(numbers[0])
    elif name == "cbrt":
        exact = mp.sign(numbers[0]) * mp.cbrt(abs(numbers[0]))
    else:
        exact = getattr(mp, name)(*numbers)
    if isinstance(exact, mp.mpc):
        return math.nan, 0.0
    high = float(exact)
    return high, 0.0 if math.isinf(high) else float(exact - mp.mpf(high))


def _float64_references(op: str, arguments: list[np.ndarray]) -> list[tuple[float, float, bool]]:
    """Exact values as sums of two doubles, in mpmath's precision; of what is not ordinary numpy's.

    mpmath knows neither signed zeros nor overflow; numpy's specials are C99's.
    """
    with np.errstate(all="ignore"):
        # Products have no signaling NaNs, of which some C libraries make other results.
        rough = _numpy_reference(op)(*(a * 1.0 for a in arguments))
    found = []
    for *values, about in zip(*(a.tolist() for a in arguments), rough.tolist(), strict=True):
        ordinary = all(math.isfinite(v) and v != 0 for v in (*values, about))
        high, low = _mp_reference(op, *values) if ordinary else (about, 0.0)
        found.append((high, low, ordinary))
    return found


def _float64_errors(result: np.ndarray, references: list[tuple[float, float, bool]]) -> np.ndarray:
    errors = np.zeros(len(result))
    for i, (got, (high, low, ordinary)) in enumerate(zip(result.tolist(), references, strict=True)):
        if not ordinary:
            same = got == high and math.copysign(1, got) == math.copysign(1, high)
            if not same and not (math.isnan(got) and math.isnan(high)):
                errors[i] = math.inf
            continue
        with np.errstate(all="ignore"):
            errors[i] = abs((got - high) - low) / float(np.spacing(abs(high)))
    return errors


@functools.cache
def _float64_case(op: str, count: int) -> tuple[list[np.ndarray], list[tuple[float, float, bool]]]:
    """Special and random arguments and their exact values, the same for all chips."""
    arguments = _arguments(op, "f64", 4000)
    keep = np.random.default_rng(2).permutation(len(arguments[0]))[:count]
    arguments = [np.concatenate([a[: len(specials("f64"))], a[keep]]) for a in arguments]
    with mp.workdps(50):
        return arguments, _float64_references(op, arguments)


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_float64_error(f64: Compiled, op: str) -> None:
    near_in_float64(f64, op, 500)


@pytest.mark.slow
@pytest.mark.parametrize(("op", "chip"), [*zip(FLOAT_OPS, itertools.cycle(CHIPS), strict=False)])
def test_float64_error_of_more_numbers(op: str, chip: str) -> None:
    near_in_float64(_compiled("f64", chip), op, 1500)


def near_in_float64(f64: Compiled, op: str, count: int) -> None:
    """Of special arguments and so many random ones none has a larger error than is documented."""
    arguments, references = _float64_case(op, count)
    (result,) = f64(_short(op), *arguments)
    errors = _float64_errors(result, references)
    worst = int(np.argmax(errors))
    assert errors[worst] <= MAX_ULP[op][1], [float(a[worst]) for a in arguments]


@pytest.mark.parametrize("op", ["math.exp", "math.log", "math.sin"])
def test_compiled_sweep(op: str) -> None:
    """What the slow command runs over all float32 finds the same errors as numpy does."""
    stride = 65537
    worst = own_reference(op, stride, fma=True, ldexp=False)
    x = np.arange(0, 1 << 32, stride, dtype=np.uint64)[: worst.count].astype(np.uint32)
    (result,) = _compiled("f32", "fma")(_short(op), x.view(np.float32))
    with np.errstate(all="ignore"):
        exact = _numpy_reference(op)(x.view(np.float32).astype(np.float64))
    error = ulp_error(result, exact)
    assert 0.5 < worst.error == pytest.approx(error.max(), rel=1e-6)
    assert worst.argument == x.view(np.float32)[np.argmax(error)]


def test_float32_integer_power(f32: Compiled) -> None:
    generator = np.random.default_rng(0)
    x = _samples("f32", 20_000, 3)
    n = generator.integers(-40, 40, len(x)).astype(np.int32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), n.astype(np.float64))
    assert ulp_error(f32("fpowi", x, n)[0], exact).max() <= MAX_ULP["math.fpowi"][0]


def test_float64_integer_power(f64: Compiled) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(0, 3, 2000)
    n = generator.integers(-300, 300, len(x)).astype(np.int32)
    (result,) = f64("fpowi", x, n)
    with mp.workdps(50):
        references = _float64_references("math.powf", [x, n.astype(np.float64)])
    errors = _float64_errors(result, references)
    assert errors.max() <= MAX_ULP["math.fpowi"][1]


@pytest.mark.parametrize("op", ["math.sin", "math.cos", "math.tan"])
def test_arguments_nearest_to_multiples_of_half_pi(f32: Compiled, f64: Compiled, op: str) -> None:
    """The hardest reductions: J.-M. Muller, "Elementary Functions", tables 11.1 and 11.2."""
    hard32 = np.array([16367173 * 2.0**72, 13338063 * 2.0**40, 1e22, 3.4028234e38], np.float32)
    (result,) = f32(_short(op), hard32)
    with mp.workdps(60):
        exact = np.array([sum(_mp_reference(op, float(x))) for x in hard32])
    assert ulp_error(result, exact).max() <= MAX_ULP[op][0]
    hard64 = np.array([6381956970095103 * 2.0**797, 6411027962775774 * 2.0**-48, 1e22, 1.7e308])
    (result,) = f64(_short(op), hard64)
    with mp.workdps(400):
        references = _float64_references(op, [hard64])
    assert _float64_errors(result, references).max() <= MAX_ULP[op][1]


def test_sincos_is_sin_and_cos() -> None:
    kinds = ("f32", "f64")
    loops = {f"sincos_{k}": Loop("math.sincos", (k,), (k, k)) for k in kinds}
    loops |= {f"{op}_{k}": Loop(f"math.{op}", (k,), (k,)) for op in ("sin", "cos") for k in kinds}
    compiled = Compiled(loops)
    for kind in kinds:
        x = spread(kind, 5000)
        both = compiled(f"sincos_{kind}", x)
        for op, part in zip(("sin", "cos"), both, strict=True):
            np.testing.assert_array_equal(part, compiled(f"{op}_{kind}", x)[0])


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("op", FLOAT_OPS)
def test_vectors_give_what_scalars_give(op: str, kind: str) -> None:
    arity = 1 + (op in BINARY)
    compiled = Compiled(
        {
            "scalar": Loop(op, (kind,) * arity, (kind,)),
            "vector": Loop(op, (kind,) * arity, (kind,), lanes=8),
        }
    )
    # Rare arguments among common ones, then common ones alone.
    arguments = [spread(kind, 20_000, seed) for seed in range(arity)]
    common = [np.linspace(0.1, 3.0, 4096).astype(a.dtype) for a in arguments]
    for group in (arguments, common):
        np.testing.assert_array_equal(compiled("scalar", *group)[0], compiled("vector", *group)[0])


def _integer_power(x: int, n: int, width: int) -> int:
    if n >= 0:
        value = pow(x, n, 1 << width)
    else:
        value = {1: 1, -1: -1 if n & 1 else 1}.get(x, 0) % (1 << width)
    return value - (1 << width) if value >> (width - 1) else value


@pytest.mark.parametrize("lanes", [0, 8])
def test_greatest_common_divisors(lanes: int) -> None:
    """Lanes are done after different numbers of steps, and keep what they have found."""
    kinds = {"i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64}
    compiled = Compiled({k: Loop("polyblocks.gcd", (k, k), (k,), lanes) for k in kinds})
    for kind, dtype in kinds.items():
        powers = [1 << n for n in range(int(kind[1:]))]
        most = np.iinfo(dtype).max
        numbers = np.array([*range(70), *powers, *(p - 1 for p in powers), most - 1, most], dtype)
        x, y = (g.ravel() for g in np.meshgrid(numbers, numbers))
        x, y = (np.resize(g, -(-len(g) // 8) * 8) for g in (x, y))
        (result,) = compiled(kind, x, y)
        expected = [math.gcd(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert result.view(dtype).tolist() == expected


_EXPONENTS = [
    "-1.0",
    "0.0",
    "0.5",
    "-0.5",
    "1.0",
    "2.0",
    "3.0",
    "-2.0",
    "4.0",
    "-7.0",
    "64.0",
    "-0.75",
]


@pytest.mark.parametrize("exponent", _EXPONENTS)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_constant_exponent(kind: str, exponent: str) -> None:
    loop = Loop("math.powf", (kind,), (kind,), constant=exponent)
    compiled = Compiled({"power": loop})
    x = _samples(kind, 2000, 4)
    (result,) = compiled("power", x)
    with np.errstate(all="ignore"):
        if kind == "f32":
            exact = np.power(x.astype(np.float64), np.full(len(x), float(exponent)))
            error = ulp_error(result, exact)
        else:
            with mp.workdps(50):
                references = _float64_references("math.powf", [x, np.full_like(x, float(exponent))])
            error = _float64_errors(result, references)
    assert error.max() <= 1.6
    wide = exponent in ("-2.0", "4.0", "-7.0", "64.0")
    simple = kind == "f32" if wide else exponent != "-0.75"
    assert ("arith.bitcast" not in compiled.expanded) == simple


def test_integer_power_of_integers() -> None:
    kinds = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
    compiled = Compiled({k: Loop("math.ipowi", (k, k), (k,)) for k in kinds})
    bases, exponents = (g.ravel() for g in np.meshgrid(np.arange(-20, 21), np.arange(-9, 100)))
    for kind, dtype in kinds.items():
        expected = [
            _integer_power(x, n, int(kind[1:]))
            for x, n in zip(bases.tolist(), exponents.tolist(), strict=True)
        ]
        (result,) = compiled(kind, bases.astype(dtype), exponents.astype(dtype))
        assert result.tolist() == expected


@pytest.mark.parametrize("exponent", [0, 1, 2, 7, 20])
def test_constant_power_of_integers(exponent: int) -> None:
    compiled = Compiled({"power": Loop("math.ipowi", ("i64",), ("i64",), constant=str(exponent))})
    x = np.arange(-50, 50)
    assert "scf.while" not in compiled.expanded
    expected = [_integer_power(v, exponent, 64) for v in x.tolist()]
    assert compiled("power", x)[0].tolist() == expected


def test_integer_power_of_vectors() -> None:
    compiled = Compiled({"power": Loop("math.ipowi", ("i32", "i32"), ("i32",), lanes=8)})
    x, n = (g.ravel().astype(np.int32) for g in np.meshgrid(np.arange(-9, 10), np.arange(-3, 40)))
    expected = [_integer_power(a, b, 32) for a, b in zip(x.tolist(), n.tolist(), strict=True)]
    assert compiled("power", x, n)[0].tolist() == expected


def test_float16_is_rounded_once() -> None:
    compiled = Compiled({"exp": Loop("math.exp", ("f16",), ("f16",))})
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    (result,) = compiled("exp", x)
    with np.errstate(all="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float16)
    different = ~((result == expected) | (np.isnan(result) & np.isnan(expected)))
    assert different.sum() <= 2  # ties


def test_bfloat16() -> None:
    compiled = Compiled({"tanh": Loop("math.tanh", ("bf16",), ("bf16",))})
    x = np.arange(65536, dtype=np.uint16)
    (result,) = compiled("tanh", x)
    value = (x.astype(np.uint32) << 16).view(np.float32)
    got = (result.astype(np.uint32) << 16).view(np.float32)
    # Some machines' conversion instruction flushes denormals; that is not tested here.
    normal = np.abs(value) >= 2.0**-126
    exact = np.tanh(value[normal].astype(np.float64))
    assert np.all(np.abs(got[normal] - exact) <= np.abs(exact) * 2.0**-8)
    assert np.isnan(got[np.isnan(value)]).all()


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_classification(kind: str) -> None:
    names = ("isnan", "isinf", "isfinite", "isnormal")
    body = "".join(
        f"%{name} = math.{name} %x : {kind}\n%{name}_ = arith.extui %{name} : i1 to i8\n"
        f"affine.store %{name}_, %{name}_out[%i] : memref<64xi8>\n"
        for name in names
    )
    outputs = ", ".join(f"%{name}_out: memref<64xi8>" for name in names)
    text = (
        f"func.func @f(%in: memref<64x{kind}>, {outputs}) {{ affine.for %i = 0 to 64 {{\n"
        f"%x = affine.load %in[%i] : memref<64x{kind}>\n{body} }} return }}"
    )
    run = compile_text(text, "f")
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    info = np.finfo(dtype)
    x = np.ones(64, dtype)
    x[:7] = [np.nan, np.inf, -np.inf, 0, info.tiny, info.smallest_subnormal, -info.max]
    results = [np.empty(64, np.int8) for _ in names]
    run(x, *results)
    normal = np.isfinite(x) & (np.abs(x) >= info.tiny)
    for result, expected in zip(
        results, (np.isnan(x), np.isinf(x), np.isfinite(x), normal), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


def test_clamp() -> None:
    compiled = Compiled({"clamp": Loop("math.clampf", ("f32",) * 3, ("f32",))})
    x = np.array([np.nan, -5, 0.5, 5, np.inf], np.float32)
    low, high = np.full(5, -1, np.float32), np.full(5, 1, np.float32)
    (result,) = compiled("clamp", x, low, high)
    np.testing.assert_array_equal(result, np.clip(x, -1, 1))


def test_no_call_is_left_for_any_operation(f32: Compiled, f64: Compiled) -> None:
    for compiled in (f32, f64):
        assert not CALL.search(compiled.assembly)


@pytest.mark.slow
def test_coefficients_are_what_the_derivation_gives() -> None:
    assert TARGET.read_text() == coefficients_file()[0]


def test_documented_errors_are_the_tested_ones() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/numerics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|", page, re.MULTILINE)
    assert {f"math.{name}": (float(a), float(b)) for name, a, b in rows} == MAX_ULP
