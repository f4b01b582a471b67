"""Semantics of the nvvm dialect's ops for the simulator.

Sources: the PTX ISA (shfl.sync, vote.sync, redux.sync, cp.async) and the NVVM dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.simt.matrix import matrix_intrinsics, tile_intrinsics
from polyblocks.simt.operations import LLVM
from polyblocks.simt.semantics import Instruction, Operation, Run, Semantics
from polyblocks.simt.subgroups import ballot, check_members, exchange, reduce_lanes
from polyblocks.simt.types import Int, Pointer, Struct, signed, unsigned
from polyblocks.target import MatrixUnit
from polyblocks_nvgpu.fragments import TF32_ROUNDING, TILE_LOADS, UNITS
from polyblocks_nvgpu.simt import bulk_copies, group_units

_AXES = "xyz"


def _special(read: Callable[[Any], Any]) -> Operation:
    """A special register, an integer of any width."""

    def decode(instruction: Instruction) -> Run:
        assert isinstance(instruction.result, Int)
        bits = instruction.result.bits
        return lambda m: signed(np.asarray(read(m), np.int64).reshape(-1), bits)

    return Operation(decode, "integer")


def _lane_mask(relation: Callable[[Any, Any], Any]) -> Operation:
    bits = np.arange(32, dtype=np.int64)

    def read(m: Any) -> Any:
        table = relation(bits[:, None], m.lane[None]).astype(np.int64)
        return (table << bits[:, None]).sum(axis=0)

    return _special(read)


def _of_axes(name: str, read: Callable[[Any, int], Any]) -> dict[str, Operation]:
    """A special register per axis of a block or grid."""

    def of(axis: int) -> Operation:
        return _special(lambda m: read(m, axis))

    return {f"{name}.{letter}": of(axis) for axis, letter in enumerate(_AXES)}


_REGISTERS = {
    **_of_axes("tid", lambda m, axis: m.thread_id(axis)),
    **_of_axes("ctaid", lambda m, axis: m.block_id(axis)),
    **_of_axes("ntid", lambda m, axis: m.block[axis]),
    **_of_axes("nctaid", lambda m, axis: m.grid[axis]),
    "laneid": _special(lambda m: m.lane),
    "warpid": _special(lambda m: m.subgroup),
    "nwarpid": _special(lambda m: m.block_lanes // m.chip.subgroup_width),
    "warpsize": _special(lambda m: m.chip.subgroup_width),
    "lanemask.eq": _lane_mask(np.equal),
    "lanemask.le": _lane_mask(np.less_equal),
    "lanemask.lt": _lane_mask(np.less),
    "lanemask.ge": _lane_mask(np.greater_equal),
    "lanemask.gt": _lane_mask(np.greater),
}


def _members(m: Any, mask: Any) -> Any:
    """The mask of members as a number, after a check that they are all here."""
    members = unsigned(mask, 32).astype(np.int64)
    check_members(m, members)
    return members


def _barrier(instruction: Instruction) -> Run:
    def run(m: Any, *operands: Any) -> None:
        # An id or a number of threads; a barrier of a part of the block is not simulated.
        counts = operands[1:] if len(operands) > 1 else ()
        if any((np.asarray(c) != m.threads).any() for c in counts):
            m.report("divergent barrier", "is a barrier of a part of the block")

    return run


def _warp_barrier(instruction: Instruction) -> Run:
    def run(m: Any, mask: Any) -> None:
        _members(m, mask)
        m.subgroup_barrier()

    return run


def _kind(instruction: Instruction) -> str:
    return instruction.text("kind").split()[-1].rstrip(">")


def _shuffle(instruction: Instruction) -> Run:
    return _shuffled(_kind(instruction), instruction.has("return_value_and_is_valid"))


def _shuffled(kind: str, pair: bool) -> Run:
    def run(m: Any, mask: Any, value: Any, offset: Any, clamp: Any) -> Any:
        members = _members(m, mask)
        step = unsigned(offset, 32).astype(np.int64) & 31
        packed = unsigned(clamp, 32).astype(np.int64)
        clamp_lane, segment = packed & 31, packed >> 8 & 31
        lowest = m.lane & segment
        highest = lowest | (clamp_lane & ~segment)
        source = {
            "up": m.lane - step,
            "down": m.lane + step,
            "bfly": m.lane ^ step,
            "idx": lowest | (step & ~segment),
        }[kind]
        valid = source >= highest if kind == "up" else source <= highest
        source = np.where(valid, source, m.lane)
        outside = (members >> source & 1 == 0) & m.is_active(source)
        if outside.any():
            m.report("inactive lane", "reads a lane that is not in the mask of members", outside)
        result = exchange(m, value, source)
        return (result, valid) if pair else result

    return run


def _vote(instruction: Instruction) -> Run:
    return _voted(_kind(instruction))


def _voted(kind: str) -> Run:
    def run(m: Any, mask: Any, predicate: Any) -> Any:
        members = _members(m, mask)
        yes = ballot(m, predicate) & members
        if kind == "ballot":
            return signed(yes, 32)
        here = ballot(m, np.ones(1, bool)) & members
        if kind == "any":
            return yes != 0
        return yes == here if kind == "all" else (yes == here) | (yes == 0)

    return run


def _reduce(instruction: Instruction) -> Run:
    return _reduced(_kind(instruction))


def _reduced(kind: str) -> Run:
    ufunc: Any = {
        "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "max": np.maximum, "min": np.minimum, "umax": np.maximum, "umin": np.minimum,
        "fmax": np.fmax, "fmin": np.fmin,
    }[kind]  # fmt: skip

    def run(m: Any, value: Any, mask: Any) -> Any:
        members = _members(m, mask)
        if kind.startswith("u"):
            return signed(reduce_lanes(m, unsigned(value, 32), members, ufunc), 32)
        return reduce_lanes(m, value, members, ufunc).astype(value.dtype)

    return run


def _match(instruction: Instruction) -> Run:
    return _matched("all" in instruction.text("kind"))


def _matched(everyone: bool) -> Run:
    def run(m: Any, mask: Any, value: Any) -> Any:
        members = _members(m, mask)
        table = m.by_subgroup(value)
        taking = m.by_subgroup(m.mask)
        same = (table[:, :, None] == table[:, None, :]) & taking[:, None, :]
        bits = (same.astype(np.int64) << np.arange(table.shape[1])).sum(axis=-1).reshape(-1)
        bits &= members
        if not everyone:
            return signed(bits, 32)
        agreed = bits == (ballot(m, np.ones(1, bool)) & members)
        return signed(np.where(agreed, bits, 0), 32), agreed

    return run


def _elect(instruction: Instruction) -> Run:
    # As an op it says who is elected; as an intrinsic it has the elected lane before that.
    both = isinstance(instruction.result, Struct)

    def run(m: Any, *mask: Any) -> Any:
        here = ballot(m, np.ones(1, bool))
        first = here & -here
        elected = first == (np.int64(1) << m.lane)
        lane = np.log2(np.maximum(first, 1)).astype(np.int32)
        return (lane, elected) if both else elected

    return run


def _copy_async(instruction: Instruction, size: int = 0) -> Run:
    size = size or instruction.integer("size")
    to, source = instruction.operands[:2]
    assert isinstance(to, Pointer)
    assert isinstance(source, Pointer)
    to_space, source_space = to.space, source.space

    def run(m: Any, target: Any, address: Any, count: Any = None) -> None:
        count = None if count is None else unsigned(count, 32).astype(np.int64)
        m.copies.start(m, target, to_space, address, source_space, size, count)

    return run


def _flushed_power(number: Any) -> Any:
    """A power of two; numbers too small to be normal become 0."""
    found = np.exp2(number.astype(np.float64))
    return np.where(found < np.finfo(np.float32).tiny, 0.0, found)


def _tf32(x: Any) -> Any:
    """``cvt.rna.tf32.f32``: the bits of the nearest number with 10 bits of fraction, ties away."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), rounded).astype(np.uint32).view(np.int32)


