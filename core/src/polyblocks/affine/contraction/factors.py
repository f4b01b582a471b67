"""Sums of products of two loads: what the matrix units of blocks of threads compute.

Loaded elements may be rounded: a unit's operands pass through registers or memory where that is
possible. So a contraction of float32 numbers that are rounded to float16 is one of float16.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.element import printed
from polyblocks.affine.model import Load, Node, Op, Value
from polyblocks.target import MatrixUnit, TargetDescription

DTYPES = {"f16": "float16", "bf16": "bfloat16", "i8": "int8"}
#: dtype of operands -> the type that memory has for them.
ELEMENTS = {"float16": "f16", "bfloat16": "bf16", "int8": "i8", "tfloat32": "f32"}
#: Operations allowed on an element while it is copied; they keep zero, which pads the end.
ON_THE_WAY = ("arith.extf", "arith.truncf", "arith.negf", "arith.bitcast", "llvm.call_intrinsic")
#: A unit's sums -> type of the sums, and the operations that add, multiply and convert.
_ARITHMETIC = {
    "float32": ("f32", "arith.addf", "arith.mulf", "arith.extf"),
    "int32": ("i32", "arith.addi", "arith.muli", "arith.extsi"),
}


@dataclass(frozen=True)
class Factors:
    """Factors of the product that each step of a contraction adds to its only sum.

    Attributes:
        rows, columns: one operand of each, both of ``dtype``.
        dtype: of the operands.
        accumulator: dtype of the sum.
        on_the_way: what is done with an element of the rows', and of the columns', operand, one
            operation of the other's result; nothing if it is multiplied as it is loaded.
        rounding: the function that rounds to ``tfloat32``, see
            :class:`polyblocks.target.MatrixUnit`.
    """

    rows: Operand
    columns: Operand
    dtype: str
    accumulator: str
    on_the_way: tuple[tuple[Op, ...], tuple[Op, ...]] = ((), ())
    rounding: str = ""

    def computed_by(self, unit: MatrixUnit) -> bool:
        """Whether a unit computes this and says how."""
        same = (unit.operands, unit.accumulator) == (self.dtype, self.accumulator)
        return unit.fragments is not None and same and unit.rounding == self.rounding


def has_units(target: TargetDescription) -> bool:
    """Whether a target's blocks have matrix units."""
    return any(unit.fragments for unit in target.matrix_units)


def is_product(contraction: Contraction | None, target: TargetDescription) -> bool:
    """Whether a matrix unit of a target's blocks computes a nest that is this contraction."""
    if contraction is None or not has_units(target):
        return False
    factors = factors_of(contraction)
    return factors is not None and any(map(factors.computed_by, target.matrix_units))


def factors_of(parts: Contraction) -> Factors | None:
    """The factors of a contraction; None if a step does anything else.

    A step must match the unit: two loads, perhaps rounded, converted to the type
    of the sums, their product, and a sum. That is exact but for the order of the sum, so that
    no option is needed.
    """
    for accumulator, names in _ARITHMETIC.items():
        found = _factors(parts, *names)
        if found is None:
            continue
        first, second = (parts.operand(factor.load) for factor in found)
        if first is None or second is None or first.of_rows == second.of_rows:
            return None
        if not first.of_rows:
            first, second, found = second, first, found[::-1]
        kinds = {(factor.dtype, factor.rounding) for factor in found}
        dtype, rounding = kinds.pop()
        if not dtype or kinds:
            return None
        on_the_way = (found[0].on_the_way, found[1].on_the_way)
        return Factors(first, second, dtype, accumulator, on_the_way, rounding)
    return None


@dataclass(frozen=True)
class _Factor:
    """One of the two numbers that a step multiplies."""

    load: Load
    on_the_way: tuple[Op, ...]
    dtype: str
    rounding: str


def _factors(
    parts: Contraction, type_: str, add: str, multiply: str, convert: str
) -> list[_Factor] | None:
    """The factors that a step multiplies and adds to its only sum; None for other steps."""
    loops = parts.reduction.loops
    if not loops or len(loops[-1].arguments) != 1:
        return None
    makers: dict[Value, Node] = {}
    for node in loops[-1].body:
        if isinstance(node, Load):
            makers[node.result] = node
        elif isinstance(node, Op) and len(node.results) == 1:
            makers[node.results[0]] = node
        else:
            return None
    (total,) = loops[-1].yields
    terms = _made(makers, total, add)
    argument = loops[-1].arguments[0]
    if terms is None or argument not in terms or printed(total.type) != type_:
        return None
    (term,) = [v for v in terms if v is not argument] or [argument]
    values = _made(makers, term, multiply)
    if values is None:
        return None
    found, used = [], {makers[total], makers[term]}
    for value in values:
        if converted := _made(makers, value, convert):
            used.add(makers[value])
            (value,) = converted
        factor = _factor(makers, value)
        if factor is None:
            return None
        used.update((factor.load, *factor.on_the_way))
        found.append(factor)
    # Nothing else is computed on the way.
    return found if len(used) == len(makers) else None


def _factor(makers: dict[Value, Node], value: Value) -> _Factor | None:
    """The load that a factor comes from; None if it is made in another way."""
    dtype, done = DTYPES.get(printed(value.type), ""), []
    node = makers.get(value)
    while isinstance(node, Op):
        if node.name not in ON_THE_WAY or len(node.operands) != 1:
            return None
        done.append(node)
        node = makers.get(node.operands[0])
    if not isinstance(node, Load):
        return None
    rounding = ""
    if printed(value.type) == "f32" and [op.name for op in done[:2]] == list(ON_THE_WAY[3:]):
        dtype, rounding = "tfloat32", done[1].attributes["intrin"].value
    return _Factor(node, tuple(reversed(done)), dtype, rounding)


def _made(makers: dict[Value, Node], value: Value, name: str) -> list[Value] | None:
    """The operands of the operation ``name`` that defines a value; None for other ones."""
    node = makers.get(value)
    return list(node.operands) if isinstance(node, Op) and node.name == name else None
