"""Reads relocatable ELF64 objects: sections, symbols, relocations.

Source: System V ABI, "Object Files", chapters on sections, the symbol table and relocation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

#: Value of e_machine -> name as in an LLVM triple.
_MACHINES = {62: "x86_64", 183: "aarch64"}

_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 2, 4, 8
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
_STB_LOCAL = 0
_STT_OBJECT, _STT_FUNC, _STT_GNU_IFUNC = 1, 2, 10
_SHN_UNDEF, _SHN_LORESERVE = 0, 0xFF00
_RELA = struct.Struct("<QQq")
_GLOBAL_OFFSET_TABLE = "_GLOBAL_OFFSET_TABLE_"


def machine_of(data: bytes) -> str | None:
    """The architecture family of an ELF64 object; None for other files and families."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    return _MACHINES.get(int.from_bytes(data[0x12:0x14], "little"))


def header_of(data: bytes) -> tuple[bytes, int, int]:
    """Fields that objects of one machine share: e_ident, e_machine and e_flags (ELF64)."""
    (machine,) = struct.unpack_from("<H", data, 0x12)
    (flags,) = struct.unpack_from("<I", data, 0x30)
    return data[:16], machine, flags


@dataclass(frozen=True)
class Section:
    """A row of the section headers; sizes and offsets in bytes.

    Attributes:
        name: empty in an object without names of sections.
        index: its number.
        kind: ``sh_type``.
        flags: ``SHF_…``.
        offset, size: where its contents are in the file.
        link, info: ``sh_link`` and ``sh_info``.
        alignment: at least 1.
        entry_size: of tables.
    """

    name: str
    index: int
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def is_loaded(self) -> bool:
        """Whether a process has it in memory."""
        return bool(self.flags & SHF_ALLOC) and self.size > 0


@dataclass(frozen=True)
class Symbol:
    """A row of the symbol table.

    Attributes:
        name: empty for that of a section.
        section: number of the section that defines it; 0: another object does.
        value: where it begins in its section.
        size: bytes.
        is_function: whether it is code.
        is_data: whether it is data.
        is_indirect: whether it is code that returns the address of the function meant.
        is_local: whether other objects do not see it.
        place: where its row begins in the file.
    """

    name: str
    section: int
    value: int
    size: int
    is_function: bool
    is_data: bool
    is_indirect: bool
    is_local: bool
    place: int

    @property
    def is_undefined(self) -> bool:
        """Whether another object must define it."""
        return self.section == _SHN_UNDEF and bool(self.name) and self.name != _GLOBAL_OFFSET_TABLE

    @property
    def is_in_section(self) -> bool:
        """Whether a section of this object defines it."""
        return _SHN_UNDEF < self.section < _SHN_LORESERVE


class ElfObject:
    """A little-endian ELF64 object.

    Attributes:
        data: the file.
        sections: all of them, by number.

    Raises:
        ValueError: it is truncated, also from the properties.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        try:
            (at,) = struct.unpack_from("<Q", data, 0x28)
            size, count, names = struct.unpack_from("<HHH", data, 0x3A)
            rows = [struct.unpack_from("<IIQQQQIIQQ", data, at + k * size) for k in range(count)]
            strings = rows[names][4] if names else None
            self.sections = [
                Section(
                    "" if strings is None else self._string(strings + name),
                    *(index, kind, flags, offset, size, link, info, max(alignment, 1), entry_size),
                )
                for index, (name, kind, flags, _, offset, size, link, info, alignment, entry_size)
                in enumerate(rows)
            ]  # fmt: skip
        except (struct.error, ValueError, IndexError) as error:
            raise ValueError(f"truncated ELF object: {error}") from error

    def _string(self, begin: int) -> str:
        return self.data[begin : self.data.index(b"\0", begin)].decode()

    @cached_property
    def symbols(self) -> list[Symbol]:
        """All symbols, by number."""
        for section in self.sections:
            if section.kind == _SHT_SYMTAB:
                try:
                    return list(self._symbols(section))
                except (struct.error, ValueError, IndexError) as error:
                    raise ValueError(f"truncated ELF object: {error}") from error
        return []

    def _symbols(self, table: Section) -> Iterator[Symbol]:
        strings = self.sections[table.link].offset
        for place in range(table.offset, table.offset + table.size, table.entry_size):
            name_at, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, place)
            kind, binding = info & 0xF, info >> 4
            yield Symbol(
                *(self._string(strings + name_at), section, value, size),
                *(kind == _STT_FUNC, kind == _STT_OBJECT, kind == _STT_GNU_IFUNC),
                *(binding == _STB_LOCAL, place),
            )

    @property
    def strings(self) -> Section:
        """The section with the names of the symbols."""
        table = next(section for section in self.sections if section.kind == _SHT_SYMTAB)
        return self.sections[table.link]

    def contents(self, section: Section) -> bytes:
        """The bytes of a section; zeros if the file has none.

        Raises:
            ValueError: the file ends before.
        """
        if section.kind == _SHT_NOBITS:
            return bytes(section.size)
        found = self.data[section.offset : section.offset + section.size]
        if len(found) != section.size:
            raise ValueError("truncated ELF object: a section ends behind the file")
        return found

    def relocations(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Section number, offset, type, symbol number and addend of each relocation."""
        for section in self.sections:
            if section.kind != _SHT_RELA:
                continue
            rows = self.contents(section)
            if len(rows) % _RELA.size:
                raise ValueError("truncated ELF object: a part of a relocation")
            for offset, info, addend in _RELA.iter_unpack(rows):
                yield section.info, offset, info & 0xFFFFFFFF, info >> 32, addend


@dataclass(frozen=True)
class ObjectSymbols:
    """Symbols of one object.

    Attributes:
        undefined: names that another file must define, sorted.
        data: names of defined data that other files may use.
        functions: name of a defined function -> bytes of its code.
    """

    undefined: tuple[str, ...]
    data: tuple[str, ...]
    functions: dict[str, int]


def read_symbols(data: bytes) -> ObjectSymbols | None:
    """The symbols of a little-endian ELF64 object; None for another format.

    Raises:
        ValueError: it is ELF64 and truncated.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    symbols = ElfObject(data).symbols
    return ObjectSymbols(
        tuple(sorted(symbol.name for symbol in symbols if symbol.is_undefined)),
        tuple(s.name for s in symbols if s.is_data and s.is_in_section and not s.is_local),
        {s.name: s.size for s in symbols if s.is_function and s.is_in_section},
    )
