"""Nodes of a product's steps, in order: loops over tiles, waits, and what is between these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from polyblocks.affine.buffers.copies import Barrier, BoxCopy, Commit, Wait
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.kernel import Pipeline
from polyblocks.affine.model import For, Node
from polyblocks.affine.multiply import UnitSteps
from polyblocks.codegen.gpu.accesses.pipeline import Pipeline as Groups
from polyblocks.codegen.gpu.accesses.places import Sum
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.tile_copy import TileCopy

#: A node between loops and waits.
Part = BoxCopy | UnitSteps


@dataclass(frozen=True)
class Tiles:
    """The variable of a loop over tiles.

    Attributes:
        var: of the model.
        number: its value, of type index; of a loop whose stages are counted the tile that is
            multiplied.
        first: the tile that is multiplied where the variable is 0, if so; else 0.
        stages: if they are counted, of the tiles before, of this one and of the next one, by how
            far they are from it.
    """

    var: Var
    number: Any
    first: int
    stages: dict[int, Any]


class TileLoops(ABC):
    """Writes the steps at the current insertion point.

    Args:
        scope: of the kernel.
        copies: the thread's part of the copies of rows, and of columns.
        pipeline: the nodes.
    """

    def __init__(self, scope: UnitScope, copies: list[TileCopy], pipeline: Pipeline) -> None:
        self.scope, self.code, self.copies, self.pipeline = scope, scope.code, copies, pipeline
        self.sums: list[Any] = []
        self.tiles: Tiles | None = None
        parts = scope.plan.sizes.parts
        self._outers = {*parts.rows, *parts.columns}
        self._depth = scope.plan.sizes.depth

    def emit(self, sums: list[Any]) -> list[Any]:
        """All steps; the sums after them.

        Args:
            sums: registers of the warp's sums.
        """
        self.sums = sums
        self.run(self.pipeline.nodes)
        return self.sums

    def run(self, nodes: list[Node]) -> None:
        """Nodes of one body, in order."""
        for segment in segments(nodes):
            if not self.control(segment[0]):
                self.segment([p for n in segment if (p := part_of(n)) is not None])

    def control(self, node: Node) -> bool:
        """Write a node that parts do not change places with; whether it is one."""
        if isinstance(node, Barrier):
            barrier(self.code)
        elif isinstance(node, (Commit, Wait)):
            assert self.scope.plan.copies is not None
            groups = Groups(self.code, self.scope.plan.copies)
            if isinstance(node, Wait):
                groups.wait(node.pending)
            else:
                groups.close()
        elif is_of_tiles(node):
            self.loop(node)
        else:
            return False
        return True

    @abstractmethod
    def segment(self, parts: list[Part]) -> None:
        """Copies and products between two waits, or loops."""

    @abstractmethod
    def loop(self, loop: For) -> None:
        """As many tiles as a loop is over."""

    # Numbers

    def first_step(self, loop: For) -> Expr:
        """Where a loop over steps begins, for the units that it is for."""
        return next((e for e in loop.lower if self._outers.isdisjoint(e.variables())), Expr(0))

    def number(self, copy: BoxCopy) -> Expr:
        """The tile whose steps are copied."""
        return self.first_step(copy.loops[0]) // self._depth

    def is_whole(self, copy: BoxCopy) -> bool:
        """Whether all steps of a copied tile exist, if any does."""
        (loop,) = copy.loops
        extent = loop.var.extent
        return extent % self._depth == 0 or loop.upper[0].range()[1] <= extent

    def begin(self, number: Expr) -> Sum:
        """The first step of a tile."""
        code, depth = self.code, self._depth
        if number.is_constant:
            return Sum(code.integer(0), number.const * depth)
        value, plus = self.terms(number)
        return Sum(code.times(value, depth), plus * depth)

    def value(self, number: Expr) -> Any:
        """A number of a tile, of type index."""
        if number.is_constant:
            return self.code.integer(number.const)
        return self.code.plus(*self.terms(number))

    def terms(self, number: Expr) -> tuple[Any, int]:
        """A number of a tile in a loop: what it counts, and by how much it is ahead of that."""
        assert self.tiles is not None
        factor = number.coefficient(self.tiles.var)
        assert factor is not None
        rest = number - Expr.of(self.tiles.var) * factor
        return self.code.times(self.tiles.number, factor), rest.const - self.tiles.first


def part_of(node: Node) -> Part | None:
    """A copy, or multiplications, that a node is."""
    if not isinstance(node, For):
        return None
    if node.copy:
        return BoxCopy.of(node)
    return UnitSteps.of(node) if node.unit else None


def is_of_tiles(node: Node) -> TypeGuard[For]:
    """Whether a node is a loop over tiles."""
    return isinstance(node, For) and not node.copy and not node.unit


def segments(nodes: list[Node]) -> Iterator[list[Node]]:
    """The parts between waits, barriers and loops, and each of these by itself."""
    segment: list[Node] = []
    for node in nodes:
        if part_of(node) is not None:
            segment.append(node)
            continue
        if segment:
            yield segment
        yield [node]
        segment = []
    if segment:
        yield segment
