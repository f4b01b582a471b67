"""Greatest common divisors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.codegen.builder import INT_WIDTH, Builder, Val


def gcd(b: Builder, operation: Any, operands: Sequence[Val]) -> Sequence[Val]:
    """polyblocks.gcd by J. Stein's binary method, without divisions, until all lanes are done.

    Both numbers are odd or zero. Their difference is even: it loses all zeros at its end, which is
    a bit at least. When they are equal, the difference is zero; one step later the smaller number
    is, and from then on a step changes nothing.
    """
    del operation
    x, y = operands

    def zeros(value: Val) -> Val:
        # A shift by the width is undefined, and zero has as many zeros.
        return b.op("math.cttz", value.kind, value) & (INT_WIDTH[value.kind] - 1)

    def odd(value: Val) -> Val:
        return value.shr_u(zeros(value))

    def step(values: Sequence[Val]) -> Sequence[Val]:
        low, high = (b.op(f"arith.{name}ui", x.kind, *values) for name in ("min", "max"))
        return odd(high - low), low

    found, _ = b.while_any(lambda values: values[1].ne(0), step, (odd(x), odd(y)))
    return [found << zeros(x | y)]
