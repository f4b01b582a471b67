"""Metadata of kernels in a code object (LLVM's "User Guide for AMDGPU Backend", Code Object)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.gpu.manifest import Resources
from polyblocks_amdgpu.msgpack import unpack

_NOTE, _SYMBOLS = 7, 11
_METADATA = 32  # NT_AMDGPU_METADATA
_FUNCTION = 2  # STT_FUNC


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def metadata(data: bytes) -> dict[str, Any]:
    """The metadata of an ELF file: ``amdhsa.kernels``, ``amdhsa.target``, ``amdhsa.version``.

    Raises:
        ValueError: it is no ELF file of 64 bits, or has no such note.
    """
    for section in _sections(data):
        if section.kind == _NOTE:
            for kind, content in _notes(data[section.offset : section.offset + section.size]):
                if kind == _METADATA:
                    found: dict[str, Any] = unpack(content)
                    return found
    raise ValueError("the code object has no metadata note")


def resources(data: bytes) -> dict[str, Resources]:
    """Resources by kernel.

    Raises:
        ValueError: as :func:`metadata`.
    """
    sizes = _function_sizes(data)
    return {
        row[".name"]: Resources(
            registers=row[".vgpr_count"],
            scalar_registers=row[".sgpr_count"],
            # Spilled scalars go to lanes of a vector register, or to memory with these.
            spill_bytes=4 * (row[".vgpr_spill_count"] + row[".sgpr_spill_count"]),
            stack_bytes=row[".private_segment_fixed_size"],
            shared_bytes=row[".group_segment_fixed_size"],
            code_bytes=sizes.get(row[".name"]),
        )
        for row in metadata(data)["amdhsa.kernels"]
    }


def _sections(data: bytes) -> list[_Section]:
    if data[:5] != b"\x7fELF\x02":
        raise ValueError("the code object is no ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    found = []
    for i in range(count):
        fields = struct.unpack_from("<IIQQQQIIQQ", data, table + i * size)
        found.append(_Section(fields[1], fields[4], fields[5], fields[6]))
    return found


def _notes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(data):
        name, size, kind = struct.unpack_from("<III", data, at)
        at += 12 + -(-name // 4) * 4
        yield kind, data[at : at + size]
        at += -(-size // 4) * 4


def _function_sizes(data: bytes) -> dict[str, int]:
    sections = _sections(data)
    found: dict[str, int] = {}
    for table in sections:
        if table.kind != _SYMBOLS:
            continue
        names = sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, _, _, size = struct.unpack_from("<IBBHQQ", data, at)
            if info & 0xF == _FUNCTION:
                end = data.index(b"\0", names + name)
                found[data[names + name : end].decode()] = size
    return found
