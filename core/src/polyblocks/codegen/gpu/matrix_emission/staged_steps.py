"""The nodes of a product's steps as operations: copies, waits, barriers and calls of the unit.

The nodes determine the operations and their order, up to the order of independent ones between two
waits: there copies and reads take turns with the products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from polyblocks.affine.buffers.copies import REGISTERS, SHARED, Barrier, BoxCopy, Commit, Wait
from polyblocks.affine.expr import Expr, Mod, Var
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.model import Alloca, For, Node
from polyblocks.affine.multiply import UnitSteps
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.matrix_emission.operand_reads import Action
from polyblocks.codegen.gpu.matrix_emission.pipeline import Pipeline as Groups
from polyblocks.codegen.gpu.matrix_emission.places import Sum
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy
from polyblocks.codegen.gpu.matrix_emission.unit_calls import UnitCalls

#: The operand, 0 or 1, and the number of the call.
Key = tuple[int, int]


@dataclass(frozen=True)
class Tiles:
    """The variable of a loop over tiles.

    Attributes:
        var: of the model.
        first: the tile that is multiplied where it is 0.
        number: the tile that is multiplied, of type index.
        stages: of the tiles before, of this one and of the next one, by how far they are from it.
    """

    var: Var
    first: int
    number: Any
    stages: dict[int, Any]


class StagedSteps:
    """Writes the steps at the current insertion point.

    Args:
        calls: of the unit.
        copies: the thread's part of the copies of rows, and of columns.
        pipeline: the nodes.
    """

    def __init__(self, calls: UnitCalls, copies: list[TileCopy], pipeline: Pipeline) -> None:
        self.calls, self.reads, self.copies = calls, calls.reads, copies
        self.code, self.plan, self.pipeline = calls.code, calls.plan, pipeline
        assert self.plan.copies is not None
        self.groups = Groups(self.code, self.plan.copies)
        self.sums: list[Any] = []
        #: Operands in the registers of the unit, and elements on the way to shared memory.
        self.fragments: dict[Key, list[Any]] = {}
        self.loaded: dict[int, list[Any]] = {}
        self.tiles: Tiles | None = None

    def emit(self, sums: list[Any]) -> list[Any]:
        """All steps; the sums after them.

        Args:
            sums: registers of the warp's sums.
        """
        self.sums = sums
        self._nodes(self.pipeline.nodes)
        return self.sums

    def _nodes(self, nodes: list[Node]) -> None:
        for segment in _segments(nodes):
            first = segment[0]
            if isinstance(first, Commit):
                self.groups.close()
            elif isinstance(first, Wait):
                self.groups.wait(first.pending)
            elif isinstance(first, Barrier):
                barrier(self.code)
            elif _is_of_tiles(first):
                assert isinstance(first, For)
                self._loop(first)
            else:
                self._segment(segment)

    # Copies and products between waits

    def _segment(self, nodes: list[Node]) -> None:
        """Copies past the registers are begun beside all products, reads beside those before."""
        parts = [p for n in nodes if isinstance(n, For) and (p := _part(n)) is not None]
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
        turn = 0
        for position, part in enumerate(parts):
            if isinstance(part, UnitSteps):
                reads = list(_reads_behind(parts, position))
                self._multiply(part, starts[turn::count], reads)
                turn += 1
            elif part.kind == "registers":
                self._through_registers(part)
            elif part.kind == "fragments" and part not in _overlapped_reads(parts):
                self._read(part)

    def _multiply(self, steps: UnitSteps, starts: list[Action], reads: list[BoxCopy]) -> None:
        """The products of a call, and what is done beside them.

        They take turns: what all warps ask of shared memory at once is served one by one.
        """
        operands = [v for side in range(2) for v in self.fragments[side, self._call(steps, side)]]
        found: list[tuple[Key, list[list[Any]]]] = []
        beside = [((k + 0.5) / len(starts), action) for k, action in enumerate(starts)]
        for copy in reads:
            side = self.pipeline.side(copy.destination.buffer)
            actions = self._loads(copy)
            values: list[list[Any]] = [[] for _ in actions]
            found.append(((side, self._call(copy, side)), values))
            for k, action in enumerate(actions):
                # Products go column by column: there are registers for more rows at any time, and
                # for more columns when those before are done.
                when = (k + (0.5, 1.0)[side]) / len(actions) if self.plan.loads else 0.0
                beside.append((when, partial(_keep, action, values, k)))
        beside.sort(key=lambda entry: entry[0])
        self.sums = self.calls.multiply(operands, self.sums, beside)
        for key, values in found:
            self.fragments[key] = [value for part in values for value in part]

    def _read(self, copy: BoxCopy) -> None:
        """The operands of a call, before any products."""
        side = self.pipeline.side(copy.destination.buffer)
        values = [value for action in self._loads(copy) for value in action()]
        self.fragments[side, self._call(copy, side)] = values

    def _loads(self, copy: BoxCopy) -> list[Action]:
        side = self.pipeline.side(copy.destination.buffer)
        stage = self._stage(copy.source.index[0])
        return self.reads.loads_of(side, stage, self._call(copy, side))

    def _starts(self, copy: BoxCopy) -> list[Action]:
        """A round of the copy each."""
        part = self.copies[self.pipeline.side(copy.destination.buffer)]
        number, stage = self._number(copy), copy.destination.index[0]
        whole = self._is_whole(copy)

        def start(round_: int) -> list[Any]:
            part.start(round_, self._begin(number), self._stage(stage), whole)
            return []

        return [partial(start, round_) for round_ in part.rounds]

    def _through_registers(self, copy: BoxCopy) -> None:
        """Elements from memory to registers, or from there to shared memory."""
        if copy.source.buffer.space == REGISTERS:
            side = self.pipeline.side(copy.source.buffer)
            stage = self._stage(copy.destination.index[0])
            self.copies[side].store(stage, iter(self.loaded.pop(side)))
            return
        side = self.pipeline.side(copy.destination.buffer)
        part, number, whole = self.copies[side], self._number(copy), self._is_whole(copy)

        def load() -> list[Any]:
            return part.load(self._begin(number), whole)

        (loop,) = copy.loops
        if loop.lower[0].range()[1] < loop.var.extent:
            self.loaded[side] = load()
            return
        code, last = self.code, (loop.var.extent - 1) // self.plan.sizes.depth
        nothing = part.nothing()
        there = code.compare("sle", self._value(number), code.integer(last))
        types = [value.type for value in nothing]
        self.loaded[side] = code.when(there, load, lambda: nothing, types)

    # Loops over tiles

    def _loop(self, loop: For) -> None:
        """As many tiles; registers that are used before they are filled are carried on."""
        code, stages = self.code, self.plan.stages
        carried = list(_used_first(loop.body, self._call, self.pipeline))
        count = len(self.sums)
        held = [self.fragments[key] for key in carried]
        first = _first_tile(loop, self.plan.sizes.depth)
        numbers = [code.integer((first + k) % stages, code.i32) for k in (-1, 0)]
        outer = self.tiles

        def tile(number: Any, values: list[Any]) -> list[Any]:
            before, stage = values[-2:]
            following = self._next(stage)
            found = dict(
                zip((-1, 0, 1), map(code.as_index, (before, stage, following)), strict=True)
            )
            self.tiles = Tiles(loop.var, first, number, found)
            self.sums, self.fragments = values[:count], self._held(carried, held, values[count:-2])
            self._nodes(loop.body)
            kept = [value for key in carried for value in self.fragments[key]]
            return [*self.sums, *kept, stage, following]

        inits = [*self.sums, *(value for values in held for value in values), *numbers]
        low, high = code.integer(first), code.integer(first + loop.var.extent)
        after = code.loop(low, high, code.integer(1), inits, tile, kept=True)
        self.tiles = outer
        self.sums, self.fragments = after[:count], self._held(carried, held, after[count:-2])

    def _held(
        self, keys: list[Key], alike: list[list[Any]], values: list[Any]
    ) -> dict[Key, list[Any]]:
        """Registers by what they hold."""
        rest = iter(values)
        pairs = zip(keys, alike, strict=True)
        return {key: [next(rest) for _ in registers] for key, registers in pairs}

    def _next(self, stage: Any) -> Any:
        """The stage after one, both of type ``i32``: counted, not divided."""
        code = self.code
        zero, one, last = (code.integer(n, code.i32) for n in (0, 1, self.plan.stages - 1))
        following = code.value("arith.addi", code.i32, stage, one)
        is_last = code.compare("eq", stage, last)
        return code.value("arith.select", code.i32, is_last, zero, following)

    # Numbers

    def _call(self, part: UnitSteps | BoxCopy, side: int) -> int:
        """The call of a tile whose operands are multiplied, or read."""
        if isinstance(part, UnitSteps):
            loop, (place,) = part.loop, part.loads[side].index
        else:
            (loop,), (place,) = part.loops, part.destination.index
        begin = loop.lower[0] if loop.lower else Expr(0)
        return place.substitute({loop.var: begin}).const // self.plan.unit.shape[2]

    def _number(self, copy: BoxCopy) -> Expr:
        """The tile whose steps are copied."""
        (loop,) = copy.loops
        return loop.lower[0] // self.plan.sizes.depth

    def _is_whole(self, copy: BoxCopy) -> bool:
        """Whether all steps of a copied tile exist, if any does."""
        (loop,) = copy.loops
        extent = loop.var.extent
        return extent % self.plan.sizes.depth == 0 or loop.upper[0].range()[1] <= extent

    def _begin(self, number: Expr) -> Sum:
        """The first step of a tile."""
        return Sum(self.code.times(self._value(number), self.plan.sizes.depth))

    def _value(self, number: Expr) -> Any:
        """A number of a tile, of type index."""
        if number.is_constant:
            return self.code.integer(number.const)
        assert self.tiles is not None
        return self.code.plus(self.tiles.number, self._ahead(number, self.tiles))

    def _stage(self, expr: Expr) -> Any:
        """A number of a stage, of type index."""
        if expr.is_constant:
            return self.code.integer(expr.const)
        assert self.tiles is not None
        ((atom, _),) = expr.terms
        # It is the number of a tile, or what is left of that.
        tile, stages = atom.dividend if isinstance(atom, Mod) else expr, self.plan.stages
        ahead = self._ahead(tile, self.tiles)
        for number in (0, -1, 1):
            if (ahead - number) % stages == 0:
                return self.tiles.stages[number]
        return self.code.remainder(self.code.plus(self.tiles.number, ahead % stages), stages)

    @staticmethod
    def _ahead(number: Expr, tiles: Tiles) -> int:
        """By how many tiles a number is ahead of the tile that is multiplied."""
        return (number - Expr.of(tiles.var)).const - tiles.first


def _part(loop: For) -> BoxCopy | UnitSteps | None:
    if loop.copy:
        return BoxCopy.of(loop)
    return UnitSteps.of(loop) if loop.unit else None


def _is_of_tiles(node: Node) -> bool:
    return isinstance(node, For) and not node.copy and not node.unit


def _segments(nodes: list[Node]) -> Iterator[list[Node]]:
    """The nodes between waits and loops, and each of these by itself."""
    segment: list[Node] = []
    for node in nodes:
        if isinstance(node, Alloca):
            continue
        if isinstance(node, (Commit, Wait, Barrier)) or _is_of_tiles(node):
            if segment:
                yield segment
            yield [node]
            segment = []
        else:
            segment.append(node)
    if segment:
        yield segment


def _reads_behind(parts: list[BoxCopy | UnitSteps], position: int) -> Iterator[BoxCopy]:
    """The reads right behind products: they do not depend on these."""
    for part in parts[position + 1 :]:
        if not isinstance(part, BoxCopy) or part.kind != "fragments":
            return
        yield part


def _overlapped_reads(parts: list[BoxCopy | UnitSteps]) -> list[BoxCopy]:
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


def _used_first(
    body: list[Node], call: Callable[[UnitSteps | BoxCopy, int], int], pipeline: Pipeline
) -> Iterator[Key]:
    """Registers that products of a loop use before a copy in it fills them."""
    seen: set[Key] = set()
    for node in body:
        part = _part(node) if isinstance(node, For) else None
        if isinstance(part, BoxCopy) and part.kind == "fragments":
            side = pipeline.side(part.destination.buffer)
            seen.add((side, call(part, side)))
        elif isinstance(part, UnitSteps):
            for side in range(2):
                key = side, call(part, side)
                if key not in seen:
                    seen.add(key)
                    yield key


def _first_tile(loop: For, depth: int) -> int:
    """The tile whose operands are read in the first iteration of a loop."""
    read = next(
        part
        for node in loop.body
        if isinstance(node, For)
        and isinstance(part := _part(node), BoxCopy)
        and part.source.buffer.space == SHARED
    )
    number = read.loops[0].lower[0] // depth
    return (number - Expr.of(loop.var)).const
