"""Tables that machine code reads: structures of fields of 8 bytes."""

from __future__ import annotations

import ctypes


def words(name: str, fields: tuple[str, ...]) -> type[ctypes.Structure]:
    """A structure of fields of 8 bytes."""
    members = {"_fields_": [(each, ctypes.c_void_p) for each in fields]}
    return type(name, (ctypes.Structure,), members)
