"""Copies of operands' tiles to shared memory, by loads and stores of each thread."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from polyblocks.affine.access import address
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.element import zero_of
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.mlir import ir


class LaneCopies:
    """Writes a thread's part of the copies at the current insertion point.

    Args:
        tile: the thread's elements.
        plan: how tiles are computed.
        tiles: shared memory of every operand.
    """

    def __init__(self, tile: TileEmitter, plan: LanePlan, tiles: dict[Operand, Any]) -> None:
        self.tile, self.code, self.plan, self.tiles = tile, tile.code, plan, tiles
        self.nodes = tile.nodes

    def _pieces(self, operand: Operand) -> int:
        """Pieces of an operand's tile that the threads copy."""
        steps, outer = self.plan.copied_at_once(operand)
        return self.plan.sizes.depth * self.length(operand) // (steps * outer)

    def length(self, operand: Operand) -> int:
        """Rows, or columns, of an operand's tile."""
        return self.plan.sizes.tile[operand.side]

    def _copy_rounds(self, operand: Operand) -> range:
        """The rounds in which the threads copy a tile."""
        return range(-(-self._pieces(operand) // self.plan.threads))

    def _piece(self, operand: Operand, thread: Any, round_: int) -> tuple[Any, Any, Any]:
        """Whether a thread has a piece of a tile in some round, its first step and its place."""
        code, plan = self.code, self.plan
        number, mine = code.round_of(thread, round_, self._pieces(operand), plan.threads)
        steps, outer = plan.copied_at_once(operand)
        length = self.length(operand) // outer
        beside = plan.copied_beside(operand)
        rest = code.quotient(number, beside)
        step = code.remainder(number, beside)
        if beside * steps < plan.sizes.depth:
            step = code.add(step, code.times(code.quotient(rest, length), beside))
            rest = code.remainder(rest, length)
        return mine, code.times(step, steps), code.times(rest, outer)

    def load(self, thread: Any, begin: Any, whole: bool) -> list[Any]:
        """A thread's loads of all operands from a step on; ``whole``: all steps exist."""
        code, plan = self.code, self.plan
        found = []
        for operand in plan.sizes.parts.operands:
            size = prod(plan.copied_at_once(operand))
            type_ = self._type_of_piece(operand)
            for round_ in self._copy_rounds(operand):
                mine, step, place = self._piece(operand, thread, round_)
                find = partial(self._source, operand, begin, step, place, whole, size)
                found += code.when(mine, find, partial(self._nothing, type_), [type_])
        return found

    def _type_of_piece(self, operand: Operand) -> Any:
        size, element = prod(self.plan.copied_at_once(operand)), operand.load.result.type
        return element if size == 1 else ir.VectorType.get([size], element)

    def _source(
        self, operand: Operand, begin: Any, step: Any, place: Any, whole: bool, size: int
    ) -> list[Any]:
        """A piece from memory."""
        code, plan, load = self.code, self.plan, operand.load
        side = operand.side
        steps, outer = plan.copied_at_once(operand)
        number = code.add(begin, step)
        if not whole:
            last = code.integer(plan.sizes.counts[2] - steps)
            number = code.value("arith.minui", code.index, number, last)
        self.nodes.decode(number, plan.sizes.parts.reduction.order)
        at = self.tile.clamped(code.add(self.tile.first[side], place), side, outer)
        self.nodes.variables.update(self.tile.values(at, side))
        if size == 1:
            self.nodes.load(
                load, [self.nodes.memrefs[load.buffer], *map(self.nodes.expr, load.index)]
            )
            return [self.nodes.values[load.result]]
        row = self.nodes.row(self.nodes.memrefs[load.buffer])
        index = self.nodes.expr(address(load.buffer, load.index))
        type_ = self._type_of_piece(operand)
        return list(code.op("vector.load", [type_], [row, index], None, load.location).results)

    def _nothing(self, type_: Any) -> list[Any]:
        """The values of a thread that copies nothing in a round."""
        if not isinstance(type_, ir.VectorType):
            return [self.nodes.zero(type_)]
        zero = zero_of(type_.element_type)
        return [self.code.constant(ir.DenseElementsAttr.get_splat(type_, zero))]

    def store(self, thread: Any, loaded: list[Any]) -> None:
        """Put what was loaded into the tiles of shared memory."""
        rest = iter(loaded)
        for operand in self.plan.sizes.parts.operands:
            for round_ in self._copy_rounds(operand):
                mine, step, place = self._piece(operand, thread, round_)
                store = partial(self._put, operand, next(rest), step, place)
                self.code.when(mine, store)

    def _put(self, operand: Operand, value: Any, step: Any, place: Any) -> list[Any]:
        """A piece in the tile: rows (or columns) at once, steps one by one."""
        code, tile = self.code, self.tiles[operand]
        steps, outer = self.plan.copied_at_once(operand)
        if outer > 1:
            code.op("vector.store", [], [value, tile, step, place])
            return []
        group = code.quotient(step, steps)
        for k, element in enumerate(code.elements(value) if steps > 1 else [value]):
            at = code.plus(place, k * self.length(operand))
            code.op("memref.store", [], [element, tile, group, at])
        return []
