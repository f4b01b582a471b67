"""Semantics of ``wgmma`` for the simulator: calls of the declared functions, and their fences.

Sources: the PTX ISA (wgmma.mma_async, matrix descriptors, fence.proxy.async).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from polyblocks.simt.group_units import Tile, tile_start
from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.target import GroupUnit
from polyblocks.targets.gpu_description import matrix_units_at
from polyblocks_nvgpu.group_units import (
    ADDRESS_BITS,
    AT_ONCE,
    OPERAND,
    SHIFT,
    descriptor_bits,
    function_of,
    units,
    wait_of,
)

_FIELD = (1 << 14) - 1
#: Groups of products that may be under way, and registers of sums; PTX names none.
_PENDING, _REGISTERS = range(4), (0, 8, 16, 32, 64, 96, 128)


def _tile(machine: Any, descriptor: Any, in_panels: bool) -> Tile:
    """The tile of a descriptor, which is the same in all lanes of a group of warps."""
    whole = np.broadcast_to(descriptor, (machine.lanes,)).astype(np.int64)
    leading, stride = (int(whole[0] >> at & _FIELD) << SHIFT for at in (16, 32))
    rest = whole & ~np.int64(ADDRESS_BITS >> SHIFT)
    known = rest == descriptor_bits(leading, stride)
    if not known.all():
        machine.report("inactive lane", "has a matrix descriptor of another kind", ~known)
    low = (whole & _FIELD) << SHIFT
    return Tile(tile_start(machine, low, ADDRESS_BITS.bit_length()), leading, stride, in_panels)


def _multiply(
    unit: GroupUnit, panels: tuple[bool | None, bool], new: bool, at_once: bool
) -> Operation:
    def decode(instruction: Instruction) -> Run:
        del instruction

        def run(machine: Any, *operands: Any) -> Any:
            *rest, second = operands
            tile = _tile(machine, second, panels[1])
            first = rest[-OPERAND:] if panels[0] is None else _tile(machine, rest[-1], panels[0])
            sums = None if new else rest[: unit.shape[1] // 2]
            return machine.products.multiply(machine, unit, (first, tile), sums, at_once)

        return run

    # The registers of the first operand are in front of the descriptor of the second one.
    held = slice(-OPERAND - 1, -1) if panels[0] is None else None
    return Operation(decode, "matrix", held=held)


def _wait(pending: int) -> Operation:
    def run(machine: Any, *sums: Any) -> Any:
        machine.products.wait(machine, pending)
        return machine.products.done(machine, pending, sums) or None

    return Operation(lambda i: run, "control")


INTRINSICS: dict[str, Operation] = {
    **{
        f"llvm.{function_of(unit.intrinsic, (rows, columns), new)}{ending}": _multiply(
            unit, (rows, columns), new, bool(ending)
        )
        for unit in matrix_units_at(units(0.0), multiprocessors=1, hertz=1.0)
        if isinstance(unit, GroupUnit)
        for rows in ((False, True, None) if unit.first else (False, True))
        for columns, new, ending in product((False, True), (False, True), ("", AT_ONCE))
    },
    **{
        f"llvm.{wait_of(n, type_, count)}": _wait(n)
        for n, type_, count in product(_PENDING, ("f32", "i32"), _REGISTERS)
    },
    "llvm.nvvm.fence.proxy.async.shared_cta": Operation(
        lambda i: lambda m: m.products.fence(m), "control"
    ),
    "llvm.nvvm.wgmma.fence.sync.aligned": Operation(
        lambda i: lambda m: m.products.order(m), "control", gathers=4
    ),
    "llvm.nvvm.wgmma.commit_group.sync.aligned": Operation(
        lambda i: lambda m: m.products.close(m), "control"
    ),
}
