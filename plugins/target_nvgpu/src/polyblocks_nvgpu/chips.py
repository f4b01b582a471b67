"""Chips: how many multiprocessors at which clock, on which memory.

Sources: NVIDIA's data sheets and the white papers of each generation. Clocks are the maximum boost
clock, from which the published peak rates follow; where the matrix units' published rate was
computed with a lower clock, that one stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Chip:
    """One product.

    Attributes:
        name: the name users write, without spaces; see :func:`polyblocks_nvgpu.archs.lookup`.
        capability: its compute capability.
        multiprocessors: enabled ones.
        ghz: boost clock.
        l2: bytes of the L2 cache.
        bandwidth: bytes per second of the memory.
        matrix_ghz: the clock behind the published rate of the matrix units.
        half_rate: products that add into float32 run at half the rate of those that add into
            float16 or integers (GeForce, and some cards for graphics).
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    ghz: float
    l2: int
    bandwidth: float
    matrix_ghz: float
    half_rate: bool = False


def _chip(
    name: str,
    capability: tuple[int, int],
    multiprocessors: int,
    ghz: float,
    l2: float,
    gigabytes_per_second: float,
    matrix_ghz: float = 0.0,
    half_rate: bool = False,
) -> Chip:
    return Chip(
        name,
        capability,
        multiprocessors,
        ghz,
        int(l2 * MIB),
        gigabytes_per_second * 1e9,
        matrix_ghz or ghz,
        half_rate,
    )


