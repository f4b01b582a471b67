"""Sums of products of two loads: what the matrix units of blocks of threads compute.

Loaded elements may be rounded: a unit's operands pass through registers or memory where that is
possible. So a contraction of float32 numbers that are rounded to float16 is one of float16.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.analysis.reductions import in_any_order
from polyblocks.affine.contraction.products.sum_of_products import Factor, sum_of_products
from polyblocks.affine.element import ARRAY_DTYPES, F64, DType
from polyblocks.affine.model import Load, Op
from polyblocks.target import MatrixUnit, TargetDescription

#: Operations allowed on an element while it is copied; they keep zero, which pads the end.
ON_THE_WAY = ("arith.extf", "arith.truncf", "arith.negf", "arith.bitcast", "llvm.call_intrinsic")


@dataclass(frozen=True)
class Factors:
    """Factors of the product that each step of a contraction adds to its only sum.

    Attributes:
        rows, columns: one operand of each: a load, and what is done with its element on the way.
        dtypes: of the operands, as they are multiplied.
        accumulator: type of the sum.
        rounding: the function that rounds both to ``tfloat32``, see
            :class:`polyblocks.target.MatrixUnit`.
    """

    rows: Operand
    columns: Operand
    dtypes: tuple[str, str]
    accumulator: DType
    rounding: str = ""

    def computed_by(self, unit: MatrixUnit) -> bool:
        """Whether a unit computes this and says how."""
        sums = ARRAY_DTYPES.get(unit.accumulator) == self.accumulator
        same = unit.both == self.dtypes and unit.rounding == self.rounding
        return unit.sums is not None and sums and same


def has_units(target: TargetDescription) -> bool:
    """Whether a target's blocks have matrix units."""
    return any(unit.sums for unit in target.matrix_units)


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
    no option is needed; but products of float64 numbers are rounded, unless they may be
    contracted, which operations say that may be reassociated.
    """
    step = sum_of_products(parts)
    if step is not None and step.accumulator == F64 and in_any_order(parts.combiners) is None:
        return None
    # Nothing else is computed on the way.
    if step is None or len(step.pairs) != 1 or step.nodes != set(parts.reduction.body):
        return None
    found: dict[bool, tuple[Operand, Factor]] = {}
    for factor in step.pairs[0]:
        operand = _loaded(factor, parts)
        if operand is None or operand.of_rows in found:
            return None
        found[operand.of_rows] = operand, factor
    (rows, first), (columns, second) = found[True], found[False]
    if first.rounding != second.rounding:
        return None
    dtypes = first.dtype, second.dtype
    return Factors(rows, columns, dtypes, step.accumulator, first.rounding)


def _loaded(factor: Factor, parts: Contraction) -> Operand | None:
    """A factor that is an element of memory, changed by operations on nothing else; or None."""
    if not factor.code:
        return None
    load, *code = factor.code
    # One after the other, as each has one operand and there is one load.
    alone = all(isinstance(n, Op) and n.name in ON_THE_WAY and len(n.operands) == 1 for n in code)
    moved = parts.operand(load) if isinstance(load, Load) and alone else None
    return None if moved is None else Operand(factor.value, factor.code, moved.of_rows)
