"""The body of a kernel whose groups of threads do outer iterations of their own."""

from __future__ import annotations

from math import prod
from typing import Any

from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan
from polyblocks.affine.model import Buffer
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.copies import copy_all
from polyblocks.codegen.gpu.emission.loops import LoopEmitter
from polyblocks.codegen.gpu.emission.nodes import NodeEmitter
from polyblocks.codegen.gpu.emission.wide_body import WideBody


class GroupEmitter:
    """Writes one kernel's body at the current insertion point.

    Args:
        code: of the kernel.
        plan: how the nest runs.
        memrefs: the memref of every buffer.
        externals: values that come from outside of the nest.
        scratch: shared memory for the values that each distributed reduction carries.
        near: copies in shared memory of buffers of the program.
    """

    def __init__(
        self,
        code: Code,
        plan: GroupPlan,
        memrefs: dict[Buffer, Any],
        externals: dict[Any, Any],
        scratch: dict[DistributedLoop, list[Any]],
        near: dict[Buffer, Any],
    ) -> None:
        self.code, self.plan = code, plan
        self.nodes = NodeEmitter(code, plan, memrefs, externals, near)
        self.thread = self.nodes.thread
        LoopEmitter(self.nodes, scratch)

    def emit(self) -> None:
        """The whole body, without the terminator."""
        plan, code = self.plan, self.code
        thread, block = code.id("thread"), code.id("block")
        self._place_thread(thread)
        copy_all(code, plan, thread, self.nodes.memrefs, self.nodes.near)
        first = code.times(block, plan.groups)
        outer = first if plan.groups == 1 else code.add(first, self.thread.slot)
        if plan.ragged:
            self.thread.valid = code.compare("ult", outer, code.integer(plan.iterations))
        if plan.group == 1:
            code.when(self.thread.valid, lambda: self._thread(outer))
            return
        if plan.ragged:
            # Groups without work go along, to the barriers, and store nothing.
            last = code.integer(plan.iterations - 1)
            outer = code.value("arith.minui", code.index, outer, last)
        self.thread.part = self._part()
        self.nodes.decode(outer, plan.order)
        self.nodes.run(plan.body, True, [])

    def _thread(self, outer: Any) -> list[Any]:
        if self.plan.width > 1:
            return self._wide(outer)
        self.nodes.rows = self.plan.rows
        self.nodes.decode(outer, self.plan.order)
        self.nodes.run(self.plan.body, False, [])
        return []

    def _part(self) -> Any:
        """The group whose part of shared memory the thread uses.

        That of a group without work holds nothing. The values that its threads load may be indices,
        so they look at the first group's, which always has work.
        """
        if self.thread.valid is None:
            return self.thread.slot
        code = self.code
        return code.value(
            "arith.select", code.index, self.thread.valid, self.thread.slot, code.integer(0)
        )

    def _wide(self, outer: Any) -> list[Any]:
        """Several iterations, by wide accesses."""
        code, plan = self.code, self.plan
        last, width = plan.order[-1], plan.width
        body = WideBody(self.nodes, last, width)
        if not plan.as_one:
            extents = [*(v.extent for v in plan.order[:-1]), last.extent // width]
            self.nodes.decode(outer, plan.order, extents)
            self.nodes.variables[last] = code.times(self.nodes.variables[last], width)
            body.nodes(plan.body)
            return []
        first = code.times(outer, width)
        self._walk_at(first)
        total = prod(v.extent for v in plan.order)
        rest = total % width

        def whole() -> list[Any]:
            body.nodes(plan.body)
            return []

        def those_left() -> list[Any]:
            for i in range(rest):
                self._walk_at(code.plus(first, i))
                self.nodes.run(plan.body, False, [])
            return []

        inside = code.compare("ult", first, code.integer(total - rest)) if rest else None
        code.when(inside, whole, those_left)
        return []

    def _walk_at(self, number: Any) -> None:
        """Iteration ``number`` of loops that all accesses go through as they are counted."""
        order = self.plan.order
        self.nodes.variables[order[-1]] = number
        self.nodes.walk = order, number

    def _place_thread(self, thread: Any) -> None:
        """Set the thread's group, and its number in the group."""
        plan, code = self.plan, self.code
        zero = code.integer(0)
        if plan.groups == 1:
            self.thread.member, self.thread.slot = thread, zero
        elif plan.group == 1:
            self.thread.member, self.thread.slot = zero, thread
        elif plan.strided:
            self.thread.member = code.quotient(thread, plan.groups)
            self.thread.slot = code.remainder(thread, plan.groups)
        else:
            self.thread.member = code.remainder(thread, plan.group)
            self.thread.slot = code.quotient(thread, plan.group)
