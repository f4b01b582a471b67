"""Element-wise operations: in which type each computes, and what it computes of scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from polyblocks import mlir
from polyblocks_torch.elementwise import scalars as s
from polyblocks_torch.elementwise.scalars import FLOATS, INTEGERS, Scalar

aten, prims = torch.ops.aten, torch.ops.prims

#: Computes the result of operands that have been converted.
Body = Callable[[Sequence[Scalar], fx.Node], Scalar]
#: The type that operands are converted to; None to leave them as they are.
Rule = Callable[[fx.Node], torch.dtype | None]


def result_dtype(node: fx.Node) -> torch.dtype:
    """The type of a node's result."""
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def _of_result(node: fx.Node) -> torch.dtype:
    return result_dtype(node)


def _of_operands(node: fx.Node) -> torch.dtype:
    """The common type of both operands, as comparisons have it."""
    operands: list[Any] = [a.meta["val"] if isinstance(a, fx.Node) else a for a in node.args[:2]]
    x, y = operands
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.dtype == y.dtype:
        return x.dtype
    return torch.result_type(x, y)


def _of_booleans(node: fx.Node) -> torch.dtype:
    return torch.bool


def _of_arithmetic(node: fx.Node) -> torch.dtype:
    """The type that PyTorch's kernels compute the result in."""
    return torch._prims_common.get_computation_dtype(result_dtype(node))


def _as_they_are(node: fx.Node) -> None:
    return None


@dataclass(frozen=True)
class Operation:
    """How an operation is imported.

    Attributes:
        body: what it computes; the result is converted to the node's type.
        rule: the type that operands are converted to before.
        operands: how many of the leading arguments are operands.
        floats: whether it is imported here if it computes floats; torch-mlir imports others.
    """

    body: Body
    rule: Rule = _of_result
    operands: int = 1
    floats: bool = True


def operation_of(node: fx.Node) -> Operation | None:
    """How a node is imported here; None if torch-mlir imports it."""
    operation = OPERATIONS.get(node.target)
    value = node.meta.get("val")
    if operation is None or not isinstance(value, torch.Tensor) or not _is_known(value.dtype):
        return None
    operands = [a.meta["val"] for a in node.args[: operation.operands] if isinstance(a, fx.Node)]
    if not all(isinstance(v, torch.Tensor) and _is_known(v.dtype) for v in operands):
        return None
    if not operation.floats and any(v.dtype in FLOATS for v in (value, *operands)):
        return None
    if node.target is aten.view.dtype and operands[0].itemsize != value.itemsize:
        return None
    return operation


def _is_known(dtype: torch.dtype) -> bool:
    return dtype in FLOATS or dtype in INTEGERS


def _argument(node: fx.Node, position: int, name: str, default: Any = None) -> Any:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


# --- arithmetic -----------------------------------------------------------------------------------


def _scaled(y: Scalar, node: fx.Node) -> Scalar:
    alpha = _argument(node, 2, "alpha", 1)
    if alpha == 1 and alpha is not True:
        return y
    return _multiply([y, s.constant(alpha, y.dtype)], node)


