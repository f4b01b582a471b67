"""Bodies of kernels by the kind of a chain's plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.matrix_emission.chains.body import ChainEmitter
from polyblocks.codegen.gpu.matrix_emission.chains.by_groups import GroupChainEmitter
from polyblocks.codegen.gpu.matrix_emission.chains.overlapped import OverlappedChainEmitter
from polyblocks.mlir import ir


class ChainBody:
    """Of a chain of products: operands are in shared memory, and barriers if there are any.

    Attributes:
        workgroup: memref types in shared memory.
        private: none.
    """

    def __init__(self, plan: ChainPlan, shared: Callable[[list[int], Any], Any]) -> None:
        self.plan = plan
        element = ir.Type.parse(plan.first.product.element.name)
        self.workgroup = [shared(list(shape), element) for shape in plan.shared]
        if isinstance(plan, GroupChainPlan):
            # For each place two, and one where those meet that multiply.
            barriers = 2 * plan.barrier_stages + 1
            self.workgroup.append(shared([barriers], ir.IntegerType.get_signless(64)))
        self.private: list[Any] = []

    def emit(
        self, code: Code, memrefs: dict[Buffer, Any], known: dict[Any, Any], values: list[Any]
    ) -> None:
        """See :class:`polyblocks.codegen.gpu.emission.bodies.Body`."""
        if isinstance(self.plan, GroupChainPlan):
            *tiles, barriers = values
            kind = OverlappedChainEmitter if self.plan.overlaps else GroupChainEmitter
            kind(code, self.plan, memrefs, known, tiles, barriers).emit()
        else:
            ChainEmitter(code, self.plan, memrefs, known, values).emit()
