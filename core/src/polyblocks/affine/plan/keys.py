"""The keys of a schedule. Each means the same, whichever kind of plan has it.

A schedule is a dictionary, the attribute ``polyblocks.schedule`` of a nest's outermost loop (of its
first operation if it has none). Loops, loads and stores of a nest are numbered together as they
stand in the module, from 0; so are local buffers by themselves, and buffers of the program in the
order in which the nest uses them. M, N and K are rows, columns and steps of a contraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class PlanKind(Enum):
    """Kinds of plans, by what runs a nest; values are their names in documents."""

    #: Cores compute register tiles of a contraction, in blocks for their caches.
    CORES = "tiles on cores"
    #: Threads of a grid's blocks compute register tiles of a contraction.
    LANES = "tiles by lanes"
    #: Warps of a grid's blocks do, by a matrix unit.
    UNIT = "tiles by a unit"
    #: Warps of a grid's blocks compute chains of two contractions by a matrix unit.
    CHAIN = "chains by a unit"
    #: Groups of a grid's threads run outer iterations of any nest.
    GROUPS = "groups of threads"


CORES, LANES, UNIT, CHAIN, GROUPS = PlanKind
GRID = (LANES, UNIT, CHAIN, GROUPS)
TILES = (CORES, LANES, UNIT, CHAIN)


@dataclass(frozen=True)
class Key:
    """A key of schedules.

    Attributes:
        meaning: of its value.
        kinds: of the plans that have it.
    """

    meaning: str
    kinds: tuple[PlanKind, ...]


KEYS: dict[str, Key] = {
    # Of all kernels.
    "kernel": Key("its name", GRID),
    "resident": Key("how many of its blocks a multiprocessor is to hold at once", GRID),
    "predicted": Key(
        "the seconds that it is predicted to take, `predicted_seconds`, made of "
        "`compute_seconds`, `latency_seconds` and `memory_seconds`, as far as the chip's rates are "
        "known; nothing depends on it",
        GRID,
    ),
    # Of tiles of a contraction, from the outermost level to the innermost one.
    "chunks": Key("parts along M and N that threads are given", (CORES,)),
    "threads": Key("how many share the chunks", (CORES,)),
    "block_tile": Key(
        "elements along M and N that are worked on together: those of a core's cache, or those of "
        "a block of threads; whole register tiles",
        TILES,
    ),
    "k_block": Key(
        "steps along K in one pass over a block, whose operands are in the core's cache, or in the "
        "block's shared memory, at a time",
        TILES,
    ),
    "register_tile": Key(
        "elements of the result along M and N whose sums are in registers: of a thread, or of the "
        "warp that calls a unit; on a core those along N are whole vectors",
        TILES,
    ),
    "sum_chunk": Key(
        "steps along K that are added up before they are added to the total", (CORES,)
    ),
    "unit": Key(
        "the name of the matrix unit that computes steps; left out if none does",
        (CORES, UNIT, CHAIN),
    ),
    "stages": Key(
        "tiles of each operand in shared memory: one is used while the others are filled",
        (UNIT, CHAIN),
    ),
    "cluster": Key(
        "blocks along M and along N that copy a part each of a tile that all of them read; left "
        "out for blocks by themselves",
        (UNIT,),
    ),
    "chained": Key(
        "whether the nest is a chain of two products (`chain-products`); sizes are those of the "
        "first, whose columns are the steps of the second",
        (CHAIN,),
    ),
    "packed": Key(
        "whether the operand along M, and that along N, is copied in the order of its use; what "
        "cannot be used in place is copied anyway",
        (CORES,),
    ),
    "transposed": Key("whether M is what the nest's columns are", (CORES,)),
    "windows": Key("whether the operand along M is used in place, loop by loop", (CORES,)),
    "staged": Key(
        "whether results wait in a buffer and are stored from there; that of a unit's warps is in "
        "shared memory, follows from the other keys, and is checked if it is given",
        (CORES, UNIT),
    ),
    "staging": Key(
        "what follows from the other keys, and is checked if it is given: of each operand the tile "
        "in `shared` memory; of lanes the steps and rows (or columns) that a thread copies "
        "`at_once`; of a unit whether copies are `asynchronous`, `results` that leave in boxes "
        "and `persistent` blocks, and if no copy is, the products of a tile before which the next "
        "one is `stored` and the block waits at a `barrier`",
        (LANES, UNIT),
    ),
    "steps": Key(
        "where copies are nodes of the nest (`stage-operands`): the loops of the reduction whose "
        "iterations a step's number counts, and their extents, the fastest one last",
        (LANES, UNIT),
    ),
    # Of groups of threads.
    "group": Key("threads of a group: 1, or a power of two", (GROUPS,)),
    "groups": Key("groups of a block", (GROUPS,)),
    "strided": Key("whether neighbouring threads belong to different groups", (GROUPS,)),
    "order": Key(
        "the outer loops, the one that changes fastest from group to group last", (GROUPS,)
    ),
    "width": Key(
        "neighbouring outer iterations that a thread does with one access for all of them",
        (GROUPS,),
    ),
    "distributed": Key(
        "the loops that the threads of a group share: `loop`, the outermost one, `order` of it and "
        "those nested perfectly in it, the fastest last, `pitch` and `lead`: iterations that are "
        "counted for a row, and before a row (0: no others), and `width`: neighbouring ones that a "
        "thread does with one access for all of them",
        (GROUPS,),
    ),
    "places": Key(
        "where each local buffer lives: `private`, `distributed registers`, `shared`", (GROUPS,)
    ),
    "copies": Key("buffers of the program that a block begins to copy to shared memory", (GROUPS,)),
    "barriers": Key(
        "before which loops and accesses the threads of a block wait for each other", (GROUPS,)
    ),
}


def keys_of(kind: PlanKind) -> list[str]:
    """The keys that schedules of a kind of plan may have."""
    return [name for name, key in KEYS.items() if kind in key.kinds]
