"""Machine code that refers to nothing outside of itself: it is put into memory as it is.

That takes no linker, so a process that only runs programs need not import LLVM for it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

from polyblocks.runtime import pages

_SYMBOLS, _RELOCATIONS, _CONTENTS = 2, (4, 9), (1, 8)  # of ``sh_type``
_LOADED = 0x2  # SHF_ALLOC
_EXECUTABLE = 0x4  # SHF_EXECINSTR


class FlatCode(NamedTuple):
    """Attributes:
    code: the bytes.
    functions: name -> offset.
    """

    code: bytes
    functions: dict[str, int]


class _Section(NamedTuple):
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


def flat_code(data: bytes) -> FlatCode:
    """The code of an ELF object.

    Raises:
        ValueError: it is no 64-bit little-endian ELF object, or its code needs relocations, data
            or other code.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("it is no 64-bit little-endian ELF object")
    sections = list(_sections(data))
    code = [k for k, s in enumerate(sections) if s.flags & _EXECUTABLE and s.size]
    if len(code) != 1:
        raise ValueError(f"it has {len(code)} sections with code; expected one")
    for number, section in enumerate(sections):
        if section.kind in _RELOCATIONS and section.info == code[0]:
            raise ValueError("its code needs relocations")
        loaded = section.flags & _LOADED and section.kind in _CONTENTS and section.size
        if loaded and number != code[0]:
            raise ValueError("it has data")
    place = sections[code[0]]
    functions = {}
    for section in sections:
        if section.kind != _SYMBOLS:
            continue
        names = sections[section.link]
        for at in range(section.offset, section.offset + section.size, 24):
            name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", data, at)
            if index == code[0] and name:
                begin = names.offset + name
                functions[data[begin : data.index(b"\0", begin)].decode()] = value
    return FlatCode(data[place.offset : place.offset + place.size], functions)


def _sections(data: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for number in range(count):
        row = struct.unpack_from("<IIQQQQII", data, table + number * size)
        yield _Section(row[1], row[2], row[4], row[5], row[6], row[7])


def place(flat: FlatCode) -> dict[str, int]:
    """Put code into memory, where it stays until the process ends.

    Functions that Python objects refer to may be called until the very end of the interpreter.

    Returns:
        name -> address.

    Raises:
        OSError: the system forbids that generated code is executed.
    """
    address, base, length = pages.map_pages(len(flat.code))
    ctypes.memmove(address, flat.code, len(flat.code))
    libc = ctypes.CDLL(None, use_errno=True)
    access = mmap.PROT_READ | mmap.PROT_EXEC
    if libc.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(length), ctypes.c_int(access)):
        pages.unmap(base, length)
        raise OSError(ctypes.get_errno(), "the system forbids that generated code is executed")
    return {name: address + offset for name, offset in flat.functions.items()}
