"""Code that the vector-math expansions become: packed, without calls, with what the chip has."""

from __future__ import annotations

import re

import pytest
from vector_math_jit import CALL, Compiled, Loop

from polyblocks import mlir
from polyblocks.codegen import llvm
from polyblocks.codegen.vector_math import expand_math

BINARY = ("math.powf", "math.atan2")


def _short(op: str) -> str:
    return op.split(".")[1]


#: Packed instructions of the loops of a machine with and without fused multiply-add.
_MACHINES = {
    "wide": (llvm.Machine("x86_64-unknown-linux-gnu", "x86-64-v4"), True, r"%zmm|%ymm"),
    "old": (llvm.Machine("x86_64-unknown-linux-gnu", "x86-64"), False, r"mulps|mulpd"),
    "other": (llvm.Machine("aarch64-unknown-linux-gnu", "neoverse-n1"), True, r"v\d+\.(4s|2d)"),
}


@pytest.mark.parametrize("name", list(_MACHINES))
def test_loops_are_vectorized_without_calls(name: str) -> None:
    machine, fma, packed = _MACHINES[name]
    ops = ["math.exp", "math.log", "math.tanh", "math.erf", "math.sin", "math.powf", "math.atan2"]
    loops = {
        f"{_short(op)}_{kind}": Loop(op, (kind,) * (1 + (op in BINARY)), (kind,))
        for op in ops
        for kind in ("f32", "f64")
    }
    compiled = Compiled(loops, fma=fma, machine=machine)
    for loop in loops:
        text = compiled.assembly_of(loop)
        assert not CALL.search(text), loop
        # The 64-bit integer products of huge arguments have no instruction on two lanes.
        if (name, loop) != ("other", "sin_f64"):
            assert re.search(packed, text), loop


@pytest.mark.parametrize("name", list(_MACHINES))
def test_vectors_have_no_calls(name: str) -> None:
    machine, fma, packed = _MACHINES[name]
    lanes = 16 if name == "wide" else 4
    ops = ["math.exp", "math.log", "math.sin", "math.powf"]
    loops = {_short(op): Loop(op, ("f32",) * (1 + (op in BINARY)), ("f32",), lanes) for op in ops}
    compiled = Compiled(loops, fma=fma, machine=machine)
    for loop in loops:
        assert not CALL.search(compiled.assembly_of(loop)), loop
        assert re.search(packed, compiled.assembly_of(loop)), loop


def test_without_fma_none_is_created() -> None:
    module = mlir.parse(
        "func.func @f(%x: f64) -> f64 { %0 = math.powf %x, %x : f64 return %0 : f64 }"
    )
    expand_math(module, fma=False)
    assert "math.fma" not in str(module)
    assert "math.powf" not in str(module)


def test_powers_of_two_in_one_instruction() -> None:
    machine, _, _ = _MACHINES["wide"]
    loops = {
        f"exp_{kind}_{lanes}": Loop("math.exp", (kind,), (kind,), lanes)
        for kind in ("f32", "f64")
        for lanes in (0, 8)
    }
    compiled = Compiled(loops, ldexp=True, machine=machine)
    for loop in loops:
        text = compiled.assembly_of(loop)
        assert re.search(r"vscalefp[sd]\s.*%[yz]mm", text), loop
        assert not CALL.search(text), loop


def test_native_operations_stay() -> None:
    text = """
      func.func @f(%x: f32, %i: i32) -> (f32, f32, f32, i32) {
        %0 = math.sqrt %x : f32
        %1 = math.floor %x : f32
        %2 = math.fma %x, %x, %x : f32
        %3 = math.ctpop %i : i32
        return %0, %1, %2, %3 : f32, f32, f32, i32
      }"""
    module = mlir.parse(text)
    before = str(module)
    assert expand_math(module) == 0
    assert str(module) == before


def test_created_operations_have_no_fastmath() -> None:
    module = mlir.parse(
        "func.func @f(%x: f32) -> f32 { %0 = math.log %x fastmath<reassoc,contract> : f32 "
        "return %0 : f32 }"
    )
    assert expand_math(module) == 1
    assert "fastmath" not in str(module)


def test_unknown_element_type_is_refused() -> None:
    module = mlir.parse(
        "func.func @f(%x: f128) -> f128 { %0 = math.exp %x : f128 return %0 : f128 }"
    )
    with pytest.raises(NotImplementedError, match=r"math\.exp on f128"):
        expand_math(module)


@pytest.mark.parametrize(
    "type_", ["vector<2x4xf32>", "vector<[4]xf32>", "vector<2x[4]xf64>", "vector<f32>"]
)
def test_vector_shapes(type_: str) -> None:
    module = mlir.parse(
        f"func.func @f(%x: {type_}) -> {type_} {{ %0 = math.sin %x : {type_} return %0 : {type_} }}"
    )
    assert expand_math(module) == 1
    assert module.operation.verify()
    assert "vector.reduction <or>" in str(module)


@pytest.mark.parametrize(
    ("type_", "expected"), [("vector<4xf64>", True), ("vector<2x4xf32>", False)]
)
def test_ldexp_is_for_vectors_that_llvm_knows(type_: str, expected: bool) -> None:
    module = mlir.parse(
        f"func.func @f(%x: {type_}) -> {type_} {{ %0 = math.exp %x : {type_} return %0 : {type_} }}"
    )
    assert expand_math(module, ldexp=True) == 1
    assert module.operation.verify()
    assert ("llvm.ldexp" in str(module)) == expected