def _wait_intrinsic(instruction: Instruction) -> Run:
    del instruction
    return lambda m, keep: m.copies.wait(m, int(np.asarray(keep).reshape(-1)[0]))


def _wait_group(instruction: Instruction) -> Run:
    keep = instruction.integer("n")
    return lambda m: m.copies.wait(m, keep)


def _fence(instruction: Instruction) -> Run:
    whole = "cta" not in instruction.text("scope")
    return lambda m: m.fence(whole_device=whole)


def _membar(*, whole_device: bool) -> Operation:
    return Operation(lambda i: lambda m: m.fence(whole_device=whole_device), "control")


def _unary(function: Callable[[Any], Any]) -> Operation:
    return Operation(lambda i: lambda m, a: function(a).astype(a.dtype), "special")


def _no_effect(instruction: Instruction) -> Run:
    return lambda m, *operands: None


def _shuffles() -> dict[str, Operation]:
    """By kind; ``i32p`` and ``f32p`` also say whether there was such a lane."""

    def of(kind: str, pair: bool) -> Operation:
        return Operation(lambda i: _shuffled(kind, pair), "shuffle")

    found = {}
    for kind in ("up", "down", "bfly", "idx"):
        name = f"llvm.nvvm.shfl.sync.{kind}"
        found[name] = of(kind, pair=False)
        found[f"{name}.i32p"] = found[f"{name}.f32p"] = of(kind, pair=True)
    return found


