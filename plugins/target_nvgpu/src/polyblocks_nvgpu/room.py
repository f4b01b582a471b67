"""Registers enough: blocks at once that leave a thread too few are given up."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.codegen.gpu.plan import RESIDENT, kernels, name_of
from polyblocks.mlir import ir
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor

_HEAD = re.compile(r"\.entry\s+([\w$]+)\b[^{]*")
_AT_ONCE = re.compile(r"\.minnctapersm\s+\d+\s*\n")


def crowded(module: Any, resources: dict[str, Resources]) -> list[str]:
    """Kernels that spill registers since several blocks are to be held at once.

    Args:
        module: in form L.
        resources: of the kernels, as the assembler says.
    """
    return [
        name_of(kernel)
        for kernel in kernels(module)
        if resources[name_of(kernel)].spill_bytes and _resident(kernel) > 1
    ]


def with_room(ptx: str, names: Collection[str]) -> str:
    """PTX in which these kernels may take all registers that a block can have."""
    return _HEAD.sub(lambda m: _AT_ONCE.sub("", m[0]) if m[1] in names else m[0], ptx)


def note_blocks(
    module: Any, chip: Multiprocessor, resources: dict[str, Resources], names: Collection[str]
) -> None:
    """Let the module say how many blocks of these kernels are held at once now.

    Args:
        module: in form L; changed in place.
        chip: the multiprocessor.
        resources: of the kernels, as the assembler says of the new code.
        names: of kernels.
    """
    with module.context:
        for kernel in kernels(module):
            if name_of(kernel) not in names:
                continue
            used = resources[name_of(kernel)]
            threads = kernel.attributes["nvvm.reqntid"][0]
            fit = occupancy(chip, used.registers, used.shared_bytes, threads).blocks
            number = ir.IntegerType.get_signless(32)
            kernel.attributes[RESIDENT] = ir.IntegerAttr.get(number, min(fit, _resident(kernel)))


def _resident(kernel: Any) -> int:
    attributes = kernel.attributes
    return int(attributes[RESIDENT].value) if RESIDENT in attributes else 1
