"""Barriers between shuffles, which keep LLVM's code generator from combining those of transposes.

For every shuffle of x86 vectors LLVM tries to combine it with those that its operands come from, up
to eight deep, and again whenever one of them changes. For squares that are transposed in registers
this is a third of the time of code generation, and finds nothing: each step of a transpose is one
instruction already. An empty piece of assembly hides where a value comes from, and is no
instruction; the machine code is the same but for the order of registers.
"""

from __future__ import annotations

import re

#: Shuffles of two whole registers in a function from which on they are hidden: of half a square of
#: sixteen. Below that there is little to look through, and something to find.
MANY = 32
#: Of integers LLVM would take the instructions for floats behind a barrier.
_BITS = {"float": 32, "double": 64}
#: Bits of vectors that are registers of their own, whose lanes do not all reach each other cheaply.
_REGISTERS = (256, 512)

_SHUFFLE = re.compile(
    r"^  (?P<name>%\d+) = (?P<code>shufflevector <(?P<lanes>\d+) x (?P<type>float|double)> "
    r"%\d+, <(?P=lanes) x (?P=type)> %\d+, <(?P=lanes) x i32> .*)$",
    re.MULTILINE,
)


def hide_shuffles(text: str) -> str:
    """LLVM IR with a barrier behind each shuffle of two registers in functions with many.

    Args:
        text: LLVM IR as MLIR prints it, for an x86 chip.
    """
    definitions = text.split("\ndefine ")
    return "\ndefine ".join(map(_with_barriers, definitions))


def _with_barriers(definition: str) -> str:
    found = sum(_is_whole(match) for match in _SHUFFLE.finditer(definition))
    return definition if found < MANY else _SHUFFLE.sub(_barred, definition)


def _is_whole(match: re.Match[str]) -> bool:
    return int(match["lanes"]) * _BITS[match["type"]] in _REGISTERS


def _barred(match: re.Match[str]) -> str:
    if not _is_whole(match):
        return match[0]
    vector, name = f"<{match['lanes']} x {match['type']}>", match["name"]
    hidden = f"%shuffled{name[1:]}"
    return (
        f'  {hidden} = {match["code"]}\n  {name} = call {vector} asm "", "=v,0"({vector} {hidden})'
    )
