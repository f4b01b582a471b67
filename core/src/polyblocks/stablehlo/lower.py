"""Lowering of a StableHLO module to linalg on tensors."""

from __future__ import annotations

import importlib
from typing import Any

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.stablehlo.array import Array

#: The modules that register rules.
_RULES = (
    "contractions",
    "control",
    "custom_calls",
    "fourier",
    "gathers",
    "normalization",
    "random_bits",
    "reductions",
    "scatters",
    "shapes",
    "sorting",
)


def lower(module: Any) -> Any:
    """Lower a module with one public function of static shapes.

    Args:
        module: of :func:`polyblocks.stablehlo.parse`; consumed.

    Returns:
        A new module in the same context: ``@main`` at linalg-on-tensors level, with loops and
        conditionals as ``scf``, integers without signedness, and every operation's location as
        ``loc("op"("file":line:column))``.

    Raises:
        UnsupportedError: an operation has no lowering; names it, the reason and the user's line.
    """
    from polyblocks.algorithms.expand import expand
    from polyblocks.stablehlo.lowering import Lowering

    for name in _RULES:
        importlib.import_module(f"polyblocks.stablehlo.{name}")
    ir = mlir.ir
    context = module.context
    with context, ir.Location.unknown():
        lowering = Lowering(module)
        function = _entry(module)
        body = function.regions[0].blocks[0]
        arguments = [lowering.type_of(a) for a in body.arguments]
        results = _results(lowering, function)
        new = ir.Module.create()
        kinds = [[e.tensor(shape) for shape, e in side] for side in (arguments, results)]
        with ir.InsertionPoint(new.body):
            main = mlir.dialect("func").FuncOp("main", (kinds[0], kinds[1]), visibility="public")
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            arrays = [
                Array(shape, element, value)
                for (shape, element), value in zip(arguments, block.arguments, strict=True)
            ]
            found = lowering.block(body, arrays)
            tensors = [lowering.tensor(array) for array in found]
            mlir.dialect("func").ReturnOp(tensors)
        for helper in lowering.helpers:
            for function in helper.body.operations:
                function.operation.clone(ir.InsertionPoint(new.body))
        if lowering.helpers:
            mlir.run_textual(new, "inline,symbol-dce")
        new.operation.verify()
        # Constants and empty tensors, once each; what has no reader goes.
        mlir.run_textual(new, "canonicalize,cse")
        expand(new)
        return new


def _entry(module: Any) -> Any:
    """The public function, called main if there are several."""
    functions = [
        op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
        and (
            "sym_visibility" not in op.operation.attributes
            or op.operation.attributes["sym_visibility"].value == "public"
        )
    ]
    named = [f for f in functions if f.attributes["sym_name"].value == "main"]
    chosen = named or functions
    if len(chosen) != 1:
        raise UnsupportedError(f"the module has {len(functions)} public functions, none is main")
    return chosen[0]


def _results(lowering: Any, function: Any) -> Any:
    terminator = list(function.regions[0].blocks[0].operations)[-1].operation
    return [lowering.type_of(v) for v in terminator.operands]
