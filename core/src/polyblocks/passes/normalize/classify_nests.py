"""classify-nests: every nest gets a kind, from its accesses, and a readable name."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.mlir.source import sources
from polyblocks.affine.model import (
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Op,
    Sequence,
    Store,
    walk,
)
from polyblocks.affine.subnests import mark_tiles
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class ClassifyNestsPass(NestPass):
    """Name nests after what they compute and set ``polyblocks.kind``.

    The kind comes from the structure alone, the first one that fits: ``scatter`` (stores at
    run-time indices), ``contraction`` (a reduction whose operands different loops move, unrolled or
    not: :class:`~polyblocks.affine.analysis.contractions.Contraction`), ``gather`` (loads at
    run-time indices), ``scan`` (carried values, stored at every step), ``reduction`` (carried
    values), ``copy``, ``stencil`` (one array read at several places), ``pointwise``. The name is
    made of the source ops, where locations tell them.

    Loops of the program around several nests are marked with ``polyblocks.tile``.

    Before: ``affine.for %i = 0 to 4 { ... }``; after: the same with
    ``{polyblocks.kernel = "mul_add", polyblocks.kind = "pointwise"}``.
    """

    name: ClassVar[str] = "classify-nests"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Classify all nests."""
        for nest in sequence.nests():
            nest.sources = [f"{op} {where}".strip() for op, where in sources(nest.body)]
            mark_tiles(nest.body)
        name_nests(self.name, sequence, context)
        for nest in sequence.nests():
            context.decide(self.name, nest.name, nest.kind, sources=nest.sources)


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
        nest.kind = kind(nest)
        before, nest.name = nest.name, _unique(sequence.name + _name(nest), used)
        nest.replace()
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


def kind(nest: Nest) -> str:
    """The kind of a nest, from its structure."""
    nodes = list(walk(nest.body))
    if any(isinstance(n, IndirectStore) for n in nodes):
        return "scatter"
    if facts_of(nest).contraction is not None:
        return "contraction"
    if any(isinstance(n, IndirectLoad) for n in nodes):
        return "gather"
    if any(isinstance(n, For) and n.inits and is_scan(n) for n in nodes):
        return "scan"
    if any(isinstance(n, For) and n.inits for n in nodes):
        return "reduction"
    if not any(isinstance(n, Op) and n.name != "arith.constant" for n in nodes):
        return "copy"
    places: dict[Any, set[Any]] = {}
    for n in nodes:
        if isinstance(n, Load):
            places.setdefault(n.buffer, set()).add(n.index)
    return "stencil" if any(len(p) > 1 for p in places.values()) else "pointwise"


def is_scan(loop: For) -> bool:
    """Whether a loop stores something for every value that it carries on."""
    return any(isinstance(n, Store) for n in loop.body)


def _name(nest: Nest) -> str:
    return _name_of([source.split(" ")[0] for source in nest.sources]) or nest.kind


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
