"""Values of ``arch``: LLVM's names of architectures, and names of chips."""

from __future__ import annotations

from polyblocks.targets.target_choice import ProductNames, unknown_arch
from polyblocks_amdgpu.chips import ALIASES, CHIPS, Chip, representative
from polyblocks_amdgpu.generations import ARCHS

#: Chips by product name; the words say nothing about the chip.
PRODUCTS = ProductNames(CHIPS, ALIASES, ("amd", "radeon", "pro", "graphics"))


def lookup(name: str) -> tuple[str, Chip]:
    """The architecture and the chip that ``name`` stands for.

    Args:
        name: an architecture (``gfx1100``: a chip that represents it comes along), or a chip
            (``rx-7900-xtx``, ``Radeon RX 9070 XT``: its architecture comes along).

    Raises:
        TargetError: unknown; the message names the nearest ones.
    """
    if name.lower() in ARCHS:
        return name.lower(), representative(name.lower())
    chip = PRODUCTS.get(name)
    if chip is not None:
        return chip.arch, chip
    listed = f"{', '.join(ARCHS)}, and chips such as rx-7900-xtx, rx-9070-xt"
    raise unknown_arch("amdgpu", name, [*ARCHS, *PRODUCTS], listed)
