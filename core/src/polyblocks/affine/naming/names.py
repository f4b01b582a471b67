"""Names of nests, after what they compute."""

from __future__ import annotations

import itertools
import re
from typing import Any

from polyblocks.affine.mlir.source import sources
from polyblocks.affine.model import (
    Nest,
    Sequence,
)
from polyblocks.affine.naming.kinds import kind


def name_nests(owner: str, sequence: Sequence, context: Any) -> None:
    """Set kind and name of every nest; also for passes that have changed what nests do.

    Renamed nests are reported, so that earlier decisions can be followed.

    Args:
        owner: name of the pass.
        sequence: whose nests are named.
        context: takes the decision ``renamed``.
    """
    used: dict[str, int] = {}
    renamed: dict[str, str] = {}
    for nest in sequence.nests():
        before, what = nest.name, kind(nest)
        nest.rename(_unique(sequence.name + (_name(nest) or what), used), what)
        if before not in ("", nest.name):
            renamed[before] = nest.name
    if renamed:
        context.decide(owner, "main", "renamed", names=renamed)


def own_name(nest: Nest, sequence: Sequence) -> str:
    """The name of a nest, for decisions; also before :func:`name_nests` has given it one.

    The name stays with the nest, and no other nest of the sequence has it, so that the decision
    can be followed to what the nest is called in the end.

    Args:
        nest: gets a name made of its source ops if it has none.
        sequence: what it is in.

    Returns:
        The name.
    """
    if not nest.name:
        words = _name_of([op for op, _ in sources(nest.body)]) or kind(nest)
        words = sequence.name + words
        used = {other.name for other in sequence.nests()}
        names = (words if k == 1 else f"{words}_{k}" for k in itertools.count(1))
        nest.name = next(name for name in names if name not in used)
    return nest.name


def _name(nest: Nest) -> str:
    return _name_of([source.split(" ")[0] for source in nest.sources])


def _name_of(ops: list[str]) -> str:
    words: list[str] = []
    for op in ops:
        # `namespace.op.overload`, as frontends write it: the op; anything else as it is.
        parts = op.split(".")
        word = re.sub(r"\W+", "_", parts[1] if len(parts) > 1 else parts[0]).strip("_")
        if word and word not in words:
            words.append(word)
    return "_".join(words[:6])[:60]


def _unique(name: str, used: dict[str, int]) -> str:
    used[name] = used.get(name, 0) + 1
    return name if used[name] == 1 else f"{name}_{used[name]}"
