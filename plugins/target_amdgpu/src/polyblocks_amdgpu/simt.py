"""Semantics of the rocdl dialect's ops for the simulator.

Sources: AMD's "RDNA3 Instruction Set Architecture" (DPP, DS_SWIZZLE, DS_BPERMUTE, V_PERMLANE) and
LLVM's "User Guide for AMDGPU Backend". A lane that another one reads through DPP may be inactive:
the reader then keeps its ``old`` value. Through the other ops that is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.simt.matrix import matrix_intrinsics
from polyblocks.simt.memory_ops import under
from polyblocks.simt.operations import LLVM
from polyblocks.simt.semantics import Instruction, Operation, Run, Semantics
from polyblocks.simt.subgroups import ballot, exchange
from polyblocks.simt.types import Int, Vector, from_words, scalar_of, signed, unsigned
from polyblocks.target import MatrixUnit
from polyblocks_amdgpu.generations import BOUNDED_LOADS, UNITS

_AXES = "xyz"
#: Address space of memory.
_GLOBAL = 1


def _special(read: Callable[[Any], Any]) -> Operation:
    def decode(instruction: Instruction) -> Run:
        assert isinstance(instruction.result, Int)
        bits = instruction.result.bits
        return lambda m: signed(np.asarray(read(m), np.int64).reshape(-1), bits)

    return Operation(decode, "integer")


def _count_below(high: bool) -> Callable[[Instruction], Run]:
    """``mbcnt``: bits of the mask below this lane, plus a number."""

    def decode(instruction: Instruction) -> Run:
        def run(m: Any, mask: Any, start: Any) -> Any:
            bits = unsigned(mask, 32).astype(np.int64)
            below = np.clip(m.lane - (32 if high else 0), 0, 32)
            chosen = bits & ((np.int64(1) << below) - 1)
            ones = sum((chosen >> i) & 1 for i in range(32))
            return signed(ones + start.astype(np.int64), 32)

        return run

    return decode


def _ballot(instruction: Instruction) -> Run:
    assert isinstance(instruction.result, Int)
    bits = instruction.result.bits
    return lambda m, predicate: signed(ballot(m, predicate), bits)


def _read_first(instruction: Instruction) -> Run:
    def run(m: Any, value: Any) -> Any:
        here = m.by_subgroup(m.mask)
        first = np.repeat(here.argmax(axis=1), m.chip.subgroup_width)
        return m.read_lanes(value, first)

    return run


def _read_lane(instruction: Instruction) -> Run:
    return lambda m, value, lane: exchange(m, value, lane.astype(np.int64) % m.chip.subgroup_width)


def _permute_by_address(instruction: Instruction) -> Run:
    """``ds_bpermute``: four times the lane, modulo the lanes."""

    def run(m: Any, address: Any, value: Any) -> Any:
        lane = (unsigned(address, 32).astype(np.int64) >> 2) % m.chip.subgroup_width
        return exchange(m, value, lane)

    return run


def _swizzle(instruction: Instruction) -> Run:
    """``ds_swizzle``: a quad permutation, or and/or/xor masks on the lane within 32."""

    def run(m: Any, value: Any, offset: Any) -> Any:
        code, lane = int(offset.reshape(-1)[0]) & 0xFFFF, m.lane & 31
        if code & 0x8000:
            quad = np.array([code >> 2 * i & 3 for i in range(4)], np.int64)
            source = (lane & ~3) | quad[lane & 3]
        else:
            source = ((lane & (code & 31)) | (code >> 5 & 31)) ^ (code >> 10 & 31)
        return exchange(m, value, (m.lane & ~31) | source)

    return run


def _dpp_source(control: int, lane: Any, width: int) -> tuple[Any, Any]:
    """(lane to read, whether it is one) of a DPP control code."""
    row, within = lane & ~15, lane & 15
    every = np.ones(lane.shape, bool)
    if control < 0x100:
        quad = np.array([control >> 2 * i & 3 for i in range(4)], np.int64)
        return (lane & ~3) | quad[lane & 3], every
    amount = control & 15
    if 0x101 <= control <= 0x10F:
        return row | ((within + amount) & 15), within + amount < 16
    if 0x111 <= control <= 0x11F:
        return row | ((within - amount) & 15), within >= amount
    if 0x121 <= control <= 0x12F:
        return row | ((within - amount) & 15), every
    if control == 0x140:
        return row | (15 - within), every
    if control == 0x141:
        return (lane & ~7) | (7 - (lane & 7)), every
    if 0x150 <= control <= 0x15F:
        return row | amount, every
    if 0x160 <= control <= 0x16F:
        return row | (within ^ amount), every
    raise ValueError(f"expected a DPP control code of RDNA, got {control:#x}")


def _update_dpp(instruction: Instruction) -> Run:
    control = instruction.integer("dppCtrl")
    rows, banks = instruction.integer("rowMask", 15), instruction.integer("bankMask", 15)
    zero_fill = bool(instruction.integer("boundCtrl"))
    return lambda m, old, value: _move_dpp(m, old, value, control, rows, banks, zero_fill)


def _update_dpp_intrinsic(instruction: Instruction) -> Run:
    """As the op; what that has as attributes are constant operands."""

    def run(m: Any, old: Any, value: Any, *constants: Any) -> Any:
        control, rows, banks, zero_fill = (int(c.reshape(-1)[0]) for c in constants)
        return _move_dpp(m, old, value, control, rows, banks, bool(zero_fill))

    return run


def _move_dpp(
    m: Any, old: Any, value: Any, control: int, rows: int, banks: int, zero_fill: bool
) -> Any:
    source, exists = _dpp_source(control, m.lane, m.chip.subgroup_width)
    row, bank = (m.lane >> 4) & 3, (m.lane >> 2) & 3
    enabled = ((rows >> row) & 1 == 1) & ((banks >> bank) & 1 == 1)
    valid = exists & m.is_active(source)
    missing = np.zeros_like(old) if zero_fill else old
    moved = np.where(valid, m.read_lanes(value, source), missing)
    return np.where(enabled, moved, old)


def _permlane_cross(instruction: Instruction) -> Run:
    """``permlanex16``: from the other row of 16 lanes, chosen by 4 bits per lane."""

    def run(m: Any, old: Any, value: Any, low: Any, high: Any, *flags: Any) -> Any:
        within = m.lane & 15
        word = np.where(within < 8, unsigned(low, 32), unsigned(high, 32)).astype(np.int64)
        chosen = word >> (4 * (within & 7)) & 15
        return exchange(m, value, ((m.lane & ~15) ^ 16) | chosen)

    return run


def _describe_buffer(instruction: Instruction) -> Run:
    """``make.buffer.rsrc``: of its words the address and the bytes."""

    def run(m: Any, address: Any, stride: Any, nbytes: Any, flags: Any) -> Any:
        whole = (np.broadcast_to(v, (m.lanes,)).astype(np.int64) for v in (address, nbytes))
        return np.stack(list(whole))

    return run


def _load_of_buffer(instruction: Instruction) -> Run:
    """``raw.ptr.buffer.load``: zeros where the lane's offset is beyond the end."""
    type_, layout = instruction.result, instruction.layout
    size = layout.size(scalar_of(type_))
    count = type_.count if isinstance(type_, Vector) else 0

    def run(m: Any, buffer: Any, offset: Any, common: Any, *flags: Any) -> Any:
        begin, nbytes = buffer
        own, other = (unsigned(v, 32).astype(np.int64) for v in (offset, common))
        words = np.zeros((count, m.lanes) if count else m.lanes, f"uint{8 * size}")
        for _ in under(m, np.broadcast_to(own < nbytes - other, (m.lanes,))):
            words = m.load(begin + own + other, size, count, size, _GLOBAL)
        return from_words(words, type_)

    return run


