"""Loops and branches that memory decides about: one block of threads runs all nests in one."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.mlir.nest_reader import SCALAR_DIALECTS
from polyblocks.affine.model import ControlFlow, Nest
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.target import Multiprocessor


def decided_by_memory(op: Any) -> bool:
    """Whether only the device knows how often a loop runs, what it counts, or the branch taken."""
    if op.name == "scf.while":
        return True
    values = list(op.operands)
    if op.name in ("affine.for", "scf.for"):
        # Numbers that it carries from one iteration to the next.
        values += op.regions[0].blocks[0].operations[-1].operands
    return not all(map(_known_to_host, values))


def nests_of(region: ControlFlow) -> list[Nest]:
    """All nests in a loop or branch, in the order of the program."""
    return [n for body in region.bodies for part in body.all() for n in part.nests()]


def check_shared(op: Any, kernels: list[Kernel], chip: Multiprocessor) -> None:
    """Check that a block has the shared memory of all nests in a loop or branch.

    Raises:
        UnsupportedError: it has less.
    """
    needed = sum(kernel.plan.shared_bytes() for kernel in kernels)
    if needed > chip.shared_per_block_optin:
        raise UnsupportedError(
            f"'{op.name}' needs {needed} bytes of shared memory, and a block has "
            f"{chip.shared_per_block_optin}; use smaller arrays in it",
            op=op.name,
        )


def _known_to_host(value: Any) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        # The variable of a loop that the host unrolls, or what such a loop carries.
        return bool(owner.owner.operation.name in ("affine.for", "scf.for"))
    op = owner.operation
    if op.name.startswith(SCALAR_DIALECTS) or op.name == "affine.apply":
        return all(map(_known_to_host, op.operands))
    return False
