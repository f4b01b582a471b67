"""Results of a product that leave shared memory in boxes, as operations.

Lanes store their results to shared memory, two neighbouring columns at a time: a warp's fill every
bank once. When those of all threads that multiply are there, a thread of each group starts the
copies of the group's boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from polyblocks.affine.buffers.copies import Barrier, BoxCopy, Wait
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.plans.boxed_arrays import COLUMNS
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Exchange
from polyblocks.affine.gpu.staged.results import box_copy
from polyblocks.affine.model import Node, Store
from polyblocks.codegen.gpu.accesses.pipeline import SHARED
from polyblocks.codegen.gpu.accesses.swizzles import exchanged
from polyblocks.codegen.gpu.emission.wide_body import WideBody
from polyblocks.codegen.gpu.matrix_emission.boxes import operands_of_box
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.mlir import ir
from polyblocks.target import GroupUnit


class BoxedResults:
    """Writes the end of such a kernel at the current insertion point, for threads that multiply.

    Args:
        scope: of the kernel, behind its reduction.
        exchange: the nodes.
    """

    def __init__(self, scope: UnitScope, exchange: Exchange | None) -> None:
        plan = scope.plan
        assert exchange is not None
        assert isinstance(plan, GroupUnitPlan)
        assert plan.bulk is not None
        self.scope, self.code, self.plan, self.copies = scope, scope.code, plan, plan.bulk
        assert isinstance(plan.unit, GroupUnit)
        self.unit = plan.unit
        self.nodes, self.buffer = exchange.nodes, exchange.buffer

    def emit(self, sums: list[Any]) -> None:
        """Store results to shared memory, and from there to the array.

        Args:
            sums: of the lane, rows by columns.
        """
        computed: list[Node] = []
        for node in self.nodes:
            if isinstance(node, Barrier):
                self.scope.meet()
            elif (copy := box_copy(node)) is not None:
                self._by_one_of_each(partial(self._copy, copy))
            elif isinstance(node, Store) and node.buffer is self.buffer:
                self._compute([*computed, node], sums)
            elif isinstance(node, Wait):
                self._by_one_of_each(lambda _: self.wait())
            elif node.defines:
                computed.append(node)

    def end(self) -> None:
        """Wait for the last tile that was stored, whose memory is left."""
        self._by_one_of_each(lambda _: self.wait())

    def _compute(self, nodes: list[Node], sums: list[Any]) -> None:
        """All lanes' stores to shared memory, which copies see then."""
        scope, tile, parts = self.scope, self.scope.tile, self.plan.sizes.parts
        rows, columns = self.plan.sizes.of_thread
        (total,) = parts.reduction.loops[0].results
        for i, j in product(range(rows), range(0, columns, COLUMNS)):
            tile.move(i, j)
            body = _Pairs(self, parts.columns[-1], (scope.places[0][i], scope.places[1][j]))
            body.values.update(tile.known_of(i, j, COLUMNS))
            body.values[total] = sums[i * columns + j : i * columns + j + COLUMNS]
            body.nodes(nodes)
        self.code.intrinsic(self.unit.visible, [], [])

    def _by_one_of_each(self, body: Callable[[Any], list[Any]]) -> None:
        """Let one thread of each group of warps do something; ``body`` takes its number."""
        code, plan = self.code, self.plan
        warps = plan.warp // self.scope.threads_of_warp
        number = code.value("arith.index_cast", code.index, self.scope.warp)

        def first() -> list[Any]:
            (chosen,) = code.intrinsic(self.copies.elect, [code.i1], [])
            code.when(chosen, lambda: body(code.quotient(number, warps)))
            return []

        code.when(code.compare("eq", code.remainder(number, warps), code.integer(0)), first)

    def _copy(self, copy: BoxCopy, group: Any) -> list[Any]:
        code, plan, scope = self.code, self.plan, self.scope
        assert plan.result is not None
        (height, width), across = plan.result_box[1::-1], plan.warps[1]
        columns = plan.of_warp[1] * plan.unit.shape[1]
        row = code.times(code.quotient(group, across), height)
        column = code.times(code.remainder(group, across), columns)
        for panel in range(columns // width):
            of_tile = code.plus(code.quotient(column, width), panel)
            place = code.place(scope.results, [of_tile, row, code.integer(0)])
            source = code.address(scope.results, place, self.buffer.bytes_per_element)
            at = [
                code.plus(code.add(scope.tile.first[1], column), panel * width),
                code.add(scope.tile.first[0], row),
            ]
            box = operands_of_box(
                *(scope, self.copies, copy.destination.buffer, plan.result, at, plan.result_box)
            )
            given = [code.pointer(source, SHARED), *box]
            code.intrinsic(self.copies.store, [], given, copy.destination.location)
        code.intrinsic(self.copies.close, [], [])
        return []

    def wait(self) -> list[Any]:
        """The thread waits until all that it has begun to store has been read."""
        none = self.code.constant(ir.IntegerAttr.get(self.code.i32, 0))
        self.code.intrinsic(self.copies.stored, [], [none])
        return []


class _Pairs(WideBody):
    """Writes nodes for neighbouring columns, whose results go to shared memory."""

    def __init__(self, results: BoxedResults, var: Var, place: tuple[Any, Any]) -> None:
        super().__init__(results.scope.tile.nodes, var, COLUMNS)
        self.results, self.at = results, place

    def _store(self, node: Store) -> None:
        results, code = self.results, self.code
        (row, column), line = self.at, results.buffer.shape[2]
        inner = code.remainder(column, line)
        inner = exchanged(code, results.buffer.layout, 2, row, inner)
        vector = code.value(
            "vector.from_elements",
            ir.VectorType.get([COLUMNS], node.value.type),
            *(self._of(node.value, k) for k in range(COLUMNS)),
        )
        place = [code.quotient(column, line), row, inner]
        code.op("vector.store", [], [vector, results.scope.results, *place], None, node.location)
