"""Random bits: Threefry and Philox counters, through the upstream lowering to linalg."""

from __future__ import annotations

from typing import Any

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.expand import alone
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule

_PIPELINE = "stablehlo-legalize-to-linalg,stablehlo-convert-to-signless,reconcile-unrealized-casts"


@rule("stablehlo.rng_bit_generator")
def _rng_bit_generator(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    """A function that the upstream lowering fills; ``lower`` inlines it at the end."""
    name = f"random_bits_{len(lowering.helpers)}"
    module = alone(op, name)
    try:
        mlir.run_textual(module, _PIPELINE)
    except ValueError:
        raise UnsupportedError("there is no lowering of this generator") from None
    (function,) = module.body.operations
    function.operation.attributes["sym_visibility"] = ir.StringAttr.get("private")
    lowering.helpers.append(module)
    kinds = [lowering.type_of(v) for v in op.results]
    call = ir.Operation.create(
        "func.call",
        results=[element.tensor(shape) for shape, element in kinds],
        operands=[lowering.tensor(a) for a in arguments],
        attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
    )
    return [
        Array(shape, element, value)
        for (shape, element), value in zip(kinds, call.results, strict=True)
    ]
