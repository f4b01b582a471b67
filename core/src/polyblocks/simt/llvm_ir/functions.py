"""Functions of LLVM IR as functions of MLIR: blocks take as arguments what phis choose."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from polyblocks.simt.llvm_ir.instructions import instruction
from polyblocks.simt.llvm_ir.tokens import Cursor
from polyblocks.simt.llvm_ir.types import begins_type, read_type, read_value_type, spelled
from polyblocks.simt.llvm_ir.values import Operand, Values, skip_attributes, symbol
from polyblocks.simt.types import Type

_LABEL = re.compile(r'^("[^"]*"|[-$.\w]+):')
_RESULT = re.compile(r'^(%(?:"[^"]*"|[-$.\w]+)) = ')
#: Metadata behind an instruction, and the number of its place.
_METADATA = re.compile(r"(?:, !\w[\w.]* !\d+)+$")
_PLACE = re.compile(r", !dbg !(\d+)")
_TERMINATORS = {"br", "switch", "ret", "unreachable"}
_KERNEL = re.compile(r"\w+_kernel")


@dataclass
class _Block:
    """Attributes:
    label: its name with ``%``.
    phis: result, its type, and its operand by the label it comes from.
    lines: its other instructions.
    """

    label: str
    phis: list[tuple[str, Type, dict[str, str]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def function(
    header: str, body: list[str], blocks: dict[str, tuple[int, ...]], place: Callable[[str], str]
) -> str:
    """The text of an ``llvm.func``.

    Args:
        header: the line with ``define``.
        body: its lines, instructions one to a line.
        blocks: kernel -> threads of a block along x, y, z, where that is known.
        place: number of a DILocation -> the location as MLIR prints it, with a space before; or
            nothing.

    Raises:
        UnsupportedError: something that the reader does not know.
    """
    return _Function(header, body, place).text(blocks)


class _Function:
    def __init__(self, header: str, body: list[str], place: Callable[[str], str]) -> None:
        self._values, self._place = Values(), place
        cursor = Cursor(header.rstrip("{ "))
        self._kernel = False
        cursor.expect("define")
        while not begins_type(cursor.ahead):
            word = cursor.take()
            self._kernel |= bool(_KERNEL.fullmatch(word))
            if cursor.ahead == "(":
                cursor.skip_group()
        self._result = read_type(cursor)
        self._name = cursor.take()
        self._arguments, unnamed = self._read_arguments(cursor)
        self._blocks = _split(body, f"%{unnamed}")
        self._number = {block.label: f"^bb{k}" for k, block in enumerate(self._blocks)}
        for block in self._blocks:
            self._take_phis(block)
        self._phis = {block.label: block.phis for block in self._blocks}

    def _read_arguments(self, cursor: Cursor) -> tuple[list[Operand], int]:
        """The arguments, and how many of them have no name but a number."""
        found: list[Operand] = []
        unnamed = 0
        cursor.expect("(")
        while not cursor.accept(")"):
            type_ = read_value_type(cursor)
            skip_attributes(cursor)
            name = cursor.take() if cursor.ahead.startswith("%") else f"%{unnamed}"
            unnamed += name[1:].isdigit()
            found.append((self._values.name(name), type_))
            cursor.accept(",")
        return found, unnamed

    def _take_phis(self, block: _Block) -> None:
        rest = []
        for line in block.lines:
            match = _RESULT.match(line)
            if match is None or not line[match.end() :].startswith("phi "):
                rest.append(line)
                continue
            cursor = Cursor(_METADATA.sub("", line[match.end() :]))
            cursor.take()
            while not begins_type(cursor.ahead):
                cursor.take()
            type_ = read_value_type(cursor)
            sources = {}
            while cursor.accept("["):
                value = self._values.operand(cursor, type_)
                cursor.expect(",")
                sources[cursor.take()] = value
                cursor.expect("]")
                cursor.accept(",")
            block.phis.append((self._values.name(match[1]), type_, sources))
        block.lines = rest

    def text(self, blocks: dict[str, tuple[int, ...]]) -> str:
        given = ", ".join(f"{name}: {spelled(type_)}" for name, type_ in self._arguments)
        result = f" -> {spelled(self._result)}" if self._result is not None else ""
        attributes = ""
        if self._kernel:
            sizes = blocks.get(self._name[1:].strip('"'), ())
            known = f", gpu.known_block_size = array<i32: {', '.join(map(str, sizes))}>"
            attributes = f" attributes {{gpu.kernel{known if sizes else ''}}}"
        bodies = [self._body(block) for block in self._blocks]
        lines = [
            f"llvm.func {symbol(self._name)}({given}){result}{attributes} {{",
            *self._values.constants,
            *bodies[0],
        ]
        for block, body in zip(self._blocks[1:], bodies[1:], strict=True):
            arguments = ", ".join(f"{name}: {spelled(type_)}" for name, type_, _ in block.phis)
            lines.append(f"{self._number[block.label]}{f'({arguments})' if arguments else ''}:")
            lines += body
        return "\n".join([*lines, "}"])

    def _body(self, block: _Block) -> list[str]:
        found = []
        for line in block.lines:
            metadata = _METADATA.search(line)
            place = ""
            if metadata is not None:
                number = _PLACE.search(metadata[0])
                place = self._place(number[1]) if number else ""
                line = line[: metadata.start()]
            match = _RESULT.match(line)
            cursor = Cursor(line[match.end() :] if match else line)
            if cursor.ahead in _TERMINATORS:
                found.append(f"{self._end(cursor, block.label)}{place}")
                continue
            op = instruction(cursor, self._values)
            if op:
                name = f"{self._values.name(match[1])} = " if match else ""
                found.append(f"{name}{op}{place}")
        return found

    # Ends of blocks.
    def _end(self, cursor: Cursor, label: str) -> str:
        name = cursor.take()
        if name == "unreachable":
            return "llvm.unreachable"
        if name == "ret":
            if cursor.ahead == "void":
                return "llvm.return"
            value, type_ = self._values.typed(cursor)
            return f"llvm.return {value} : {spelled(type_)}"
        if name == "switch":
            return self._switch(cursor, label)
        if cursor.ahead == "label":
            return f"llvm.br {self._target(cursor, label)}"
        condition, _ = self._values.typed(cursor)
        cursor.expect(",")
        yes = self._target(cursor, label)
        cursor.expect(",")
        return f"llvm.cond_br {condition}, {yes}, {self._target(cursor, label)}"

    def _switch(self, cursor: Cursor, label: str) -> str:
        value, type_ = self._values.typed(cursor)
        cursor.expect(",")
        default = self._target(cursor, label)
        cursor.expect("[")
        cases = []
        while not cursor.accept("]"):
            read_value_type(cursor)
            case = cursor.take()
            number = {"true": "1", "false": "0"}.get(case, case)
            cursor.expect(",")
            cases.append(f"{number}: {self._target(cursor, label)}")
        return f"llvm.switch {value} : {spelled(type_)}, {default} [{', '.join(cases)}]"

    def _target(self, cursor: Cursor, label: str) -> str:
        """``label %x``, with what its phis choose when one comes from here."""
        cursor.expect("label")
        to = cursor.take()
        phis = self._phis[to]
        if not phis:
            return self._number[to]
        given = ", ".join(sources[label] for _, _, sources in phis)
        types = ", ".join(spelled(type_) for _, type_, _ in phis)
        return f"{self._number[to]}({given} : {types})"


def _split(body: list[str], entry: str) -> list[_Block]:
    """The blocks of a function; the first one may have no label, then it has a number."""
    found: list[_Block] = []
    for line in body:
        match = _LABEL.match(line)
        if match is not None:
            found.append(_Block(f"%{match[1]}"))
        elif not found:
            found.append(_Block(entry, lines=[line]))
        else:
            found[-1].lines.append(line)
    return found
