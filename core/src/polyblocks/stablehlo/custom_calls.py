"""Custom calls whose meaning is known; all others are refused by name."""

from __future__ import annotations

from typing import Any

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import text
from polyblocks.stablehlo.extensions import ALGORITHM, CHECK
from polyblocks.stablehlo.factorizations import called_algorithm, lapack
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule
from polyblocks.stablehlo.shapes import static_slice
from polyblocks.stablehlo.sorting import sort

#: They say where arrays lie.
_IDENTITIES = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})


@rule("stablehlo.custom_call")
def _custom_call(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    target = text(op, "call_target_name")
    if target in _IDENTITIES:
        return arguments
    if target == CHECK:
        array, holds = arguments
        return _checked(lowering, array, holds, text(op, "backend_config"))
    if target == ALGORITHM:
        return called_algorithm(lowering, op, text(op, "backend_config"), arguments)
    if target == "ApproxTopK":
        return _approximate_top_k(lowering, op, arguments)
    results = lapack(lowering, op, target, arguments)
    if results is None:
        raise UnsupportedError(f"the custom call {target} is code of a library")
    return results


def _checked(lowering: Lowering, array: Array, holds: Array, message: str) -> list[Array]:
    if not array.numel or holds.splat or (holds.known is not None and holds.known.all()):
        return [array]
    if not array.rank:
        # Facts about the number stay known.
        mlir.dialect("cf").AssertOp(lowering.scalar(holds), message)
        return [array]
    loops = range(array.rank)

    def body(loaded: list[Any]) -> list[Any]:
        mlir.dialect("cf").AssertOp(loaded[1], message)
        return [loaded[0]]

    inputs = [lowering.operand(each, loops) for each in (array, holds)]
    return lowering.generic(array.shape, inputs, [array.element], body)


def _approximate_top_k(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    """The exact first elements, in the order that the comparator says."""
    options = ir.DictAttr(op.attributes["mhlo.backend_config"])
    dim = ir.IntegerAttr(options["reduction_dim"]).value
    (name,) = op.attributes["called_computations"]
    region = lowering.functions[ir.FlatSymbolRefAttr(name).value].regions[0]
    arrays = arguments[: len(arguments) // 2]
    ordered = sort(lowering, region, arrays, dim, stable=True)
    shape, _ = lowering.type_of(op.results[0])
    return [static_slice(lowering, array, [0] * array.rank, shape) for array in ordered]
