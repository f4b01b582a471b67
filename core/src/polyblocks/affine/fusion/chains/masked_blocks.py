"""Blocks of steps in which affine conditions mask all elements of a row: they are left out."""

from __future__ import annotations

from collections.abc import Collection

from polyblocks.affine.expr import Var
from polyblocks.affine.masks.absence import Absence, Number, constants_of
from polyblocks.affine.masks.constraints import Bound, bound_of, conditions_of
from polyblocks.affine.model import Buffer, For


def bound_blocks(
    blocks: For, elements: For, scores: Buffer, rows: Collection[Var], size: int
) -> None:
    """Let the loop over blocks leave out those of masked elements, in place.

    Where a score is minus infinity the maximum stays what it is, and an exponential is zero.

    Args:
        blocks: the loop over blocks of steps.
        elements: one of its statements, over the steps of a block.
        scores: a buffer that it may store: exponentials are of its elements less the largest one.
        rows: variables of the loops around.
        size: steps of a block.
    """
    for bound in _bounds(elements, scores, rows):
        end = (bound.at + (size - 1)) // size if bound.upper else bound.at // size
        if bound.upper and end.range()[0] < blocks.var.extent:
            blocks.upper = (*blocks.upper, end)
        elif not bound.upper and end.range()[1] > 0:
            blocks.lower = (*blocks.lower, end)


def _bounds(elements: For, scores: Buffer, rows: Collection[Var]) -> list[Bound]:
    """Ranges of steps of a row; scores of all others are masked."""
    found = []
    constants = constants_of(elements.body)
    for value, condition in conditions_of(elements.body).items():
        for outcome in (False, True):
            absence = Absence({**constants, value: Number(outcome)}, ())
            absence.run(elements.body)
            stored = [known for store, known in absence.stored.items() if store.buffer is scores]
            if not stored or not all(isinstance(n, Number) and n.is_lowest for n in stored):
                continue
            needed = condition.needed_for(not outcome)
            bounds = (bound_of(number, elements.var, rows, ()) for number in needed)
            found += [bound for bound in bounds if bound is not None]
    return [bound for bound in found if bound.cuts(elements.var)]
