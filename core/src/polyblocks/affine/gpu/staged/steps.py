"""Numbers of a reduction's steps, and of rows and columns: of several loops' variables together."""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.expr import Expr, Var


def number_of(variables: Sequence[Var]) -> Expr:
    """Which iteration of nested loops it is, the last variable counting fastest."""
    number = Expr(0)
    for var in variables:
        number = number * var.extent + var
    return number


def values_at(number: Expr, variables: Sequence[Var]) -> dict[Var, Expr]:
    """The inverse: the variables in the iteration of this number."""
    values: dict[Var, Expr] = {}
    for position, var in reversed(list(enumerate(variables))):
        values[var] = number % var.extent if position else number
        number = number // var.extent
    return values
