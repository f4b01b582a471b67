"""Large constants as an object file of their own, so that LLVM never sees their elements.

Source: System V ABI, "Object Files", chapters on the header, sections and the symbol table.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyblocks_cpu.objects.elf import header_of

#: Bytes from which on a constant is data. Of smaller ones LLVM may know what is loaded, and each
#: costs it next to nothing: 4 KiB of numbers are 2 ms as text.
LARGE_BYTES = 4096
#: Bytes that addresses in the object are multiples of: a cache line.
_ALIGNMENT = 64

_HEADER_BYTES, _SECTION_BYTES, _SYMBOL_BYTES = 64, 64, 24
_PROGBITS, _SYMTAB, _STRTAB, _ALLOC = 1, 2, 3, 2
_GLOBAL_OBJECT, _HIDDEN = (1 << 4) | 1, 2


def take_out(module: Any) -> dict[str, Any]:
    """Leave of a module's large constants only that they are defined elsewhere.

    Args:
        module: in the LLVM dialect; changed in place.

    Returns:
        By symbol the elements of each, a contiguous array.
    """
    from polyblocks.mlir import ir

    taken: dict[str, Any] = {}
    with module.context:
        for op in module.body.operations:
            attributes = op.operation.attributes
            if op.operation.name != "llvm.mlir.global" or "value" not in attributes:
                continue
            elements = _elements(attributes["value"])
            if elements is None or "constant" not in attributes:
                continue
            taken[ir.StringAttr(attributes["sym_name"]).value] = elements
            del attributes["value"]
            attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
    return taken


def _elements(value: Any) -> Any | None:
    """The elements of a large constant; None for others, and for what the bindings cannot read."""
    from polyblocks.mlir import ir

    # Neither the bindings' classes for complex numbers nor for splats show their elements.
    if not isinstance(value, ir.DenseFPElementsAttr | ir.DenseIntElementsAttr) or value.is_splat:
        return None
    try:
        elements = np.ascontiguousarray(np.array(value))
    except (ValueError, TypeError):
        return None
    # One byte of memory is eight booleans to the bindings.
    if elements.dtype == bool or elements.nbytes < LARGE_BYTES:
        return None
    return elements


def data_object(constants: Mapping[str, Any], code: bytes) -> bytes:
    """A relocatable ELF64 object that defines constants.

    Args:
        constants: by symbol the elements, a contiguous array.
        code: the object that uses them; the new one is for the same machine.

    Returns:
        An object with one read-only section, and one hidden symbol for each constant.
    """
    names, data, symbols = bytearray(1), [], [bytes(_SYMBOL_BYTES)]
    end = 0
    for name, elements in constants.items():
        gap = -end % _ALIGNMENT
        begin = end + gap
        symbols.append(
            struct.pack("<IBBHQQ", len(names), _GLOBAL_OBJECT, _HIDDEN, 1, begin, elements.nbytes)
        )
        names += name.encode() + b"\0"
        data += [bytes(gap), elements.data]
        end = begin + elements.nbytes
    sections = bytearray(1)
    offsets = []
    for name in (".rodata", ".symtab", ".strtab", ".shstrtab", ".note.GNU-stack"):
        offsets.append(len(sections))
        sections += name.encode() + b"\0"
    table = b"".join(symbols)
    at_table = _HEADER_BYTES + end + -end % _ALIGNMENT
    at_names = at_table + len(table)
    at_sections = at_names + len(names)
    at_headers = at_sections + len(sections) + -(at_sections + len(sections)) % 8
    headers = [
        bytes(_SECTION_BYTES),
        _section(offsets[0], _PROGBITS, _ALLOC, _HEADER_BYTES, end, alignment=_ALIGNMENT),
        # Symbols come from section 3; the first one that is not local is number 1.
        _section(offsets[1], _SYMTAB, 0, at_table, len(table), 3, 1, 8, _SYMBOL_BYTES),
        _section(offsets[2], _STRTAB, 0, at_names, len(names)),
        _section(offsets[3], _STRTAB, 0, at_sections, len(sections)),
        # Without it a linker makes the stack executable.
        _section(offsets[4], _PROGBITS, 0, at_headers, 0),
    ]
    identity, machine, flags = header_of(code)
    header = identity + struct.pack(
        "<HHIQQQIHHHHHH",
        *(1, machine, 1, 0, 0, at_headers, flags, _HEADER_BYTES, 0, 0),
        *(_SECTION_BYTES, len(headers), 4),
    )
    padding = bytes(at_table - _HEADER_BYTES - end)
    tail = bytes(at_headers - at_sections - len(sections))
    return b"".join((header, *data, padding, table, bytes(names), bytes(sections), tail, *headers))


def _section(
    name: int,
    kind: int,
    flags: int,
    offset: int,
    size: int,
    link: int = 0,
    info: int = 0,
    alignment: int = 1,
    entry: int = 0,
) -> bytes:
    return struct.pack(
        "<IIQQQQIIQQ", name, kind, flags, 0, offset, size, link, info, alignment, entry
    )
