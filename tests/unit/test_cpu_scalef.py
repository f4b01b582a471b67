"""AVX-512's multiplication by powers of two: where it is used, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cpu_kernels import EXP_IN_VECTORS, assembly_of
from vector_math_jit import (
    CHUNK,
    Code,
    Compiled,
    Loop,
    host_has_ldexp,
    host_scale,
    specials,
    spread,
)

from polyblocks import mlir
from polyblocks.codegen import llvm
from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import expand_ops
from polyblocks.codegen.vector_math import expand_math
from polyblocks_cpu.instructions.scalef import multiply_by_power

needs_avx512 = pytest.mark.skipif(not host_has_ldexp(), reason="the host has no AVX-512")
OPS = ["math.exp", "math.exp2", "math.sinh", "math.cosh"]
WIDTHS = [("f32", n) for n in (4, 8, 16, 32, 64)] + [("f64", n) for n in (2, 4, 8, 16, 32)]


def expanded(op: str, type_: str, **chip: Any) -> str:
    """A function with one op, without it."""
    module = mlir.parse(
        f"func.func @f(%x: {type_}) -> {type_} {{ %0 = {op} %x : {type_} return %0 : {type_} }}"
    )
    assert expand_math(module, ldexp=True, **chip) == 1
    assert module.operation.verify()
    return str(module)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("kind", "lanes"), WIDTHS)
def test_one_instruction_for_every_register(op: str, kind: str, lanes: int) -> None:
    text = expanded(op, f"vector<{lanes}x{kind}>", scale=multiply_by_power)
    bits = lanes * int(kind[1:])
    name = f"llvm.x86.avx512.mask.scalef.p{'s' if kind == 'f32' else 'd'}.{min(bits, 512)}"
    assert re.findall(r"llvm\.x86[\w.]+", text) == [name] * max(1, bits // 512)
    assert "llvm.ldexp" not in text
    assert "arith.sitofp" not in text


@pytest.mark.parametrize(
    "type_",
    [
        *("f32", "f64", "vector<2xf32>", "vector<1xf64>", "vector<6xf32>", "vector<12xf32>"),
        *("vector<48xf32>", "vector<24xf64>"),
    ],
)
def test_other_types_take_ldexp(type_: str) -> None:
    """Scalars, parts of registers, and numbers of registers that are no power of two."""
    text = expanded("math.exp", type_, scale=multiply_by_power)
    assert "scalef" not in text
    assert "llvm.ldexp" in text


@pytest.mark.parametrize("type_", ["vector<2x8xf32>", "vector<[4]xf32>", "vector<f32>"])
def test_other_shapes_take_neither(type_: str) -> None:
    text = expanded("math.exp", type_, scale=multiply_by_power)
    assert "scalef" not in text


def test_halves_are_scaled_as_singles() -> None:
    text = expanded("math.exp", "vector<16xf16>", scale=multiply_by_power)
    assert "scalef.ps.512" in text


def test_without_it_ldexp_is_used() -> None:
    assert "scalef" not in expanded("math.exp", "vector<16xf32>")


@pytest.mark.parametrize(("kind", "lanes"), WIDTHS)
def test_instructions(kind: str, lanes: int) -> None:
    """The exponent is a float from the beginning: nothing is converted."""
    machine = llvm.Machine("x86_64-unknown-linux-gnu", "x86-64-v4")
    loop = Loop("math.exp", (kind,), (kind,), lanes)
    compiled = Compiled({"f": loop}, ldexp=True, scale=multiply_by_power, machine=machine)
    text = compiled.assembly_of("f")
    assert re.search(r"vscalefp[sd]\s", text)
    assert not re.search(r"vcvt\w*dq2p|vcvt\w*qq2p", text)


@pytest.mark.parametrize(("arch", "expected"), [("x86-64-v4", True), ("x86-64-v3", False)])
def test_the_target_uses_it_where_it_has_it(arch: str, expected: bool) -> None:
    code = assembly_of(EXP_IN_VECTORS, arch)
    assert bool(re.search(r"vscalefps\s.*%zmm", code)) == expected
    assert not re.search(r"vcvt\w*dq2p", code)


def _scale(b: Builder, operation: Any, operands: Sequence[Val]) -> list[Val]:
    del operation
    scaled = b.scaled(*operands)
    assert scaled is not None
    return [scaled]


def scaled(kind: str, lanes: int, x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """``x * 2^n`` by the instruction alone, which stands in for another op of two operands."""

    def expand(module: Any, **chip: Any) -> None:
        assert expand_ops(module, {"math.copysign": _scale}, **chip) == 1

    code = Code(
        "module {\n" + Loop("math.copysign", (kind, kind), (kind,), lanes).text("f") + "}",
        ["f"],
        fma=True,
        scale=host_scale(),
        expand=expand,
        machine=None,
    )
    arrays = [np.ones(CHUNK, x.dtype) for _ in range(3)]
    arrays[0][: len(x)], arrays[1][: len(n)] = x, n
    code.function("f")(*arrays)
    return arrays[2][: len(x)]


@needs_avx512
@pytest.mark.parametrize(("kind", "lanes"), WIDTHS)
def test_products(kind: str, lanes: int) -> None:
    """Every lane its own exponent: denormals are rounded once, huge exponents saturate."""
    dtype = np.float32 if kind == "f32" else np.float64
    generator = np.random.default_rng(1)
    x = generator.uniform(-2, 2, 4000).astype(dtype)
    top = 160 if kind == "f32" else 1100
    n = generator.integers(-top, top, 4000).astype(dtype)
    # What is behind the point does not count.
    fractions = generator.integers(0, 16, 4000).astype(dtype) / 16
    np.testing.assert_array_equal(scaled(kind, lanes, x, n + fractions), scaled(kind, lanes, x, n))
    huge = np.array([1e4, -1e4, 2.0**31, -(2.0**31), 1e30, -1e30], dtype)
    n = np.concatenate([n, huge, huge])
    x = np.concatenate([x, np.ones(6, dtype), -np.ones(6, dtype)])
    whole = np.clip(n, -(10**5), 10**5).astype(np.int32)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, whole)
    np.testing.assert_array_equal(scaled(kind, lanes, x, n), expected)
    signs = np.signbit(scaled(kind, lanes, x, n))
    np.testing.assert_array_equal(signs, np.signbit(expected))


@needs_avx512
@pytest.mark.parametrize(("kind", "lanes"), WIDTHS)
def test_products_of_special_values(kind: str, lanes: int) -> None:
    dtype = np.float32 if kind == "f32" else np.float64
    x = np.array([np.nan, np.nan, 1.0, np.inf, -np.inf, np.inf, 0.0, -0.0], dtype)
    n = np.array([3.0, np.nan, np.nan, -1e30, 5.0, 1e30, 1e30, 1e30], dtype)
    expected = np.array([np.nan, np.nan, np.nan, np.inf, -np.inf, np.inf, 0.0, -0.0], dtype)
    result = scaled(kind, lanes, x, n)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[6:]), [False, True])


@pytest.mark.each_choice
@needs_avx512
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("kind", "lanes"), WIDTHS)
def test_functions_give_what_they_give_without_it(op: str, kind: str, lanes: int) -> None:
    """Bit by bit, at any width, so that the errors that are documented hold for all."""
    loops = {"f": Loop(op, (kind,), (kind,), lanes)}
    with_it = Compiled(loops, ldexp=True, scale=host_scale())
    assert "scalef" in with_it.expanded
    without = Compiled(loops)
    limit = 110 if kind == "f32" else 760
    dense = np.linspace(-limit, limit, 20_011)
    x = np.concatenate([spread(kind, 20_000, 3), dense.astype(specials(kind).dtype)])
    np.testing.assert_array_equal(with_it("f", x)[0], without("f", x)[0])


@needs_avx512
@pytest.mark.parametrize(("kind", "lanes"), WIDTHS)
def test_ends_of_the_exponential(kind: str, lanes: int) -> None:
    loops = {"f": Loop("math.exp", (kind,), (kind,), lanes)}
    compiled = Compiled(loops, ldexp=True, scale=host_scale())
    dtype = np.float32 if kind == "f32" else np.float64
    x = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.0, -0.0], dtype)
    expected = np.array([np.inf, 0.0, np.nan, np.inf, 0.0, 1.0, 1.0], dtype)
    result = compiled("f", x)[0]
    np.testing.assert_array_equal(result, expected)
    assert not np.signbit(result[[1, 4]]).any()
    info = np.finfo(dtype)
    denormal = np.linspace(np.log(float(info.tiny)) - 10, np.log(float(info.tiny)) - 1, 97)
    result = compiled("f", denormal.astype(dtype))[0]
    assert ((result > 0) & (result < info.tiny)).all()
    exact = np.exp(denormal.astype(dtype).astype(np.longdouble))
    error = np.abs(result.astype(np.longdouble) - exact) / np.longdouble(info.smallest_subnormal)
    assert error.max() <= 1.0
