"""Reads what a relocatable ELF64 object is for, what it calls, and what it defines.

Source: System V ABI, "Object Files", chapters on sections and the symbol table.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SHT_SYMTAB = 2
_STT_OBJECT, _STT_FUNC = 1, 2
_STB_LOCAL = 0
_GLOBAL_OFFSET_TABLE = "_GLOBAL_OFFSET_TABLE_"
#: Value of e_machine -> name as in an LLVM triple.
_MACHINES = {62: "x86_64", 183: "aarch64"}


def machine_of(data: bytes) -> str | None:
    """The architecture family of an ELF64 object; None if it is none, or of another one."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    return _MACHINES.get(int.from_bytes(data[0x12:0x14], "little"))


def header_of(data: bytes) -> tuple[bytes, int, int]:
    """What objects of one machine share: e_ident, e_machine and e_flags of an ELF64 object."""
    (machine,) = struct.unpack_from("<H", data, 0x12)
    (flags,) = struct.unpack_from("<I", data, 0x30)
    return data[:16], machine, flags


@dataclass(frozen=True)
class ObjectSymbols:
    """Symbols of one object.

    Attributes:
        undefined: names that another file must define, sorted.
        data: names of defined data that other files may use.
        functions: name of a defined function -> bytes of its code.
        offsets: name of a defined function -> where it begins in its section; LLVM puts all of
            them into one.
    """

    undefined: tuple[str, ...]
    data: tuple[str, ...]
    functions: dict[str, int]
    offsets: dict[str, int]


def read_symbols(data: bytes) -> ObjectSymbols | None:
    """The symbols of a little-endian ELF64 object; None for another format.

    Raises:
        ValueError: it is ELF64 and truncated.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        (section_offset,) = struct.unpack_from("<Q", data, 0x28)
        entry_size, count = struct.unpack_from("<HH", data, 0x3A)
        undefined: list[str] = []
        defined: list[str] = []
        functions: dict[str, int] = {}
        offsets: dict[str, int] = {}
        for index in range(count):
            at = section_offset + index * entry_size
            kind, _, _, offset, size, link, _, _, symbol_size = struct.unpack_from(
                "<IQQQQIIQQ", data, at + 4
            )
            if kind != _SHT_SYMTAB:
                continue
            strings = section_offset + link * entry_size
            (string_offset,) = struct.unpack_from("<Q", data, strings + 0x18)
            for symbol in range(offset + symbol_size, offset + size, symbol_size):
                name_at, info, _, section, value, length = struct.unpack_from(
                    "<IBBHQQ", data, symbol
                )
                begin = string_offset + name_at
                name = data[begin : data.index(b"\0", begin)].decode()
                if section == 0 and name and name != _GLOBAL_OFFSET_TABLE:
                    undefined.append(name)
                elif info & 0xF == _STT_OBJECT and info >> 4 != _STB_LOCAL:
                    defined.append(name)
                elif info & 0xF == _STT_FUNC:
                    functions[name], offsets[name] = length, value
    except (struct.error, ValueError) as error:
        raise ValueError(f"truncated ELF object: {error}") from error
    return ObjectSymbols(tuple(sorted(undefined)), tuple(defined), functions, offsets)
