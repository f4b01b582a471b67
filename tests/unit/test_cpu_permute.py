"""AVX-512's tables of 16 numbers: where they are used, and what they give."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
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
    host_table,
    spread,
    ulp_error,
)

from polyblocks import mlir
from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import expand_ops
from polyblocks.codegen.vector_math import expand_math
from polyblocks.codegen.vector_math.accuracy import MAX_ULP
from polyblocks.codegen.vector_math.pieces import ERF, TANH
from polyblocks_cpu.instructions.permute import pick_from
from polyblocks_cpu.instructions.scalef import multiply_by_power

needs_avx512 = pytest.mark.skipif(not host_has_ldexp(), reason="the host has no AVX-512")
VECTOR = "vector<16xf32>"
WIDTHS = [8, 16, 32, 64]
NUMBERS = tuple(1.5 * i - 7.0 for i in range(16))


def expanded(type_: str, *, fma: bool = True, op: str = "math.exp") -> str:
    """A function with one op, without it."""
    module = mlir.parse(
        f"func.func @f(%x: {type_}) -> {type_} {{ %0 = {op} %x : {type_} return %0 : {type_} }}"
    )
    chip = {"ldexp": True, "scale": multiply_by_power, "table": pick_from}
    assert expand_math(module, fma=fma, **chip) == 1
    assert module.operation.verify()
    return str(module)


def tables(text: str) -> list[str]:
    """The instructions that look numbers up."""
    return re.findall(r"llvm\.x86\.avx512\.((?:permvar|vpermi2var)[\w.]+)", text)


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize(
    ("op", "count"), [("math.exp", 1), ("math.exp2", 1), ("math.tanh", 6), ("math.erf", 6)]
)
def test_one_instruction_for_every_register(op: str, count: int, lanes: int) -> None:
    name = "vpermi2var.ps.256" if lanes == 8 else "permvar.sf.512"
    text = expanded(f"vector<{lanes}xf32>", op=op)
    assert tables(text) == [name] * count * max(1, lanes // 16)


def test_halves_are_looked_up_as_singles() -> None:
    assert tables(expanded("vector<16xf16>")) == ["permvar.sf.512"]


@pytest.mark.parametrize(
    "type_",
    [
        *("f32", "f64", "vector<4xf32>", "vector<12xf32>", "vector<48xf32>", "vector<16xf64>"),
        *("vector<2x8xf32>", "vector<[16]xf32>", "vector<f32>"),
    ],
)
def test_other_types_take_the_polynomial_alone(type_: str) -> None:
    assert not tables(expanded(type_))


@pytest.mark.parametrize("op", ["math.exp", "math.exp2", "math.tanh", "math.erf"])
def test_without_fused_multiply_add_it_is_not_used(op: str) -> None:
    assert not tables(expanded(VECTOR, fma=False, op=op))


@pytest.mark.parametrize(("arch", "expected"), [("x86-64-v4", True), ("x86-64-v3", False)])
def test_the_target_uses_it_where_it_has_it(arch: str, expected: bool) -> None:
    assert bool(re.search(r"vpermps\s.*%zmm", assembly_of(EXP_IN_VECTORS, arch))) == expected


def test_a_table_has_16_numbers() -> None:
    builder = Builder((16,), None, None, {}, True)
    with pytest.raises(ValueError, match="a table has 16 numbers, not 15"):
        pick_from(builder, NUMBERS[1:])


def _pick(b: Builder, operation: Any, operands: Sequence[Val]) -> list[Val]:
    del operation
    pick = b.table(NUMBERS)
    assert pick is not None
    return [pick(operands[0].bits())]


@needs_avx512
@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_lowest_four_bits_choose(lanes: int) -> None:
    """The instruction alone stands in for another op here."""

    def expand(module: Any, **chip: Any) -> None:
        assert expand_ops(module, {"math.absf": _pick}, **chip) == 1

    code = Code(
        "module {\n" + Loop("math.absf", ("f32",), ("f32",), lanes).text("f") + "}",
        ["f"],
        fma=True,
        table=host_table(),
        expand=expand,
        machine=None,
    )
    index = np.random.default_rng(1).integers(0, 1 << 32, CHUNK, np.uint32)
    result = np.empty(CHUNK, np.float32)
    code.function("f")(index.view(np.float32), result)
    np.testing.assert_array_equal(result, np.array(NUMBERS, np.float32)[index & 15])


#: Function -> exact values, where it is not yet constant, results for 0 and -0.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[float, float], tuple[float, float]]] = {
    "exp": (np.exp, (-110, 95), (1.0, 1.0)),
    "exp2": (np.exp2, (-155, 130), (1.0, 1.0)),
    "tanh": (np.tanh, (-11, 11), (0.0, -0.0)),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), (-5, 5), (0.0, -0.0)),
}


@pytest.mark.each_choice
@needs_avx512
@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_by_tables(name: str, lanes: int) -> None:
    """Within what is documented at any width, with all 16 numbers and at the ends."""
    function, (low, high), at_zero = FUNCTIONS[name]
    loops = {"f": Loop(f"math.{name}", ("f32",), ("f32",), lanes)}
    compiled = Compiled(loops, ldexp=True, scale=host_scale(), table=host_table())
    assert tables(compiled.expanded)
    dense = np.linspace(low, high, 100_000).astype(np.float32)
    edges = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 1e6, -1e6, 0.0, -0.0], np.float32)
    x = np.concatenate([spread("f32", 20_000, 3), dense, edges])
    (result,) = compiled("f", x)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
    assert ulp_error(result, exact).max() <= MAX_ULP[f"math.{name}"][0]
    np.testing.assert_array_equal(result[-2:], at_zero)
    np.testing.assert_array_equal(np.signbit(result[-2:]), np.signbit(at_zero))


@needs_avx512
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_pieces_meet(name: str) -> None:
    """Around every edge of a piece, and where the function ends, it does not fall."""
    pieces = {"tanh": TANH, "erf": ERF}[name]
    unit = 1 << pieces.shift
    first = np.float32(pieces.offset).view(np.uint32) // unit
    edges = ((first + np.arange(17, dtype=np.uint32)) * unit).view(np.float32) - pieces.offset
    around = np.arange(-300, 300, dtype=np.int32)
    near = (np.append(edges[1:], pieces.limit).astype(np.float32).view(np.int32))[:, None] + around
    compiled = Compiled(
        {"f": Loop(f"math.{name}", ("f32",), ("f32",), 16)},
        ldexp=True,
        scale=host_scale(),
        table=host_table(),
    )
    (result,) = compiled("f", near.view(np.float32).ravel())
    steps = np.diff(result.reshape(near.shape).view(np.int32), axis=1)
    assert steps.min() >= -2
    assert result.max() == 1.0


@pytest.mark.parametrize("op", ["math.exp", "math.exp2"])
def test_powers_need_the_instruction_that_scales(op: str) -> None:
    """What is out of range is told by that instruction alone."""
    text = (
        f"func.func @f(%x: {VECTOR}) -> {VECTOR} {{ %0 = {op} %x : {VECTOR} return %0 : {VECTOR} }}"
    )
    module = mlir.parse(text)
    assert expand_math(module, fma=True, table=pick_from) == 1
    assert not tables(str(module))
