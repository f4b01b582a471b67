"""Bodies of kernels by the kind of their plan, and the memory that they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.gpu.mapping.banks import padded_shape
from polyblocks.affine.gpu.mapping.placement import elements_per_thread
from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.gpu.plans.kernel import Kernel, Pipeline
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.model import Alloca, Buffer, Store, program_buffers, walk
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import Joiner
from polyblocks.codegen.gpu.emission.groups import GroupEmitter
from polyblocks.codegen.gpu.emission.lanes import LaneEmitter
from polyblocks.codegen.gpu.emission.tiles import TileEmitter
from polyblocks.codegen.gpu.matrix_emission.chains.kernels import ChainBody
from polyblocks.codegen.gpu.matrix_emission.scope import UnitScope
from polyblocks.codegen.gpu.matrix_emission.units import UnitEmitter
from polyblocks.mlir import ir


class Body(Protocol):
    """The body of a kernel's plan.

    Attributes:
        workgroup: memref types in shared memory.
        private: memref types in each thread's memory.
    """

    workgroup: list[Any]
    private: list[Any]

    def emit(
        self, code: Code, memrefs: dict[Buffer, Any], known: dict[Any, Any], values: list[Any]
    ) -> None:
        """Write it at the current insertion point.

        Args:
            code: of the function.
            memrefs: of buffers of the program.
            known: values from around -> those of the function.
            values: the memrefs of ``workgroup``, then those of ``private``.
        """


class GroupBody:
    """Of groups of threads that do iterations of their own, with their buffers."""

    def __init__(self, plan: GroupPlan) -> None:
        self.plan = plan
        self.workgroup: list[Any] = []
        self.private: list[Any] = []
        self._buffers: list[Buffer] = []
        self._own: list[Buffer] = []
        self._scratch: list[tuple[DistributedLoop, int]] = []
        self._place_buffers()
        elements = Joiner(None, plan, None, None).scratch()  # type: ignore[arg-type]
        for distributed in plan.distributed.values():
            if distributed.combiners and elements:
                inits = distributed.loops[0].inits
                self.workgroup += [_shared([elements], value.type) for value in inits]
                self._scratch.append((distributed, len(distributed.combiners)))
        self.workgroup += [_shared(list(b.shape), b.element) for b in plan.copied]

    @classmethod
    def of(cls, kernel: Kernel) -> GroupBody:
        """Of a kernel with such a plan."""
        assert isinstance(kernel.plan, GroupPlan)
        return cls(kernel.plan)

    def _place_buffers(self) -> None:
        plan = self.plan
        own_space = ir.Attribute.parse("#gpu.address_space<private>")
        uniform = list(plan.uniform())
        for node in walk(plan.body):
            if not isinstance(node, Alloca):
                continue
            buffer = node.buffer
            if plan.places[buffer] is Place.SHARED:
                around = [plan.groups] if plan.groups > 1 else []
                shape = [*around, *padded_shape(plan, buffer)]
                self.workgroup.append(_shared(shape, buffer.element))
                self._buffers.append(buffer)
                continue
            shape = list(buffer.shape)
            if plan.places[buffer] is Place.DISTRIBUTED_REGISTERS:
                shape = [elements_per_thread(plan, uniform, buffer)]
            type_ = ir.MemRefType.get(shape, buffer.element, memory_space=own_space)
            self.private.append(type_)
            self._own.append(buffer)

    def emit(
        self, code: Code, memrefs: dict[Buffer, Any], known: dict[Any, Any], values: list[Any]
    ) -> None:
        """See :class:`Body`."""
        rest = iter(values)
        memrefs = {**memrefs, **{buffer: next(rest) for buffer in self._buffers}}
        scratch = {distributed: [next(rest) for _ in range(n)] for distributed, n in self._scratch}
        near = {buffer: next(rest) for buffer in self.plan.copied}
        memrefs.update({buffer: next(rest) for buffer in self._own})
        GroupEmitter(code, self.plan, memrefs, known, scratch, near).emit()


class TileBody:
    """Of tiles of a contraction: the operands' tiles are in shared memory.

    Args:
        plan: whose tiles they are.
        operands: of the contraction.
        elements: the MLIR type of each operand's elements in shared memory.
        emitter: writes the body.
        more: what it gets besides.
    """

    def __init__(
        self,
        plan: LanePlan | UnitPlan,
        operands: list[Operand],
        elements: list[Any],
        emitter: Callable[..., LaneEmitter | UnitEmitter],
        *more: Any,
    ) -> None:
        self.plan, self._operands, self._emitter, self._more = plan, operands, emitter, more
        pairs = zip(operands, elements, strict=True)
        self.workgroup = [_shared(list(plan.shape(o)), element) for o, element in pairs]
        self._results = isinstance(plan, GroupUnitPlan) and plan.result is not None
        if isinstance(plan, GroupUnitPlan) and plan.result is not None:
            store = plan.sizes.parts.after[-1]
            assert isinstance(store, Store)
            self.workgroup.append(_shared(list(plan.result_shape), store.value.type))
        if isinstance(plan, GroupUnitPlan) and plan.barriers:
            self.workgroup.append(_shared([plan.barriers], ir.IntegerType.get_signless(64)))
        self.private: list[Any] = []

    @classmethod
    def of_lanes(cls, kernel: Kernel) -> TileBody:
        """Operands as they are in memory."""
        plan = kernel.plan
        assert isinstance(plan, LanePlan)
        operands = plan.sizes.parts.operands
        elements = [o.load.buffer.element for o in operands]
        return cls(plan, operands, elements, LaneEmitter, kernel.pipeline)

    @classmethod
    def of_units(cls, kernel: Kernel) -> TileBody:
        """Operands as the unit takes them."""
        plan = kernel.plan
        assert isinstance(plan, UnitPlan)
        parts = plan.sizes.parts
        # In the order in which they are loaded.
        order = {parts.operand(o.load): o for o in plan.product.operands}
        operands = [order[o] for o in parts.operands]
        element = ir.Type.parse(plan.product.element.name)
        return cls(plan, operands, [element] * len(operands), _unit_emitter, kernel.pipeline)

    def emit(
        self, code: Code, memrefs: dict[Buffer, Any], known: dict[Any, Any], values: list[Any]
    ) -> None:
        """See :class:`Body`."""
        tiles = dict(zip(self._operands, values, strict=False))
        tile = TileEmitter(code, self.plan.sizes, memrefs, known)
        more = values[len(tiles) :]
        if more and not self._results:
            more = [None, *more]
        self._emitter(tile, self.plan, tiles, *self._more, *more).emit()


def _unit_emitter(
    tile: TileEmitter,
    plan: UnitPlan,
    tiles: dict[Operand, Any],
    pipeline: Pipeline,
    results: Any = None,
    barriers: Any = None,
) -> UnitEmitter:
    return UnitEmitter(UnitScope(tile, plan, tiles, results, barriers), pipeline)


def _of_chain(kernel: Kernel) -> ChainBody:
    assert isinstance(kernel.plan, ChainPlan)
    return ChainBody(kernel.plan, _shared)


#: Kind of plan -> what makes the body of one.
_BODIES: dict[type, Callable[[Kernel], Body]] = {
    GroupPlan: GroupBody.of,
    LanePlan: TileBody.of_lanes,
    UnitPlan: TileBody.of_units,
    GroupUnitPlan: TileBody.of_units,
    ChainPlan: _of_chain,
    GroupChainPlan: _of_chain,
}


def body_of(kernel: Kernel) -> Body:
    """The body of a kernel."""
    return _BODIES[type(kernel.plan)](kernel)


def emit_nest(
    kernel: Kernel, body: Body, code: Code, known: dict[Any, Any], values: list[Any]
) -> None:
    """Write the body of a nest at the current insertion point.

    Args:
        kernel: how the nest runs.
        body: of the kernel.
        code: of the function.
        known: values from around -> those of the function.
        values: the memrefs of the body's memory, shared memory first.
    """
    memrefs = {buffer: known[buffer.value] for buffer in program_buffers(kernel.nest.body)}
    body.emit(code, memrefs, known, values)


def _shared(shape: list[int], element: Any) -> Any:
    """The type of an array in shared memory."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    return ir.MemRefType.get(shape, element, memory_space=space)
