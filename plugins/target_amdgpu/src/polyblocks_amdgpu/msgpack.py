"""Reads MessagePack, the form of a code object's metadata (msgpack.org, specification of 2017)."""

from __future__ import annotations

import struct
from typing import Any

_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
#: How many bytes the length has that follows.
_BINARY = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(data: bytes) -> Any:
    """The one value that ``data`` begins with.

    Raises:
        ValueError: it is cut off, or holds an extension type, which metadata do not use.
    """
    try:
        return _Reader(data).value()
    except (struct.error, IndexError):
        raise ValueError("MessagePack data that are cut off") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise IndexError(count)
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def value(self) -> Any:
        """The next value."""
        tag = self._take(1)[0]
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self._map(tag & 0x0F)
        if tag < 0xA0:
            return self._array(tag & 0x0F)
        if tag < 0xC0:
            return self._take(tag & 0x1F).decode()
        if tag >= 0xE0:
            return tag - 0x100
        if tag in _PLAIN:
            return _PLAIN[tag]
        if tag in _NUMBERS:
            return self._number(_NUMBERS[tag])
        if tag in _STRINGS:
            return self._take(self._number(_STRINGS[tag])).decode()
        if tag in _BINARY:
            return self._take(self._number(_BINARY[tag]))
        if tag in _ARRAYS:
            return self._array(self._number(_ARRAYS[tag]))
        if tag in _MAPS:
            return self._map(self._number(_MAPS[tag]))
        raise ValueError(f"MessagePack data with a value of type 0x{tag:02x}, which has no meaning")

    def _array(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def _map(self, count: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(count)}
