"""A kernel's schedule as data: what ``choose-kernels`` decides and ``emit-kernels`` obeys.

It is a dictionary, the attribute ``polyblocks.schedule`` of a nest, with the keys below. Loops,
loads and stores of a nest are numbered together as they stand in the module, from 0; so are local
buffers by themselves, and buffers of the program in the order in which the nest uses them.
"""

from __future__ import annotations

import re
from typing import Any

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.plans.numbers import Numbers

#: Keys of every schedule.
COMMON = {
    "kernel": "its name",
    "resident": "how many of its blocks a multiprocessor is to hold at once",
    "predicted": "the seconds that it is predicted to take, `predicted_seconds`, made of "
    "`compute_seconds`, `latency_seconds` and `memory_seconds`, as far as the chip's rates are "
    "known; nothing depends on it",
}
#: Keys where groups of threads do outer iterations of their own.
OF_GROUPS = {
    "group": "threads of a group: 1, or a power of two",
    "groups": "groups of a block",
    "strided": "whether neighbouring threads belong to different groups",
    "order": "the outer loops, the one that changes fastest from group to group last",
    "width": "neighbouring outer iterations that a thread does with one access for all of them",
    "distributed": "the loops that the threads of a group share: `loop`, the outermost one, "
    "`order` of it and those nested perfectly in it, the fastest last, `pitch` and `lead`: "
    "iterations that are counted for a row, and before a row (0: no others), and `width`: "
    "neighbouring ones that a thread does with one access for all of them",
    "places": "where each local buffer lives: `private`, `distributed registers`, `shared`",
    "copies": "buffers of the program that a block begins to copy to shared memory",
    "barriers": "before which loops and accesses the threads of a block wait for each other",
}
#: Keys where blocks compute tiles of a contraction.
OF_TILES = {
    "steps": "where copies are nodes of the nest (`stage-operands`): the loops of the reduction "
    "whose iterations a step's number counts, and their extents, the fastest one last",
    "thread_tile": "rows and columns of a thread",
    "threads": "threads of a block along rows and along columns",
    "depth": "steps of the reduction whose operands are in shared memory at a time",
    "staging": "what follows from these, and is checked if it is given: of each operand the tile "
    "in `shared` memory, and the steps and rows (or columns) that a thread copies `at_once`",
}
#: Keys where warps compute tiles of a contraction by a matrix unit.
OF_UNITS = {
    "unit": "its name, and the dtype of its operands",
    "warps": "warps of a block along rows and along columns",
    "units_of_warp": "units of a warp along rows and along columns",
    "calls": "of a unit one after the other that a stage of the operands is for",
    "stages": "tiles of each operand in shared memory: one is used while the others are filled",
    "steps": "where copies are nodes of the nest (`stage-operands`): the loops of the reduction "
    "whose iterations a step's number counts, and their extents, the fastest one last",
    "staging": "what follows from these, and is checked if it is given: of rows and columns the "
    "tiles in `shared` memory and whether copies are `asynchronous`; if none is, the products of a "
    "tile before which the next one is `stored` and the block waits at a `barrier`; whether lanes "
    "`exchange` sums, to store neighbouring columns at once",
}


def schedule_of(
    kernel: Kernel, numbers: Numbers, name: str, resident: int, predicted: Predicted | None
) -> dict[str, Any]:
    """The schedule of a kernel.

    Args:
        kernel: as it is to run.
        numbers: of its nest, from before atomic updates were formed.
        name: of the kernel.
        resident: blocks that a multiprocessor is to hold at once.
        predicted: what it takes, if that is known.
    """
    common: dict[str, Any] = {"kernel": name, "resident": resident}
    if predicted is not None:
        times = predicted.numbers()
        common["predicted"] = {key: s for key, s in times.items() if s is not None}
    return {**common, **kernel.plan.schedule(numbers)}


def unique_name(requested: str, taken: set[str]) -> str:
    """A symbol like the requested name that is not taken yet; it is from now on."""
    base = re.sub(r"[^A-Za-z0-9_]", "_", requested) or "kernel"
    if base[0].isdigit():
        base = f"k{base}"
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
