"""Carries places of the source through LLVM, as numbers of lines.

LLVM knows files, lines and columns; a place of ours has names and parts besides. So a module gets
one line per place that its ops have, and the LLVM IR a table of the places as named metadata,
which LLVM leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polyblocks import mlir

#: The named metadata: its only operand has the text of each place, line 1 first.
PLACES = "polyblocks.places"
#: The named metadata with the sizes of blocks: name, x, y, z of each kernel that has one.
BLOCKS = "polyblocks.blocks"
_SCOPES = "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}"
#: Numbers of metadata that no module reaches by itself.
_FIRST = 90_000


def number_places(module: Any) -> list[str]:
    """Give every op of a module a line of its place, and functions the scope for it.

    Args:
        module: in form L; changed in place.

    Returns:
        The text of each place as MLIR prints it, line 1 first.
    """
    lines: dict[str, int] = {}
    with module.context:
        for thing, is_op in _with_places(module.operation):
            text = str(thing.location)
            if text == "loc(unknown)":
                continue
            line = mlir.ir.Location.file("", lines.setdefault(text, len(lines) + 1), 1)
            if is_op:
                thing.location = line
            else:
                thing.set_location(line)
    mlir.run_textual(module, _SCOPES)
    return list(lines)


def _with_places(op: Any) -> Iterator[tuple[Any, bool]]:
    """Ops (True) and block arguments (False) with a location inside of an op."""
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                yield argument, False
            for inner in block.operations:
                yield inner.operation, True
                yield from _with_places(inner.operation)


def attach_tables(text: str, places: list[str], blocks: dict[str, tuple[int, ...]]) -> str:
    """LLVM IR with the tables of places and of sizes of blocks.

    Args:
        text: of a module after :func:`number_places`.
        places: what that returned.
        blocks: kernel -> threads along x, y, z.
    """
    nodes = [f"!{{{', '.join(f'!{_quoted(place)}' for place in places)}}}"]
    for name, sizes in blocks.items():
        nodes.append(f"!{{!{_quoted(name)}, {', '.join(f'i32 {size}' for size in sizes)}}}")
    numbers = range(_FIRST, _FIRST + len(nodes))
    tables = [f"!{number} = {node}" for number, node in zip(numbers, nodes, strict=True)]
    kept = ", ".join(f"!{number}" for number in numbers[1:])
    tables += [f"!{PLACES} = !{{!{_FIRST}}}", f"!{BLOCKS} = !{{{kept}}}"]
    return "\n".join([text, *tables, ""])


def _quoted(text: str) -> str:
    """A string of LLVM IR."""
    plain = {c for c in map(chr, range(0x20, 0x7F)) if c not in '"\\'}
    return '"' + "".join(
        c if c in plain else "".join(f"\\{byte:02X}" for byte in c.encode()) for c in text
    ) + '"'  # fmt: skip
