"""What is vector code already is left as it is by LLVM.

LLVM would unroll them several times, vectorize what is around them, and so take three times as
long for code that runs no faster: iterations of such loops are long, and the chip overlaps them.
"""

from __future__ import annotations

import re

_LABEL = re.compile(r"^(?P<name>[\w.$-]+):")
_BRANCH = re.compile(r"^\s+br (?:i1 [^,]+, label %(?P<one>[\w.$-]+), )?label %(?P<two>[\w.$-]+)")
_VECTOR = re.compile(r"<\d+ x (?:i\d+|half|bfloat|float|double|ptr)>")

#: Numbers of the metadata that this module adds; those of the IR itself are far below.
FIRST = 900_000


def mark_vector_loops(text: str) -> str:
    """Tell LLVM to neither unroll nor vectorize the loops of functions in which there are vectors.

    Scalar loops of such a function are those that were not worth it.

    Args:
        text: LLVM IR as MLIR prints it: blocks in an order in which a branch to an earlier one
            closes a loop.

    Returns:
        The text with ``!llvm.loop`` on these branches.
    """
    lines = text.split("\n")
    count = 0
    begin = 0
    for end, line in enumerate(lines):
        if line.startswith("define "):
            begin = end
        elif line == "}" and any("x " in s and _VECTOR.search(s) for s in lines[begin:end]):
            for i in _back_edges(lines, begin, end):
                lines[i] = f"{lines[i]}, !llvm.loop !{FIRST + 3 + count}"
                count += 1
    if not count:
        return text
    lines.append(f'!{FIRST} = !{{!"llvm.loop.unroll.disable"}}')
    lines.append(f'!{FIRST + 1} = !{{!"llvm.loop.vectorize.enable", i1 false}}')
    lines.append(f'!{FIRST + 2} = !{{!"llvm.loop.interleave.count", i32 1}}')
    hints = ", ".join(f"!{FIRST + k}" for k in range(3))
    for k in range(count):
        number = FIRST + 3 + k
        lines.append(f"!{number} = distinct !{{!{number}, {hints}}}")
    return "\n".join(lines) + "\n"


def _back_edges(lines: list[str], begin: int, end: int) -> list[int]:
    """The lines of a function that branch to an earlier block."""
    seen: set[str] = set()
    found: list[int] = []
    for i in range(begin + 1, end):
        label = _LABEL.match(lines[i])
        if label is not None:
            seen.add(label["name"])
        elif " br " in lines[i]:
            branch = _BRANCH.match(lines[i])
            if branch is not None and seen & {branch["one"], branch["two"]}:
                found.append(i)
    return found
