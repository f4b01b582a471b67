"""Limits registers for the assumed resident blocks, where LLVM would take more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.codegen.gpu.plan import kernels, name_of
from polyblocks.codegen.gpu.resident_blocks import (
    assumed_blocks,
    resident_blocks_by_kernel,
    threads_of,
)
from polyblocks.mlir import ir
from polyblocks.occupancy import registers_for, warps_of_block
from polyblocks.target import Multiprocessor

#: Waves of a partition for which LLVM leaves registers, at least.
_WAVES = "rocdl.waves_per_eu"


def short(module: Any, chip: Multiprocessor, resources: Mapping[str, Resources]) -> list[str]:
    """Kernels with fewer resident blocks than the mapping assumes.

    Args:
        module: in form L.
        chip: the multiprocessor.
        resources: of the kernels, as the assembler says.
    """
    held = resident_blocks_by_kernel(module, chip, resources)
    return [
        name_of(kernel)
        for kernel in kernels(module)
        if held[name_of(kernel)] < assumed_blocks(kernel)
    ]


def ask(module: Any, chip: Multiprocessor) -> list[str]:
    """Say how many waves LLVM is to leave registers for, where not every number is few enough.

    Left to itself it takes what no more blocks than it thinks there are need: it counts with a
    smaller share of the local data for each of them.

    Args:
        module: in form L; changed in place.
        chip: the multiprocessor.

    Returns:
        The names of these kernels.
    """
    asked = []
    with module.context:
        number = ir.IntegerType.get_signless(32)
        for kernel in kernels(module):
            threads, blocks = threads_of(kernel), assumed_blocks(kernel)
            if registers_for(chip, threads, blocks) < chip.registers_per_thread:
                waves = -(-warps_of_block(chip, threads) * blocks // chip.partitions)
                kernel.attributes[_WAVES] = ir.IntegerAttr.get(number, waves)
                asked.append(name_of(kernel))
    return asked


def take_back(module: Any, names: Collection[str]) -> None:
    """Undo :func:`ask` for these kernels."""
    for kernel in kernels(module):
        if name_of(kernel) in names:
            del kernel.attributes[_WAVES]
