"""The loop of a matrix kernel whose copies go through registers.

Three things are on their way at once. The next tile's elements come from memory while this one is
multiplied; the operands of products come from shared memory a few products ahead of them; and the
products of the last call of a tile go on behind the barrier, with operands that are in registers.
As many tiles are written out as there are stages, so that every place in shared memory is a
constant away from what a thread computes once, and as many as it takes until steps have the same
places in windows again; and so is the last tile, so that all steps of those in the loop exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm
from typing import Any

from polyblocks.affine.gpu.plans.read_schedule import Read
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.matrix_emission.places import Sum
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls
from polyblocks.mlir import ir

#: Which of both operands, for which call, and for which of the warp's units.
Key = tuple[int, int, int]


class RegisterPipeline:
    """The steps of a reduction, several tiles of each operand in shared memory.

    Args:
        calls: of the unit.
        copies: the thread's part of both operands' copies.
    """

    def __init__(self, calls: UnitCalls, copies: list[TileCopy]) -> None:
        self.calls, self.reads, self.copies = calls, calls.reads, copies
        self.code, self.plan = calls.code, calls.plan
        plan = self.plan
        self.tiles = -(-plan.sizes.counts[2] // plan.sizes.depth)
        self.exact = plan.sizes.counts[2] % plan.sizes.depth == 0
        self.schedule = plan.reads

    def emit(self, sums: list[Any]) -> list[Any]:
        """All steps; the sums after them.

        Args:
            sums: registers of the warp's sums.
        """
        code, stages = self.code, self.plan.stages
        self._store(0, self._load(Sum(code.integer(0)), self.exact or self.tiles > 1))
        barrier(code)
        carried = [*sums, *self._registers(self._read(self.schedule.early_reads, 0))]
        count = len(sums)
        together = lcm(stages, self.plan.period)
        rounds = max(0, self.tiles - (1 if self.exact else 2)) // together

        def round_(number: Any, carried: list[Any]) -> list[Any]:
            first = code.times(number, together)
            for plus in range(together):
                carried = self._tile(Sum(first, plus + 1), plus % stages, True, carried, count)
            return carried

        if rounds:
            zero, one = code.integer(0), code.integer(1)
            carried = code.loop(zero, code.integer(rounds), one, carried, round_, kept=True)
        first = rounds * together
        for number in range(first, self.tiles):
            is_last = number + 1 == self.tiles
            following = None if is_last else Sum(code.integer(first), number + 1 - first)
            whole = self.exact or number < self.tiles - 2
            carried = self._tile(following, number % stages, whole, carried, count)
        return carried[:count]

    def _tile(
        self, following: Sum | None, stage: int, whole: bool, carried: list[Any], count: int
    ) -> list[Any]:
        """The products of a tile, and copies of the one that follows.

        Args:
            following: its number, or None.
            stage: of this one.
            whole: whether all steps of the one that follows exist.
            carried: sums, and operands that were read early.
            count: sums.
        """
        code, schedule = self.code, self.schedule
        after = (stage + 1) % self.plan.stages
        sums, held = carried[:count], self._held(carried[count:])
        following_held: dict[Key, list[Any]] = {}
        loaded: list[Any] = []
        if following is not None:
            loaded = self._load(following, whole)
            self._fence()
        for number, (call, i, j) in enumerate(schedule.products):
            due = schedule.due.get(number, [])
            early = schedule.early.get(number, []) if following is not None else []
            if following is not None and number == schedule.stored:
                self._store(after, loaded)
                self._fence()
            held |= self._read(due, stage)
            if due:
                self._fence()
            if following is not None and number == schedule.barrier:
                # The last products' operands are in registers: this stage may be filled again.
                barrier(code)
            following_held |= self._read(early, after)
            if early:
                self._fence()
            sums = self.calls.multiplied(held[0, call, i], held[1, call, j], sums, i, j)
        return [*sums, *self._registers(following_held)]

    def _fence(self) -> None:
        """Loads stay in front of the products that follow."""
        if self.plan.fence:
            none = self.code.constant(ir.IntegerAttr.get(self.code.i32, 0))
            self.code.intrinsic(self.plan.fence, [], [none])

    def _load(self, number: Sum, whole: bool) -> list[Any]:
        depth = self.plan.sizes.depth
        begin = Sum(self.code.times(number.value, depth), number.plus * depth)
        return [value for copy in self.copies for value in copy.load(begin, whole)]

    def _store(self, stage: int, loaded: list[Any]) -> None:
        rest = iter(loaded)
        for copy in self.copies:
            copy.store(self.code.integer(stage), rest)

    # Operands

    def _read(self, reads: Iterable[Read], stage: int) -> dict[Key, list[Any]]:
        """The registers of operands in a stage."""
        found: dict[Key, list[Any]] = {}
        for side, call, units in reads:
            parts = self.reads.fragments_of(side, self.code.integer(stage), call, units)
            found |= {(side, call, unit): part for unit, part in zip(units, parts, strict=True)}
        return found

    def _registers(self, held: dict[Key, list[Any]]) -> list[Any]:
        """As they are carried from one tile to the next."""
        return [register for key in sorted(held) for register in held[key]]

    def _held(self, registers: list[Any]) -> dict[Key, list[Any]]:
        """The values that :meth:`_registers` carried."""
        keys = sorted(
            (side, call, unit) for side, call, units in self.schedule.early_reads for unit in units
        )
        rest = iter(registers)
        return {key: [next(rest) for _ in range(self.reads.of_operand(key[0]))] for key in keys}
