"""Barriers, shuffles, votes and matrix units of PTX."""

from __future__ import annotations

import re

from polyblocks_nvgpu.fragments import TILE_LOADS, UNITS
from polyblocks_nvgpu.group_units import AT_ONCE, NEW, OPERAND, function_of, wait_of
from polyblocks_nvgpu.ptx_reader.conversions import parts_of
from polyblocks_nvgpu.ptx_reader.emitter import SPACES, Emitter, Handler
from polyblocks_nvgpu.ptx_reader.statements import Instruction

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
    "f64": "float64",
    "s8": "int8",
}
#: Four groups of lanes multiply at once, and are described as one unit.
_TOGETHER: dict[tuple[tuple[int, ...], str], tuple[int, ...]] = {
    ((8, 8, 4), "float16"): (16, 16, 4)
}
#: Types of sums, by the dtype of the operands.
_SUMS = {"int8": "i32", "float64": "f64"}


def _barrier(e: Emitter, i: Instruction) -> None:
    """``bar.sync`` and ``barrier.sync``, of a block or of a number of threads, or a cluster's."""
    if i.name[:2] == ("barrier", "cluster"):
        e.call(f"llvm.nvvm.{'.'.join(i.name)}", [], [], "()")
        return
    if i.name[:2] == ("bar", "warp"):
        e.call("llvm.nvvm.bar.warp.sync", [e.read(i.operands[0], "i32")], ["i32"], "()")
        return
    if "sync" not in i.name:
        raise i.error("a barrier of this kind")
    given = [e.read(operand, "i32") for operand in i.operands]
    name = "all" if len(given) == 1 else "count"
    e.call(f"llvm.nvvm.barrier.cta.sync.aligned.{name}", given, ["i32"] * len(given), "()")


def _shuffle(e: Emitter, i: Instruction) -> None:
    to, value, offset, clamp, members = i.operands
    to, _, exists = to.partition("|")
    given = [e.read(members, "i32"), e.read_plain(value, "i32")]
    if e.is_register(value) and not e.collecting:
        given[1] = e.read(value, "i32")
    given += [e.read(offset, "i32"), e.read(clamp, "i32")]
    name, pair = f"llvm.nvvm.shfl.sync.{i.name[2]}", "!llvm.struct<(i32, i1)>"
    if exists:
        both = e.call(f"{name}.i32p", given, ["i32"] * 4, pair)
        e.write_plain(to, e.op(f"llvm.extractvalue {both}[0] : {pair}"), "i32")
        e.write(exists, e.op(f"llvm.extractvalue {both}[1] : {pair}"), "i1")
        return
    e.write_plain(to, e.call(f"{name}.i32", given, ["i32"] * 4, "i32"), "i32")


def _vote(e: Emitter, i: Instruction) -> None:
    to, predicate, members = i.operands
    given = [e.read(members, "i32"), e.read(predicate, "i1")]
    result = "i32" if i.name[2] == "ballot" else "i1"
    name = f"llvm.nvvm.vote.{i.name[2]}.sync"
    e.write(to, e.call(name, given, ["i32", "i1"], result), result)


def _reduce(e: Emitter, i: Instruction) -> None:
    to, value, members = i.operands
    kind, type_ = i.name[2], "f32" if i.name[-1] == "f32" else "i32"
    if kind in ("min", "max"):
        kind = {"u": "u", "f": "f"}.get(i.name[-1][0], "") + kind
    given = [e.read(value, type_), e.read(members, "i32")]
    e.write(to, e.call(f"llvm.nvvm.redux.sync.{kind}", given, [type_, "i32"], type_), type_)


def _elect(e: Emitter, i: Instruction) -> None:
    to, _, chosen = i.operands[0].partition("|")
    pair = "!llvm.struct<(i32, i1)>"
    both = e.call("llvm.nvvm.elect.sync", [e.read(i.operands[1], "i32")], ["i32"], pair)
    if to != "_":
        e.write(to, e.op(f"llvm.extractvalue {both}[0] : {pair}"), "i32")
    e.write(chosen, e.op(f"llvm.extractvalue {both}[1] : {pair}"), "i1")


