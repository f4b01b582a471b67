"""TensorFlow's meaning of operations that the bridge has translated, put into its StableHLO.

As :mod:`polyblocks_tf.operations.kernels` and :mod:`polyblocks_tf.operations.checks`, for what
nearly every model holds: a traced function need not be traced again for these.
"""

from __future__ import annotations

from typing import Any

from polyblocks.stablehlo.extensions import CHECKED, WRAPS

#: Types of TensorFlow's operations whose indices have to be in the array.
_GATHERS = frozenset("Gather GatherV2 GatherNd ResourceGather ResourceGatherNd".split())

#: That begin with the least finite number; NaN is never beyond.
_POOLS = frozenset("MaxPool MaxPoolV2 MaxPool3D".split())

#: Names of operations of StableHLO that :func:`follow_kernel` looks at.
CONCERNED = frozenset({"stablehlo.convert", "stablehlo.gather", "stablehlo.reduce_window"})


def follow_kernel(op: Any, kind: str) -> None:
    """Give an operation of StableHLO the meaning of what it comes from.

    Args:
        op: one of :data:`CONCERNED`.
        kind: the type of TensorFlow's operation; empty if it is not known.
    """
    from polyblocks.mlir import ir

    if op.name == "stablehlo.convert":
        op.attributes[WRAPS] = ir.UnitAttr.get(op.context)
    elif op.name == "stablehlo.gather" and kind in _GATHERS:
        op.attributes[CHECKED] = ir.UnitAttr.get(op.context)
    elif op.name == "stablehlo.reduce_window" and kind in _POOLS:
        with op.location, ir.InsertionPoint(op):
            op.operands[0] = _above_least(op.operands[0])


def _above_least(values: Any) -> Any:
    """Of NaN and minus infinity the least finite number."""
    from polyblocks.mlir import ir

    type_ = ir.RankedTensorType(values.type)
    if not isinstance(type_.element_type, ir.FloatType):
        return values
    bits = {"f16": 0xFBFF, "bf16": 0xFF7F, "f32": 0xFF7FFFFF, "f64": 0xFFEFFFFFFFFFFFFF}
    number = ir.Attribute.parse(f"0x{bits[str(type_.element_type)]:X} : {type_.element_type}")
    least = ir.Operation.create(
        "stablehlo.constant", [type_], [], {"value": ir.DenseElementsAttr.get_splat(type_, number)}
    ).result
    greater = ir.Attribute.parse("#stablehlo<comparison_direction GT>")
    condition = ir.Operation.create(
        "stablehlo.compare",
        [ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(1))],
        [values, least],
        {"comparison_direction": greater},
    ).result
    return ir.Operation.create("stablehlo.select", [type_], [condition, values, least]).result
