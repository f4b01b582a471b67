"""expand-rounding: floor, ceil, trunc, round, roundeven for chips without such an instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import expand_ops

#: From this magnitude on every float is an integer; adding it rounds a smaller one to nearest even.
_INTEGER_FROM = {"f32": 2.0**23, "f64": 2.0**52}


@dataclass(frozen=True)
class ExpandRoundingPass:
    """Build the roundings of f32 and f64 from additions and comparisons; exact for all inputs.

    NaN, infinities and the sign of zero come out as IEEE-754 says. f16 and bf16 are not handled:
    they are computed in f32 before this pass.

    Before::

        %r = math.floor %x : f32

    After (``%n`` is %x rounded to nearest even)::

        %big = arith.addf %abs, %cst : f32
        %n = arith.subf %big, %cst : f32
        ...
        %r = arith.select %small, %with_sign, %x : f32
    """

    name: ClassVar[str] = "expand-rounding"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place."""
        del context
        expand_ops(module, {f"math.{name}": _expansion(f) for name, f in _FUNCTIONS.items()})


def _expansion(function: Callable[[Builder, Val, Val], Val]) -> Any:
    def expand(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
        (x,) = operands
        if x.kind not in _INTEGER_FROM:
            return None
        magnitude = abs(x)
        limit = _INTEGER_FROM[x.kind]
        nearest = (magnitude + limit) - limit
        rounded = function(b, x, nearest).copysign(x)
        # False for NaN too, so that x itself comes out.
        return (b.select(magnitude < limit, rounded, x),)

    return expand


def _roundeven(b: Builder, x: Val, nearest: Val) -> Val:
    return nearest


def _trunc(b: Builder, x: Val, nearest: Val) -> Val:
    return b.select(nearest > abs(x), nearest - 1.0, nearest)


def _round(b: Builder, x: Val, nearest: Val) -> Val:
    """Half away from zero."""
    whole = _trunc(b, x, nearest)
    return b.select(abs(x) - whole >= 0.5, whole + 1.0, whole)


def _floor(b: Builder, x: Val, nearest: Val) -> Val:
    signed = nearest.copysign(x)
    return b.select(signed > x, signed - 1.0, signed)


def _ceil(b: Builder, x: Val, nearest: Val) -> Val:
    signed = nearest.copysign(x)
    return b.select(signed < x, signed + 1.0, signed)


_FUNCTIONS: dict[str, Callable[[Builder, Val, Val], Val]] = {
    "ceil": _ceil,
    "floor": _floor,
    "round": _round,
    "roundeven": _roundeven,
    "trunc": _trunc,
}
