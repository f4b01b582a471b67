"""split-margins: a sum of arrays with margins of zeros is a nest for each part of it."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from polyblocks.affine.analysis.boxes import touched
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.cleanup.dead_nests import drop_stores
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    Check,
    For,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    clone,
    remove_dead,
    walk,
)
from polyblocks.affine.ops import constant
from polyblocks.affine.padding.margins import Margin, margins_of, zeros_in
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.subnests import straight_loops
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class SplitMarginsPass(NestPass):
    """Cut a loop where the margins of several arrays begin and end, if each part reads zeros.

    The gradient of an array that was read in slices is such a sum: for each slice an array as
    large as the whole, with zeros around. Nests that compute slices can store them to their places
    then.

    Before, with zeros in ``%p[8]`` to ``%p[15]`` and ``%q[0]`` to ``%q[7]``::

        affine.for %i = 0 to 16 {
          %a = affine.load %p[%i]
          %b = affine.load %q[%i]
          %c = arith.addf %a, %b : f32
          affine.store %c, %sum[%i] }

    After, the stores of these zeros being gone::

        affine.for %i = 0 to 8 {
          %a = affine.load %p[%i]
          %c = arith.addf %a, %zero : f32
          affine.store %c, %sum[%i] }
        affine.for %i = 0 to 8 {
          %b = affine.load %q[%i + 8]
          %c = arith.addf %zero, %b : f32
          affine.store %c, %sum[%i + 8] }
    """

    name: ClassVar[str] = "split-margins"
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING})
    #: Parts of a loop, at most.
    parts: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Cut every nest of a sum of arrays with margins."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        viewed = sequence.viewed()
        cut: set[Buffer] = set()
        seams: dict[Buffer, tuple[int, set[int]]] = {}
        margins = self._margins(sequence, viewed)
        for nest in list(sequence.nests()):
            pieces = self._pieces(nest, margins, seams, cut) if len(margins) > 1 else None
            if pieces is None:
                continue
            at = sequence.items.index(nest)
            sequence.items[at : at + 1] = pieces
            # Sums of more arrays have margins where both have.
            margins = self._margins(sequence, viewed)
            context.decide(self.name, nest.name, "split at margins", pieces=len(pieces))
        if cut:
            _drop_unread(sequence, {b: margins[b] for b in cut if b in margins})

    def _margins(self, sequence: Sequence, viewed: Set[Buffer]) -> dict[Buffer, Margin]:
        """The margins that hold zeros at all times, as long as no view stores there."""
        found = margins_of(sequence).items()
        return {b: m for b, m in found if b not in viewed and not m.cleared}

    def _pieces(
        self,
        nest: Nest,
        margins: dict[Buffer, Margin],
        seams: dict[Buffer, tuple[int, set[int]]],
        cut: set[Buffer],
    ) -> list[Nest] | None:
        """The nests that replace one; None to leave it.

        ``seams`` has a dimension of arrays that several nests make now, and where each of these
        begins and ends in it.
        """
        shape = straight_loops(nest.body, IndirectStore, Check)
        if shape is None:
            return None
        loops, body = shape
        loads = [n for n in body if isinstance(n, Load) and n.buffer in margins and not n.where]
        for depth, loop in enumerate(loops):
            within = {load: _within(load, margins[load.buffer], loop.var) for load in loads}
            found = {load: span for load, span in within.items() if span is not None}
            if len({load.buffer for load in found}) < 2:
                continue
            ends = {0, loop.var.extent, *(end for span in found.values() for end in span)}
            if not all(_zeros(found, span) for span in pairwise(sorted(ends))):
                continue
            # Parts of what several nests make are parts of what is made of it.
            ends |= {end for n in body if isinstance(n, Load) for end in _seams(n, loop.var, seams)}
            # Late iterations of one part come before early ones of the next.
            free = all(is_parallel(around, nest.body) for around in loops[: depth + 1])
            if len(ends) > self.parts + 1 or not free:
                continue
            cut |= {load.buffer for load in found}
            for store in body:
                if isinstance(store, Store):
                    _note(store, loop.var, ends, seams)
            return [
                like(nest, _part(loops, body, loop.var, span, _zeros(found, span)))
                for span in pairwise(sorted(ends))
            ]
        return None


def _within(load: Load, margin: Margin, var: Var) -> tuple[int, int] | None:
    """Begin and end of the iterations that load no margin; None if ``var`` does not tell."""
    for expr, (low, high) in zip(load.index, margin.inside, strict=True):
        at = expr - var
        if at.is_constant and (low > at.const or high < at.const + var.extent):
            first, end = (min(max(n - at.const, 0), var.extent) for n in (low, high))
            return first, end
    return None


def _zeros(found: dict[Load, tuple[int, int]], span: tuple[int, int]) -> list[Load]:
    """The loads that load nothing but zeros in some iterations."""
    low, high = span
    return [load for load, (first, end) in found.items() if end <= low or high <= first]


def _note(
    store: Store, var: Var, ends: set[int], seams: dict[Buffer, tuple[int, set[int]]]
) -> None:
    """Remember where in an array the parts of a nest end that stores to it."""
    for dimension, expr in enumerate(store.index):
        at = expr - var
        if at.is_constant:
            seams[store.buffer] = dimension, {end + at.const for end in ends}


def _seams(load: Load, var: Var, seams: dict[Buffer, tuple[int, set[int]]]) -> Iterator[int]:
    """The iterations at which the nest changes that made what a load loads."""
    if load.buffer in seams:
        dimension, ends = seams[load.buffer]
        at = load.index[dimension] - var
        if at.is_constant:
            yield from (e - at.const for e in ends if 0 < e - at.const < var.extent)


def _part(
    loops: list[For], body: list[Node], var: Var, span: tuple[int, int], zeros: list[Load]
) -> list[Node]:
    """The nest for some iterations of a loop, in which some loads are of zeros."""
    nodes: list[Node] = []
    none: set[Value] = set()
    for node in body:
        if node in zeros or (isinstance(node, Op) and _adds(node) and none.issuperset(node.uses)):
            (result,) = node.defines
            nodes.append(constant(0, result.type, result=result))
            none.add(result)
        else:
            nodes.append(node)
    fresh = {loop.var: Var(loop.var.extent) for loop in loops}
    fresh[var] = Var(span[1] - span[0])
    at = {old: Expr.of(new) for old, new in fresh.items()}
    at[var] = Expr(span[0]) if fresh[var].extent == 1 else at[var] + span[0]
    nodes = clone(nodes, {}, at)
    for loop in reversed(loops):
        if loop.var is not var or fresh[var].extent > 1:
            nodes = [For(fresh[loop.var], nodes)]
    remove_dead(nodes)
    return nodes


def _adds(op: Op) -> bool:
    """Whether an operation yields zero if all its operands are."""
    return op.name in ("arith.addf", "arith.addi")


def _drop_unread(sequence: Sequence, margins: dict[Buffer, Margin]) -> None:
    """Remove the stores of zeros to margins that nothing reads any more."""
    users = Users(sequence)
    for buffer, margin in margins.items():
        nests = [n for n in users.readers(buffer) if isinstance(n, Nest)]
        accesses = [n for nest in nests for n in walk(nest.body) if isinstance(n, Load)]
        loads = [n for n in accesses if n.buffer is buffer]
        if not users.is_only_accessed(buffer) or not all(_misses(n, margin) for n in loads):
            continue
        for nest in users.writers(buffer):
            assert isinstance(nest, Nest)
            zeros = zeros_in(nest)
            stores = [n for n in walk(nest.body) if isinstance(n, Store) and n.buffer is buffer]
            if all(store.value in zeros for store in stores):
                drop_stores(nest.body, {buffer})
                remove_dead(nest.body)
                nest.replace()
    sequence.items[:] = [i for i in sequence.items if not isinstance(i, Nest) or i.body]


def _misses(load: Load, margin: Margin) -> bool:
    """Whether a load touches nothing outside of the box in a margin."""
    box = touched(load.index)
    return all(
        first >= low and end <= high
        for (first, end), (low, high) in zip(box, margin.inside, strict=True)
    )
