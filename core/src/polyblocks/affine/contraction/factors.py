"""Sums of products of two loads: what the matrix units of blocks of threads compute.

Loaded elements may be rounded: a unit's operands pass through registers or memory where that is
possible. So a contraction of float32 numbers that are rounded to float16 is one of float16.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.contractions import Contraction, OperandLoad
from polyblocks.affine.contraction.sum_of_products import Factor, sum_of_products
from polyblocks.affine.element import F32, I32, dtype_of
from polyblocks.affine.model import Load, Op
from polyblocks.target import MatrixUnit, TargetDescription

#: Operations allowed on an element while it is copied; they keep zero, which pads the end.
ON_THE_WAY = ("arith.extf", "arith.truncf", "arith.negf", "arith.bitcast", "llvm.call_intrinsic")
#: Printed type of a sum -> its dtype, and the operation that extends factors to it.
_SUMS = {F32.name: ("float32", "arith.extf"), I32.name: ("int32", "arith.extsi")}


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

    rows: OperandLoad
    columns: OperandLoad
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
    step = sum_of_products(parts)
    # Nothing else is computed on the way.
    if step is None or len(step.pairs) != 1 or step.nodes != set(parts.reduction.body):
        return None
    accumulator, extension = _SUMS[step.accumulator]
    found = []
    for factor in step.pairs[0]:
        loaded = _loaded(factor) if factor.extension in ("", extension) else None
        if loaded is None:
            return None
        found.append(loaded)
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


@dataclass(frozen=True)
class _Loaded:
    """A factor that is an element of memory, changed on its way by operations on nothing else."""

    load: Load
    on_the_way: tuple[Op, ...]
    dtype: str
    rounding: str


def _loaded(factor: Factor) -> _Loaded | None:
    """The load that a factor comes from; None if it is computed in another way."""
    if not factor.code:
        return None
    load, *code = factor.code
    ops = tuple(n for n in code if isinstance(n, Op))
    # One after the other, as each has one operand and there is one load.
    alone = all(op.name in ON_THE_WAY and len(op.operands) == 1 for op in ops)
    if not isinstance(load, Load) or len(ops) < len(code) or not alone:
        return None
    kind, rounding = dtype_of(factor.value.type), ""
    dtype = kind.array
    if kind == F32 and [op.name for op in ops[:-3:-1]] == list(ON_THE_WAY[3:]):
        dtype, rounding = "tfloat32", ops[-2].attributes["intrin"].value
    return _Loaded(load, ops, dtype, rounding)
