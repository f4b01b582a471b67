"""Places of elements in a swizzled buffer, see :mod:`polyblocks.affine.swizzles`."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from polyblocks.affine.swizzles import Swizzle
from polyblocks.codegen.gpu.emission.code import Code


def exchanged(code: Code, layout: Sequence[Swizzle], into: int, by: Any, place: Any) -> Any:
    """The place of an element along a dimension of its buffer.

    Args:
        code: at the insertion point.
        layout: of the buffer; at most one dimension decides about each.
        into: the dimension.
        by: the element's index along the one that decides, of type index.
        place: its index along this one.
    """
    for swizzle in layout:
        if swizzle.into != into:
            continue
        # The common factor of all masks is one shift at the end.
        flips, flipped, factor = None, 0, gcd(*swizzle.masks)
        for bit, count, mask in swizzle.runs():
            digits = code.remainder(code.quotient(by, 1 << bit), 1 << count)
            part, bits = code.times(digits, mask // factor), mask * ((1 << count) - 1)
            if flips is None:
                flips = part
            elif flipped & bits:
                flips = code.value("arith.xori", code.index, flips, part)
            else:
                flips = code.add(flips, part)
            flipped |= bits
        if flips is not None:
            place = code.value("arith.xori", code.index, place, code.times(flips, factor))
    return place
