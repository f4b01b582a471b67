"""Sums of products of two loads: what the matrix units of blocks of threads compute."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.contractions import Contraction, Operand, contraction_of
from polyblocks.affine.model import Load, Node, Op, Value
from polyblocks.target import MatrixUnit, TargetDescription

_DTYPES = {"f16": "float16", "bf16": "bfloat16", "i8": "int8"}
#: A unit's sums -> type of the sums, and the operations that add, multiply and convert.
_ARITHMETIC = {
    "float32": ("f32", "arith.addf", "arith.mulf", "arith.extf"),
    "int32": ("i32", "arith.addi", "arith.muli", "arith.extsi"),
}


@dataclass(frozen=True)
class Factors:
    """What each step of a contraction multiplies and adds to its only sum.

    Attributes:
        rows, columns: one operand of each, both of ``dtype``.
        dtype: of the operands.
        accumulator: dtype of the sum.
    """

    rows: Operand
    columns: Operand
    dtype: str
    accumulator: str

    def computed_by(self, unit: MatrixUnit) -> bool:
        """Whether a unit computes this and says how."""
        same = (unit.operands, unit.accumulator) == (self.dtype, self.accumulator)
        return unit.fragments is not None and same


def is_product(nodes: list[Node], target: TargetDescription) -> bool:
    """Whether a nest is a contraction that a matrix unit of a target's blocks computes."""
    if not any(unit.fragments for unit in target.matrix_units):
        return False
    parts = contraction_of(nodes)
    factors = None if parts is None else factors_of(parts)
    return factors is not None and any(map(factors.computed_by, target.matrix_units))


def factors_of(parts: Contraction) -> Factors | None:
    """The factors of a contraction; None if a step does anything else.

    What a step does has to be what a unit does: two loads, converted to the type of the sums, their
    product, and a sum. That is exact but for the order of the sum, so that nobody has to ask.
    """
    for accumulator, names in _ARITHMETIC.items():
        loads = _factors(parts, *names)
        if loads is None:
            continue
        first, second = (parts.operand(load) for load in loads)
        if first is None or second is None or first.of_rows == second.of_rows:
            return None
        rows, columns = (first, second) if first.of_rows else (second, first)
        dtypes = {_DTYPES.get(str(load.result.type), "") for load in loads}
        dtype = dtypes.pop()
        return Factors(rows, columns, dtype, accumulator) if dtype and not dtypes else None
    return None


def _factors(
    parts: Contraction, type_: str, add: str, multiply: str, convert: str
) -> list[Load] | None:
    """The two loads that a step multiplies and adds to its only sum; None if it does otherwise."""
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
    if terms is None or argument not in terms or str(total.type) != type_:
        return None
    (term,) = [v for v in terms if v is not argument] or [argument]
    factors = _made(makers, term, multiply)
    if factors is None:
        return None
    loads = []
    for factor in factors:
        converted = _made(makers, factor, convert)
        load = makers.get(converted[0]) if converted else None
        if not isinstance(load, Load):
            return None
        loads.append(load)
    # Nothing else is computed on the way.
    used = 2 + len({id(v) for v in factors}) + len({id(load) for load in loads})
    return loads if used == len(makers) else None


def _made(makers: dict[Value, Node], value: Value, name: str) -> list[Value] | None:
    """What an operation computes a value of; None if another one made it."""
    node = makers.get(value)
    return list(node.operands) if isinstance(node, Op) and node.name == name else None