def _of_kinds(name: str, kinds: str, run: Callable[[str], Run]) -> dict[str, Operation]:
    """An intrinsic per kind; ``name`` has an asterisk where the kind stands."""

    def of(kind: str) -> Operation:
        return Operation(lambda i: run(kind), "shuffle")

    return {name.replace("*", kind): of(kind) for kind in kinds.split()}


def _copies() -> dict[str, Operation]:
    """Asynchronous copies by size; with ``.s`` the bytes to read are an operand."""

    def of(size: int) -> Operation:
        return Operation(lambda i: _copy_async(i, size), "memory")

    return {
        f"llvm.nvvm.cp.async.{cache}.shared.global.{size}{suffix}": of(size)
        for cache, sizes in (("ca", (4, 8, 16)), ("cg", (16,)))
        for size in sizes
        for suffix in ("", ".s")
    }


_FMA = LLVM["llvm.intr.fma"]
#: Round to nearest is what the llvm dialect's own ops do.
_BINARY = {"add": "llvm.fadd", "sub": "llvm.fsub", "mul": "llvm.fmul", "div": "llvm.fdiv"}

SEMANTICS = Semantics(
    operations={
        **{f"nvvm.read.ptx.sreg.{name}": op for name, op in _REGISTERS.items()},
        "nvvm.barrier": Operation(_barrier, "control", barrier=True),
        "nvvm.barrier0": Operation(_barrier, "control", barrier=True),
        "nvvm.bar.warp.sync": Operation(_warp_barrier, "control"),
        "nvvm.shfl.sync": Operation(_shuffle, "shuffle"),
        "nvvm.vote.sync": Operation(_vote, "shuffle"),
        "nvvm.redux.sync": Operation(_reduce, "shuffle"),
        "nvvm.match.sync": Operation(_match, "shuffle"),
        "nvvm.elect.sync": Operation(_elect, "shuffle"),
        "nvvm.cp.async.shared.global": Operation(_copy_async, "memory"),
        "nvvm.cp.async.commit.group": Operation(lambda i: lambda m: m.copies.close(m), "control"),
        "nvvm.cp.async.wait.group": Operation(_wait_group, "control"),
        "nvvm.memory.barrier": Operation(_fence, "control"),
        "nvvm.fence.sc.cluster": Operation(_fence, "control"),
        "nvvm.nanosleep": Operation(_no_effect, "control"),
        "nvvm.prefetch": Operation(_no_effect, "memory"),
        "nvvm.rcp.approx.ftz.f": _unary(lambda a: 1 / a.astype(np.float64)),
    },
    intrinsics={
        **matrix_intrinsics(
            MatrixUnit(
                "mma",
                shape,
                dtype,
                {"int8": "int32", "float64": "float64"}.get(dtype, "float32"),
                fragments=fragments,
                intrinsic=intrinsic,
            )
            for (shape, dtype), (fragments, intrinsic) in UNITS.items()
        ),
        **tile_intrinsics(TILE_LOADS),
        **{
            f"llvm.nvvm.fma.rn.{name}": _FMA
            for name in ("f", "d", "f16", "bf16", "f16x2", "bf16x2")
        },
        **{
            f"llvm.nvvm.{op}.rn.{name}": LLVM[known]
            for op, known in _BINARY.items()
            for name in ("f", "d")
        },
        **{f"llvm.nvvm.sqrt.rn.{name}": LLVM["llvm.intr.sqrt"] for name in ("f", "d")},
        TF32_ROUNDING: Operation(lambda i: lambda m, a: _tf32(a), "conversion"),
        "llvm.nvvm.rcp.rn.f": _unary(lambda a: 1 / a),
        "llvm.nvvm.rcp.rn.d": _unary(lambda a: 1 / a),
        "llvm.nvvm.rcp.approx.ftz.f": _unary(lambda a: 1 / a.astype(np.float64)),
        "llvm.nvvm.ex2.approx.f": _unary(lambda a: np.exp2(a.astype(np.float64))),
        "llvm.nvvm.ex2.approx.ftz.f32": _unary(_flushed_power),
        "llvm.nvvm.lg2.approx.f": _unary(lambda a: np.log2(a.astype(np.float64))),
        "llvm.nvvm.rsqrt.approx.f": _unary(lambda a: 1 / np.sqrt(a.astype(np.float64))),
        **{f"llvm.nvvm.read.ptx.sreg.{name}": op for name, op in _REGISTERS.items()},
        **{
            f"llvm.nvvm.{name}": Operation(_barrier, "control", barrier=True)
            for name in (
                "barrier0",
                "barrier.cta.sync.aligned.all",
                "barrier.cta.sync.aligned.count",
                "barrier.cta.sync.all",
                "barrier.cta.sync.count",
            )
        },
        "llvm.nvvm.bar.warp.sync": Operation(_warp_barrier, "control"),
        **_shuffles(),
        **_of_kinds("llvm.nvvm.vote.*.sync", "ballot any all uni", _voted),
        **_of_kinds(
            "llvm.nvvm.redux.sync.*", "add and or xor max min umax umin fmax fmin", _reduced
        ),
        "llvm.nvvm.match.any.sync": Operation(lambda i: _matched(everyone=False), "shuffle"),
        **{
            f"llvm.nvvm.match.all.sync.{kind}": Operation(lambda i: _matched(True), "shuffle")
            for kind in ("i32p", "i64p")
        },
        "llvm.nvvm.elect.sync": Operation(_elect, "shuffle"),
        **_copies(),
        "llvm.nvvm.fence.sc.cluster": _membar(whole_device=True),
        "llvm.nvvm.nanosleep": Operation(_no_effect, "control"),
        "llvm.nvvm.cp.async.commit.group": Operation(
            lambda i: lambda m: m.copies.close(m), "control"
        ),
        "llvm.nvvm.cp.async.wait.group": Operation(_wait_intrinsic, "control"),
        "llvm.nvvm.cp.async.wait.all": Operation(
            lambda i: lambda m: m.copies.wait(m, None), "control"
        ),
        "llvm.nvvm.membar.cta": _membar(whole_device=False),
        "llvm.nvvm.membar.gl": _membar(whole_device=True),
        "llvm.nvvm.membar.sys": _membar(whole_device=True),
        **group_units.INTRINSICS,
        **bulk_copies.INTRINSICS,
    },
)
