"""Values of ``arch``: the compiler's architectures, and names of chips."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.errors import TargetError
from polyblocks.targets.target_choice import ProductNames, unknown_arch
from polyblocks_nvgpu.capabilities import CAPABILITIES, Capability
from polyblocks_nvgpu.chips import ALIASES, CHIPS, Chip, representative


@dataclass(frozen=True)
class Arch:
    """One architecture of the code generator.

    Attributes:
        name: e.g. ``sm_90a``, which is also LLVM's ``-mcpu`` and the assembler's ``-arch``.
        capability: (major, minor).
        ptx: the first version of PTX that has it and its matrix instructions, times ten.
        accelerated: with instructions that no other capability has, and for this one alone.
    """

    name: str
    capability: tuple[int, int]
    ptx: int
    accelerated: bool = False


#: Versions of PTX: the release notes in NVIDIA's manual of the PTX instruction set.
_TABLE = (
    Arch("sm_70", (7, 0), 64),
    Arch("sm_72", (7, 2), 64),
    Arch("sm_75", (7, 5), 65),
    Arch("sm_80", (8, 0), 70),
    Arch("sm_86", (8, 6), 71),
    Arch("sm_87", (8, 7), 74),
    Arch("sm_89", (8, 9), 78),
    Arch("sm_90", (9, 0), 78),
    Arch("sm_90a", (9, 0), 80, True),
    Arch("sm_100", (10, 0), 86),
    Arch("sm_100a", (10, 0), 86, True),
    Arch("sm_103", (10, 3), 88),
    Arch("sm_103a", (10, 3), 88, True),
    Arch("sm_120", (12, 0), 87),
    Arch("sm_120a", (12, 0), 87, True),
    Arch("sm_121", (12, 1), 88),
    Arch("sm_121a", (12, 1), 88, True),
)

ARCHS: dict[str, Arch] = {arch.name: arch for arch in _TABLE}

#: Chips by product name; the words say nothing about the chip.
PRODUCTS = ProductNames(
    CHIPS, ALIASES, ("nvidia", "geforce", "tesla", "quadro", "jetson", "graphics")
)


def lookup(name: str) -> tuple[Arch, Chip]:
    """The architecture and the chip that ``name`` stands for.

    Args:
        name: an architecture (``sm_90a``: a chip that represents it comes along), or a chip
            (``h200``, ``RTX 4090``, ``NVIDIA A100-SXM4-80GB``: its best architecture comes along).

    Raises:
        TargetError: unknown; the message names the nearest ones.
    """
    arch = ARCHS.get(name.lower())
    if arch is not None:
        return arch, representative(arch.capability)
    chip = PRODUCTS.get(name)
    if chip is not None:
        return best_arch(chip.capability), chip
    listed = f"{', '.join(ARCHS)}, and chips such as h200, a100, l4, rtx-4090"
    raise unknown_arch("nvgpu", name, [*ARCHS, *PRODUCTS], listed)


def best_arch(number: tuple[int, int]) -> Arch:
    """The architecture that uses most of a chip of this compute capability.

    A capability that is not in the table gets the newest one before it; its code runs there too.
    """
    exact = [arch for arch in _TABLE if arch.capability == number]
    if number[0] in (9, 10) and exact:
        return exact[-1]
    if exact:
        return exact[0]
    older = [arch for arch in _TABLE if arch.capability < number and not arch.accelerated]
    if not older:
        raise TargetError(
            "target 'nvgpu' generates code for compute capability 7.0 and later; the device has "
            f"{number[0]}.{number[1]}"
        )
    return older[-1]


def capability_of(arch: Arch) -> Capability:
    """The multiprocessor that an architecture stands for."""
    return CAPABILITIES[arch.capability]
