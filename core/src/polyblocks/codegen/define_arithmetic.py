"""define-arithmetic: conversions and shifts that LLVM leaves undefined get a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.builder import INT_WIDTH, Builder, Val
from polyblocks.codegen.rewrite import expand_ops
from polyblocks.mlir import constant_number, ir

#: A target's instruction for a float as a signed integer of 32 or 64 bits, if what does not fit,
#: and NaN, become the lowest integer. Takes the float and the integer's type; returns None for
#: types and shapes that it does not serve.
Convert = Callable[[Builder, Val, str], "Val | None"]

#: Ops that are undefined for some operands. (Divisions: see ``guard-divisions``.)
UNDEFINED = frozenset(f"arith.{name}" for name in "fptosi fptoui shli shrsi shrui".split())
#: The narrowest integer that a float is converted to at once.
_NARROWEST = 32
#: The predicate "less, without a sign" of ``arith.cmpi``.
_LESS = 6
#: How many ops to look through for the range of a shift's count.
_DEPTH = 8


@dataclass(frozen=True)
class DefineArithmeticPass:
    """Give every conversion from float to integer, and every shift, a value.

    In LLVM the result of a conversion that does not fit, or of a count that is not less than the
    width, is "poison": whatever is computed of it, and whatever depends on that, may be anything.
    Chips disagree on conversions: some make the lowest integer of what does not fit, others the
    nearest one, and 0 of NaN. Here it is the lowest one, which is never an index in range, and is
    what frameworks give on the former. Runs when no other expansion makes such ops.

    Operands that are known to be in range stay as they are.

    Attributes:
        convert: the target's own instruction, if it has one.

    Before::

        %i = arith.fptosi %x : f32 to i32
        %y = arith.shli %a, %n : i32

    After, without an instruction of the target::

        %any = arith.fptosi %x : f32 to i32
        %fits = arith.cmpf olt, |%x|, 2^31
        %i = arith.select %fits, %any, -2^31
        %any = arith.shli %a, %n : i32
        %y = arith.select (%n ult 32), %any, 0
    """

    name: ClassVar[str] = "define-arithmetic"
    convert: Convert | None = None

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether anything needed it."""
        del context
        expansions = {
            "arith.fptosi": self._to_signed,
            "arith.fptoui": _to_unsigned,
            "arith.shli": _shift,
            "arith.shrui": _shift,
            "arith.shrsi": _shift_with_sign,
        }
        return expand_ops(module, expansions) > 0

    def _to_signed(self, b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
        (x,) = operands
        kind = _kind(op.results[0])
        wide = kind if INT_WIDTH[kind] >= _NARROWEST else "i32"
        if _is_finite_constant(x.value, INT_WIDTH[kind] - 1):
            return None
        result = None if self.convert is None else self.convert(b, x, wide)
        if result is None:
            limit = 2.0 ** (INT_WIDTH[wide] - 1)
            number = b.op("arith.fptosi", wide, x)
            # The lowest integer is what does not pass this, too.
            result = b.select(abs(x) < _limit(x, limit), number, -int(limit))
        return (result if wide == kind else b.op("arith.trunci", kind, result),)


def _to_unsigned(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    (x,) = operands
    kind = _kind(op.results[0])
    width = INT_WIDTH[kind]
    if width < _NARROWEST:
        # By way of a signed one, which has all of its numbers.
        number = b.op("arith.fptosi", "i32", x)
        lowest, limit, wide = -(2**31), abs(x) < _limit(x, 2.0**31), "i32"
    else:
        number = b.op("arith.fptoui", kind, x)
        lowest, wide = 1 << (width - 1), kind
        limit = (x > -1.0) & (x < _limit(x, 2.0**width))
    result = b.select(limit, number, lowest)
    return (result if wide == kind else b.op("arith.trunci", kind, result),)


def _limit(x: Val, number: float) -> float:
    """A power of two as a number of a float's type; of a type that ends before it, infinity."""
    return float("inf") if x.kind == "f16" else number


def _shift(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    x, count = operands
    width = INT_WIDTH[x.kind]
    if _is_below(count.value, width):
        return None
    return (b.select(count.compare("ult", width), b.op(op.name, x.kind, x, count), 0),)


def _shift_with_sign(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    x, count = operands
    width = INT_WIDTH[x.kind]
    if _is_below(count.value, width):
        return None
    # By all bits but one: the sign alone is left.
    last = b.op("arith.minui", x.kind, count, b.const(x.kind, width - 1))
    return (b.op(op.name, x.kind, x, last),)


def _kind(value: Any) -> str:
    """The name of a value's type, or of that of its lanes."""
    type_ = value.type
    return str(type_.element_type if isinstance(type_, ir.VectorType) else type_)


def _width(value: Any) -> int:
    return INT_WIDTH[_kind(value)]


def _is_finite_constant(value: Any, bits: int) -> bool:
    """Whether a float is a number that is less than 2^bits."""
    number = constant_number(value)
    return isinstance(number, float) and abs(number) < 2.0**bits


def _is_below(value: Any, width: int) -> bool:
    """Whether a count is surely less than the width."""
    top = _top(value, _DEPTH)
    return top is not None and top < width


def _top(value: Any, depth: int) -> int | None:
    """The greatest number that an integer, read without a sign, can be; None if that is open."""
    number = constant_number(value)
    if isinstance(number, int):
        return number if number >= 0 else None
    if depth == 0 or isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    name, operands = op.name, op.operands
    if name == "vector.broadcast":
        return _top(operands[0], depth - 1)
    if name in ("arith.index_cast", "arith.extsi", "arith.index_castui"):
        found = _top(operands[0], depth - 1)
        # Small enough to be the same in every type, and not negative.
        small = found is not None and found < min(128, 1 << (_width(operands[0]) - 1))
        return found if small else None
    if name == "arith.extui":
        found = _top(operands[0], depth - 1)
        return (1 << _width(operands[0])) - 1 if found is None else found
    if name in ("arith.andi", "arith.minui"):
        known = [t for t in (_top(v, depth - 1) for v in operands) if t is not None]
        return min(known) if known else None
    if name == "arith.select":
        condition, *sides = operands
        below = _compared(condition)
        tops = [
            below[1] if k == 0 and below and below[0] == side else _top(side, depth - 1)
            for k, side in enumerate(sides)
        ]
        return None if None in tops else max(t for t in tops if t is not None)
    if name == "arith.shrui":
        by, width = constant_number(operands[1]), _width(value)
        return ((1 << width) - 1) >> by if isinstance(by, int) and 0 <= by < width else None
    if name == "arith.subi":
        # A number less what is not more than it.
        first, second = constant_number(operands[0]), _top(operands[1], depth - 1)
        if isinstance(first, int) and second is not None and second <= first:
            return first
    return None


def _compared(condition: Any) -> tuple[Any, int] | None:
    """The value that a condition bounds from above, unsigned, and its maximum."""
    if isinstance(condition, ir.BlockArgument):
        return None
    op = condition.owner.operation
    if op.name != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value != _LESS:
        return None
    number = constant_number(op.operands[1])
    return (op.operands[0], number - 1) if isinstance(number, int) and number > 0 else None
