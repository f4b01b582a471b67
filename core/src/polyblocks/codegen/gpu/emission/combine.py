"""Joining the parts of a reduction: by shuffles in a warp, through shared memory in a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.affine.element import F32, F64, I32, I64, dtype_of
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.model import Op
from polyblocks.affine.vectors.reduction_vectors import combine
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.mlir import ir

#: Joins two neighbouring parts, the earlier one first: takes and returns each carried value.
Combined = Callable[[list[Any], list[Any]], list[Any]]
#: Types that a shuffle takes as they are; narrower ones travel as 32-bit integers.
_DIRECT = (F32, I32, F64, I64)


def from_lane(code: Code, value: Any, distance: int, width: int, how: str = "xor") -> Any:
    """The value of another lane.

    That is the one whose number differs by ``distance`` in one bit (``xor``), the one ``distance``
    lanes before (``up``), or the one with this number (``idx``).
    """
    dtype = dtype_of(value.type)
    if dtype in _DIRECT:
        return _shuffle(code, value, distance, width, how)
    integer = ir.IntegerType.get_signless(dtype.bits)
    narrow = value if value.type == integer else code.value("arith.bitcast", integer, value)
    wide = _shuffle(code, code.value("arith.extui", code.i32, narrow), distance, width, how)
    back = code.value("arith.trunci", integer, wide)
    return back if value.type == integer else code.value("arith.bitcast", value.type, back)


def _shuffle(code: Code, value: Any, distance: int, width: int, how: str) -> Any:
    operands = [value, code.integer(distance, code.i32), code.integer(width, code.i32)]
    mode = ir.Attribute.parse(f"#gpu<shuffle_mode {how}>")
    return code.op("gpu.shuffle", [value.type, code.i1], operands, {"mode": mode}).results[0]


def butterfly(code: Code, op: Op, value: Any, first: int, count: int, warp: int) -> Any:
    """Combine the values of ``count`` lanes that are ``first`` lanes apart; all get the result.

    Every lane adds the same numbers in the same tree, so all results are equal to the last bit.
    """
    distance = first
    while distance < first * count:
        value = combine(op, value, from_lane(code, value, distance, warp))
        distance *= 2
    return value


class Joiner:
    """Joins what the threads of a group carry; all threads of it get the results.

    Attributes:
        plan: how the nest runs.
        member: number of the thread in its group.
        slot: number of the group in its block.
    """

    def __init__(self, code: Code, plan: GroupPlan, member: Any, slot: Any) -> None:
        self.code = code
        self.plan = plan
        self.member = member
        self.slot = slot

    def scratch(self) -> int:
        """Elements of shared memory for each value; 0 if none is needed."""
        plan = self.plan
        if plan.strided:
            if plan.threads <= plan.warp:
                return 0
            return plan.threads // max(plan.warp // plan.groups, 1)
        return plan.groups * (plan.group // plan.warp) if plan.group > plan.warp else 0

    def join(self, ops: list[Op], values: list[Any], scratch: list[Any], again: bool) -> list[Any]:
        """Combine ``values`` over the threads of every group.

        Args:
            ops: the op of each value.
            values: what each thread has.
            scratch: a memref of :meth:`scratch` elements for each value.
            again: whether another round may still be reading the scratch memory.
        """
        plan, code = self.plan, self.code
        if plan.strided and plan.groups >= plan.warp:
            return self._columns(ops, values, scratch, again)
        first = plan.groups if plan.strided else 1
        lanes = min(plan.group, plan.warp // first)
        values = [
            butterfly(code, op, v, first, lanes, plan.warp)
            for op, v in zip(ops, values, strict=True)
        ]
        if plan.group == lanes:
            return values
        if plan.strided:
            return self._bands(ops, values, scratch, again)
        warps = plan.group // plan.warp
        lane = code.remainder(self.member, plan.warp)
        row = code.times(self.slot, warps) if plan.groups > 1 else None
        mine = code.quotient(self.member, plan.warp)
        other = code.remainder(lane, warps)
        if row is not None:
            mine, other = code.add(row, mine), code.add(row, other)
        if again:
            barrier(code)
        leader = code.compare("eq", lane, code.integer(0))
        code.when(leader, lambda: self._store(values, scratch, [mine]))
        barrier(code)
        parts = [
            code.value("memref.load", v.type, s, other)
            for v, s in zip(values, scratch, strict=True)
        ]
        return [
            butterfly(code, op, v, 1, warps, plan.warp) for op, v in zip(ops, parts, strict=True)
        ]

    def scan(
        self, combined: Combined, values: list[Any], scratch: list[Any], again: bool
    ) -> tuple[list[Any], list[Any]]:
        """Running values of the threads of every group, in order, and what all come to.

        Hillis and Steele, "Data parallel algorithms", CACM 29(12), 1986, in every warp; then what
        the warps before came to is added. Groups are whole warps of neighbours.

        Args:
            combined: joins two neighbouring parts.
            values: what each thread has.
            scratch: a memref of :meth:`scratch` elements for each value.
            again: whether another round may still be reading the scratch memory.
        """
        plan, code = self.plan, self.code
        lane = code.remainder(self.member, plan.warp)
        values = list(values)
        distance = 1
        while distance < plan.warp:
            has = code.compare("sge", lane, code.integer(distance))
            before = [from_lane(code, v, distance, plan.warp, "up") for v in values]
            values = self._where(has, combined(before, values), values)
            distance *= 2
        if plan.group == plan.warp:
            last = plan.warp - 1
            return values, [from_lane(code, v, last, plan.warp, "idx") for v in values]
        warps = plan.group // plan.warp
        first = code.times(self.slot, warps) if plan.groups > 1 else code.integer(0)
        mine = code.quotient(self.member, plan.warp)
        if again:
            barrier(code)
        place = code.add(first, mine)
        ends = code.compare("eq", lane, code.integer(plan.warp - 1))
        code.when(ends, lambda: self._store(values, scratch, [place]))
        barrier(code)
        totals: list[Any] = []
        for number in range(warps):
            where = code.add(first, code.integer(number))
            parts = [
                code.value("memref.load", v.type, s, where)
                for v, s in zip(values, scratch, strict=True)
            ]
            if totals:
                # The total of the warps before this one.
                is_mine = code.compare("eq", mine, code.integer(number))
                values = self._where(is_mine, combined(totals, values), values)
            totals = combined(totals, parts) if totals else parts
        return values, totals

    def _where(self, condition: Any, values: list[Any], others: list[Any]) -> list[Any]:
        return [
            self.code.value("arith.select", v.type, condition, v, other)
            for v, other in zip(values, others, strict=True)
        ]

    def _columns(
        self, ops: list[Op], values: list[Any], scratch: list[Any], again: bool
    ) -> list[Any]:
        """Neighbouring threads belong to neighbouring groups: every thread adds a column."""
        plan, code = self.plan, self.code
        if again:
            barrier(code)
        mine = code.add(code.times(self.member, plan.groups), self.slot)
        self._store(values, scratch, [mine])
        barrier(code)
        results = []
        for op, value, memory in zip(ops, values, scratch, strict=True):
            total = None
            for i in range(plan.group):
                place = code.add(self.slot, code.integer(i * plan.groups))
                part = code.value("memref.load", value.type, memory, place)
                total = part if total is None else combine(op, total, part)
            results.append(total)
        return results

    def _bands(
        self, ops: list[Op], values: list[Any], scratch: list[Any], again: bool
    ) -> list[Any]:
        """A warp has some neighbouring groups, and parts of each: joins those of all warps."""
        plan, code = self.plan, self.code
        lanes = plan.warp // plan.groups
        warps = plan.group // lanes
        lane, mine = code.remainder(self.member, lanes), code.quotient(self.member, lanes)
        if again:
            barrier(code)
        place = code.add(code.times(mine, plan.groups), self.slot)
        leader = code.compare("eq", lane, code.integer(0))
        code.when(leader, lambda: self._store(values, scratch, [place]))
        barrier(code)
        results = []
        for op, value, memory in zip(ops, values, scratch, strict=True):
            total = None
            for first in range(0, warps, lanes):
                row = code.remainder(lane, warps) if warps < lanes else lane
                place = code.add(code.times(code.plus(row, first), plan.groups), self.slot)
                part = code.value("memref.load", value.type, memory, place)
                total = part if total is None else combine(op, total, part)
            results.append(butterfly(code, op, total, plan.groups, min(lanes, warps), plan.warp))
        return results

    def _store(self, values: list[Any], scratch: list[Any], index: list[Any]) -> list[Any]:
        for value, memory in zip(values, scratch, strict=True):
            self.code.op("memref.store", [], [value, memory, *index])
        return []


def barrier(code: Code) -> None:
    """All threads of the block wait for each other, and see what the others have stored."""
    code.op("gpu.barrier", [])
