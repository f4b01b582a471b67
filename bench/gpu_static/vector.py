"""Kernels without matrix units: what takes the issue slots of products, how wide accesses are.

A row is facts of machine code, no model's numbers. See :data:`KEYS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bench.gpu_static.build import Built, build
from bench.gpu_static.cases import VectorCase
from bench.gpu_static.instructions import Instruction, Kind
from bench.gpu_static.loops import Parts, split
from bench.gpu_static.measure import conflicts
from bench.gpu_static.sass import WARP

Json = dict[str, Any]

#: Bits of an access of one thread that are told apart.
WIDTHS = (128, 96, 64, 32, 16, 8)
#: Names of accesses of shared memory; what else its unit does, as exchanges in a warp, is none.
_SHARED_LOADS = ("LDS", "ds_load", "ds_read")
_SHARED_STORES = ("STS", "ds_store", "ds_write")
#: Keys of a row; widths are bits of a thread -> how many instructions, all kernels together.
KEYS = {
    "case": "name of the case",
    "arch": "what it is built for",
    "dtype": "of its arguments",
    "kernels": "launches",
    "float_slots": "multiply-adds over all instructions of the main loop; null if it is no product",
    "operands": "widths of reads of shared memory in the main loop; null if it is no product",
    "loads": "widths of loads of memory",
    "stores": "widths of stores to memory",
    "shared_loads": "widths of reads of shared memory",
    "shared_stores": "widths of writes of shared memory",
    "registers": "of a thread, the most of all kernels",
    "spill_bytes": "of a thread",
    "stack_bytes": "of a thread",
    "conflicts": "bank conflicts in a simulated sample of blocks",
    "narrow": "why some accesses of memory have to be narrow; empty if none has",
    "wide": "whether there have to be wide ones all the same",
}


def measured(case: VectorCase, arch: str, *, sample: int = 0) -> Json:
    """The row of a case.

    Args:
        case: what is built.
        arch: for what.
        sample: blocks of each launch that are simulated to count bank conflicts; 0: none.

    Raises:
        PolyBlocksError: it does not compile.
        LookupError: a tool is missing.
    """
    launches = build(case, arch)
    every = [i for each in launches for i in each.code.instructions]
    loop = _main_loop(launches) if case.is_product else None
    used = [each.row["resources"] for each in launches]
    shared = [i for i in every if i.kind is Kind.SHARED]
    row = {
        "case": case.name,
        "arch": arch,
        "dtype": case.dtype,
        "kernels": len(launches),
        "float_slots": None if loop is None else float_slots(loop.loop),
        "operands": None if loop is None else widths(_named(loop.loop, _SHARED_LOADS)),
        "loads": widths(i for i in every if i.kind is Kind.LOAD),
        "stores": widths(i for i in every if i.kind is Kind.STORE),
        "shared_loads": widths(_named(shared, _SHARED_LOADS)),
        "shared_stores": widths(_named(shared, _SHARED_STORES)),
        "registers": max(each.launch.registers for each in launches),
        "spill_bytes": sum(each["spill_bytes"] for each in used),
        "stack_bytes": sum(each["stack_bytes"] for each in used),
        "conflicts": conflicts(case, arch, sample) if sample else None,
        "narrow": case.narrow,
        "wide": case.wide,
    }
    assert row.keys() == KEYS.keys()
    return row


def _main_loop(launches: list[Built]) -> Parts:
    parts = [split(each.code) for each in launches]
    return max(parts, key=lambda p: sum(i.products for i in p.loop))


def float_slots(loop: Iterable[Instruction]) -> float:
    """Multiply-adds over all instructions; two that are issued as one count once."""
    every = list(loop)
    return sum(i.kind is Kind.FLOAT and i.products > 0 for i in every) / len(every)


def widths(instructions: Iterable[Instruction]) -> dict[int, int]:
    """How many accesses there are of each width, in bits of a thread, the widest first."""
    found = Counter(_bits(i) for i in instructions)
    return dict(sorted(found.items(), reverse=True))


def _bits(instruction: Instruction) -> int:
    # One instruction with two addresses is two accesses of half of what it moves.
    places = 2 if "2addr" in instruction.name else 1
    return instruction.bytes * 8 // WARP // places


def _named(instructions: Iterable[Instruction], names: tuple[str, ...]) -> list[Instruction]:
    return [i for i in instructions if i.name.startswith(names) and not i.name.startswith("LDSM")]
