"""Units that multiply tiles in registers of their own (Intel's AMX): what they compute, and take.

A tile has 16 rows of 64 bytes. Cycles and latencies are those of Intel's optimization manual
(248966, chapter on AMX): a product of two full tiles starts every 16 cycles.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from polyblocks.target import TileUnit

#: Rows of a tile, bytes of a row, and how many tiles there are.
ROWS, ROW_BYTES, TILES = 16, 64, 8
#: Columns of a tile of words or sums.
WORDS = ROW_BYTES // 4
#: Cycles from one product to the next, and to its result.
CYCLES, LATENCY = 16, 52
#: LLVM's name of the feature that brings tiles.
TILE_FEATURE = "amx-tile"


@dataclass(frozen=True)
class TileProduct:
    """One instruction: it adds to a tile of sums the products of two tiles.

    Attributes:
        feature: LLVM's name of the feature that brings it.
        operands: dtypes of rows and of columns.
        accumulator: dtype of the sums.
    """

    feature: str
    operands: tuple[str, str]
    accumulator: str


#: By name, as LLVM's intrinsic ``llvm.x86.NAME``.
PRODUCTS = {
    "tdpbf16ps": TileProduct("amx-bf16", ("bfloat16", "bfloat16"), "float32"),
    "tdpbssd": TileProduct("amx-int8", ("int8", "int8"), "int32"),
    "tdpbsud": TileProduct("amx-int8", ("int8", "uint8"), "int32"),
    "tdpbusd": TileProduct("amx-int8", ("uint8", "int8"), "int32"),
    "tdpbuud": TileProduct("amx-int8", ("uint8", "uint8"), "int32"),
}


def tile_units(features: Sequence[str], cycles: float) -> tuple[TileUnit, ...]:
    """The units of a chip with these features of LLVM.

    Args:
        features: their names.
        cycles: of all of the chip's cores, per second.
    """
    if TILE_FEATURE not in features:
        return ()
    found = []
    for name, product in PRODUCTS.items():
        if product.feature not in features:
            continue
        first, second = product.operands
        steps = ROW_BYTES // (2 if first == "bfloat16" else 1)
        found.append(
            TileUnit(
                name,
                (ROWS, WORDS, steps),
                first,
                product.accumulator,
                flops=2.0 * ROWS * WORDS * steps * cycles / CYCLES,
                second="" if first == second else second,
                in_flight=-(-LATENCY // CYCLES),
                registers=TILES,
            )
        )
    return tuple(found)


#: ``arch_prctl``, and what it is asked: that a process may have the state of tiles (Linux 5.16).
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


def permitted() -> bool:
    """Ask the system for the use of tiles in this process, for good; whether it is granted.

    A process that uses them unasked is killed.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)) == 0
