"""Reads a module of optimized LLVM IR into MLIR's LLVM dialect.

The input is LLVM's text; the output is run by the simulator. Instructions become ops one
by one, phis become arguments of blocks, intrinsics ``llvm.call_intrinsic``. Flags and attributes
that only promise something to LLVM are left out.
"""

from __future__ import annotations

import re
from typing import Any

from polyblocks.simt.llvm_ir.functions import function
from polyblocks.simt.llvm_ir.globals import global_array
from polyblocks.simt.llvm_ir.numbers import string_bytes

#: The named metadata with places of the source and with sizes of blocks, and their nodes.
_PLACES = re.compile(r"^!polyblocks\.places = !\{!(\d+)\}", re.MULTILINE)
_BLOCKS = re.compile(r"^!polyblocks\.blocks = !\{(.*)\}", re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = (?:distinct )?(.*)$", re.MULTILINE)
_STRING = re.compile(r'!("[^"]*")')
_LINE = re.compile(r"!DILocation\(line: (\d+)")


def read_module(text: str) -> Any:
    """The module, with a ``gpu.module``.

    Args:
        text: LLVM IR as LLVM prints it. Places of the source and sizes of blocks are taken from the
            named metadata ``polyblocks.places`` and ``polyblocks.blocks`` where it is there.

    Raises:
        UnsupportedError: something that the simulator does not know.
    """
    from polyblocks import mlir

    return mlir.parse(as_mlir(text))


def as_mlir(text: str) -> str:
    """The text of what :func:`read_module` returns."""
    nodes = {match[1]: match[2] for match in _NODE.finditer(text)}
    places = places_of(text)

    def place(number: str) -> str:
        match = _LINE.match(nodes.get(number, ""))
        line = int(match[1]) if match else 0
        return f" {places[line - 1]}" if 0 < line <= len(places) else ""

    blocks = {}
    found = _BLOCKS.search(text)
    for number in re.findall(r"!(\d+)", found[1]) if found else []:
        (name,) = _strings(nodes[number])
        blocks[name] = tuple(map(int, re.findall(r"i32 (\d+)", nodes[number])))
    parts = ["gpu.module @kernels {"]
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("@"):
            parts.append(global_array(line))
        elif line.startswith("define "):
            parts.append(function(line, _body(lines), blocks, place))
    return "\n".join([*parts, "}"])


def places_of(text: str) -> list[str]:
    """The places of the source of lines 1 and on, as MLIR writes them; none without a table."""
    found = _PLACES.search(text)
    if found is None:
        return []
    node = re.search(rf"^!{found[1]} = (.*)$", text, re.MULTILINE)
    assert node is not None
    return _strings(node[1])


def _strings(node: str) -> list[str]:
    return [string_bytes(part).decode() for part in _STRING.findall(node)]


def _body(lines: Any) -> list[str]:
    """The instructions of a function, one to a line, without comments."""
    found: list[str] = []
    open_list = False
    for line in lines:
        if line == "}":
            break
        text = line.strip()
        if not text or text.startswith(";"):
            continue
        if open_list:
            found[-1] += f" {text}"
        else:
            found.append(text)
        open_list = (open_list or text.startswith("switch ")) and not _ends_list(text)
    return found


def _ends_list(text: str) -> bool:
    """Whether the cases of a ``switch`` end on this line."""
    return text.startswith("]") or re.search(r"\]\s*(?:, !|$)", text) is not None
