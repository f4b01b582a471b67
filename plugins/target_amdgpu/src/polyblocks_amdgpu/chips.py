"""Chips: how many work-group processors at which clock, on which caches and memory.

Sources: the specifications of AMD's products; clocks are the boost clocks from which its peak rates
follow. The bandwidth of the last-level cache ("Infinity Cache") is what AMD calls the effective
bandwidth less that of the memory, where it says one, else unknown (0). Bytes per cycle of L2: 64
for each of its slices, as in the RDNA white paper.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Chip:
    """One product.

    Attributes:
        name: the name users write, without spaces; see :func:`polyblocks_amdgpu.archs.lookup`.
        arch: its architecture.
        units: compute units, two in each work-group processor.
        ghz: boost clock.
        l2: bytes of the L2 cache.
        l2_slices: parts of L2 that are read at once.
        l3: bytes of the last-level cache; 0 without one.
        l3_bandwidth: bytes per second that it gives; 0 if unknown.
        bandwidth: bytes per second of the memory.
    """

    name: str
    arch: str
    units: int
    ghz: float
    l2: int
    l2_slices: int
    l3: int
    l3_bandwidth: float
    bandwidth: float

    @property
    def multiprocessors(self) -> int:
        """Work-group processors."""
        return self.units // 2


def _chip(
    name: str,
    arch: str,
    units: int,
    ghz: float,
    l2: tuple[int, int],
    gigabytes_per_second: float,
    l3: tuple[int, float] = (0, 0.0),
) -> Chip:
    """``l2`` in MiB and slices, ``l3`` in MiB and GB/s."""
    return Chip(
        name,
        arch,
        units,
        ghz,
        l2[0] * MIB,
        l2[1],
        l3[0] * MIB,
        l3[1] * 1e9,
        gigabytes_per_second * 1e9,
    )


#: The first of each architecture represents it when only the architecture is named.
_TABLE = (
    _chip("rx-7900-xtx", "gfx1100", 96, 2.5, (6, 24), 960, (96, 2540)),
    _chip("rx-7900-xt", "gfx1100", 84, 2.4, (6, 24), 800, (80, 2100)),
    _chip("rx-7900-gre", "gfx1100", 80, 2.245, (6, 24), 576, (64, 0)),
    _chip("w7900", "gfx1100", 96, 2.495, (6, 24), 864, (96, 0)),
    _chip("w7800", "gfx1100", 70, 2.525, (6, 24), 576, (64, 0)),
    _chip("rx-7800-xt", "gfx1101", 60, 2.43, (4, 16), 624, (64, 2084)),
    _chip("rx-7700-xt", "gfx1101", 54, 2.544, (4, 16), 432, (48, 1563)),
    _chip("w7700", "gfx1101", 48, 2.3, (4, 16), 576, (64, 0)),
    _chip("rx-7600", "gfx1102", 32, 2.655, (2, 16), 288, (32, 0)),
    _chip("rx-7600-xt", "gfx1102", 32, 2.755, (2, 16), 288, (32, 0)),
    _chip("w7600", "gfx1102", 32, 2.44, (2, 16), 288, (32, 0)),
    _chip("w7500", "gfx1102", 28, 1.7, (2, 16), 172, (32, 0)),
    _chip("780m", "gfx1103", 12, 2.7, (2, 8), 89.6),
    _chip("760m", "gfx1103", 8, 2.6, (2, 8), 89.6),
    _chip("8060s", "gfx1151", 40, 2.9, (2, 16), 256, (32, 0)),
    _chip("8050s", "gfx1151", 32, 2.8, (2, 16), 256, (32, 0)),
    _chip("rx-9060-xt", "gfx1200", 32, 3.13, (4, 16), 320, (32, 0)),
    _chip("rx-9060", "gfx1200", 28, 2.99, (4, 16), 288, (32, 0)),
    _chip("rx-9070-xt", "gfx1201", 64, 2.97, (8, 32), 640, (64, 0)),
    _chip("rx-9070", "gfx1201", 56, 2.52, (8, 32), 640, (64, 0)),
    _chip("rx-9070-gre", "gfx1201", 48, 2.79, (8, 32), 432, (48, 0)),
    _chip("r9700", "gfx1201", 64, 2.92, (8, 32), 640, (64, 0)),
)

CHIPS: dict[str, Chip] = {chip.name: chip for chip in _TABLE}

#: Other names of the same: code names of the chips, and of the processors they are part of.
ALIASES = {
    "navi31": "rx-7900-xtx",
    "navi32": "rx-7800-xt",
    "navi33": "rx-7600",
    "phoenix": "780m",
    "strix-halo": "8060s",
    "navi44": "rx-9060-xt",
    "navi48": "rx-9070-xt",
    "ai-pro-r9700": "r9700",
}


def representative(arch: str) -> Chip:
    """The chip whose numbers stand for an architecture."""
    return next(chip for chip in _TABLE if chip.arch == arch)


def nearest(arch: str, units: int) -> Chip:
    """The chip of an architecture whose compute units are nearest in number."""
    return min((c for c in _TABLE if c.arch == arch), key=lambda chip: abs(chip.units - units))
