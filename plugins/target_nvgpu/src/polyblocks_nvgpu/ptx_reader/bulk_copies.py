"""Bulk copies and barriers of PTX."""

from __future__ import annotations

from polyblocks_nvgpu.bulk.copies import (
    ARRIVE_ELSEWHERE,
    BULK_COPIES,
    PLACE_OF,
    TENSOR_COPY,
    TENSOR_PIXELS,
    TENSOR_STORE,
)
from polyblocks_nvgpu.ptx_reader.conversions import parts_of
from polyblocks_nvgpu.ptx_reader.emitter import SPACES, Emitter, Handler, pointer
from polyblocks_nvgpu.ptx_reader.statements import Instruction

#: Address space of the shared memory of a cluster of blocks.
_CLUSTER = 7


def _barrier(e: Emitter, i: Instruction) -> None:
    """``mbarrier``, of shared memory."""
    what, shared = i.name[1:3], pointer(SPACES["shared"])
    if what[0] == "arrive" and "shared::cluster" in i.name:
        place = e.address(i.operands[1], _CLUSTER, i)
        given = [place, e.read(i.operands[2], "i32")]
        e.call(ARRIVE_ELSEWHERE, given, [pointer(_CLUSTER), "i32"], "()")
        return
    if "shared" not in i.name:
        raise i.error("a barrier that is elsewhere")
    if what[0] == "init":
        given = [e.address(i.operands[0], SPACES["shared"], i), e.read(i.operands[1], "i32")]
        e.call(BULK_COPIES.prepare, given, [shared, "i32"], "()")
    elif what[0] == "arrive":
        to, place, *rest = i.operands
        given = [e.address(place, SPACES["shared"], i), *(e.read(each, "i32") for each in rest)]
        name = BULK_COPIES.expect if what[1] == "expect_tx" else BULK_COPIES.arrive
        e.write(to, e.call(name, given, [shared, *["i32"] * len(rest)], "i64"), "i64")
    elif what == ("try_wait", "parity"):
        to, place, parity = i.operands
        given = [e.address(place, SPACES["shared"], i), e.read(parity, "i32")]
        e.write(to, e.call(BULK_COPIES.is_over, given, [shared, "i32"], "i1"), "i1")
    else:
        raise i.error("a barrier of this kind")


def copy_box(e: Emitter, i: Instruction) -> None:
    """``cp.async.bulk.tensor`` between an array and shared memory."""
    if "bulk_group" in i.name[-1] and "tile" in i.name:
        (source, *rest), at = _inside(i.operands[0]), i.operands[1]
        places = [e.read(each, "i32") for each in parts_of(",".join(rest))]
        shared = pointer(SPACES["shared"])
        given = [e.address(at, SPACES["shared"], i), e.address(f"[{source}]", SPACES["global"], i)]
        types = [shared, pointer(SPACES["global"]), *["i32"] * len(places)]
        e.call(TENSOR_STORE.format(len(places)), [*given, *places], types, "()")
        return
    kinds = [kind for kind in ("tile", "im2col") if kind in i.name]
    if "mbarrier::complete_tx::bytes" not in i.name or not kinds:
        raise i.error("a bulk copy of this kind")
    to, (source, *rest), barrier = i.operands[0], _inside(i.operands[1]), i.operands[2]
    places = [e.read(each, "i32") for each in parts_of(",".join(rest))]
    given = [
        e.address(to, SPACES["shared"], i),
        e.address(barrier, SPACES["shared"], i),
        e.address(f"[{source}]", SPACES["global"], i),
        *places,
    ]
    shared = pointer(SPACES["shared"])
    types = [shared, shared, pointer(SPACES["global"]), *["i32"] * len(places)]
    behind, name = list(i.operands[3:]), TENSOR_COPY
    if kinds == ["im2col"]:
        name, offsets = TENSOR_PIXELS, parts_of(behind.pop(0))
        given, types = (
            [*given, *(e.read(o, "i16") for o in offsets)],
            types + ["i16"] * len(offsets),
        )
    if "multicast::cluster" in i.name[-1]:
        # The blocks that get it, how it is cached, and whether there are the two.
        bits = {"i16": e.read(behind[0], "i16"), "i64": "", "i1": ""}
        bits["i64"], bits["i1"] = e.constant(0, "i64"), e.constant(1, "i1")
        given, types = [*given, *bits.values()], [*types, *bits]
    e.call(name.format(len(places)), given, types, "()")


def _place(e: Emitter, i: Instruction) -> None:
    """``mapa``: a place in the shared memory of another block of the cluster."""
    if i.name[1] != "shared::cluster":
        raise i.error("a place of this kind")
    to, place, block = i.operands
    given = [e.address(f"[{place}]", SPACES["shared"], i), e.read(block, "i32")]
    type_ = i.name[-1].replace("u", "i")
    e.write(to, e.call(PLACE_OF, given, [pointer(SPACES["shared"]), "i32"], type_), type_)


def _inside(operand: str) -> list[str]:
    """``[%rd1, {%r1, %r2}]`` as a list of what is between commas."""
    return [part.strip() for part in operand.strip("[]").split(",")]


HANDLERS: dict[str, Handler] = {"mbarrier": _barrier, "mapa": _place}
