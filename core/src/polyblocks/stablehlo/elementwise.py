"""Elementwise operations on scalars, with XLA's meaning where languages differ.

Integer division by zero gives -1 (all bits set), the remainder of it the dividend; the least
integer over -1 is itself; shifts by the width or more give 0 or the sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo import code, complexes
from polyblocks.stablehlo.code import emit
from polyblocks.stablehlo.convert import convert
from polyblocks.stablehlo.element import Element
from polyblocks.stablehlo.extensions import WRAPS


@dataclass(frozen=True)
class Call:
    """One elementwise operation on scalars.

    Attributes:
        op: the StableHLO operation, for its attributes.
        args: the scalars.
        kinds: their element types.
        result: element type of the result.
    """

    op: Any
    args: list[Any]
    kinds: list[Element]
    result: Element

    @property
    def kind(self) -> Element:
        """Element type of the first operand."""
        return self.kinds[0]

    def refuse(self) -> UnsupportedError:
        """The error for operands of a type that the operation does not take here."""
        return UnsupportedError(f"no code for it on elements of type {self.kind.name}")


Rule = Callable[[Call], Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the code of operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def compute(op: Any, args: list[Any], kinds: list[Element], result: Element) -> Any:
    """The scalar that an operation of :data:`RULES` computes.

    Raises:
        UnsupportedError: not for these element types.
    """
    return RULES[op.name](Call(op, args, kinds, result))


def _short(name: str) -> str:
    return name.split(".", 1)[1]


# Functions of floats, real and complex

_REAL = {
    "cbrt": "math.cbrt", "cosine": "math.cos", "exponential": "math.exp",
    "exponential_minus_one": "math.expm1", "log": "math.log", "log_plus_one": "math.log1p",
    "rsqrt": "math.rsqrt", "sine": "math.sin", "sqrt": "math.sqrt", "tan": "math.tan",
    "tanh": "math.tanh", "ceil": "math.ceil", "floor": "math.floor",
    "round_nearest_afz": "math.round", "round_nearest_even": "math.roundeven",
}  # fmt: skip
#: Operations of CHLO that have an operation of their own; on complex numbers they are expanded.
CHLO = {
    "acos": "math.acos", "acosh": "math.acosh", "asin": "math.asin", "asinh": "math.asinh",
    "atan": "math.atan", "atanh": "math.atanh", "cosh": "math.cosh", "erf": "math.erf",
    "erfc": "math.erfc", "sinh": "math.sinh", "tan": "math.tan",
}  # fmt: skip


@rule(*(f"stablehlo.{name}" for name in (*_REAL, "power", "logistic", "atan2")))
def _function(call: Call) -> Any:
    name = _short(call.op.name)
    if call.kind.is_complex:
        return complex_function(name, call)
    if call.kind.is_integer and name == "power":
        return _integer_power(call)
    if not call.kind.is_float:
        raise call.refuse()
    if name == "power":
        return emit("math.powf", call.args)
    if name == "atan2":
        y, x = call.args
        # XLA has no arc tangent of one number.
        return emit("math.atan", [y]) if code.is_constant(x, 1.0) else emit("math.atan2", [y, x])
    if name == "logistic":
        one = code.constant(call.kind, 1.0)
        e = emit("math.exp", [emit("arith.negf", call.args)])
        return emit("arith.divf", [one, emit("arith.addf", [one, e])])
    return emit(_REAL[name], call.args)


@rule(*(f"chlo.{name}" for name in CHLO))
def _chlo_function(call: Call) -> Any:
    if not call.kind.is_float:
        raise call.refuse()
    return emit(CHLO[_short(call.op.name)], call.args)


def complex_function(name: str, call: Call) -> Any:
    """A function of complex numbers.

    Raises:
        UnsupportedError: there is no code for it.
    """
    function = complexes.FUNCTIONS.get(name)
    if function is None:
        raise call.refuse()
    pairs = [code.parts(x) for x in call.args]
    return code.join(*function(complexes.Reals(call.kind.part), *pairs))


def _integer_power(call: Call) -> Any:
    """Powers modulo the width, by squaring; a negative exponent gives 0 but for the bases ±1."""
    kind = call.kind
    base, exponent = call.args
    one, zero = code.constant(kind, 1), code.constant(kind, 0)
    result = one
    square = base
    for bit in range(kind.width - (not kind.is_unsigned)):
        chosen = code.both(exponent, code.constant(kind, 1 << bit))
        chosen = code.compare_int("ne", chosen, zero)
        result = code.select(chosen, emit("arith.muli", [result, square]), result)
        square = emit("arith.muli", [square, square])
    if kind.is_unsigned:
        return result
    minus = code.constant(kind, -1)
    odd = code.compare_int("ne", code.both(exponent, one), zero)
    unit = code.select(odd, minus, one)
    below = code.select(code.compare_int("eq", base, minus), unit, zero)
    below = code.select(code.compare_int("eq", base, one), one, below)
    return code.select(code.compare_int("slt", exponent, zero), below, result)


# Arithmetic

_ARITHMETIC = {
    "add": ("arith.addf", "arith.addi", "arith.ori"),
    "subtract": ("arith.subf", "arith.subi", None),
    "multiply": ("arith.mulf", "arith.muli", "arith.andi"),
}


@rule(*(f"stablehlo.{name}" for name in _ARITHMETIC))
def _arithmetic(call: Call) -> Any:
    name = _short(call.op.name)
    if call.kind.is_complex:
        return complex_function(name, call)
    on_floats, on_integers, on_bools = _ARITHMETIC[name]
    chosen = on_floats if call.kind.is_float else on_bools if call.kind.is_bool else on_integers
    if chosen is None:
        raise call.refuse()
    return emit(chosen, call.args)


@rule("stablehlo.divide")
def _divide(call: Call) -> Any:
    if call.kind.is_complex:
        return complex_function("divide", call)
    if call.kind.is_float:
        return emit("arith.divf", call.args)
    quotient, by_zero = _guarded("div", call)
    return code.select(by_zero, code.constant(call.kind, -1), quotient)


@rule("stablehlo.remainder")
def _remainder(call: Call) -> Any:
    if call.kind.is_float:
        return emit("arith.remf", call.args)
    rest, by_zero = _guarded("rem", call)
    return code.select(by_zero, call.args[0], rest)


def _guarded(name: str, call: Call) -> tuple[Any, Any]:
    """A division that cannot trap, and whether the divisor is zero.

    The least integer over -1 is divided by 1 instead, which gives what is wanted.
    """
    if not call.kind.is_integer:
        raise call.refuse()
    x, y = call.args
    by_zero = bad = code.compare_int("eq", y, code.constant(call.kind, 0))
    if not call.kind.is_unsigned:
        least = code.compare_int("eq", x, code.constant(call.kind, call.kind.lowest))
        minus = code.compare_int("eq", y, code.constant(call.kind, -1))
        bad = code.either(by_zero, code.both(least, minus))
    safe = code.select(bad, code.constant(call.kind, 1), y)
    return emit(f"arith.{name}{'u' if call.kind.is_unsigned else 's'}i", [x, safe]), by_zero


@rule("stablehlo.maximum", "stablehlo.minimum")
def _extremum(call: Call) -> Any:
    name = _short(call.op.name)[:3]
    if call.kind.is_complex:
        raise call.refuse()
    if call.kind.is_float:
        return emit(f"arith.{name}imumf", call.args)
    return emit(f"arith.{name}{'u' if call.kind.is_unsigned else 's'}i", call.args)


@rule("stablehlo.clamp")
def _clamp(call: Call) -> Any:
    low, x, high = call.args
    if call.kind.is_complex:
        raise call.refuse()
    if call.kind.is_float:
        return emit("arith.minimumf", [emit("arith.maximumf", [low, x]), high])
    sign = "u" if call.kind.is_unsigned else "s"
    return emit(f"arith.min{sign}i", [emit(f"arith.max{sign}i", [low, x]), high])


@rule("stablehlo.abs")
def _abs(call: Call) -> Any:
    (x,) = call.args
    if call.kind.is_complex:
        return complexes.absolute(complexes.Reals(call.kind.part), code.parts(x))
    if call.kind.is_float:
        return emit("math.absf", [x])
    if call.kind.is_unsigned:
        return x
    zero = code.constant(call.kind, 0)
    negative = code.compare_int("slt", x, zero)
    return code.select(negative, emit("arith.subi", [zero, x]), x)


@rule("stablehlo.negate")
def _negate(call: Call) -> Any:
    if call.kind.is_complex:
        return complex_function("negate", call)
    if call.kind.is_float:
        return emit("arith.negf", call.args)
    return emit("arith.subi", [code.constant(call.kind, 0), *call.args])


@rule("stablehlo.sign")
def _sign(call: Call) -> Any:
    (x,) = call.args
    if call.kind.is_complex:
        return complex_function("sign", call)
    zero, one = code.constant(call.kind, 0), code.constant(call.kind, 1)
    if call.kind.is_float:
        # Zeros of either sign and NaN are their own sign.
        number = code.compare_float("ogt", emit("math.absf", [x]), zero)
        return code.select(number, emit("math.copysign", [one, x]), x)
    positive = "ugt" if call.kind.is_unsigned else "sgt"
    above = code.select(code.compare_int(positive, x, zero), one, zero)
    if call.kind.is_unsigned:
        return above
    return code.select(code.compare_int("slt", x, zero), code.constant(call.kind, -1), above)


# Comparisons, truth values and bits

_PREDICATES = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def direction(op: Any) -> str:
    """``EQ``, ``LT`` ... of a comparison."""
    return _enum(op.attributes["comparison_direction"])


def is_total(op: Any) -> bool:
    """Whether a comparison of floats is that of their total order."""
    attributes = op.attributes
    return "compare_type" in attributes and _enum(attributes["compare_type"]) == "TOTALORDER"


def _enum(attribute: Any) -> str:
    """``#stablehlo<comparison_direction LT>`` -> ``LT``."""
    return str(attribute).rstrip(">").split()[-1]


