"""A contraction as a product of matrices: its axes, its operands, and the unit that computes it."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.element import ARRAY_DTYPES, DType
from polyblocks.affine.expr import Var
from polyblocks.target import MatrixUnit


@dataclass(eq=False, kw_only=True)
class Product:
    """A contraction as a product of matrices.

    Attributes:
        contraction: the loops, and the code of a step and around the steps.
        batch: variables that move all operands, or none.
        rows, columns, steps: variables of each axis, the fastest one last.
        operands: what rows and columns move.
        unit: the matrix unit that computes the steps, if any.
    """

    contraction: Contraction
    batch: list[Var]
    rows: list[Var]
    columns: list[Var]
    steps: list[Var]
    operands: list[Operand]
    unit: MatrixUnit | None = None

    @property
    def element(self) -> DType:
        """The type of the elements that the unit multiplies."""
        assert self.unit is not None
        return ARRAY_DTYPES[self.unit.operands]


def extents(variables: list[Var]) -> list[int]:
    """How many values each of some variables has."""
    return [v.extent for v in variables]
