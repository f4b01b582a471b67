"""PTX as kernels, blocks and instructions.

Source: the PTX ISA, as far as LLVM's code generator writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from polyblocks.errors import UnsupportedError

_LABEL = re.compile(r"^([$\w]+):\s*(.*)$")
_LOCATION = re.compile(r"^\.loc\s+\d+\s+(\d+)\s+(\d+)")
_REGISTERS = re.compile(r"^\.reg\s+\.(pred|[bsuf]\d+)\s+(%[\w$]+?)(?:<\d+>)?$")
_ARRAY = re.compile(
    r"^(?:\.visible |\.extern |\.weak )*\.(shared|local|global|const)\s+(?:\.align\s+(\d+)\s+)?"
    r"\.([bsuf])(\d+)\s+([\w$.]+)\s*(?:\[(\d*)\])?\s*(?:=\s*\{?(.*?)\}?)?$"
)
_ARRAY_PARAMETER = re.compile(r"^\.param\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[\d+\]$")
_PARAMETER = re.compile(r"^\.param\s+\.([bsuf]\d+)\s+(\.ptr\s+)?.*?([\w$]+)$")
#: An instruction with a register of its own for what nothing reads.
_WITH_REST = re.compile(r"^\{\s*\.reg \.b\d+ (\w+);\s*(.*?;)\s*\}$")
#: An instruction with a predicate of its own that is always true, or never.
_ALWAYS = re.compile(r"^\{ \.reg \.pred \w+; setp\.(?:eq|ne)\.b32 \w+, 0, 0; (.*?;) \}$")
_GUARDED = re.compile(r"^@(!?)(%\w+)\s+(.*)$")
_ENDS = {"ret", "exit", "trap"}


@dataclass(frozen=True)
class Instruction:
    """Attributes:
    name: its parts, ``ld``, ``global``, ``b32``.
    operands: as written.
    line: of the source, or 0.
    guard: predicate that must hold, empty for none.
    unless: the predicate must not hold.
    text: all of it.
    """

    name: tuple[str, ...]
    operands: tuple[str, ...]
    line: int
    guard: str
    unless: bool
    text: str

    def error(self, problem: str) -> UnsupportedError:
        """The error for an instruction that the simulator cannot run."""
        return UnsupportedError(f"the simulator cannot read this PTX, {problem}: {self.text}")


@dataclass(frozen=True)
class Array:
    """A variable: ``space``, ``name``, ``size`` in bytes, ``width`` of an element in bytes, and the
    texts of its first elements."""

    space: str
    name: str
    size: int
    width: int
    values: tuple[str, ...]


@dataclass
class Block:
    """Straight-line code; ``label`` may be one that nothing in the text has."""

    label: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class Entry:
    """A kernel.

    Attributes:
        parameters: name, type (``u64``) and whether it is an address, as that of an array is.
        block: threads along x, y, z, where they are known.
        widths: prefix of registers -> bits; ``%p`` is 1.
        arrays: shared and private ones.
    """

    name: str
    parameters: list[tuple[str, str, bool]] = field(default_factory=list)
    block: tuple[int, ...] = ()
    widths: dict[str, int] = field(default_factory=dict)
    arrays: list[Array] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def parse(text: str) -> tuple[list[Array], list[Entry]]:
    """The variables outside of kernels, and the kernels."""
    arrays: list[Array] = []
    entries: list[Entry] = []
    body = inside = False
    line = 0
    for statement in _statements(text):
        if statement.startswith((".visible .entry", ".entry", ".weak .entry")):
            entries.append(Entry(statement.split(".entry", 1)[1].strip(" (")))
            inside, body, line = True, False, 0
        elif not inside:
            array = _array(statement)
            if array is not None:
                arrays.append(array)
        elif statement == "{":
            body = True
        elif statement == "}":
            inside = False
        elif not body:
            _header(entries[-1], statement)
        else:
            line = _body(entries[-1], statement, line)
    return arrays, entries


def _statements(text: str) -> Iterator[str]:
    """One statement, directive, label or brace at a time, without comments."""
    open_text = ""
    for raw in text.splitlines():
        part = raw.partition("//")[0].strip()
        if not part:
            continue
        part = _ALWAYS.sub(r"\1", part)
        if _WITH_REST.match(part):
            part = _WITH_REST.sub(lambda m: re.sub(rf"\b{m[1]}\b", "_", m[2]), part)
        if open_text or not part.startswith((".", "$", "{", "}", ")", "(")) or _continues(part):
            open_text = f"{open_text} {part}".strip()
            if part.endswith(";"):
                yield open_text.rstrip(";").strip()
                open_text = ""
        elif _LABEL.match(part):
            yield part
        else:
            yield part.rstrip(";").strip()


def _continues(part: str) -> bool:
    """Whether a directive goes on on the next line."""
    return part.startswith((".global", ".const", ".shared")) and not part.endswith(";")


def _header(entry: Entry, statement: str) -> None:
    array = _ARRAY_PARAMETER.match(statement.rstrip(","))
    if array is not None:
        entry.parameters.append((array[1], "u64", True))
        return
    parameter = _PARAMETER.match(statement.rstrip(","))
    if parameter is not None:
        kind, pointer, name = parameter.groups()
        entry.parameters.append((name, kind, pointer is not None))
    elif statement.startswith(".reqntid"):
        sizes = [int(n) for n in re.findall(r"\d+", statement)]
        entry.block = (*sizes, 1, 1)[:3]


def _body(entry: Entry, statement: str, line: int) -> int:
    """Take a statement in; returns the line that the next ones are of."""
    location = _LOCATION.match(statement)
    if location is not None:
        # Column 1 is ours, see the numbering of places.
        return int(location[1])
    registers = _REGISTERS.match(statement)
    if registers is not None:
        kind, prefix = registers.groups()
        entry.widths[prefix] = 1 if kind == "pred" else int(kind[1:])
        return line
    array = _array(statement)
    if array is not None:
        entry.arrays.append(array)
        return line
    label = _LABEL.match(statement)
    if label is not None:
        entry.blocks.append(Block(label[1]))
        return line
    if statement.startswith("."):
        return line
    if not entry.blocks:
        entry.blocks.append(Block("entry"))
    instruction = _instruction(statement, line)
    entry.blocks[-1].instructions.append(instruction)
    if instruction.name[0] == "bra" or instruction.name[0] in _ENDS:
        entry.blocks.append(Block(f"after {len(entry.blocks)}"))
    return line


def _instruction(text: str, line: int) -> Instruction:
    guarded = _GUARDED.match(text)
    unless, guard, rest = guarded.groups() if guarded else ("", "", text)
    name, operands = [*rest.split(None, 1), ""][:2]
    parts = tuple(name.replace("::cta", "").split("."))
    return Instruction(parts, tuple(_operands(operands)), line, guard, bool(unless), text)


def _operands(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def _array(statement: str) -> Array | None:
    match = _ARRAY.match(statement)
    if match is None:
        return None
    space, _, _, bits, name, count, values = match.groups()
    width = int(bits) // 8
    size = width if count is None else width * int(count or 0)
    given = tuple(v.strip() for v in (values or "").split(",") if v.strip())
    return Array(space, name, size, width, given)
