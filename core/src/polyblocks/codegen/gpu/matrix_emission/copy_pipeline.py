"""The loop of a unit's kernel some of whose copies go past the registers."""

from __future__ import annotations

from functools import partial
from typing import Any

from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.matrix_emission.operand_reads import Action
from polyblocks.codegen.gpu.matrix_emission.pipeline import Pipeline
from polyblocks.codegen.gpu.matrix_emission.places import Sum
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls

#: Of a tile along the reduction; a value where a loop counts.
Number = Any | int


class CopyPipeline:
    """The steps of a reduction, several tiles of each operand in shared memory.

    Args:
        calls: of the unit.
        copies: the thread's part of both operands' copies.
    """

    def __init__(self, calls: UnitCalls, copies: list[TileCopy]) -> None:
        self.calls, self.reads = calls, calls.reads
        self.code, self.plan = calls.code, calls.plan
        self.direct = [c for c in copies if c.asynchronous]
        self.through = [c for c in copies if not c.asynchronous]
        self.schedule = self.plan.copy_schedule
        assert self.plan.copies is not None
        self.pipeline = Pipeline(self.code, self.plan.copies)
        #: Registers of the warp's sums.
        self.count = 0

    def emit(self, sums: list[Any]) -> list[Any]:
        """All steps; the sums after them.

        Args:
            sums: registers of the warp's sums.
        """
        code, schedule, stages = self.code, self.schedule, self.plan.stages
        self.count = len(sums)
        sums, operands = self._first_tile(sums)
        # Narrow numbers take narrow comparisons.
        numbers = [code.integer(number, code.i32) for number in (0, 1)]
        carried = [*sums, *operands, *numbers]
        if schedule.loop:
            carried = self._loop(schedule.loop, carried)
        for number in schedule.written_out:
            numbers = [code.integer((number + k) % stages, code.i32) for k in (-1, 0)]
            quiet = number >= schedule.quiet_from
            carried = self._tile(number, [*carried[:-2], *numbers], quiet)
        if schedule.quiet_loop:
            carried = self._loop(schedule.quiet_loop, carried, quiet=True)
        sums, operands = carried[: self.count], carried[self.count : -2]
        return self.calls.multiply(operands, sums)

    def _first_tile(self, sums: list[Any]) -> tuple[list[Any], list[Any]]:
        """Start the copies of all stages, and use the first tile but for its last call."""
        code, stages = self.code, self.plan.stages
        for first in range(stages):
            for action in self._starts(first, code.integer(first)):
                action()
            self.pipeline.close()
        self._store(code.integer(0), self._load_any(0))
        self._arrived(self.schedule.in_flight + 1)
        operands = self.reads.operands(code.integer(0), 0)
        loaded = self._load_any(1) if self.schedule.last else []
        for call in range(1, self.plan.calls):
            sums, operands = self._call(operands, sums, code.integer(0), call, [])
        if self.schedule.last:
            self._store(code.integer(1), loaded)
            self._arrived(self.schedule.in_flight)
        return sums, operands

    def _loop(self, tiles: range, carried: list[Any], quiet: bool = False) -> list[Any]:
        low, high, step = (self.code.integer(n) for n in (tiles.start, tiles.stop, tiles.step))
        body = partial(self._tile, quiet=quiet)
        return self.code.loop(low, high, step, carried, body, kept=True)

    def _tile(self, number: Number, carried: list[Any], quiet: bool = False) -> list[Any]:
        """The last call on the tile before one, and all others on this one.

        The last call's operands are in registers: its stage may be filled again, beside all of
        these products. A quiet one starts no copy, and may be the last.
        """
        code, count, stages = self.code, self.count, self.plan.stages
        sums, operands, numbers = carried[:count], carried[count:-2], carried[-2:]
        numbers = [*numbers, self._next(numbers[1])]
        before, stage, next_stage = map(code.as_index, numbers)
        is_last = isinstance(number, int) and number == self.schedule.last
        later = self._later(number, 1)
        sure = not quiet and not isinstance(number, int)
        loaded = [] if is_last else self._load(later, True) if sure else self._load_any(later)
        copies = [] if quiet else self._starts(self._later(number, stages - 1), before)
        for call in range(self.plan.calls):
            beside = copies[call :: self.plan.calls]
            sums, operands = self._call(operands, sums, stage, call, beside)
        if not is_last:
            self._store(next_stage, loaded)
            self.pipeline.close()
            self._arrived(self.schedule.in_flight)
        return [*sums, *operands, *numbers[1:]]

    def _call(
        self, operands: list[Any], sums: list[Any], stage: Any, call: int, beside: list[Action]
    ) -> tuple[list[Any], list[Any]]:
        """The products of a call; beside them the next call's operands, and other actions.

        They take turns: what all warps ask of shared memory at once is served one by one.
        """
        found: list[list[Any]] = []

        def load(action: Action, at: int) -> list[Any]:
            found[at] = action()
            return []

        actions = [((k + 0.5) / len(beside), action) for k, action in enumerate(beside)]
        for side, loads in enumerate(self.reads.loads(stage, call)):
            for k, action in enumerate(loads):
                # Products go column by column: there are registers for more rows at any time, and
                # for more columns when those before are done.
                when = (k + (0.5, 1.0)[side]) / len(loads) if self.plan.loads else 0.0
                actions.append((when, partial(load, action, len(found))))
                found.append([])
        actions.sort(key=lambda entry: entry[0])
        sums = self.calls.multiply(operands, sums, actions)
        return sums, [value for values in found for value in values]

    # Copies

    def _load(self, number: Number, exact: bool) -> list[Any]:
        begin = self._begin(number)
        return [value for copy in self.through for value in copy.load(begin, exact)]

    def _load_any(self, number: Number) -> list[Any]:
        """Of a tile that may be the last one, or beyond it."""
        code, whole = self.code, self.schedule.whole
        if not self.through or isinstance(number, int):
            return self._load(number, whole or number != self.schedule.last)
        nothing = [value for copy in self.through for value in copy.nothing()]
        there = code.compare("sle", number, code.integer(self.schedule.last))
        types = [value.type for value in nothing]
        return code.when(there, lambda: self._load(number, whole), lambda: nothing, types)

    def _store(self, stage: Any, loaded: list[Any]) -> None:
        rest = iter(loaded)
        for copy in self.through:
            copy.store(stage, rest)

    def _start(self, number: Number, stage: Any, copy: TileCopy, round_: int) -> list[Any]:
        copy.start(
            round_, self._begin(number), stage, self.schedule.whole or number != self.schedule.last
        )
        return []

    def _starts(self, number: Number, stage: Any) -> list[Action]:
        """A round of a copy each, if there is such a tile."""
        if isinstance(number, int) and number > self.schedule.last:
            return []
        rounds = ((copy, round_) for copy in self.direct for round_ in copy.rounds)
        return [partial(self._start, number, stage, *one) for one in rounds]

    def _arrived(self, in_flight: int) -> None:
        """Wait until at most ``in_flight`` groups of copies are pending, and for other warps."""
        self.pipeline.wait(in_flight)
        barrier(self.code)

    # Numbers

    def _begin(self, number: Number) -> Sum:
        """The first step of a tile."""
        value = self.code.integer(number) if isinstance(number, int) else number
        return Sum(self.code.times(value, self.plan.sizes.depth))

    def _later(self, number: Number, by: int) -> Number:
        return number + by if isinstance(number, int) else self.code.plus(number, by)

    def _next(self, stage: Any) -> Any:
        """The stage after one, both of type ``i32``: counted, not divided."""
        code = self.code
        zero, one, last = (code.integer(n, code.i32) for n in (0, 1, self.plan.stages - 1))
        following = code.value("arith.addi", code.i32, stage, one)
        is_last = code.compare("eq", stage, last)
        return code.value("arith.select", code.i32, is_last, zero, following)
