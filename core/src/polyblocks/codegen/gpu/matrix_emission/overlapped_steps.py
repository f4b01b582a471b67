"""Nodes of a product's steps as operations, where copies go past the registers.

The order of independent nodes between two waits is free: there copies and reads take turns with the
products.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from polyblocks.affine.buffers.copies import BoxCopy
from polyblocks.affine.gpu.staged.warp_units import WarpUnits
from polyblocks.affine.model import For
from polyblocks.affine.multiply import UnitSteps
from polyblocks.codegen.gpu.matrix_emission.operand_reads import Action
from polyblocks.codegen.gpu.matrix_emission.staged_steps import StagedSteps
from polyblocks.codegen.gpu.matrix_emission.tile_loops import Part


class OverlappedSteps(StagedSteps):
    """Writes steps whose nodes are each for all units of a warp."""

    def segment(self, parts: list[Part]) -> None:
        """Copies past the registers are begun beside all products, reads beside those before."""
        count = sum(isinstance(part, UnitSteps) for part in parts)
        starts = [
            action
            for part in parts
            if isinstance(part, BoxCopy) and part.kind == "asynchronous"
            for action in self._starts(part)
        ]
        if not count:
            for action in starts:
                action()
        turn, beside = 0, _overlapped_reads(parts)
        for position, part in enumerate(parts):
            if isinstance(part, UnitSteps):
                reads = list(_reads_behind(parts, position))
                self._multiply_beside(part, starts[turn::count], reads)
                turn += 1
            elif part.kind == "registers":
                self.through_registers(part)
            elif part.kind == "fragments" and part not in beside:
                values = [value for action in self._loads(part) for value in action()]
                self._hold(part, values)

    def units_of(self, loop: For, units: WarpUnits) -> tuple[int, ...]:
        return tuple(range(units.count))

    def _multiply_beside(
        self, steps: UnitSteps, starts: list[Action], reads: list[BoxCopy]
    ) -> None:
        """The products of a call, and what is done beside them.

        They take turns: what all warps ask of shared memory at once is served one by one.
        """
        operands = [
            register
            for side in range(2)
            for unit in range(self.plan.of_warp[side])
            for register in self.fragments[side, self.place(steps, side), unit]
        ]
        found: list[tuple[BoxCopy, list[list[Any]]]] = []
        beside = [((k + 0.5) / len(starts), action) for k, action in enumerate(starts)]
        for copy in reads:
            side = self.pipeline.side(copy.destination.buffer)
            actions = self._loads(copy)
            values: list[list[Any]] = [[] for _ in actions]
            found.append((copy, values))
            for k, action in enumerate(actions):
                # Products go column by column: there are registers for more rows at any time, and
                # for more columns when those before are done.
                when = (k + (0.5, 1.0)[side]) / len(actions) if self.plan.loads else 0.0
                beside.append((when, partial(_keep, action, values, k)))
        beside.sort(key=lambda entry: entry[0])
        self.sums = self.calls.multiply(operands, self.sums, beside)
        for copy, values in found:
            self._hold(copy, [value for part in values for value in part])

    def _hold(self, copy: BoxCopy, values: list[Any]) -> None:
        """The registers of all units along a side, one after the other."""
        side = self.pipeline.side(copy.destination.buffer)
        size = self.reads.of_operand(side)
        parts = [values[first : first + size] for first in range(0, len(values), size)]
        self.hold(copy, side, tuple(range(self.plan.of_warp[side])), parts)

    def _loads(self, copy: BoxCopy) -> list[Action]:
        side = self.pipeline.side(copy.destination.buffer)
        stage = self.stage(copy.source.index[0])
        return self.reads.loads_of(side, stage, self.call(copy, side))

    def _starts(self, copy: BoxCopy) -> list[Action]:
        """A round of the copy each."""
        part = self.copies[self.pipeline.side(copy.destination.buffer)]
        number, stage = self.number(copy), copy.destination.index[0]
        whole = self.is_whole(copy)

        def start(round_: int) -> list[Any]:
            part.start(round_, self.begin(number), self.stage(stage), whole)
            return []

        return [partial(start, round_) for round_ in part.rounds]


def _reads_behind(parts: list[Part], position: int) -> Iterator[BoxCopy]:
    """The reads right behind products: they do not depend on these."""
    for part in parts[position + 1 :]:
        if not isinstance(part, BoxCopy) or part.kind != "fragments":
            return
        yield part


def _overlapped_reads(parts: list[Part]) -> list[BoxCopy]:
    """All reads that are done beside products."""
    return [
        read
        for position, part in enumerate(parts)
        if isinstance(part, UnitSteps)
        for read in _reads_behind(parts, position)
    ]


def _keep(action: Action, values: list[list[Any]], at: int) -> list[Any]:
    values[at] = action()
    return []