def _nothing(instruction: Instruction) -> Run:
    return lambda m, *operands: None


def _wave_barrier(instruction: Instruction) -> Run:
    return lambda m: m.subgroup_barrier()


def _medium(instruction: Instruction) -> Run:
    return lambda m, a, b, c: np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _unary(function: Callable[[Any], Any]) -> Operation:
    return Operation(lambda i: lambda m, a: function(a).astype(a.dtype), "special")


def _by_axis(read: Callable[[Any, int], Any]) -> Operation:
    """A device-library call that the upstream lowering makes for what has no op."""

    def decode(instruction: Instruction) -> Run:
        def run(m: Any, axis: Any) -> Any:
            return np.asarray(read(m, int(axis.reshape(-1)[0])), np.int64).reshape(-1)

        return run

    return Operation(decode, "integer")


def _of_axes(name: str, read: Callable[[Any, int], Any]) -> dict[str, Operation]:
    """An index per axis of a workgroup or grid."""

    def of(axis: int) -> Operation:
        return _special(lambda m: read(m, axis))

    return {f"{name}.{letter}": of(axis) for axis, letter in enumerate(_AXES)}


_INDICES = {
    **_of_axes("workitem.id", lambda m, axis: m.thread_id(axis)),
    **_of_axes("workgroup.id", lambda m, axis: m.block_id(axis)),
    "wavefrontsize": _special(lambda m: m.chip.subgroup_width),
    "wave.id": _special(lambda m: m.subgroup),
}

