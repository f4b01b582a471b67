"""Arithmetic and functions of complex numbers, on pairs of real scalars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from polyblocks.stablehlo import code
from polyblocks.stablehlo.code import emit
from polyblocks.stablehlo.element import Element

#: Real and imaginary part.
Pair = tuple[Any, Any]


class Reals:
    """Short names for real arithmetic of one element type."""

    def __init__(self, element: Element) -> None:
        self.element = element

    def number(self, value: float) -> Any:
        """A constant."""
        return code.constant(self.element, value)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = _OPERATIONS.get(name)
        if operation is None:
            raise AttributeError(name)
        return lambda *operands: emit(operation, operands)


_OPERATIONS = {
    "add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf",
    "neg": "arith.negf", "max": "arith.maximumf", "min": "arith.minimumf", "abs": "math.absf",
    "exp": "math.exp", "expm1": "math.expm1", "log": "math.log", "log1p": "math.log1p",
    "sin": "math.sin", "cos": "math.cos", "tan": "math.tan", "tanh": "math.tanh",
    "sinh": "math.sinh", "cosh": "math.cosh", "sqrt": "math.sqrt", "atan2": "math.atan2",
    "copysign": "math.copysign",
}  # fmt: skip


def add(r: Reals, x: Pair, y: Pair) -> Pair:
    return r.add(x[0], y[0]), r.add(x[1], y[1])


def subtract(r: Reals, x: Pair, y: Pair) -> Pair:
    return r.sub(x[0], y[0]), r.sub(x[1], y[1])


def multiply(r: Reals, x: Pair, y: Pair) -> Pair:
    re = r.sub(r.mul(x[0], y[0]), r.mul(x[1], y[1]))
    return re, r.add(r.mul(x[0], y[1]), r.mul(x[1], y[0]))


def negate(r: Reals, x: Pair) -> Pair:
    return r.neg(x[0]), r.neg(x[1])


def divide(r: Reals, x: Pair, y: Pair) -> Pair:
    """Smith's method: the quotient of the divisor's parts keeps products in range."""
    zero = r.number(0.0)
    wide = code.compare_float("oge", r.abs(y[0]), r.abs(y[1]))
    big, small = code.select(wide, y[0], y[1]), code.select(wide, y[1], y[0])
    # 0/0 and inf/inf would make NaN of quotients that have a value.
    ratio = r.div(small, big)
    endless = _infinite(r, big)
    ratio = code.select(code.both(endless, _finite(r, small)), zero, ratio)
    below = r.add(big, r.mul(small, ratio))
    a, b = x
    re = code.select(wide, r.add(a, r.mul(b, ratio)), r.add(r.mul(a, ratio), b))
    im = code.select(wide, r.sub(b, r.mul(a, ratio)), r.sub(r.mul(b, ratio), a))
    re, im = r.div(re, below), r.div(im, below)
    # A divisor of zero: every part of the dividend goes to infinity or to NaN by itself.
    nothing = code.both(
        code.compare_float("oeq", y[0], zero), code.compare_float("oeq", y[1], zero)
    )
    endless_limit = r.copysign(r.number(math.inf), y[0])
    re = code.select(nothing, r.mul(endless_limit, a), re)
    im = code.select(nothing, r.mul(endless_limit, b), im)
    # An infinite dividend over a finite divisor is infinite.
    one = r.number(1.0)
    unbounded = code.either(_infinite(r, a), _infinite(r, b))
    finite = code.both(_finite(r, y[0]), _finite(r, y[1]))
    boxed = tuple(r.copysign(code.select(_infinite(r, v), one, zero), v) for v in x)
    limit = r.number(math.inf)
    far_re = r.mul(limit, r.add(r.mul(boxed[0], y[0]), r.mul(boxed[1], y[1])))
    far_im = r.mul(limit, r.sub(r.mul(boxed[1], y[0]), r.mul(boxed[0], y[1])))
    lost = code.both(code.is_nan(re), code.is_nan(im))
    far = code.both(code.both(unbounded, finite), lost)
    return code.select(far, far_re, re), code.select(far, far_im, im)


def _infinite(r: Reals, x: Any) -> Any:
    return code.compare_float("oeq", r.abs(x), r.number(math.inf))


def _finite(r: Reals, x: Any) -> Any:
    return code.compare_float("olt", r.abs(x), r.number(math.inf))


def absolute(r: Reals, x: Pair) -> Any:
    """The modulus, without overflow in between; infinite parts win over NaN."""
    a, b = r.abs(x[0]), r.abs(x[1])
    high, low = r.max(a, b), r.min(a, b)
    zero, one = r.number(0.0), r.number(1.0)
    equal = code.compare_float("oeq", high, low)
    ratio = code.select(equal, one, r.div(low, high))
    size = r.mul(high, r.sqrt(r.add(one, r.mul(ratio, ratio))))
    size = code.select(code.compare_float("oeq", high, zero), zero, size)
    endless = code.either(_infinite(r, a), _infinite(r, b))
    return code.select(endless, r.number(math.inf), size)


def exponential(r: Reals, x: Pair) -> Pair:
    zero = r.number(0.0)
    size = r.exp(x[0])
    re, im = r.mul(size, r.cos(x[1])), r.mul(size, r.sin(x[1]))
    # A real argument has a real result, also where the size is infinite.
    real = code.compare_float("oeq", x[1], zero)
    re, im = code.select(real, size, re), code.select(real, x[1], im)
    # exp(-inf + NaN i) is zero.
    gone = code.compare_float("oeq", x[0], r.number(-math.inf))
    return code.select(gone, zero, re), code.select(gone, zero, im)


def exponential_minus_one(r: Reals, x: Pair) -> Pair:
    """``expm1(a) cos(b) + (cos(b) - 1)``, the last term as ``-2 sin(b/2)^2``."""
    half = r.sin(r.mul(r.number(0.5), x[1]))
    shift = r.mul(r.number(-2.0), r.mul(half, half))
    re = r.add(r.mul(r.expm1(x[0]), r.cos(x[1])), shift)
    im = r.mul(r.exp(x[0]), r.sin(x[1]))
    real = code.compare_float("oeq", x[1], r.number(0.0))
    return code.select(real, r.expm1(x[0]), re), code.select(real, x[1], im)


def logarithm(r: Reals, x: Pair) -> Pair:
    """The logarithm of the modulus: near 1 from the parts themselves."""
    a, b = r.abs(x[0]), r.abs(x[1])
    high, low = r.max(a, b), r.min(a, b)
    one, half = r.number(1.0), r.number(0.5)
    near = r.mul(half, r.log1p(r.add(r.mul(r.sub(high, one), r.add(high, one)), r.mul(low, low))))
    ratio = r.div(low, high)
    ratio = code.select(code.compare_float("oeq", high, low), one, ratio)
    ratio = code.select(code.compare_float("oeq", high, r.number(0.0)), r.number(0.0), ratio)
    far = r.add(r.log(high), r.mul(half, r.log1p(r.mul(ratio, ratio))))
    is_near = code.both(
        code.compare_float("ogt", high, half), code.compare_float("olt", high, r.number(2.0))
    )
    size = code.select(is_near, near, far)
    endless = code.either(_infinite(r, a), _infinite(r, b))
    size = code.select(endless, r.number(math.inf), size)
    return size, r.atan2(x[1], x[0])


def log_plus_one(r: Reals, x: Pair) -> Pair:
    """``log1p(a (a + 2) + b^2) / 2`` near zero."""
    one, half = r.number(1.0), r.number(0.5)
    plus = r.add(one, x[0])
    square = r.add(r.mul(x[0], r.add(x[0], r.number(2.0))), r.mul(x[1], x[1]))
    near = r.mul(half, r.log1p(square))
    far, angle = logarithm(r, (plus, x[1]))
    size = r.max(r.abs(x[0]), r.abs(x[1]))
    return code.select(code.compare_float("olt", size, half), near, far), angle


def square_root(r: Reals, x: Pair) -> Pair:
    """The root with a real part that is not negative; scaled, so that nothing overflows."""
    zero, half = r.number(0.0), r.number(0.5)
    a, b = r.abs(x[0]), r.abs(x[1])
    high = r.max(a, b)
    huge = code.compare_float("ogt", high, r.number(_huge(r.element)))
    tiny = code.compare_float("olt", high, r.number(1.0 / _huge(r.element)))
    one = r.number(1.0)
    scale = code.select(huge, r.number(0.0625), code.select(tiny, r.number(_up(r.element)), one))
    back = code.select(
        huge, r.number(4.0), code.select(tiny, r.number(_up(r.element) ** -0.5), one)
    )
    sa, sb = r.mul(a, scale), r.mul(b, scale)
    root = r.sqrt(r.mul(half, r.add(sa, absolute(r, (sa, sb)))))
    other = r.div(r.mul(half, sb), root)
    root, other = r.mul(root, back), r.mul(other, back)
    right = code.compare_float("oge", x[0], zero)
    re = code.select(right, root, other)
    im = r.copysign(code.select(right, other, root), x[1])
    nothing = code.compare_float("oeq", high, zero)
    re, im = code.select(nothing, zero, re), code.select(nothing, x[1], im)
    # Infinite parts.
    up = _infinite(r, b)
    limit = r.number(math.inf)
    along = code.both(_infinite(r, a), _finite(r, b))
    re = code.select(along, code.select(right, limit, zero), re)
    im = code.select(along, r.copysign(code.select(right, zero, limit), x[1]), im)
    return code.select(up, limit, re), code.select(up, x[1], im)


def _huge(element: Element) -> float:
    return 2.0**100 if element.width == 32 else 2.0**1000


def _up(element: Element) -> float:
    """A power of four that lifts the least numbers to where squares have all their bits."""
    return 2.0**80 if element.width == 32 else 2.0**600


def reciprocal_square_root(r: Reals, x: Pair) -> Pair:
    return divide(r, (r.number(1.0), r.number(0.0)), square_root(r, x))


def power(r: Reals, x: Pair, y: Pair) -> Pair:
    """``exp(y log(x))``; 0^0 is 1, and 0 to a positive power 0."""
    zero, one = r.number(0.0), r.number(1.0)
    size, angle = logarithm(r, x)
    result = exponential(r, multiply(r, y, (size, angle)))
    base = code.both(code.compare_float("oeq", x[0], zero), code.compare_float("oeq", x[1], zero))
    none = code.both(code.compare_float("oeq", y[0], zero), code.compare_float("oeq", y[1], zero))
    vanishes = code.both(base, code.compare_float("ogt", y[0], zero))
    re = code.select(vanishes, zero, result[0])
    im = code.select(vanishes, zero, result[1])
    return code.select(none, one, re), code.select(none, zero, im)


def sine(r: Reals, x: Pair) -> Pair:
    return r.mul(r.sin(x[0]), r.cosh(x[1])), r.mul(r.cos(x[0]), r.sinh(x[1]))


def cosine(r: Reals, x: Pair) -> Pair:
    return r.mul(r.cos(x[0]), r.cosh(x[1])), r.neg(r.mul(r.sin(x[0]), r.sinh(x[1])))


def tangent(r: Reals, x: Pair) -> Pair:
    re, im = hyperbolic_tangent(r, (r.neg(x[1]), x[0]))
    return im, r.neg(re)


def hyperbolic_tangent(r: Reals, x: Pair) -> Pair:
    """With t = tan(b) and s = sinh(a): ``(s c (1 + t^2) + i t) / (1 + s^2 (1 + t^2))``."""
    one = r.number(1.0)
    # Beyond this, the result is 1 and tiny; the squares below would overflow.
    limit = 20.0 if r.element.width == 64 else 11.0
    far = code.compare_float("ogt", r.abs(x[0]), r.number(limit))
    a = code.select(far, r.number(0.0), x[0])
    t = r.tan(x[1])
    beta = r.add(one, r.mul(t, t))
    s, c = r.sinh(a), r.cosh(a)
    below = r.add(one, r.mul(beta, r.mul(s, s)))
    re = r.div(r.mul(beta, r.mul(s, c)), below)
    im = r.div(t, below)
    decay = r.exp(r.mul(r.number(-2.0), r.abs(x[0])))
    tail = r.mul(r.mul(r.number(4.0), r.mul(r.sin(x[1]), r.cos(x[1]))), decay)
    endless = _infinite(r, x[0])
    tail = code.select(endless, r.number(0.0), tail)
    re = code.select(far, r.copysign(one, x[0]), re)
    return re, code.select(far, tail, im)


def sign(r: Reals, x: Pair) -> Pair:
    size = absolute(r, x)
    zero = r.number(0.0)
    nothing = code.compare_float("oeq", size, zero)
    re, im = r.div(x[0], size), r.div(x[1], size)
    return code.select(nothing, zero, re), code.select(nothing, zero, im)


def logistic(r: Reals, x: Pair) -> Pair:
    one = r.number(1.0)
    size, angle = exponential(r, negate(r, x))
    return divide(r, (one, r.number(0.0)), (r.add(one, size), angle))


def cube_root(r: Reals, x: Pair) -> Pair:
    return power(r, x, (r.number(1.0 / 3.0), r.number(0.0)))


#: StableHLO's name -> pairs to a pair.
FUNCTIONS: dict[str, Callable[..., Pair]] = {
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide, "negate": negate,
    "exponential": exponential, "exponential_minus_one": exponential_minus_one,
    "log": logarithm, "log_plus_one": log_plus_one, "sqrt": square_root,
    "rsqrt": reciprocal_square_root, "power": power, "sine": sine, "cosine": cosine,
    "tan": tangent, "tanh": hyperbolic_tangent, "sign": sign, "logistic": logistic,
    "cbrt": cube_root,
}  # fmt: skip
