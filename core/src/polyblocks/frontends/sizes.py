"""Which dimensions of a function's arguments come in many sizes, each of which is compiled."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

#: As Variant.arguments writes them: ``float32[3, 4]``, ``f32[3,4]``.
_ARGUMENT = re.compile(r"([\w.<>*?]+)\[([\d,\s]*)\]")

#: A dimension's sizes from this number on are worth a word: three are a full batch, the last one
#: of an epoch, and a single one.
MANY = 4


def many_sizes(variants: Iterable[Sequence[str]]) -> dict[tuple[int, int], list[int]]:
    """Dimensions that have at least :data:`MANY` sizes.

    Args:
        variants: dtype and shape of each argument (``float32[3, 4]``), per variant; all of equal
            dtypes and ranks.

    Returns:
        (number of the argument, number of the dimension) -> its sizes, as they came.
    """
    sizes: defaultdict[tuple[int, int], dict[int, None]] = defaultdict(dict)
    for arguments in variants:
        for number, (_, shape) in enumerate(map(_parsed, arguments)):
            for dimension, size in enumerate(shape):
                sizes[number, dimension][size] = None
    return {place: list(found) for place, found in sizes.items() if len(found) >= MANY}


def kind_of(arguments: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Dtypes and ranks: what variants have in common that differ in sizes alone."""
    return tuple((dtype, len(shape)) for dtype, shape in map(_parsed, arguments))


def _parsed(argument: str) -> tuple[str, tuple[int, ...]]:
    match = _ARGUMENT.fullmatch(argument)
    if match is None:
        return argument, ()
    dtype, shape = match.groups()
    return dtype, tuple(int(n) for n in shape.split(",") if n.strip())
