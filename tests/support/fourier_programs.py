"""Transforms of the core as programs of their own, compiled and run on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import polyblocks
from polyblocks import driver, mlir
from polyblocks.algorithms.fourier import Kind, transform
from polyblocks.options import CompileOptions
from polyblocks.program import Argument, ArraySpec, Program, Result
from polyblocks.registry.registry import get_registry


def run(kind: Kind, re: Any, im: Any, n: int, sign: int, scale: float, **options: Any) -> Any:
    """The transform of an array along its second dimension of three.

    Args:
        kind: of the transform.
        re, im: real and imaginary parts, [outer, ., inner]; ``im`` may be None.
        n: length.
        sign: of the exponent.
        scale: factor of the results.
        options: of the compilation.
    """
    ir = mlir.ir
    arrays = [np.ascontiguousarray(part) for part in (re, im) if part is not None]
    element = "f64" if arrays[0].dtype == np.float64 else "f32"
    with mlir.make_context(), ir.Location.name("fft"):
        module = ir.Module.create()
        scalar = ir.Type.parse(element)
        kinds = [ir.RankedTensorType.get(array.shape, scalar) for array in arrays]
        extent = n // 2 + 1 if kind is Kind.REAL else n
        shape = (arrays[0].shape[0], extent, arrays[0].shape[2])
        count = 1 if kind is Kind.HALF else 2
        results = [ir.RankedTensorType.get(shape, scalar)] * count
        with ir.InsertionPoint(module.body):
            main = mlir.dialect("func").FuncOp("main", (kinds, results))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            parts = [*block.arguments, None][:2]
            made = transform(kind, *parts, n, sign, scale)
            mlir.dialect("func").ReturnOp([part for part in made if part is not None])
        assert module.operation.verify()
    dtype = arrays[0].dtype.name
    program = Program(
        "fft",
        module,
        tuple(Argument(f"x{i}", _spec(a.shape, dtype)) for i, a in enumerate(arrays)),
        tuple(Result(f"y{i}", _spec(shape, dtype)) for i in range(count)),
    )
    chosen = CompileOptions(**options)
    target = get_registry().target(chosen.target).hook.describe_target(options=chosen)
    found = polyblocks.load(driver.compile_program(program, target, chosen))(*arrays)
    return found if count == 1 else found[0] + 1j * found[1].astype(found[0].dtype)


def _spec(shape: Any, dtype: str) -> ArraySpec:
    strides = tuple(int(np.prod(shape[d + 1 :])) for d in range(len(shape)))
    return ArraySpec(tuple(shape), dtype, strides)
