"""Pieces of C that the sources of all libraries are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable

from polyblocks.c_library.header import STATUSES, Status
from polyblocks.c_library.interface import Interface


def statuses_text(statuses: Iterable[Status]) -> str:
    """``statuses.h``, which ``checks.h`` includes.

    Args:
        statuses: what the target adds to :data:`polyblocks.c_library.header.STATUSES`.
    """
    rows = ", ".join(f"STATUS_{key} = {value}" for key, value, _ in (*STATUSES, *statuses))
    return f"enum {{ {rows} }};\n"


def expected_rows(interface: Interface) -> str:
    """The program's arrays as initializers of ``struct expected`` in ``checks.h``."""
    return ",\n    ".join(
        f"{{{c_string(array.name)}, {c_string(array.text)}, {array.count}, "
        f"sizeof({array.type}), {array.alignment}, {int(array.is_output)}}}"
        for array in interface.arrays
    )


def arrays_and_counts(interface: Interface, *, bound: bool = False) -> str:
    """Two C arrays of the numbered parameters: ``arrays`` and ``counts``.

    Args:
        interface: of the program.
        bound: the weights are no parameters; bound addresses fill their places.
    """
    absent = interface.weights if bound else ()
    numbers = range(len(interface.arrays))
    given = ", ".join("NULL" if k in absent else f"(void *)a{k}" for k in numbers)
    counts = ", ".join("0" if k in absent else f"n{k}" for k in numbers)
    const = "" if bound else "const "
    return f"  void *{const}arrays[] = {{{given}}};\n  const size_t counts[] = {{{counts}}};\n"


def weight_names(interface: Interface) -> str:
    """The function that names weights, behind what makes it visible."""
    names = ", ".join(map(c_string, interface.weight_names))
    return f"""\
const char *{interface.name}_weight_name(int32_t number) {{
  static const char *const names[] = {{{names}}};
  return number >= 0 && number < {len(interface.weight_names)} ? names[number] : NULL;
}}
"""


def embedded(symbol: str, file: str) -> str:
    """A file's contents as ``const char symbol[]``, followed by a null byte."""
    return (
        f'__asm__(".section .rodata\\n.balign 64\\n.globl {symbol}\\n.hidden {symbol}\\n"\n'
        f'        "{symbol}:\\n.incbin \\"{file}\\"\\n.byte 0\\n.previous\\n");\n'
        f'extern const char {symbol}[] __attribute__((visibility("hidden")));'
    )


def c_string(text: str) -> str:
    """A literal of C."""
    # JSON's escapes are C's for what is ASCII; trigraphs are no more.
    return json.dumps(text.encode("ascii", "replace").decode())
