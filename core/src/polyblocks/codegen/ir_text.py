"""LLVM IR that is written as text: loads of named fields, and words for names and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_LOAD = re.compile(
    r"LOAD (?P<struct>[A-Z_]+)\.(?P<field>\w+) (?P<type>\w+) %(?P<of>\S+) -> (?P<to>\S+)"
)
_WORD = re.compile(r"\b[A-Z][A-Z_0-9]*\b")


def expand(
    text: str, words: Mapping[str, object], structs: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Write out ``LOAD STRUCT.field type %pointer -> %name`` and words in capitals.

    Args:
        text: LLVM IR with these.
        words: a word -> what stands for it; others stay as they are.
        structs: a struct -> its fields, 8 bytes each.

    Raises:
        KeyError, ValueError: no such struct or field.
    """
    known = structs or {}

    def load(match: re.Match[str]) -> str:
        number = known[match["struct"]].index(match["field"])
        at = f"{match['to']}.at"
        return (
            f"{at} = getelementptr i64, ptr %{match['of']}, i64 {number}\n"
            f"  {match['to']} = load {match['type']}, ptr {at}"
        )

    return _WORD.sub(lambda match: str(words.get(match[0], match[0])), _LOAD.sub(load, text))