def _add(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    x, y = operands[0], _scaled(operands[1], node)
    return s.bit_or(x, y) if x.dtype is torch.bool else s.add(x, y)


def _subtract(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    return s.subtract(operands[0], _scaled(operands[1], node))


def _subtract_from(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    return s.subtract(operands[1], _scaled(operands[0], node))


def _multiply(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    x, y = operands
    return s.bit_and(x, y) if x.dtype is torch.bool else s.multiply(x, y)


def _divide(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    return s.divide(*operands)


def _divide_to_whole(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    quotient = s.divide(*operands)
    mode = _argument(node, 2, "rounding_mode")
    if not quotient.is_float or mode is None:
        return quotient
    math_dialect = mlir.dialect("math")
    make = math_dialect.FloorOp if mode == "floor" else math_dialect.TruncOp
    return Scalar(make(quotient.value).result, quotient.dtype)


def _remainder(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    """With the sign of the divisor."""
    x, y = operands
    rest = s.remainder(x, y)
    if rest.is_unsigned:
        return rest
    zero = s.constant(0, rest.dtype)
    signs_differ = s.compare("lt", s.bit_xor(rest, y), zero)
    turns = s.bit_and(s.compare("ne", rest, zero), signs_differ)
    return s.select(turns, s.add(rest, y), rest)


def _fmod(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    return s.remainder(*operands)


def _absolute(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    if x.is_unsigned:
        return x
    zero = s.constant(0, x.dtype)
    return s.select(s.compare("lt", x, zero), s.subtract(zero, x), x)


def _negate(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    return s.subtract(s.constant(0, x.dtype), x)


def _sign(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    zero = s.constant(0, x.dtype)
    positive = s.convert(s.compare("gt", x, zero), x.dtype)
    if x.is_unsigned:
        return positive
    return s.subtract(positive, s.convert(s.compare("lt", x, zero), x.dtype))


def _greatest_divisor(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    # The magnitude of the least integer is its bits without a sign.
    return s.greatest_divisor(*(_absolute([x], node) for x in operands))


def _least_multiple(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    """One number over the divisor, times the other, without divisions.

    The quotient is exact: zeros at the end are shifted out, and an odd number has an inverse modulo
    the power of two. Newton's steps double the bits of the inverse that are right, five at first
    (P. Montgomery).
    """
    x, y = operands
    divisor = _greatest_divisor(operands, node)
    zeros = s.bit_and(s.trailing_zeros(divisor), s.constant(INTEGERS[x.dtype] - 1, x.dtype))
    odd = s.shift_right_logically(divisor, zeros)
    two, three = (s.constant(n, x.dtype) for n in (2, 3))
    inverse, right = s.bit_xor(s.multiply(odd, three), two), 5
    while right < INTEGERS[x.dtype]:
        inverse = s.multiply(inverse, s.subtract(two, s.multiply(odd, inverse)))
        right *= 2
    quotient = s.multiply(s.shift_right(x, zeros), inverse)
    return _absolute([s.multiply(quotient, y)], node)


def _of_c(node: fx.Node) -> torch.dtype:
    """C computes with 32 bits at least."""
    return torch.promote_types(result_dtype(node), torch.int32)


def _copy(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    return operands[0]


# --- order ----------------------------------------------------------------------------------------


def _comparison(name: str) -> Body:
    def body(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
        return s.compare(name, *operands)

    return body


def _extremum(name: str) -> Body:
    """The operand that compares so with the other, or a NaN."""

    def body(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
        x, y = operands
        chosen = s.compare(name, x, y)
        if x.is_float:
            chosen = s.bit_or(chosen, s.compare("ne", x, x))
        return s.select(chosen, x, y)

    return body


def _clamp(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    x, *bounds = operands
    for bound, name, position in zip(bounds, ("min", "max"), (1, 2), strict=False):
        if _argument(node, position, name) is not None:
            x = _bounded(x, bound, "lt" if name == "min" else "gt")
    return x


def _bounded(x: Scalar, bound: Scalar, outside: str) -> Scalar:
    return s.select(s.compare(outside, x, bound), bound, x)


def _clamp_min(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    x, bound = operands
    return _bounded(x, bound, "lt")


def _clamp_max(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    x, bound = operands
    return _bounded(x, bound, "gt")


def _relu(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    return _bounded(x, s.constant(0, x.dtype), "lt")


# --- bits and truth -------------------------------------------------------------------------------


def _bits(function: Callable[[Scalar, Scalar], Scalar]) -> Body:
    def body(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
        return function(*operands)

    return body


def _not(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    return s.bit_xor(x, s.constant(True if x.dtype is torch.bool else -1, x.dtype))


def _shifts_within(amount: Scalar, limit: int) -> Scalar:
    """Whether an amount is from 0 to below a limit."""
    below = s.compare("lt", amount, s.constant(limit, amount.dtype))
    if amount.is_unsigned:
        return below
    return s.bit_and(below, s.compare("ge", amount, s.constant(0, amount.dtype)))


def _shift_left(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    """Nothing is left where the amount is negative or too large."""
    x, amount = operands
    zero = s.constant(0, x.dtype)
    inside = _shifts_within(amount, INTEGERS[x.dtype])
    shifted = s.shift_left(x, s.select(inside, amount, zero))
    return s.select(inside, shifted, zero)


def _shift_right(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    """The sign is left where the amount is negative or too large."""
    x, amount = operands
    width = INTEGERS[x.dtype]
    if not x.is_unsigned:
        most = s.constant(width - 1, x.dtype)
        return s.shift_right(x, s.select(_shifts_within(amount, width - 1), amount, most))
    inside = _shifts_within(amount, width)
    zero = s.constant(0, x.dtype)
    return s.select(inside, s.shift_right(x, s.select(inside, amount, zero)), zero)


def _where(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    condition, x, y = operands
    dtype = result_dtype(node)
    return s.select(s.convert(condition, torch.bool), s.convert(x, dtype), s.convert(y, dtype))


def _never(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    return s.constant(False, torch.bool)


# --- floats ---------------------------------------------------------------------------------------


def _of_math(name: str) -> Body:
    def body(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
        make = getattr(mlir.dialect("math"), name)
        return Scalar(make(*(x.value for x in operands)).result, operands[0].dtype)

    return body


def _round_decimals(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    decimals = _argument(node, 1, "decimals", 0)
    power = s.constant(10.0 ** abs(decimals), x.dtype)
    scaled = s.multiply(x, power) if decimals > 0 else s.divide(x, power)
    whole = Scalar(mlir.dialect("math").RoundEvenOp(scaled.value).result, x.dtype)
    return s.divide(whole, power) if decimals > 0 else s.multiply(whole, power)


def _reinterpret(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    (x,) = operands
    dtype = result_dtype(node)
    if torch.bool in (x.dtype, dtype):
        # A boolean is a byte in memory, and a bit here.
        return s.convert(x, dtype)
    kind = s.element_type(dtype)
    if x.value.type == kind:
        return Scalar(x.value, dtype)
    return Scalar(mlir.dialect("arith").BitcastOp(kind, x.value).result, dtype)


def _convert_freely(operands: Sequence[Scalar], node: fx.Node) -> Scalar:
    """A conversion that a decomposition has added; there and back is nothing."""
    return s.convert(operands[0], result_dtype(node), exactly=False)


_COMPARED = {
    getattr(getattr(aten, name), overload): Operation(_comparison(name), _of_operands, 2)
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Tensor", "Scalar")
}
_SHIFTS = {
    **dict.fromkeys(
        (
            *(aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar),
            *(aten.bitwise_left_shift.Scalar_Tensor, aten.__lshift__.Tensor),
            aten.__lshift__.Scalar,
        ),
        Operation(_shift_left, operands=2, floats=False),
    ),
    **dict.fromkeys(
        (
            *(aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar),
            *(aten.bitwise_right_shift.Scalar_Tensor, aten.__rshift__.Tensor),
            aten.__rshift__.Scalar,
        ),
        Operation(_shift_right, operands=2, floats=False),
    ),
}
_BITWISE = {
    getattr(getattr(aten, f"bitwise_{name}"), overload): Operation(_bits(function), operands=2)
    for name, function in (("and", s.bit_and), ("or", s.bit_or), ("xor", s.bit_xor))
    for overload in ("Tensor", "Scalar", "Scalar_Tensor")
}
_LOGICAL = {
    getattr(aten, f"logical_{name}").default: Operation(_bits(function), _of_booleans, 2)
    for name, function in (("and", s.bit_and), ("or", s.bit_or), ("xor", s.bit_xor))
}

OPERATIONS: dict[Any, Operation] = {
    **dict.fromkeys((aten.add.Tensor, aten.add.Scalar), Operation(_add, operands=2)),
    **dict.fromkeys((aten.sub.Tensor, aten.sub.Scalar), Operation(_subtract, operands=2)),
    **dict.fromkeys((aten.rsub.Tensor, aten.rsub.Scalar), Operation(_subtract_from, operands=2)),
    **dict.fromkeys((aten.mul.Tensor, aten.mul.Scalar), Operation(_multiply, operands=2)),
    **dict.fromkeys((aten.div.Tensor, aten.div.Scalar), Operation(_divide, operands=2)),
    **dict.fromkeys(
        (aten.div.Tensor_mode, aten.div.Scalar_mode), Operation(_divide_to_whole, operands=2)
    ),
    **dict.fromkeys(
        (aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor),
        Operation(_remainder, operands=2, floats=False),
    ),
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), Operation(_fmod, operands=2)),
    aten.gcd.default: Operation(_greatest_divisor, operands=2, floats=False),
    aten.lcm.default: Operation(_least_multiple, _of_c, operands=2, floats=False),
    aten.abs.default: Operation(_absolute, floats=False),
    aten.neg.default: Operation(_negate, floats=False),
    **dict.fromkeys((aten.sign.default, aten.sgn.default), Operation(_sign)),
    **dict.fromkeys(
        (
            *(aten.ceil.default, aten.floor.default, aten.trunc.default, aten.round.default),
            aten._conj_physical.default,
        ),
        Operation(_copy, floats=False),
    ),
    **_COMPARED,
    aten.maximum.default: Operation(_extremum("gt"), operands=2),
    aten.minimum.default: Operation(_extremum("lt"), operands=2),
    aten.clamp.default: Operation(_clamp, operands=3),
    aten.clamp.Tensor: Operation(_clamp, operands=3, floats=False),
    **dict.fromkeys(
        (aten.clamp_min.default, aten.clamp_min.Tensor),
        Operation(_clamp_min, operands=2, floats=False),
    ),
    **dict.fromkeys(
        (aten.clamp_max.default, aten.clamp_max.Tensor),
        Operation(_clamp_max, operands=2, floats=False),
    ),
    aten.relu.default: Operation(_relu, floats=False),
    **_BITWISE,
    aten.bitwise_not.default: Operation(_not),
    **_SHIFTS,
    **_LOGICAL,
    aten.logical_not.default: Operation(_not, _of_booleans),
    aten.where.self: Operation(_where, _as_they_are, 3),
    aten.isnan.default: Operation(_never, _as_they_are, floats=False),
    aten.isinf.default: Operation(_never, _as_they_are, floats=False),
    aten._to_copy.default: Operation(_copy),
    prims.convert_element_type.default: Operation(_convert_freely, _as_they_are),
    aten.view.dtype: Operation(_reinterpret, _as_they_are),
    aten.round.decimals: Operation(_round_decimals, _of_arithmetic),
    aten.erfc.default: Operation(_of_math("ErfcOp")),
    # A power of 2 for torch-mlir.
    aten.exp2.default: Operation(_of_math("Exp2Op")),
    aten.copysign.Tensor: Operation(_of_math("CopySignOp"), operands=2),
}
