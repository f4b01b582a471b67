"""Rows that are used where they are although several loops move them, as the pixels of an image.

The index that a convolution reads is linear in its loops, but not in one number that counts all
pixels, nor in one that counts all steps. A register tile whose rows are in one of the loops, and
that counts the steps by their loops, finds everything at a constant distance from its first row all
the same, so that nothing is packed: no row is written out for each of the steps that use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from polyblocks.affine.access import address
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.flat_views import is_row
from polyblocks.affine.model import Load


@dataclass(frozen=True)
class Windows:
    """How rows are used in place.

    Attributes:
        run: rows one after the other whose places have one distance; those of a tile divide them.
        steps: extents of the loops that count the steps, the fastest one last.
    """

    run: int
    steps: list[int]

    def pass_steps(self, most: int) -> int:
        """Steps of the longest pass of equal passes: whole inner loops, and a part of the next.

        Args:
            most: how many steps at most.

        Returns:
            Less than ``most`` where no more are a whole part; 1 at least.
        """
        count = 1
        for extent in reversed(self.steps):
            part = max(
                d for d in range(1, extent + 1) if extent % d == 0 and (d == 1 or count * d <= most)
            )
            count *= part
            if part < extent:
                break
        return count

    def chain(self, longest: int) -> int:
        """Steps that are added up at a time: about ``longest``, by the fastest loops.

        Args:
            longest: the limit; up to a half more are taken as well.
        """
        count = 1
        for extent in reversed(self.steps):
            if count * extent > longest + longest // 2:
                break
            count *= extent
        if count > 1:
            return count
        return -(-self.steps[-1] // -(-self.steps[-1] // longest))


def innermost(extents: Sequence[int], count: int) -> list[int] | None:
    """The loops of a pass: the fastest ones, and a part of the next, that have ``count`` steps.

    Args:
        extents: of all loops, the fastest one last.
        count: steps of a pass.

    Returns:
        None if no part of a loop gives that.
    """
    found: list[int] = []
    for extent in reversed(extents):
        part = min(extent, count)
        if extent % part or count % part:
            return None
        found.insert(0, part)
        count //= part
        if part < extent or count == 1:
            break
    return found if count == 1 else None


def windows_of(rows: Sequence[Var], steps: Sequence[Var], loads: Sequence[Load]) -> Windows | None:
    """The windows of a product; None if a place is not linear in its loops, or in one of all.

    Loops are one where addresses show that; of a buffer without a flat view there are indices only.

    Args:
        rows, steps: the loops, the fastest one last.
        loads: of what rows move.
    """
    places = [address(n.buffer, n.index) for n in loads]
    if not places or any(p.coefficient(v) is None for p in places for v in (*rows, *steps)):
        return None
    runs, counts = _joined(rows, places), _joined(steps, places)
    if not all(is_row(n.buffer) for n in loads):
        counts = [v.extent for v in steps if v.extent > 1] or [1]
        runs = [rows[-1].extent]
    if len(rows) == len(steps) == 1 or len(runs) == len(counts) == 1:
        return None
    return Windows(runs[-1], counts)


def longest_last(steps: list[Var], loads: Sequence[Load]) -> list[Var]:
    """The steps in an order in which most of them are counted by the fastest loop.

    A tile's loads and multiply-adds are in that loop; it waits at the loop's end.
    """
    places = [address(n.buffer, n.index) for n in loads]
    if any(p.coefficient(v) is None for p in places for v in steps):
        return steps
    groups: list[list[Var]] = []
    rest = list(steps)
    for extent in _joined(steps, places):
        group: list[Var] = []
        while rest and (not group or prod(v.extent for v in group) < extent):
            group.append(rest.pop(0))
        groups.append(group)
    groups.append(groups.pop(max(range(len(groups)), key=lambda i: _size(groups, i))))
    return [v for group in groups for v in group] + rest


def _size(groups: list[list[Var]], i: int) -> tuple[int, int]:
    return prod(v.extent for v in groups[i]), i


def _joined(variables: Sequence[Var], places: Sequence[Expr]) -> list[int]:
    """Extents of as few loops as go through all places in the same order."""
    groups: list[tuple[int, list[int]]] = []
    for var in variables:
        factors = [p.coefficient(var) or 0 for p in places]
        if var.extent == 1:
            continue
        if groups:
            extent, before = groups[-1]
            if all(b == f * var.extent for b, f in zip(before, factors, strict=True)):
                groups[-1] = extent * var.extent, factors
                continue
        groups.append((var.extent, factors))
    return [extent for extent, _ in groups] or [1]
