"""Nodes of a product's steps as operations, where lanes read operands to registers of the unit."""

from __future__ import annotations

from itertools import product
from typing import Any

from polyblocks.affine.buffers.copies import REGISTERS, SHARED, BoxCopy
from polyblocks.affine.expr import Expr, Mod
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.gpu.staged.warp_units import WarpUnits
from polyblocks.affine.model import For, Node
from polyblocks.affine.multiply import UnitSteps
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.tile_loops import Part, TileLoops, Tiles, part_of
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls
from polyblocks.mlir import ir

#: The operand, 0 or 1, where its steps are in the registers' buffer, and the unit along its side.
Key = tuple[int, tuple[int, ...], int]


class StagedSteps(TileLoops):
    """Writes steps whose operands lanes read from shared memory.

    Args:
        calls: of the unit.
        copies: the thread's part of the copies of rows, and of columns.
        pipeline: the nodes.
    """

    def __init__(self, calls: UnitCalls, copies: list[TileCopy], pipeline: Pipeline) -> None:
        super().__init__(calls.reads.scope, copies, pipeline)
        self.calls, self.reads, self.plan = calls, calls.reads, calls.plan
        #: Operands in the registers of the unit, and elements on the way to shared memory.
        self.fragments: dict[Key, list[Any]] = {}
        self.loaded: dict[int, list[Any]] = {}
        self._sides = [WarpUnits(self.plan, side) for side in range(2)]
        self._units = WarpUnits(self.plan)
        #: The units that a node is for, by bounds of it.
        self._known: dict[Any, tuple[int, ...]] = {}

    def segment(self, parts: list[Part]) -> None:
        """Copies and products, one by one."""
        for position, part in enumerate(parts):
            if isinstance(part, UnitSteps):
                self._multiply(part)
                continue
            if part.kind == "registers":
                self.through_registers(part)
            else:
                self.read(part)
            if _ends_run(parts, position):
                self._fence()

    def _fence(self) -> None:
        """Loads stay in front of the products that follow."""
        if self.plan.fence:
            none = self.code.constant(ir.IntegerAttr.get(self.code.i32, 0))
            self.code.intrinsic(self.plan.fence, [], [none])

    # Copies and products

    def _multiply(self, steps: UnitSteps) -> None:
        """The products of some units."""
        first, second = (self.place(steps, side) for side in range(2))
        for number in self.units_of(steps.loop, self._units):
            i, j = divmod(number, self.plan.of_warp[1])
            operands = self.fragments[0, first, i], self.fragments[1, second, j]
            self.sums = self.calls.multiplied(*operands, self.sums, i, j)

    def read(self, copy: BoxCopy) -> None:
        """The operands of some units for a call."""
        side = self.pipeline.side(copy.destination.buffer)
        units = self.units_of(copy.loops[0], self._sides[side])
        stage = self.stage(copy.source.index[0])
        parts = self.reads.fragments_of(side, stage, self.call(copy, side), units)
        self.hold(copy, side, units, parts)

    def hold(
        self, copy: BoxCopy, side: int, units: tuple[int, ...], parts: list[list[Any]]
    ) -> None:
        """Registers of some units, from now on in the place that a copy is to."""
        place = self.place(copy, side)
        for unit, registers in zip(units, parts, strict=True):
            self.fragments[side, place, unit] = registers

    def through_registers(self, copy: BoxCopy) -> None:
        """Elements from memory to registers, or from there to shared memory."""
        if copy.source.buffer.space == REGISTERS:
            side = self.pipeline.side(copy.source.buffer)
            stage = self.stage(copy.destination.index[0])
            self.copies[side].store(stage, iter(self.loaded.pop(side)))
            return
        side = self.pipeline.side(copy.destination.buffer)
        part, number, whole = self.copies[side], self.number(copy), self.is_whole(copy)

        def load() -> list[Any]:
            return part.load(self.begin(number), whole)

        (loop,) = copy.loops
        if loop.lower[0].range()[1] < loop.var.extent:
            self.loaded[side] = load()
            return
        code, last = self.code, (loop.var.extent - 1) // self.plan.sizes.depth
        nothing = part.nothing()
        there = code.compare("sle", self.value(number), code.integer(last))
        types = [value.type for value in nothing]
        self.loaded[side] = code.when(there, load, lambda: nothing, types)

    # Loops over tiles

    def loop(self, loop: For) -> None:
        """As many tiles; registers that are used before they are filled are carried on."""
        code = self.code
        carried = sorted(self._used_first(loop.body))
        count = len(self.sums)
        held = [self.fragments[key] for key in carried]
        first = _counted_from(loop, self.plan.sizes.depth)
        outer = self.tiles
        numbers: list[Any] = []
        if first is not None:
            stages = self.plan.stages
            numbers = [code.integer((first + k) % stages, code.i32) for k in (-1, 0)]
        end = count + sum(map(len, held))

        def tile(number: Any, values: list[Any]) -> list[Any]:
            self.sums, self.fragments = values[:count], _held(carried, held, values[count:end])
            counted: list[Any] = []
            found = {}
            if first is not None:
                before, stage = values[end:]
                counted = [stage, self._next(stage)]
                found = dict(zip((-1, 0, 1), map(code.as_index, (before, *counted)), strict=True))
            self.tiles = Tiles(loop.var, number, first or 0, found)
            self.run(loop.body)
            kept = [value for key in carried for value in self.fragments[key]]
            return [*self.sums, *kept, *counted]

        inits = [*self.sums, *(value for values in held for value in values), *numbers]
        begin = first or 0
        low, high = code.integer(begin), code.integer(begin + loop.var.extent)
        after = code.loop(low, high, code.integer(1), inits, tile, kept=True)
        self.tiles = outer
        self.sums, self.fragments = after[:count], _held(carried, held, after[count:end])

    def _used_first(self, body: list[Node]) -> set[Key]:
        """Registers that products of a loop use before a copy in it fills them."""
        filled: set[Key] = set()
        used: set[Key] = set()
        for node in body:
            part = part_of(node)
            if isinstance(part, BoxCopy) and part.kind == "fragments":
                side = self.pipeline.side(part.destination.buffer)
                units = self.units_of(part.loops[0], self._sides[side])
                filled |= {(side, self.place(part, side), unit) for unit in units}
            elif isinstance(part, UnitSteps):
                units = self.units_of(part.loop, self._units)
                for number, side in product(units, range(2)):
                    unit = divmod(number, self.plan.of_warp[1])[side]
                    used |= {(side, self.place(part, side), unit)} - filled
        return used

    def _next(self, stage: Any) -> Any:
        """The stage after one, both of type ``i32``: counted, not divided."""
        code = self.code
        zero, one, last = (code.integer(n, code.i32) for n in (0, 1, self.plan.stages - 1))
        following = code.value("arith.addi", code.i32, stage, one)
        is_last = code.compare("eq", stage, last)
        return code.value("arith.select", code.i32, is_last, zero, following)

    # Numbers

    def units_of(self, loop: For, units: WarpUnits) -> tuple[int, ...]:
        """The units that a loop over steps is for."""
        begin, extent = self.first_step(loop), Expr(loop.var.extent)
        lower = tuple(e - begin for e in loop.lower)
        upper = tuple(e - begin for e in (*loop.upper, extent))
        key = units, lower, upper
        if key not in self._known:
            self._known[key] = units.between(lower, upper)
        return self._known[key]

    def place(self, part: Part, side: int) -> tuple[int, ...]:
        """Where the first step of an operand is in the registers' buffer."""
        if isinstance(part, UnitSteps):
            loop, index = part.loop, part.loads[side].index
        else:
            (loop,), index = part.loops, part.destination.index
        at = {loop.var: self.first_step(loop)}
        return tuple(e.substitute(at).const for e in index)

    def call(self, part: Part, side: int) -> int:
        """The call of a tile whose operands are multiplied, or read."""
        return self.place(part, side)[-1] // self.plan.unit.shape[2]

    def stage(self, expr: Expr) -> Any:
        """A number of a stage, of type index."""
        if expr.is_constant:
            return self.code.integer(expr.const)
        assert self.tiles is not None
        ((atom, _),) = expr.terms
        # It is the number of a tile, or what is left of that.
        tile, stages = atom.dividend if isinstance(atom, Mod) else expr, self.plan.stages
        value, ahead = self.terms(tile)
        for number in (0, -1, 1):
            if (ahead - number) % stages == 0:
                return self.tiles.stages[number]
        return self.code.remainder(self.code.plus(value, ahead % stages), stages)


def _ends_run(parts: list[Part], position: int) -> bool:
    """Whether no copy of the same kind follows one, in a segment with products."""
    if not any(isinstance(part, UnitSteps) for part in parts):
        return False
    here, behind = parts[position], parts[position + 1 : position + 2]
    return [_direction(here)] != [_direction(part) for part in behind]


def _direction(part: Part) -> tuple[str, str] | None:
    return None if isinstance(part, UnitSteps) else (part.kind, part.source.buffer.space)


def _held(keys: list[Key], alike: list[list[Any]], values: list[Any]) -> dict[Key, list[Any]]:
    """Registers by what they hold."""
    rest = iter(values)
    pairs = zip(keys, alike, strict=True)
    return {key: [next(rest) for _ in registers] for key, registers in pairs}


def _counted_from(loop: For, depth: int) -> int | None:
    """The tile that is read first in a loop whose stages are counted; None if all are constants."""
    parts = [part_of(node) for node in loop.body]
    reads = [p for p in parts if isinstance(p, BoxCopy) and p.source.buffer.space == SHARED]
    if all(read.source.index[0].is_constant for read in reads):
        return None
    number = reads[0].loops[0].lower[0] // depth
    return (number - Expr.of(loop.var)).const
