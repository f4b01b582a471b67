"""Semantics of relocations, by family of chips.

Sources: System V ABI, AMD64 supplement, table 4.9; ELF for the Arm 64-bit architecture (IHI 0056),
section 5.7. Objects are position-independent and of the small code model, so that a few are enough.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from polyblocks_cpu.archs import ARM, X86

#: The value of the symbol: its address; code that jumps there, if it is far; or a word of memory
#: that holds its address.
SYMBOL, JUMP, WORD = "symbol", "jump", "word"

#: ``patch(memory, at, address, place)``: writes into ``memory[at:]``, which lies at ``place``, what
#: refers to ``address``.
Patch = Callable[[bytearray, int, int, int], None]


@dataclass(frozen=True)
class Relocation:
    """One type of relocation.

    Attributes:
        to: what stands for the symbol.
        patch: writes it.
        size: bytes that it writes into.
    """

    to: str
    patch: Patch
    size: int = 4


def _absolute64(memory: bytearray, at: int, address: int, place: int) -> None:
    del place
    struct.pack_into("<Q", memory, at, address % 2**64)


def _relative(format_: str) -> Patch:
    def patch(memory: bytearray, at: int, address: int, place: int) -> None:
        try:
            struct.pack_into(format_, memory, at, address - place)
        except struct.error:
            raise _too_far(address - place) from None

    return patch


def _too_far(distance: int) -> ValueError:
    return ValueError(f"a reference over {distance} bytes is too far for its instruction")


def _or_into(memory: bytearray, at: int, bits: int) -> None:
    (instruction,) = struct.unpack_from("<I", memory, at)
    struct.pack_into("<I", memory, at, instruction | bits)


def _branch26(memory: bytearray, at: int, address: int, place: int) -> None:
    distance = address - place
    if not -(2**27) <= distance < 2**27:
        raise _too_far(distance)
    _or_into(memory, at, (distance >> 2) & 0x3FFFFFF)


def _page21(memory: bytearray, at: int, address: int, place: int) -> None:
    pages = (address >> 12) - (place >> 12)
    if not -(2**20) <= pages < 2**20:
        raise _too_far(address - place)
    _or_into(memory, at, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _low12(shift: int) -> Patch:
    """The offset in its page, in units of ``1 << shift`` bytes."""

    def patch(memory: bytearray, at: int, address: int, place: int) -> None:
        del place
        if address % (1 << shift):
            raise ValueError(f"address {address:#x} is not aligned to {1 << shift} bytes")
        _or_into(memory, at, (address & 0xFFF) >> shift << 10)

    return patch


_R32 = _relative("<i")
_R64 = _relative("<q")

#: Family -> number of the type -> what it asks for.
RELOCATIONS: dict[str, dict[int, Relocation]] = {
    X86: {
        1: Relocation(SYMBOL, _absolute64, 8),  # 64
        2: Relocation(SYMBOL, _R32),  # PC32
        4: Relocation(JUMP, _R32),  # PLT32
        9: Relocation(WORD, _R32),  # GOTPCREL
        24: Relocation(SYMBOL, _R64, 8),  # PC64
        41: Relocation(WORD, _R32),  # GOTPCRELX
        42: Relocation(WORD, _R32),  # REX_GOTPCRELX
    },
    ARM: {
        257: Relocation(SYMBOL, _absolute64, 8),  # ABS64
        260: Relocation(SYMBOL, _R64, 8),  # PREL64
        261: Relocation(SYMBOL, _R32),  # PREL32
        275: Relocation(SYMBOL, _page21),  # ADR_PREL_PG_HI21
        277: Relocation(SYMBOL, _low12(0)),  # ADD_ABS_LO12_NC
        278: Relocation(SYMBOL, _low12(0)),  # LDST8_ABS_LO12_NC
        282: Relocation(JUMP, _branch26),  # JUMP26
        283: Relocation(JUMP, _branch26),  # CALL26
        284: Relocation(SYMBOL, _low12(1)),  # LDST16_ABS_LO12_NC
        285: Relocation(SYMBOL, _low12(2)),  # LDST32_ABS_LO12_NC
        286: Relocation(SYMBOL, _low12(3)),  # LDST64_ABS_LO12_NC
        299: Relocation(SYMBOL, _low12(4)),  # LDST128_ABS_LO12_NC
        311: Relocation(WORD, _page21),  # ADR_GOT_PAGE
        312: Relocation(WORD, _low12(3)),  # LD64_GOT_LO12_NC
    },
}

#: Family -> instructions that jump to the address in the eight bytes behind them.
JUMPS = {
    X86: bytes.fromhex("ff2500000000"),  # jmp *0(%rip)
    ARM: struct.pack("<II", 0x58000050, 0xD61F0200),  # ldr x16, #8; br x16
}