#: Only the wait is where a block's threads meet; signals and counters order nothing more.
_WITHOUT_EFFECT = (
    "s.barrier.signal", "s.waitcnt", "s.wait.dscnt", "s.wait.loadcnt", "s.wait.storecnt",
    "s.wait.expcnt", "sched.barrier", "sched.group.barrier", "iglp.opt", "s.setprio", "s.sleep",
    "s.nop",
)  # fmt: skip

#: Semantics that ops of the dialect share with LLVM's intrinsics, by the intrinsics' names.
_COMMON = {
    **_INDICES,
    "s.barrier": Operation(_nothing, "control", barrier=True),
    "s.barrier.wait": Operation(_nothing, "control", barrier=True),
    "wave.barrier": Operation(_wave_barrier, "control"),
    **{name: Operation(_nothing, "control") for name in _WITHOUT_EFFECT},
    "mbcnt.lo": Operation(_count_below(False), "integer"),
    "mbcnt.hi": Operation(_count_below(True), "integer"),
    "ballot": Operation(_ballot, "shuffle"),
    "readfirstlane": Operation(_read_first, "shuffle"),
    "readlane": Operation(_read_lane, "shuffle"),
    "ds.bpermute": Operation(_permute_by_address, "shuffle"),
    "ds.swizzle": Operation(_swizzle, "shuffle"),
    "permlanex16": Operation(_permlane_cross, "shuffle"),
    "fmed3": Operation(_medium, "float"),
}

SEMANTICS = Semantics(
    operations={
        **{f"rocdl.{name.replace('ds.', 'ds_')}": op for name, op in _COMMON.items()},
        "rocdl.barrier": Operation(_nothing, "control", barrier=True),
        "rocdl.update.dpp": Operation(_update_dpp, "shuffle"),
    },
    intrinsics={
        **matrix_intrinsics(
            MatrixUnit(
                u.name,
                u.shape,
                u.operands,
                u.accumulator,
                fragments=u.fragments,
                intrinsic=u.intrinsic,
                immediates=u.immediates,
            )
            for u in UNITS
        ),
        **{f"llvm.amdgcn.{name}": op for name, op in _COMMON.items()},
        "llvm.amdgcn.update.dpp": Operation(_update_dpp_intrinsic, "shuffle"),
        BOUNDED_LOADS.describe: Operation(_describe_buffer, "control"),
        BOUNDED_LOADS.load: Operation(_load_of_buffer, "memory"),
        "llvm.amdgcn.rcp": _unary(lambda a: 1 / a.astype(np.float64)),
        "llvm.amdgcn.rsq": _unary(lambda a: 1 / np.sqrt(a.astype(np.float64))),
        "llvm.amdgcn.sqrt": _unary(lambda a: np.sqrt(a.astype(np.float64))),
        "llvm.amdgcn.exp2": _unary(lambda a: np.exp2(a.astype(np.float64))),
        "llvm.amdgcn.log": _unary(lambda a: np.log2(a.astype(np.float64))),
        "llvm.amdgcn.ldexp": LLVM["llvm.intr.ldexp"],
    },
    functions={
        "__ockl_get_local_id": _by_axis(lambda m, i: m.thread_id(i)),
        "__ockl_get_group_id": _by_axis(lambda m, i: m.block_id(i)),
        "__ockl_get_local_size": _by_axis(lambda m, i: m.block[i]),
        "__ockl_get_num_groups": _by_axis(lambda m, i: m.grid[i]),
    },
)
