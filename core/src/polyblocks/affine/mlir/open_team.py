"""Whether a nest shares a region with others, so that it costs a barrier and no region."""

from __future__ import annotations

from polyblocks.affine.mlir.regions import LOOPS
from polyblocks.affine.model import For, Sequence
from polyblocks.target import ParallelLevel


def parallel_cost(sequence: Sequence, level: ParallelLevel) -> float:
    """Seconds that a parallel nest of a sequence takes beside its own work.

    A target that knows what a barrier takes runs a program with several parallel nests, or with one
    in a loop, by a team that is started once.
    """
    return level.barrier if level.barrier and is_open(sequence) else level.overhead


def is_open(sequence: Sequence) -> bool:
    """Whether a sequence is in a loop, or several parallel nests are in it."""
    if _in_loop(sequence):
        return True
    nests = [nest for part in sequence.all() for nest in part.nests()]
    return sum(any(map(_is_parallel, nest.body)) for nest in nests) > 1


def _is_parallel(node: object) -> bool:
    return isinstance(node, For) and node.level is not None


def _in_loop(sequence: Sequence) -> bool:
    """Whether a sequence is the body of a loop of the program, or in one."""
    block = sequence.block
    while block is not None:
        op = block.owner.operation
        if op.name == "func.func":
            return False
        if op.name in LOOPS:
            return True
        block = op.block
    return False
