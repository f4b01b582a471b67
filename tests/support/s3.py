"""What is read of the text of S3: its kernels."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import NamedTuple


class Kernel(NamedTuple):
    """One nest of ``@main``.

    Attributes:
        iterations: of its parallel loop.
        local: elements of its local buffers.
        operations: floating-point operations by name. Sums that start from zero are counted
            without it: an operator's do, arithmetic does not.
    """

    iterations: int
    local: set[int]
    operations: Counter[str]


def kernels(text: str) -> list[Kernel]:
    """The parallel nests of a module after S3, in their order."""
    # What is left of a loop's iterations may be written without vectors. Regions side by side use
    # the same names: the last constant of a name is the one that is meant.
    zeros: set[str] = set()
    found: list[Kernel] = []
    for line in text.split("\n"):
        constant = re.search(r"(%\w+) = arith.constant (.*)", line)
        if constant:
            zero = re.match(r"(dense<)?0\.0+e\+00\b", constant[2])
            (zeros.add if zero else zeros.discard)(constant[1])
        start = re.match(r"    affine\.parallel \(%\w+\) = \(0\) to \((\d+)\)", line)
        if start:
            found.append(Kernel(int(start[1]), set(), Counter()))
        if not found:
            continue
        local = re.search(r"memref\.alloca\(.*: memref<([\dx]*)x[fi]\d+>", line)
        if local:
            found[-1].local.add(prod(map(int, local[1].split("x"))))
        op = re.search(r"= ((?:arith\.\w+f|math\.\w+)) ", line)
        if op and not (op[1] == "arith.addf" and zeros & set(re.findall(r"%\w+", line))):
            found[-1].operations[op[1]] += 1
    return found
