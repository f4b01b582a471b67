"""Which functions LLVM has to optimize the loops of, and which are vector code already.

What is vector code is left as it is. LLVM would unroll its loops several times, vectorize what is
around them, and so take three times as long for code that runs no faster: iterations of such loops
are long, and the chip overlaps them.
"""

from __future__ import annotations

import re

_LABEL = re.compile(r"^(?P<name>[\w.$-]+):")
_BRANCH = re.compile(r"^\s+br (?:i1 [^,]+, label %(?P<one>[\w.$-]+), )?label %(?P<two>[\w.$-]+)")
_VECTOR = re.compile(r"<\d+ x (?:i\d+|half|bfloat|float|double|ptr)>")

#: On the definition of a function whose loops LLVM is to vectorize: it has some, and no vectors.
SCALAR_LOOPS = '"polyblocks-scalar-loops"'

#: Numbers of the metadata that this module adds; those of the IR itself are far below.
FIRST = 900_000


def mark_loops(text: str) -> str:
    """Tell LLVM to neither unroll nor vectorize the loops of functions in which there are vectors.

    Scalar loops of such a function are those that were not worth it. Functions that have loops and
    no vectors are marked with :data:`SCALAR_LOOPS`.

    Args:
        text: LLVM IR as MLIR prints it: blocks in an order in which a branch to an earlier one
            closes a loop.

    Returns:
        The text with ``!llvm.loop`` on the branches that close the loops, and with the marks.
    """
    lines = text.split("\n")
    count = 0
    begin = 0
    for end, line in enumerate(lines):
        if line.startswith("define "):
            begin = end
        elif line == "}":
            edges = _back_edges(lines, begin, end)
            if any("x " in s and _VECTOR.search(s) for s in lines[begin:end]):
                for i in edges:
                    lines[i] = f"{lines[i]}, !llvm.loop !{FIRST + 3 + count}"
                    count += 1
            elif edges:
                lines[begin] = f"{lines[begin].removesuffix('{')}{SCALAR_LOOPS} {{"
    if not count:
        return "\n".join(lines)
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
