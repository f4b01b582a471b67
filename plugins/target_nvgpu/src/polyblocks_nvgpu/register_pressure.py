"""Registers enough: where threads would have too few, something else is given up.

Other blocks at once, copies of loops, or that what a loop leaves unchanged is computed before it.

The assembler keeps to the number of resident blocks, whatever it has to spill for
that. And it writes out loops in loops whose counts it knows, computes before the outer
one what each copy needs of the thread's number, and then has no registers for all of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from polyblocks.codegen.gpu.manifest import Resources
from polyblocks.codegen.gpu.plan import kernels, name_of
from polyblocks.codegen.gpu.resident_blocks import assumed_blocks

_HEAD = re.compile(r"\.entry\s+([\w$]+)\b[^{]*")
_AT_ONCE = re.compile(r"\.minnctapersm\s+\d+\s*\n")
_ENTRY = re.compile(r"^\.visible \.entry ([\w$]+)", re.MULTILINE)
_LABEL = re.compile(r"^([\w$]+):", re.MULTILINE)
_JUMP = re.compile(
    r"^\s*(?P<condition>@!?%\w+\s+)?(?:bra(?:\.uni)?\s+(?P<label>[\w$]+)|ret|exit|trap)\s*;",
    re.MULTILINE,
)
#: Behind the label of a loop.
_KEEP = '\n\t.pragma "nounroll";'


def crowded(module: Any, resources: dict[str, Resources]) -> list[str]:
    """Kernels that spill registers because of their number of resident blocks.

    Args:
        module: in form L.
        resources: of the kernels, as the assembler says.
    """
    return [
        name_of(kernel)
        for kernel in kernels(module)
        if resources[name_of(kernel)].spill_bytes and assumed_blocks(kernel) > 1
    ]


def with_room(ptx: str, names: Collection[str]) -> str:
    """PTX in which these kernels may take all registers that a block can have."""
    return _HEAD.sub(lambda m: _AT_ONCE.sub("", m[0]) if m[1] in names else m[0], ptx)


def with_loops(
    ptx: str, names: Collection[str], resources_of: Callable[[str], dict[str, Resources]]
) -> str:
    """PTX in which the loops of these kernels stay loops, as few of them as end their spills.

    That is one loop; all of a kernel if one is not enough; none if that makes it no better.

    Args:
        ptx: the text.
        names: of kernels that spill.
        resources_of: assembles a text and says what its kernels need.
    """
    for name in names:
        head, kernel = _parts(ptx, name)
        found = loops(kernel)
        best, least = kernel, resources_of(head + kernel)[name].spill_bytes
        for which in [*([label] for label in found), found]:
            kept = _kept(kernel, which)
            spilled = resources_of(head + kept)[name].spill_bytes
            if spilled < least:
                best, least = kept, spilled
            if not least:
                break
        ptx = ptx.replace(kernel, best)
    return ptx


def _kept(kernel: str, labels: Collection[str]) -> str:
    """The kernel with the mark at these labels that keeps their loops."""
    return _LABEL.sub(lambda m: m[0] + _KEEP * (m[1] in labels), kernel)


def with_least_moved(
    ptx: str,
    plain: str,
    names: Collection[str],
    resources_of: Callable[[str], dict[str, Resources]],
) -> str:
    """PTX in which these kernels are taken from another text if that ends or lessens their spills.

    Args:
        ptx: the text.
        plain: the text of the same kernels, from which nothing was moved out of loops: values that
            wait in registers while a loop runs.
        names: of kernels that spill.
        resources_of: assembles a text and says what its kernels need.
    """
    for name in names:
        head, kernel = _parts(ptx, name)
        other_head, other = _parts(plain, name)
        # Shared text stands before all kernels.
        if other_head != head:
            continue
        spilled = resources_of(head + kernel)[name].spill_bytes
        if resources_of(head + other)[name].spill_bytes < spilled:
            ptx = ptx.replace(kernel, other)
    return ptx


def _parts(ptx: str, name: str) -> tuple[str, str]:
    """The text before all kernels, and the text of one."""
    entries = list(_ENTRY.finditer(ptx))
    begin = next(m for m in entries if m[1] == name)
    return ptx[: entries[0].start()], ptx[begin.start() : ptx.index("\n}", begin.end()) + 2]


def loops(kernel: str) -> list[str]:
    """The labels of a kernel's text at which loops begin, in the order of the text."""
    after = _successors(kernel)
    begun: set[str] = {""}
    heads: set[str] = set()
    path = [("", iter(after[""]))]
    while path:
        following = next(path[-1][1], None)
        if following is None:
            path.pop()
        elif any(following == label for label, _ in path):
            heads.add(following)
        elif following not in begun:
            begun.add(following)
            path.append((following, iter(after[following])))
    return [label for label in after if label in heads]


def _successors(kernel: str) -> dict[str, list[str]]:
    """The labels that the code behind each label may go to; what comes before all is ``""``."""
    found = list(_LABEL.finditer(kernel))
    labels = ["", *(m[1] for m in found)]
    places = [0, *(m.end() for m in found), len(kernel)]
    after: dict[str, list[str]] = {}
    for number, label in enumerate(labels):
        goes = after.setdefault(label, [])
        falls = number + 1 < len(labels)
        for jump in _JUMP.finditer(kernel, places[number], places[number + 1]):
            if jump["label"]:
                goes.append(jump["label"])
            falls = falls and bool(jump["condition"])
        if falls:
            goes.append(labels[number + 1])
    return after
