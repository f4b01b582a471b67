"""Renames symbols of an ELF object, so that several objects can have had the same names."""

from __future__ import annotations

import struct
from collections.abc import Callable

from polyblocks_cpu.objects.elf import ElfObject

_STV_HIDDEN = 2


def renamed(data: bytes, rename: Callable[[str], str]) -> bytes:
    """The object with other names of what it shares with other objects.

    Exported definitions become hidden: visible inside of the linked library, and not
    outside.

    Args:
        data: an ELF64 object.
        rename: gives the new name of a symbol, or the old one.

    Raises:
        ValueError: it is truncated.
    """
    file = ElfObject(data)
    made = bytearray(data)
    strings = file.strings
    # Old names stay: they may be the sections' as well, or parts of others.
    names = bytearray(file.contents(strings))
    for symbol in file.symbols:
        if symbol.is_local or not symbol.name:
            continue
        new = rename(symbol.name)
        if new != symbol.name:
            struct.pack_into("<I", made, symbol.place, len(names))
            names += new.encode() + b"\0"
        if symbol.is_in_section:
            made[symbol.place + 5] = _STV_HIDDEN  # st_other
    made += bytes(-len(made) % 8)
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    (size,) = struct.unpack_from("<H", data, 0x3A)
    # sh_offset and sh_size.
    struct.pack_into("<QQ", made, headers + strings.index * size + 0x18, len(made), len(names))
    return bytes(made + names)