@rule("stablehlo.compare")
def _compare(call: Call) -> Any:
    predicate = _PREDICATES[direction(call.op)]
    kind = call.kind
    x, y = call.args
    if kind.is_complex:
        pairs = zip(code.parts(x), code.parts(y), strict=True)
        if predicate == "eq":
            return code.both(*(code.compare_float("oeq", a, b) for a, b in pairs))
        if predicate == "ne":
            return code.either(*(code.compare_float("une", a, b) for a, b in pairs))
        raise call.refuse()
    if kind.is_float:
        if is_total(call.op):
            integer = Element(f"i{kind.width}")
            x, y = (total_order(v, kind) for v in (x, y))
            return _compare_integers(predicate, x, y, integer)
        return code.compare_float(("u" if predicate == "ne" else "o") + predicate, x, y)
    return _compare_integers(predicate, x, y, kind)


def _compare_integers(predicate: str, x: Any, y: Any, kind: Element) -> Any:
    if predicate not in ("eq", "ne"):
        predicate = ("u" if kind.is_unsigned else "s") + predicate
    return code.compare_int(predicate, x, y)


def total_order(x: Any, kind: Element) -> Any:
    """A signed integer for a float: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    integer = Element(f"i{kind.width}")
    bits = emit("arith.bitcast", [x], integer.type)
    sign = emit("arith.shrsi", [bits, code.constant(integer, kind.width - 1)])
    # The magnitude of negative numbers counts downwards: flip all bits but the sign.
    flip = code.both(sign, code.constant(integer, integer.highest))
    return emit("arith.xori", [bits, flip])


@rule("stablehlo.select")
def _select(call: Call) -> Any:
    return code.select(*call.args)


@rule("stablehlo.and", "stablehlo.or", "stablehlo.xor")
def _bitwise(call: Call) -> Any:
    return emit(f"arith.{_short(call.op.name)}i", call.args)


@rule("stablehlo.not")
def _not(call: Call) -> Any:
    return emit("arith.xori", [*call.args, code.constant(call.kind, -1)])


@rule("stablehlo.shift_left", "stablehlo.shift_right_logical", "stablehlo.shift_right_arithmetic")
def _shift(call: Call) -> Any:
    x, count = call.args
    width = code.constant(call.kind, call.kind.width)
    fits = code.compare_int("ult", count, width)
    name = _short(call.op.name)
    if name == "shift_right_arithmetic":
        # The sign alone is left of what is shifted by all bits but one.
        last = code.constant(call.kind, call.kind.width - 1)
        return emit("arith.shrsi", [x, code.select(fits, count, last)])
    zero = code.constant(call.kind, 0)
    safe = code.select(fits, count, zero)
    shifted = emit("arith.shli" if name == "shift_left" else "arith.shrui", [x, safe])
    return code.select(fits, shifted, zero)


@rule("stablehlo.popcnt")
def _popcnt(call: Call) -> Any:
    return emit("math.ctpop", call.args)


@rule("stablehlo.count_leading_zeros")
def _clz(call: Call) -> Any:
    return emit("math.ctlz", call.args)


# Types


@rule("stablehlo.convert")
def _convert(call: Call) -> Any:
    return convert(call.args[0], call.kind, call.result, wraps=WRAPS in call.op.attributes)


@rule("stablehlo.bitcast_convert")
def _bitcast(call: Call) -> Any:
    """Between element types of one width; others are no elementwise operations."""
    if call.kind.is_complex or call.result.is_complex or call.kind.is_bool:
        raise call.refuse()
    if call.kind.type == call.result.type:
        return call.args[0]
    return emit("arith.bitcast", call.args, call.result.type)


@rule("stablehlo.is_finite")
def _is_finite(call: Call) -> Any:
    if not call.kind.is_float:
        raise call.refuse()
    size = emit("math.absf", call.args)
    return code.compare_float("olt", size, code.constant(call.kind, float("inf")))


@rule("stablehlo.reduce_precision")
def _reduce_precision(call: Call) -> Any:
    """Round to fewer bits of exponent and mantissa: to nearest even, on the bits."""
    kind = call.kind
    if not kind.is_float:
        raise call.refuse()
    exponent = ir.IntegerAttr(call.op.attributes["exponent_bits"]).value
    mantissa = ir.IntegerAttr(call.op.attributes["mantissa_bits"]).value
    own_exponent, own_mantissa = _FORMATS[kind.name]
    integer = Element(f"ui{kind.width}")

    def number(value: int) -> Any:
        return code.constant(integer, value)

    (x,) = call.args
    bits = emit("arith.bitcast", [x], integer.type)
    if mantissa < own_mantissa:
        dropped = own_mantissa - mantissa
        last = code.both(emit("arith.shrui", [bits, number(dropped)]), number(1))
        bias = emit("arith.addi", [last, number((1 << (dropped - 1)) - 1)])
        bits = emit("arith.addi", [bits, bias])
        bits = code.both(bits, number(-1 << dropped))
    if exponent < own_exponent:
        sign = code.both(bits, number(1 << (kind.width - 1)))
        field = code.both(bits, number(((1 << own_exponent) - 1) << own_mantissa))
        own_bias = (1 << (own_exponent - 1)) - 1
        bias = (1 << (exponent - 1)) - 1
        high = number((own_bias + bias) << own_mantissa)
        low = number((own_bias - bias) << own_mantissa)
        infinity = number(((1 << own_exponent) - 1) << own_mantissa)
        over = code.compare_int("ugt", field, high)
        under = code.compare_int("ule", field, low)
        bits = code.select(over, code.either(sign, infinity), bits)
        bits = code.select(under, sign, bits)
    rounded = emit("arith.bitcast", [bits], kind.type)
    if mantissa == 0:
        # No bit is left that tells NaN from infinity.
        infinity_ = code.constant(kind, float("inf"))
        return code.select(code.is_nan(x), infinity_, rounded)
    return code.select(code.is_nan(x), x, rounded)


_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


@rule("stablehlo.real")
def _real(call: Call) -> Any:
    return code.parts(call.args[0])[0] if call.kind.is_complex else call.args[0]


@rule("stablehlo.imag")
def _imag(call: Call) -> Any:
    if call.kind.is_complex:
        return code.parts(call.args[0])[1]
    return code.constant(call.result, 0.0)


@rule("stablehlo.complex")
def _complex(call: Call) -> Any:
    return code.join(*call.args)


@rule("chlo.is_inf", "chlo.is_pos_inf", "chlo.is_neg_inf")
def _is_inf(call: Call) -> Any:
    if not call.kind.is_float:
        raise call.refuse()
    (x,) = call.args
    name = _short(call.op.name)
    if name == "is_inf":
        x = emit("math.absf", [x])
    limit = float("-inf") if name == "is_neg_inf" else float("inf")
    return code.compare_float("oeq", x, code.constant(call.kind, limit))


@rule("chlo.next_after")
def _next_after(call: Call) -> Any:
    kind = call.kind
    if not kind.is_float:
        raise call.refuse()
    x, y = call.args
    integer = Element(f"i{kind.width}")
    bits = emit("arith.bitcast", [x], integer.type)
    zero, one = code.constant(kind, 0.0), code.constant(integer, 1)
    # One step away from zero if x and the way to y have the same sign.
    upwards = code.compare_float("ogt", y, x)
    positive = code.compare_float("ogt", x, zero)
    away = code.compare_int("eq", upwards, positive)
    step = code.select(away, one, code.constant(integer, -1))
    moved = emit("arith.bitcast", [emit("arith.addi", [bits, step])], kind.type)
    least = emit("arith.bitcast", [one], kind.type)
    moved = code.select(
        code.compare_float("oeq", x, zero), emit("math.copysign", [least, y]), moved
    )
    moved = code.select(code.compare_float("oeq", x, y), y, moved)
    odd = code.either(code.is_nan(x), code.is_nan(y))
    return code.select(odd, emit("arith.addf", [x, y]), moved)
