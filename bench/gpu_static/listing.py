"""Kernels of others as text: what the model needs of their machine code, and nothing else.

A line is an instruction: the assembler's decisions in hexadecimal digits, its name, and where it
multiplies the first registers of the sums and of what they are added to, and ``ends`` if products
that go on are a group. ``loop`` and ``after`` stand before the parts that they name::

    0fe204 HMMA.16816.F32 R4 R4
    0ff1e2 DEPBAR.LE SB0<=1
    0fe200 LDS off
    0002e1 STG.E x8

The last one writes eight pieces of memory, which lie apart.
"""

from __future__ import annotations

from bench.gpu_static import sass
from bench.gpu_static.instructions import Instruction, Wait
from bench.gpu_static.loops import Parts


def dump(parts: Parts) -> str:
    """The text of a kernel of NVIDIA's."""
    lines = [*map(_line, parts.before), "loop", *map(_line, parts.loop)]
    return "\n".join([*lines, "after", *map(_line, parts.after)]) + "\n"


def load(text: str) -> Parts:
    """A kernel of such a text; lines that begin with ``#`` are comments.

    Raises:
        ValueError: a line is none of these; says which.
    """
    before: list[Instruction] = []
    loop: list[Instruction] = []
    after: list[Instruction] = []
    part = before
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line in ("loop", "after"):
            part = loop if line == "loop" else after
            continue
        try:
            part.append(_parsed(*line.split()))
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number}, {line!r}, is no instruction: {error}") from None
    return Parts(tuple(before), tuple(loop), tuple(after), bool(loop))


def _line(instruction: Instruction) -> str:
    words = [f"{_control(instruction):06x}", instruction.name]
    groups = [w for w in instruction.waits if w.at_most or w.counter == sass.GROUP]
    if instruction.products:
        words += [
            instruction.sums,
            instruction.addend,
            "ends" * (sass.GROUP in instruction.signals),
        ]
    elif groups:
        words.append(f"{groups[0].counter}<={groups[0].at_most}")
    elif not instruction.active:
        words.append("off")
    elif pieces := sass.pieces(instruction):
        words.append(f"x{pieces}")
    return " ".join(word for word in words if word)


def _control(instruction: Instruction) -> int:
    def number(counters: tuple[str, ...]) -> int:
        own = [counter for counter in counters if counter != sass.GROUP]
        return int(own[0][2:]) if own else 7

    waits = {w.counter for w in instruction.waits if not w.at_most and w.counter != sass.GROUP}
    mask = sum(1 << int(counter[2:]) for counter in waits)
    frees = (instruction.frees,) if instruction.frees else ()
    result = number(instruction.signals) << 5 | number(frees) << 8
    return instruction.stall | result | mask << 11


def _parsed(control: str, name: str, *words: str) -> Instruction:
    group = None
    if words and "<=" in words[0]:
        counter, _, count = words[0].partition("<=")
        group, words = Wait(counter, int(count)), ()
    pieces = 0
    if words and words[0][0] == "x":
        pieces, words = int(words[0][1:]), ()
    active, ends = words != ("off",), words[-1:] == ("ends",)
    registers = words[: len(words) - ends] if active else ()
    return sass.instruction(
        name,
        int(control, 16),
        sums=registers[0] if registers else "",
        addend=registers[1] if len(registers) > 1 else "",
        group=group,
        ends_group=ends,
        active=active,
        pieces=pieces,
    )