#: The first of each capability represents it when only the architecture is named.
_TABLE = (
    _chip("v100", (7, 0), 80, 1.53, 6, 900),
    _chip("v100s", (7, 0), 80, 1.597, 6, 1134),
    _chip("v100-pcie", (7, 0), 80, 1.38, 6, 900),
    _chip("titan-v", (7, 0), 80, 1.455, 4.5, 653),
    _chip("xavier", (7, 2), 8, 1.377, 0.5, 137),
    _chip("t4", (7, 5), 40, 1.59, 4, 320),
    _chip("rtx-2080-ti", (7, 5), 68, 1.545, 5.5, 616, half_rate=True),
    _chip("rtx-2080", (7, 5), 46, 1.71, 4, 448, half_rate=True),
    _chip("rtx-2070", (7, 5), 36, 1.62, 4, 448, half_rate=True),
    _chip("rtx-2060", (7, 5), 30, 1.68, 3, 336, half_rate=True),
    _chip("a100", (8, 0), 108, 1.41, 40, 1555),
    _chip("a100-sxm4-80gb", (8, 0), 108, 1.41, 40, 2039),
    _chip("a100-pcie-80gb", (8, 0), 108, 1.41, 40, 1935),
    _chip("a30", (8, 0), 56, 1.44, 24, 933),
    _chip("a10", (8, 6), 72, 1.695, 6, 600),
    _chip("a10g", (8, 6), 80, 1.71, 6, 600, half_rate=True),
    _chip("a40", (8, 6), 84, 1.74, 6, 696),
    _chip("a16", (8, 6), 10, 1.755, 2, 200),
    _chip("a2", (8, 6), 10, 1.77, 2, 200),
    _chip("rtx-a6000", (8, 6), 84, 1.8, 6, 768),
    _chip("rtx-a5000", (8, 6), 64, 1.695, 6, 768),
    _chip("rtx-a4000", (8, 6), 48, 1.56, 4, 448),
    _chip("rtx-3090-ti", (8, 6), 84, 1.86, 6, 1008, half_rate=True),
    _chip("rtx-3090", (8, 6), 82, 1.695, 6, 936, half_rate=True),
    _chip("rtx-3080", (8, 6), 68, 1.71, 5, 760, half_rate=True),
    _chip("rtx-3070", (8, 6), 46, 1.725, 4, 448, half_rate=True),
    _chip("rtx-3060", (8, 6), 28, 1.777, 3, 360, half_rate=True),
    _chip("orin", (8, 7), 16, 1.3, 4, 204.8),
    _chip("l4", (8, 9), 58, 2.04, 48, 300),
    _chip("l40s", (8, 9), 142, 2.52, 96, 864, matrix_ghz=2.49),
    _chip("l40", (8, 9), 142, 2.49, 96, 864, half_rate=True),
    _chip("rtx-6000-ada", (8, 9), 142, 2.505, 96, 960),
    _chip("rtx-4090", (8, 9), 128, 2.52, 72, 1008, half_rate=True),
    _chip("rtx-4080", (8, 9), 76, 2.505, 64, 717, half_rate=True),
    _chip("rtx-4070-ti", (8, 9), 60, 2.61, 48, 504, half_rate=True),
    _chip("rtx-4070", (8, 9), 46, 2.475, 36, 504, half_rate=True),
    _chip("rtx-4060-ti", (8, 9), 34, 2.535, 32, 288, half_rate=True),
    _chip("rtx-4060", (8, 9), 24, 2.46, 24, 272, half_rate=True),
    _chip("h100", (9, 0), 132, 1.98, 50, 3352, matrix_ghz=1.83),
    _chip("h100-pcie", (9, 0), 114, 1.755, 50, 2039, matrix_ghz=1.62),
    _chip("h100-nvl", (9, 0), 132, 1.785, 50, 3938, matrix_ghz=1.545),
    _chip("h200", (9, 0), 132, 1.98, 60, 4800, matrix_ghz=1.83),
    _chip("gh200", (9, 0), 132, 1.98, 50, 4023, matrix_ghz=1.83),
    _chip("b200", (10, 0), 148, 1.98, 126, 7700, matrix_ghz=1.86),
    _chip("gb200", (10, 0), 148, 2.112, 126, 8000, matrix_ghz=2.06),
    _chip("b300", (10, 3), 148, 1.98, 126, 8000, matrix_ghz=1.86),
    _chip("gb300", (10, 3), 148, 2.112, 126, 8000, matrix_ghz=2.06),
    _chip("rtx-5090", (12, 0), 170, 2.407, 96, 1792, half_rate=True),
    _chip("rtx-5080", (12, 0), 84, 2.617, 64, 960, half_rate=True),
    _chip("rtx-5070-ti", (12, 0), 70, 2.452, 48, 896, half_rate=True),
    _chip("rtx-5070", (12, 0), 48, 2.512, 48, 672, half_rate=True),
    _chip("rtx-5060-ti", (12, 0), 36, 2.572, 32, 448, half_rate=True),
    _chip("rtx-pro-6000", (12, 0), 188, 2.6, 128, 1792),
    _chip("gb10", (12, 1), 48, 2.525, 24, 273),
)

CHIPS: dict[str, Chip] = {chip.name: chip for chip in _TABLE}

#: Other names of the same.
ALIASES = {
    "v100-sxm2": "v100",
    "v100-sxm2-16gb": "v100",
    "v100-sxm2-32gb": "v100",
    "v100-pcie-16gb": "v100-pcie",
    "v100-pcie-32gb": "v100-pcie",
    "v100s-pcie-32gb": "v100s",
    "a100-sxm4-40gb": "a100",
    "a100-pcie-40gb": "a100",
    "a100-80gb": "a100-sxm4-80gb",
    "a100-80gb-pcie": "a100-pcie-80gb",
    "agx-orin": "orin",
    "agx-xavier": "xavier",
    "h100-sxm": "h100",
    "h100-80gb-hbm3": "h100",
    "gh200-480gb": "gh200",
    "rtx-6000-ada-generation": "rtx-6000-ada",
    "rtx-pro-6000-blackwell-server-edition": "rtx-pro-6000",
    "rtx-pro-6000-blackwell-workstation-edition": "rtx-pro-6000",
    "dgx-spark": "gb10",
}


def representative(capability: tuple[int, int]) -> Chip:
    """The chip whose numbers stand for a compute capability."""
    return next(chip for chip in _TABLE if chip.capability == capability)
