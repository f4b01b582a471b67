"""The body of a kernel whose blocks compute tiles of a contraction, each thread some elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.buffers.copies import Barrier, BoxCopy
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.model import For, Load, Node
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.lane_copies import LaneCopies
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.mlir import ir

#: Operations up to which the steps whose operands are copied at once are written out.
_UNROLLED = 4096


@dataclass
class _State:
    """Values at a node.

    Attributes:
        sums: of the thread's elements.
        loaded: its part of the tiles that are in registers.
        number: of the tile that is in registers.
        stored: of the one that is in shared memory.
        tiles: the variable of the loop over tiles, and its value.
    """

    sums: list[Any]
    loaded: list[Any] = field(default_factory=list)
    number: Expr = field(default_factory=Expr)
    stored: Expr = field(default_factory=Expr)
    tiles: tuple[Var, Any] | None = None


class LaneEmitter:
    """Writes such a body at the current insertion point.

    Args:
        tile: the elements of the thread.
        plan: how tiles are computed.
        tiles: shared memory of every operand.
        pipeline: the steps as nodes.
    """

    def __init__(
        self, tile: TileEmitter, plan: LanePlan, tiles: dict[Operand, Any], pipeline: Pipeline
    ) -> None:
        self.tile, self.code, self.plan, self.tiles = tile, tile.code, plan, tiles
        self.pipeline = pipeline
        self.copies = LaneCopies(self.tile, plan, tiles)
        #: The thread's rows and columns, as numbers in the block's tile.
        self.places: tuple[list[Any], list[Any]] = ([], [])

    def emit(self) -> None:
        """The whole body, without the terminator."""
        thread, block = self.code.id("thread"), self.code.id("block")
        self.tile.begin(block)
        self._place_elements(thread)
        inits = self.tile.place(self.places, (self.plan.chunk(0), self.plan.chunk(1)))
        self.tile.finish(self._steps(thread, inits))

    def _place_elements(self, thread: Any) -> None:
        """The rows and columns of a thread's elements, as numbers in the block's tile."""
        code, (rows, columns) = self.code, self.plan.sizes.across
        members = (code.quotient(thread, columns), code.remainder(thread, columns))
        for side, (member, count) in enumerate(zip(members, (rows, columns), strict=True)):
            chunk = self.plan.chunk(side)
            first = code.times(member, chunk)
            self.places[side].extend(
                code.plus(first, i // chunk * chunk * count + i % chunk)
                for i in range(self.plan.sizes.of_thread[side])
            )

    def _steps(self, thread: Any, inits: list[Any]) -> list[Any]:
        """All steps: copies, and what threads add to their elements."""
        state = _State(list(inits))
        self._nodes(self.pipeline.nodes, thread, state)
        return state.sums

    def _nodes(self, nodes: list[Node], thread: Any, state: _State) -> None:
        for node in nodes:
            if isinstance(node, Barrier):
                barrier(self.code)
            elif isinstance(node, For) and node.copy:
                self._copy(BoxCopy.of(node), thread, state)
            elif isinstance(node, For) and any(isinstance(n, For) for n in node.body):
                self._loop(node, thread, state)
            elif isinstance(node, For):
                state.sums = self._compute(self._begin(state.stored, state), node.trips, state.sums)

    def _copy(self, copy: BoxCopy, thread: Any, state: _State) -> None:
        """All operands' copies of a tile, where that of the first one stands."""
        buffer = copy.source.buffer
        if buffer.space:
            if buffer is self.pipeline.loaded[0]:
                self.copies.store(thread, state.loaded)
                state.stored = state.number
            return
        if copy.destination.buffer is not self.pipeline.loaded[0]:
            return
        code, (loop,) = self.code, copy.loops
        sizes = self.plan.sizes
        number = loop.lower[0] // sizes.depth
        end = min(e.range()[1] for e in loop.upper)
        whole = loop.var.extent % sizes.depth == 0 or end <= loop.var.extent

        def load() -> list[Any]:
            return self.copies.load(thread, self._begin(number, state), whole)

        # Tiles that may be beyond the last one that is loaded ahead.
        *_, bound = loop.upper
        if bound.is_constant and not number.is_constant:
            last = code.integer(bound.const // sizes.depth)
            more = code.compare("ult", self._number(number, state), last)
            before, types = state.loaded, [v.type for v in state.loaded]
            state.loaded = code.when(more, load, lambda: before, types)
        else:
            state.loaded = load()
        state.number = number

    def _loop(self, loop: For, thread: Any, state: _State) -> None:
        """As many tiles."""
        code, count = self.code, len(state.sums)

        def tile(number: Any, inside: list[Any]) -> list[Any]:
            now = _State(inside[:count], inside[count:], state.number, tiles=(loop.var, number))
            # The tile that was loaded before the loop, or in the iteration before.
            now.number = Expr.of(loop.var)
            self._nodes(loop.body, thread, now)
            return [*now.sums, *now.loaded]

        inits = [*state.sums, *state.loaded]
        zero, one = code.integer(0), code.integer(1)
        found = code.loop(zero, code.integer(loop.var.extent), one, inits, tile)
        state.sums, state.loaded = found[:count], found[count:]

    def _begin(self, number: Expr, state: _State) -> Any:
        """The first step of a tile."""
        return self.code.times(self._number(number, state), self.plan.sizes.depth)

    def _number(self, number: Expr, state: _State) -> Any:
        if number.is_constant:
            return self.code.integer(number.const)
        assert state.tiles is not None
        var, value = state.tiles
        return self.code.plus(value, (number - Expr.of(var)).const)

    def _compute(self, begin: Any, count: int, sums: list[Any]) -> list[Any]:
        """So many steps whose operands are in shared memory."""
        code, body = self.code, self.plan.sizes.parts.reduction.body
        operations = count * len(body) * prod(self.plan.sizes.of_thread)
        if operations <= _UNROLLED:
            for step in range(count):
                sums = self._step(begin, code.integer(step), sums)
            return sums
        return code.loop(
            code.integer(0),
            code.integer(count),
            code.integer(1),
            sums,
            lambda k, s: self._step(begin, k, s),
        )

    def _step(self, begin: Any, step: Any, sums: list[Any]) -> list[Any]:
        """One step for all elements of a thread."""
        number = self.code.add(begin, step)
        return self.tile.step(sums, number, partial(self._read, step))

    def _read(self, step: Any, node: Node) -> bool:
        """Load a thread's part of an operand's tile for a step, a chunk with each access.

        Returns:
            Whether the node loads an operand.
        """
        operand = self.plan.sizes.parts.operand(node) if isinstance(node, Load) else None
        if operand is None or not isinstance(node, Load):
            return False
        code, tile, side = self.code, self.tiles[operand], operand.side
        chunk, type_ = self.plan.chunk(side), node.result.type
        steps, _ = self.plan.copied_at_once(operand)
        group = code.quotient(step, steps)
        inside = code.times(code.remainder(step, steps), self.copies.length(operand))
        name = "memref.load" if chunk == 1 else "vector.load"
        read = type_ if chunk == 1 else ir.VectorType.get([chunk], type_)
        for i in range(0, self.plan.sizes.of_thread[side], chunk):
            place = [tile, group, code.add(inside, self.places[side][i])]
            (value,) = code.op(name, [read], place, None, node.location).results
            for k, element in enumerate([value] if chunk == 1 else code.elements(value)):
                key = (i + k, -1) if operand.of_rows else (-1, i + k)
                self.tile.found[(node.result, *key)] = element
        return True
