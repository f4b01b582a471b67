"""The loops over the steps of a register tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from polyblocks.affine.contraction.absent import Absent, Bounds
from polyblocks.affine.expr import Expr, Var

#: Values of variables.
Place = dict[Var, Expr]
#: Variables of loops with their bounds, the outermost one first.
Loops = list[tuple[Var, Bounds]]
#: Values of a loop that is written out value by value, at most.
WRITTEN_OUT = 8


@dataclass(frozen=True)
class StepLoops:
    """Loops that count the steps of one pass.

    Attributes:
        outside: loops around chains of additions.
        within: loops that a chain is.
        number: the step, of all their variables.
        written_out: a loop that some rows miss iterations of, or None.
        present: which rows take part in each of its iterations.
    """

    outside: Loops
    within: Loops
    number: Expr
    written_out: Var | None = None
    present: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, extents: list[int], chain: int) -> StepLoops:
        """Loops of these extents, the fastest one last, in groups of about ``chain`` steps."""
        counts, within = list(extents), list[int]()
        while counts and prod(within) * counts[-1] <= chain:
            within.insert(0, counts.pop())
        loops: Loops = [(Var(extent), ((), ())) for extent in (*counts, *within)]
        number = Expr(0)
        for var, _ in loops:
            number = number * var.extent + var
        if not within:
            # Parts of the fastest loop.
            whole, _ = loops.pop()
            part, step = Var(-(-whole.extent // chain)), Var(chain)
            local = Expr.of(part) * chain
            number = number - whole + local + step
            ends: tuple[Expr, ...] = ()
            if whole.extent % chain:
                ends = (Expr(whole.extent) - local,)
            loops += [(part, ((), ())), (step, ((), ends))]
        return cls(loops[: len(counts)], loops[len(counts) :], number)

    def until(self, upper: tuple[Expr, ...]) -> StepLoops:
        """The same loops, up to these numbers of steps."""
        step, (lower, ends) = self.within[-1]
        before = self.number - step
        within = [*self.within[:-1], (step, (lower, (*ends, *(e - before for e in upper))))]
        return replace(self, within=within)

    def without(self, absent: Absent, places: list[Place]) -> StepLoops:
        """The same loops without iterations in which rows are absent.

        Args:
            absent: what is.
            places: for each row, values of the product's variables.
        """
        steps = [var for var, _ in (*self.outside, *self.within)]
        bounds = absent.bounds(places[0], places[-1], steps)
        outside, within = (
            [(var, bounds.get(var, known)) for var, known in loops]
            for loops in (self.outside, self.within)
        )
        few = [var for var in steps if var.extent <= WRITTEN_OUT]
        written_out, present = absent.rows_present(places, few) or (None, ())
        return StepLoops(outside, within, self.number, written_out, present)

    def iterations(
        self, var: Var, rows: tuple[int, ...]
    ) -> Iterator[tuple[Var | None, Expr, tuple[int, ...]]]:
        """The copies of a loop: a variable or None, its value, and which of the rows take part."""
        if var is not self.written_out:
            fresh = Var(var.extent)
            yield fresh, Expr.of(fresh), rows
            return
        for value, present in enumerate(self.present):
            left = tuple(row for row in rows if row in present)
            if left:
                yield None, Expr(value), left
