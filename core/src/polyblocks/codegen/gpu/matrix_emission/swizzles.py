"""Where pieces of a tile are in shared memory, so that accesses meet in no bank.

A *piece* is what a thread copies at once, and the memory serves a *line* of 128 bytes at a time.
Neighbouring threads copy the pieces of one line of memory, which becomes one line of shared memory:
that is what a chip's asynchronous copies keep together on their way through its caches. Inside of
the line pieces change places with each other, depending on the row, such that a warp's reads of
different rows, a few steps of each, fill lines as well, and so do stores of a piece for each row.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.gpu.plans.fragments import ACCESS_BYTES, PHASE_BYTES, TILE
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.codegen.gpu.emission.code import Code


def by_rows(code: Code, plan: UnitPlan, outer: Any, step: Any) -> Any:
    """The place in its row of a step, where rows are stored with their steps one after the other.

    Args:
        code: at the insertion point.
        plan: of the tile.
        outer: number of the row.
        step: number of the step in the tile.
    """
    in_line = PHASE_BYTES // ACCESS_BYTES
    of_row, together = plan.beside, plan.together
    if of_row < 2:
        return step
    # A warp's part of a row stays together; where whole pieces are stored row by row, those of
    # rows with the same place are swizzled inside of it.
    line = code.quotient(outer, in_line // of_row)
    by = code.times(code.remainder(line, of_row // together), together)
    inside = code.remainder(code.quotient(line, of_row // together), together)
    by = code.times(code.add(by, inside), plan.piece)
    return code.value("arith.xori", code.index, step, by)


def mixed_steps(plan: UnitPlan) -> int:
    """Steps of a row whose pieces change places with each other: others are a constant away."""
    return plan.beside * plan.piece


def row_of(code: Code, plan: UnitPlan, outer: Any) -> Any:
    """The row that holds a row whose steps are stored two at a time, a piece of rows by a thread.

    Threads store rows that are a piece apart at once, which have the same place in a line: the rows
    of a line change places with each other.
    """
    in_line = PHASE_BYTES // ACCESS_BYTES
    beside = in_line // plan.beside
    if beside < 2:
        return outer
    by = code.remainder(code.quotient(outer, plan.piece), beside)
    return code.value("arith.xori", code.index, outer, by)


def by_steps(code: Code, plan: UnitPlan, step: Any, outer: Any) -> Any:
    """The place of a row in its step, where steps are stored with their rows one after the other.

    A tile that is read by columns has the same piece of eight steps.

    Args:
        code: at the insertion point.
        plan: of the tile.
        step: number of the step in the tile.
        outer: number of the row.
    """
    by = code.times(code.remainder(step, TILE), plan.piece)
    return code.value("arith.xori", code.index, outer, by)
