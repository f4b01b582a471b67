"""How many blocks of a kernel a multiprocessor holds at once: as assumed, and as it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from polyblocks.attributes import RESIDENT_ATTRIBUTE
from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches
from polyblocks.mlir import ir
from polyblocks.occupancy import occupancy
from polyblocks.target import Multiprocessor

_SIZE = "gpu.known_block_size"


def assumed_blocks(kernel: Any) -> int:
    """Resident blocks that a kernel assumes; 1 by default."""
    attributes = kernel.attributes
    return int(attributes[RESIDENT_ATTRIBUTE].value) if RESIDENT_ATTRIBUTE in attributes else 1


def threads_of(kernel: Any) -> int:
    """Threads of a block of a kernel in form L."""
    x, y, z = kernel.attributes[_SIZE]
    return int(x * y * z)


def block_sizes(module: Any) -> dict[str, tuple[int, ...]]:
    """Threads of a block along x, y and z, by kernel of a module in form L; where it is known."""
    return {
        name_of(kernel): tuple(int(size) for size in kernel.attributes[_SIZE])
        for kernel in kernels(module)
        if _SIZE in kernel.attributes
    }


def resident_blocks_by_kernel(
    module: Any, chip: Multiprocessor, resources: Mapping[str, Resources]
) -> dict[str, int]:
    """Blocks that a multiprocessor holds at once, by kernel.

    Args:
        module: in form L.
        chip: the multiprocessor.
        resources: of the kernels, as the assembler says.
    """
    asked = {launch["kernel"]: launch["shared_bytes"] for launch in read_launches(module)}
    found = {}
    for kernel in kernels(module):
        name = name_of(kernel)
        used = resources[name]
        shared = used.shared_bytes + asked.get(name, 0)
        found[name] = occupancy(chip, used.registers, shared, threads_of(kernel)).blocks
    return found


def note_blocks(
    module: Any, chip: Multiprocessor, resources: Mapping[str, Resources], names: Collection[str]
) -> None:
    """Let the module say how many blocks of these kernels are held at once now.

    Args:
        module: in form L; changed in place.
        chip: the multiprocessor.
        resources: of the kernels, as the assembler says of the code as it is.
        names: of kernels.
    """
    held = resident_blocks_by_kernel(module, chip, resources)
    with module.context:
        number = ir.IntegerType.get_signless(32)
        for kernel in kernels(module):
            if name_of(kernel) in names:
                blocks = min(held[name_of(kernel)], assumed_blocks(kernel))
                kernel.attributes[RESIDENT_ATTRIBUTE] = ir.IntegerAttr.get(number, blocks)
