"""StableHLO texts compiled for the CPU and run on NumPy arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import polyblocks
from polyblocks import driver, stablehlo
from polyblocks.options import CompileOptions
from polyblocks.program import Argument, ArraySpec, Program, Result
from polyblocks.registry.registry import get_registry

_NAMES = {
    "i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "complex<f32>": "complex64", "complex<f64>": "complex128",
}  # fmt: skip
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]+\d*(?:<f\d+>)?)>")


def lowered(text: str) -> str:
    """The text of the module after lowering."""
    return str(stablehlo.lower(stablehlo.parse(text)))


def program(text: str, *arrays: Any) -> Program:
    """The program of a module for these arrays."""
    module = stablehlo.parse(text)
    kinds = _result_types(module)
    return Program(
        "test",
        stablehlo.lower(module),
        tuple(Argument(f"x{i}", _spec(a)) for i, a in enumerate(arrays)),
        tuple(Result(f"y{i}", spec) for i, spec in enumerate(kinds)),
    )


def run(text: str, *arrays: Any) -> Any:
    """Compile a module and call it; one result, or a list of several."""
    arrays = tuple(np.asarray(array) for array in arrays)
    options = CompileOptions()
    description = get_registry().target("cpu").hook.describe_target(options=options)
    compiled = driver.compile_program(program(text, *arrays), description, options)
    results = polyblocks.load(compiled)(*arrays)
    return list(results) if isinstance(results, tuple) else results


def unary(
    operation: str, kind: str, x: Any, result: str | None = None, attributes: str = ""
) -> Any:
    """One operation on one array: ``unary("stablehlo.abs", "f32", x)``."""
    source = tensor(x.shape, kind)
    target = tensor(x.shape, result) if result else source
    return run(
        f"func.func @main(%x: {source}) -> {target} {{\n"
        f'%y = "{operation}"(%x) {attributes} : ({source}) -> {target}\n'
        f"return %y : {target}\n}}",
        x,
    )


def binary(operation: str, kind: str, x: Any, y: Any, result: str | None = None) -> Any:
    """One operation on two arrays of one type; attributes may follow its name in braces."""
    source = tensor(x.shape, kind)
    target = tensor(x.shape, result) if result else source
    name, brace, attributes = operation.partition(" ")
    return run(
        f"func.func @main(%x: {source}, %y: {source}) -> {target} {{\n"
        f'%z = "{name}"(%x, %y){brace}{attributes} : ({source}, {source}) -> {target}\n'
        f"return %z : {target}\n}}",
        x,
        y,
    )


def tensor(shape: tuple[int, ...], kind: str) -> str:
    """The type of an array."""
    return f"tensor<{''.join(f'{e}x' for e in shape)}{kind}>"


def _spec(array: Any) -> ArraySpec:
    return ArraySpec.contiguous(tuple(array.shape), str(array.dtype))


def _result_types(module: Any) -> list[ArraySpec]:
    found = []
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.operation.attributes["sym_name"].value == "main":
            terminator = list(op.operation.regions[0].blocks[0].operations)[-1].operation
            found = [str(v.type) for v in terminator.operands]
    specs = []
    for kind in found:
        match = _TENSOR.fullmatch(kind)
        assert match is not None, kind
        shape = tuple(int(e) for e in match[1].split("x") if e)
        name = _NAMES.get(match[2]) or match[2].replace("ui", "uint").replace("i", "int", 1)
        name = name.replace("uintnt", "uint")
        specs.append(ArraySpec.contiguous(shape, name))
    return specs


def random(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
