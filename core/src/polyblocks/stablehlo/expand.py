"""Operations that are expanded into others, by the upstream passes on a module of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo.array import Array

if TYPE_CHECKING:
    from polyblocks.stablehlo.lowering import Lowering

_REASONS = {
    "stablehlo.rng": "its numbers come from a generator of the framework",
    "stablehlo.infeed": "it talks to the host",
    "stablehlo.outfeed": "it talks to the host",
    "stablehlo.send": "it talks to another device",
    "stablehlo.recv": "it talks to another device",
}


def expand(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    """Lower an operation of CHLO through what it is defined by.

    Raises:
        UnsupportedError: there is no definition.
    """
    if not op.name.startswith("chlo."):
        raise UnsupportedError(_REASONS.get(op.name, f"there is no lowering of {op.name}"))
    module = alone(op)
    try:
        mlir.run_textual(module, "func.func(chlo-legalize-to-stablehlo)")
    except ValueError:
        raise UnsupportedError(f"there is no definition of {op.name} on these types") from None
    block = module.body.operations[0].operation.regions[0].blocks[0]
    if any(inner.operation.name == op.name for inner in block.operations):
        raise UnsupportedError(f"there is no definition of {op.name} on these types")
    results = lowering.block(block, arguments)
    # Its values are keys of what is remembered.
    lowering.expanded.append(module)
    return results


def define(lowering: Lowering, text: str, arguments: list[Array]) -> list[Array]:
    """Lower a function given as StableHLO's text."""
    module = mlir.parse(text, ir.Context.current)
    block = module.body.operations[0].operation.regions[0].blocks[0]
    lowering.expanded.append(module)
    # Lines of the text are no line of a source.
    with lowering.sources.hidden():
        return lowering.block(block, arguments)


def alone(op: Any, name: str = "main") -> Any:
    """A module with a function that does this operation alone."""
    module = ir.Module.create()
    kinds = [v.type for v in op.operands], [v.type for v in op.results]
    with ir.InsertionPoint(module.body):
        function = mlir.dialect("func").FuncOp(name, kinds)
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        copy = op.clone().operation
        for i, argument in enumerate(block.arguments):
            copy.operands[i] = argument
        mlir.dialect("func").ReturnOp(list(copy.results))
    return module