def _multiply(e: Emitter, i: Instruction) -> None:
    """``mma.sync``: the unit is known by its shape and the type of its operands."""
    shape = next((m for m in map(_SHAPE.fullmatch, i.name) if m), None)
    dtype = _DTYPES.get(i.name[-3], "")
    sizes = tuple(int(n) for n in shape.groups()) if shape else ()
    key = (_TOGETHER.get((sizes, dtype), sizes), dtype)
    known = {(tuple(s), d): unit for (s, d), unit in UNITS.items()}
    if key not in known or not {"row", "col"} <= set(i.name):
        raise i.error("a matrix unit that it does not know")
    fragments, intrinsic = known[key]
    added = _SUMS.get(dtype, "f32")
    kinds = [fragments[0].register, fragments[1].register, added]
    to, *sources = (parts_of(operand) for operand in i.operands)
    given, types = [], []
    for parts, kind in zip(sources, kinds, strict=True):
        given += [e.read(part, kind) for part in parts]
        types += [kind] * len(parts)
    result = f"!llvm.struct<({', '.join([added] * len(to))})>"
    whole = e.call(intrinsic, given, types, result)
    for position, part in enumerate(to):
        e.write(part, e.op(f"llvm.extractvalue {whole}[{position}] : {result}"), added)


def _load_tiles(e: Emitter, i: Instruction) -> None:
    """``ldmatrix``."""
    if not {"x4", "b16", "m8n8"} <= set(i.name):
        raise i.error("tiles that are loaded this way")
    to = parts_of(i.operands[0])
    result = "!llvm.struct<(i32, i32, i32, i32)>"
    address = e.address(i.operands[1], SPACES["shared"], i)
    intrinsic = TILE_LOADS.by_columns if "trans" in i.name else TILE_LOADS.by_rows
    whole = e.call(f"{intrinsic}.p3", [address], ["!llvm.ptr<3>"], result)
    for position, part in enumerate(to):
        e.write(part, e.op(f"llvm.extractvalue {whole}[{position}] : {result}"), "i32")


def _multiply_in_groups(e: Emitter, i: Instruction) -> None:
    """``wgmma``: products by descriptors, and their groups."""
    if i.name[1] == "wait_group":
        e.call(f"llvm.{wait_of(int(i.operands[0]), 'f32', 0)}", [], [], "()")
        return
    if i.name[1] != "mma_async":
        e.call(f"llvm.nvvm.wgmma.{i.name[1]}.sync.aligned", [], [], "()")
        return
    to, first, second, adds, *rest = i.operands
    registers, digits = parts_of(to), rest[2:]
    in_registers, new = first.startswith("{"), adds == NEW
    panels = (None if in_registers else digits[:1] == ["1"], digits[-1:] == ["1"])
    type_ = "i32" if i.name[5] == "s32" else "f32"
    given = [] if new else [e.read(part, type_) for part in registers]
    types = [type_] * len(given)
    if in_registers:
        given += [e.read(part, "i32") for part in parts_of(first)]
        types += ["i32"] * OPERAND
    else:
        given.append(e.read(first, "i64"))
        types.append("i64")
    given.append(e.read(second, "i64"))
    types.append("i64")
    result = f"!llvm.struct<({', '.join([type_] * len(registers))})>"
    name = f"llvm.polyblocks.wgmma.{'.'.join(i.name[4:7])}"
    whole = e.call(f"llvm.{function_of(name, panels, new)}{AT_ONCE}", given, types, result)
    for position, part in enumerate(registers):
        e.write(part, e.op(f"llvm.extractvalue {whole}[{position}] : {result}"), type_)


HANDLERS: dict[str, Handler] = {
    "bar": _barrier, "barrier": _barrier, "shfl": _shuffle, "vote": _vote, "redux": _reduce,
    "elect": _elect, "mma": _multiply, "ldmatrix": _load_tiles, "wgmma": _multiply_in_groups,
}  # fmt: skip
