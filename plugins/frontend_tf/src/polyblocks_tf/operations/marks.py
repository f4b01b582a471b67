"""TensorFlow's meaning of operations that the bridge has translated, put into its StableHLO.

As :mod:`polyblocks_tf.operations.kernels` and :mod:`polyblocks_tf.operations.checks`, for what
nearly every model holds: a traced function need not be traced again for these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.stablehlo.extensions import CHECKED, WRAPS

Rule = Callable[[Any], None]


def follow_kernel(op: Any, kind: str) -> None:
    """Give an operation of StableHLO the meaning of what it comes from.

    Args:
        op: any.
        kind: the type of TensorFlow's operation; empty if it is not known.
    """
    rule = _RULES.get((op.name, kind)) or _RULES.get((op.name, ""))
    if rule is not None:
        with op.location, ir().InsertionPoint(op):
            rule(op)


def is_concerned(name: str, kind: str) -> bool:
    """Whether :func:`follow_kernel` does anything with such an operation."""
    return (name, kind) in _RULES or (name, "") in _RULES


def ir() -> Any:
    """MLIR, which only an import loads."""
    from polyblocks.mlir import ir

    return ir


def _mark(name: str) -> Rule:
    def mark(op: Any) -> None:
        op.attributes[name] = ir().UnitAttr.get(op.context)

    return mark


def _pool(op: Any) -> None:
    """It begins with the least finite number, and NaN is never beyond."""
    values = op.operands[0]
    kind = str(values.type.element_type)
    bits = {"f16": 0xFBFF, "bf16": 0xFF7F, "f32": 0xFF7FFFFF, "f64": 0xFFEFFFFFFFFFFFFF}
    if kind in bits:
        least = _constant(values.type, f"0x{bits[kind]:X}")
        op.operands[0] = _select(_compare("GT", values, least), values, least)


def _rsqrt_grad(op: Any) -> None:
    """Of the products the last one, by the gradient over -2."""
    if _made_by(op.operands[1], "stablehlo.divide"):
        _zero_where_zero(op, op.operands[1])


def _sqrt_grad(op: Any) -> None:
    """Half the gradient over the root."""
    _zero_where_zero(op, op.operands[0])


def _reciprocal_grad(op: Any) -> None:
    """Minus the product of the gradient and a square."""
    if _made_by(op.operands[0], "stablehlo.multiply"):
        _zero_where_zero(op, op.operands[0].owner.operands[0])


def _relu_grad(op: Any) -> None:
    """The gradient is multiplied by 0, which leaves of what is not finite NaN."""
    gradient = op.operands[1]
    zero = _constant(gradient.type, "0.0")
    op.operands[2] = _create("stablehlo.multiply", gradient.type, [gradient, zero])


def _elu_grad(op: Any) -> None:
    """Elements that are not below 0, NaN included, keep their gradient."""
    condition, above, below = op.operands
    if _made_by(condition, "stablehlo.compare"):
        negative = _compare("LT", *condition.owner.operands)
        op.operands[0], op.operands[1], op.operands[2] = negative, below, above


def _zero_where_zero(op: Any, gradient: Any) -> None:
    """Where no gradient comes in, none goes out, be a factor infinite."""
    result = op.results[0]
    users = [(use.owner, use.operand_number) for use in result.uses]
    with ir().InsertionPoint.after(op):
        zero = _constant(result.type, "0.0")
        chosen = _select(_compare("EQ", gradient, zero), zero, result)
    for user, number in users:
        user.operands[number] = chosen


def _made_by(value: Any, name: str) -> bool:
    owner = value.owner
    return not isinstance(owner, ir().Block) and owner.operation.name == name


def _constant(kind: Any, number: str) -> Any:
    text = f"({number}, {number})" if "complex" in str(kind) else number
    attribute = ir().Attribute.parse(f"dense<{text}> : {kind}")
    return _create("stablehlo.constant", kind, [], value=attribute)


def _compare(direction: str, x: Any, y: Any) -> Any:
    truth = ir().RankedTensorType.get(x.type.shape, ir().IntegerType.get_signless(1))
    attribute = ir().Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    return _create("stablehlo.compare", truth, [x, y], comparison_direction=attribute)


def _select(condition: Any, x: Any, y: Any) -> Any:
    return _create("stablehlo.select", x.type, [condition, x, y])


def _create(name: str, kind: Any, operands: list[Any], **attributes: Any) -> Any:
    return ir().Operation.create(name, [kind], operands, attributes).result


#: Name of an operation of StableHLO and type of TensorFlow's operation, empty for all.
_RULES: dict[tuple[str, str], Rule] = {
    ("stablehlo.convert", ""): _mark(WRAPS),
    **{
        ("stablehlo.gather", kind): _mark(CHECKED)
        for kind in ("Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd")
    },
    **{("stablehlo.reduce_window", k): _pool for k in ("MaxPool", "MaxPoolV2", "MaxPool3D")},
    ("stablehlo.multiply", "RsqrtGrad"): _rsqrt_grad,
    ("stablehlo.divide", "SqrtGrad"): _sqrt_grad,
    ("stablehlo.negate", "ReciprocalGrad"): _reciprocal_grad,
    **{("stablehlo.select", kind): _relu_grad for kind in ("ReluGrad", "Relu6Grad")},
    **{("stablehlo.select", kind): _elu_grad for kind in ("EluGrad", "SeluGrad")},
}
