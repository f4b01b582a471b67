"""Which functions LLVM has to optimize the loops of, and which are vector code already.

Vector code stays as it is. LLVM would unroll its loops several times, vectorize the code
around them, and so take three times as long for code that runs no faster: iterations of such loops
are long, and the chip overlaps them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_LABEL = re.compile(r"^(?P<name>[\w.$-]+):")
_BRANCH = re.compile(r"^\s+br (?:i1 [^,]+, label %(?P<one>[\w.$-]+), )?label %(?P<two>[\w.$-]+)")
_NAME = re.compile(r'@([\w.$-]+|"[^"]+")\(')
_VECTOR = re.compile(r"<\d+ x (?:i\d+|half|bfloat|float|double|ptr)>")

#: On the definition of a function whose loops LLVM is to vectorize: it has some, and no vectors.
SCALAR_LOOPS = '"polyblocks-scalar-loops"'
#: The same where there are no vectors at all.
ONLY_SCALAR = f'{SCALAR_LOOPS}="only"'

#: Numbers of the metadata that this module adds; those of the IR itself are far below.
FIRST = 900_000


def mark_loops(text: str, programs: Collection[str] = ()) -> str:
    """Tell LLVM to neither unroll nor vectorize the loops of functions in which there are vectors.

    Scalar loops of such a function are those that were not worth it. Functions that have loops and
    no vectors are marked with :data:`ONLY_SCALAR`.

    Args:
        text: LLVM IR as MLIR prints it: blocks in an order in which a branch to an earlier one
            closes a loop.
        programs: names of functions that are loops of the program, with vector code in them. They
            are marked with :data:`SCALAR_LOOPS`: what is the same in all iterations, or is stored
            by one piece of code and loaded by the next, is LLVM's to find.

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
            name = _NAME.search(lines[begin])
            program = name is not None and name[1].strip('"') in programs
            vectors = has_vectors("\n".join(lines[begin:end]))
            if vectors:
                for first, i in edges:
                    # The loops of a program are many nests, each as if it stood alone.
                    if not program or has_vectors("\n".join(lines[first:i])):
                        lines[i] = f"{lines[i]}, !llvm.loop !{FIRST + 3 + count}"
                        count += 1
            if edges and (program or not vectors):
                mark = SCALAR_LOOPS if vectors else ONLY_SCALAR
                lines[begin] = f"{lines[begin].removesuffix('{')}{mark} {{"
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


def has_vectors(text: str) -> bool:
    """Whether there are vectors in LLVM IR."""
    return _VECTOR.search(text) is not None


def _back_edges(lines: list[str], begin: int, end: int) -> list[tuple[int, int]]:
    """The lines of a function that branch to an earlier block, each with that block's line."""
    seen: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for i in range(begin + 1, end):
        label = _LABEL.match(lines[i])
        if label is not None:
            seen[label["name"]] = i
        elif " br " in lines[i]:
            branch = _BRANCH.match(lines[i])
            if branch is None:
                continue
            starts = [seen[b] for b in (branch["one"], branch["two"]) if b in seen]
            if starts:
                found.append((min(starts), i))
    return found
