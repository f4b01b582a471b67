"""The body of a kernel whose blocks compute tiles of a contraction, each thread some elements."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.model import Load, Node
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.lane_copies import LaneCopies
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.mlir import ir

#: Operations up to which the steps whose operands are copied at once are written out.
_UNROLLED = 4096


class LaneEmitter:
    """Writes such a body at the current insertion point.

    Args:
        tile: the elements of the thread.
        plan: how tiles are computed.
        tiles: shared memory of every operand.
    """

    def __init__(self, tile: TileEmitter, plan: LanePlan, tiles: dict[Operand, Any]) -> None:
        self.tile, self.code, self.plan, self.tiles = tile, tile.code, plan, tiles
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
        code, plan = self.code, self.plan
        steps, depth = plan.sizes.counts[2], plan.sizes.depth
        tiles, rest = divmod(steps, depth)
        ahead = self.copies.load(thread, code.integer(0), True)
        types = [v.type for v in ahead]

        def exchange(loaded: list[Any]) -> None:
            barrier(code)
            self.copies.store(thread, loaded)
            barrier(code)

        def tile(number: Any, inside: list[Any]) -> list[Any]:
            sums, loaded = inside[: len(inits)], inside[len(inits) :]
            exchange(loaded)
            following = code.add(number, code.integer(1))
            more = code.compare("ult", following, code.integer(tiles))
            # Loads of the next step overlap the computation of this one.
            after = code.when(
                more,
                lambda: self.copies.load(thread, code.times(following, depth), True),
                lambda: loaded,
                types,
            )
            return [*self._compute(code.times(number, depth), depth, sums), *after]

        found = code.loop(
            code.integer(0), code.integer(tiles), code.integer(1), [*inits, *ahead], tile
        )
        sums = found[: len(inits)]
        if rest:
            begin = code.integer(tiles * depth)
            exchange(self.copies.load(thread, begin, False))
            sums = self._compute(begin, rest, sums)
        return sums

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
