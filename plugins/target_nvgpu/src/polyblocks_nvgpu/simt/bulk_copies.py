"""Semantics of ``cp.async.bulk.tensor`` and ``mbarrier`` for the simulator.

Sources: the PTX ISA (cp.async.bulk.tensor, mbarrier, setmaxnreg).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyblocks.runtime.device.tensor_map import IM2COL, TILED, TensorMap
from polyblocks.simt.semantics import CLUSTER, Instruction, Operation, Run
from polyblocks_nvgpu.bulk.copies import (
    ARRIVE_ELSEWHERE,
    BULK_COPIES,
    MEET,
    PLACE_OF,
    RELEASE,
    TAKE,
    TENSOR_COPY,
    TENSOR_PIXELS,
    TENSOR_STORE,
)

#: Where the simulator keeps the number of a block in an address in the memory of its cluster.
_RANK = 48


def _map(machine: Any, map_: Any, rank: int, kind: str = TILED) -> TensorMap | None:
    """The array of a parameter; reports one that has no map of the kind."""
    address = int(np.broadcast_to(map_, (machine.lanes,))[machine.positions[0]])
    found: TensorMap | None = machine.tensor_maps.get(address)
    if found is None or len(found.extents) != rank or found.kind != kind:
        what = f"copies by a {kind} tensor map of {rank} dimensions, not by one"
        machine.report("out of bounds", what)
        return None
    if found.place is None:
        what = "copies by a tensor map of a buffer that is no longer there"
        machine.report("out of bounds", what)
        return None
    return found


def _copy(rank: int, kind: str = TILED) -> Operation:
    # Offsets of pixels are behind the places.
    count = rank if kind == TILED else 2 * rank - 2

    def run(machine: Any, to: Any, barrier: Any, map_: Any, *rest: Any) -> None:
        if (found := _map(machine, map_, rank, kind)) is not None:
            # The blocks that get it, how it is cached, and whether there are the two.
            flags = [int(np.ravel(each)[0]) for each in rest[count:]]
            blocks = flags[0] & 0xFFFF if len(flags) > 2 and flags[2] else None
            machine.bulk.start(machine, to, barrier, found, rest[:count], blocks)

    return Operation(lambda i: run, "memory")


def _store(rank: int) -> Operation:
    def run(machine: Any, source: Any, map_: Any, *rest: Any) -> None:
        if (found := _map(machine, map_, rank)) is not None:
            machine.bulk_stores.start(machine, source, found, rest[:rank])

    return Operation(lambda i: run, "memory")


def _stored(instruction: Instruction) -> Run:
    del instruction
    return lambda m, keep, *rest: m.bulk_stores.wait(m, int(np.ravel(keep)[0]))


def _prepare(instruction: Instruction) -> Run:
    del instruction
    return lambda m, address, count: m.bulk.prepare(m, address, count)


def _arrive(instruction: Instruction) -> Run:
    def run(machine: Any, address: Any, expected: Any = None) -> Any:
        machine.bulk.arrive(machine, address, expected)
        return np.zeros(1, np.int64) if instruction.results else None

    return run


def _is_over(instruction: Instruction) -> Run:
    del instruction
    return lambda m, address, parity: m.bulk.is_over(m, address, parity)


def _place_of(instruction: Instruction) -> Run:
    del instruction
    return lambda m, address, rank: address + (np.asarray(rank, np.int64) + 1 << _RANK)


def _arrive_elsewhere(instruction: Instruction) -> Run:
    del instruction

    def run(machine: Any, address: Any, count: Any = None) -> None:
        del count
        rank = (address >> _RANK) - 1
        machine.bulk.arrive(machine, address & (1 << _RANK) - 1, None, rank)

    return run


def _nothing(instruction: Instruction) -> Run:
    del instruction
    return lambda machine, *operands: None


INTRINSICS: dict[str, Operation] = {
    **{TENSOR_COPY.format(rank): _copy(rank) for rank in range(1, BULK_COPIES.dimensions + 1)},
    **{TENSOR_PIXELS.format(rank): _copy(rank, IM2COL) for rank in (3, 4, 5)},
    **{TENSOR_STORE.format(rank): _store(rank) for rank in range(1, BULK_COPIES.dimensions + 1)},
    BULK_COPIES.close: Operation(lambda i: lambda m: m.bulk_stores.close(m), "memory"),
    BULK_COPIES.stored: Operation(_stored, "control"),
    BULK_COPIES.prepare: Operation(_prepare, "memory"),
    BULK_COPIES.visible: Operation(_nothing, "control"),
    BULK_COPIES.expect: Operation(_arrive, "memory"),
    BULK_COPIES.arrive: Operation(_arrive, "memory"),
    BULK_COPIES.is_over: Operation(_is_over, "control"),
    PLACE_OF: Operation(_place_of, "integer"),
    ARRIVE_ELSEWHERE: Operation(_arrive_elsewhere, "memory"),
    MEET[0]: Operation(_nothing, "control"),
    MEET[1]: Operation(_nothing, "control", gathers=CLUSTER),
    RELEASE: Operation(_nothing, "control"),
    TAKE: Operation(_nothing, "control"),
}
