"""Loops and nests over the same values that become one."""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import all_accesses
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.cleanup.dead_nests import drop_stores
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import (
    AnyLoad,
    For,
    Nest,
    Node,
    Sequence,
    Value,
    local_buffers,
    reads,
    remove_dead,
    replace_values,
    walk,
    writes,
)
from polyblocks.affine.rewrites.merging import (
    fills_gaps,
    fits,
    forward,
    merged,
    split_between,
)

#: Kinds of nests whose siblings are fused; some contractions are, too.
_KINDS = {"copy", "pointwise", "reduction", "stencil"}


@dataclass(frozen=True)
class SiblingFusion:
    """Merges loops that load the same data, or load what the other one stores.

    Attributes:
        max_operations: instructions of an innermost loop's body; more values than registers would
            have to wait.
        max_accesses: accesses of it: as many streams as hardware follows.
        reach: nests that lie between two that are merged, at most.
    """

    max_operations: int = 160
    max_accesses: int = 32
    reach: int = 8

    def merge_loops(self, nodes: list[Node]) -> int:
        """Merge neighbours in a list of nodes and below; how many loops there are less."""
        count = 0
        position = 0
        while position < len(nodes):
            first = nodes[position]
            if not isinstance(first, For):
                position += 1
                continue
            other = next(
                (i for i in range(position + 1, len(nodes)) if isinstance(nodes[i], For)), None
            )
            if other is not None:
                second = nodes[other]
                assert isinstance(second, For)
                parts = split_between(nodes[position + 1 : other], first, second)
                if parts is not None and self._worth(first, second) and fits(first, second):
                    before, after = parts
                    nodes[position : other + 1] = [*before, merged(first, second), *after]
                    position += len(before)
                    count += 1
                    continue
            count += self.merge_loops(first.body)
            position += 1
        return count

    def merge_nests(self, sequence: Sequence, nests: list[Nest]) -> int:
        """Merge these nests, which are in program order, with the first; how many are gone."""
        count = 0
        for nest in nests[1:]:
            if self.partner(sequence, sequence.items.index(nest)) is not nests[0]:
                break
            self.join(sequence, nests[0], nest)
            count += 1
        return count

    def join(self, sequence: Sequence, first: Nest, nest: Nest) -> None:
        """Make one nest of two that may be."""
        a, b = first.body[0], nest.body[0]
        assert isinstance(a, For)
        assert isinstance(b, For)
        first.replace([merged(a, b)])
        first.sources = list(dict.fromkeys([*first.sources, *nest.sources]))
        sequence.items.remove(nest)
        self.merge_loops(first.body)
        clean(first)

    def partner(self, sequence: Sequence, position: int) -> Nest | None:
        """The nearest nest before that one at ``position`` with which it can be merged.

        One that stores what this one loads need not store it, if nothing else loads it.
        """
        nest = sequence.items[position]
        assert isinstance(nest, Nest)
        if not has_siblings(nest) or len(nest.body) != 1 or not isinstance(nest.body[0], For):
            return None
        loaded = {b.base for b in reads(nest)}
        stored = {b.base for b in writes(nest)}
        for item in reversed(sequence.items[max(0, position - self.reach) : position]):
            read = {b.base for b in reads(item)}
            written = {b.base for b in writes(item)}
            shared = (read | written) & loaded or written & stored
            if isinstance(item, Nest) and shared and self._mergeable(item, nest):
                return item if stands_before(nest, item) else None
            if written & (loaded | stored) or read & stored:
                return None
        return None

    def _worth(self, a: For, b: For) -> bool:
        """Whether one loop has less to load than two, and is not too long."""
        mine, theirs = all_accesses([a]), all_accesses([b])
        touched = {n.buffer for n in mine}
        common = any(n.buffer in touched and isinstance(n, AnyLoad) for n in theirs)
        if not common and not fills_gaps(a, b):
            return False
        if len(mine) + len(theirs) > self.max_accesses:
            return False
        return cost.operations([a]) + cost.operations([b]) <= self.max_operations

    def _mergeable(self, first: Nest, second: Nest) -> bool:
        if not has_siblings(first) or len(first.body) != 1:
            return False
        a, b = first.body[0], second.body[0]
        return isinstance(a, For) and isinstance(b, For) and self._worth(a, b) and fits(a, b)


def has_siblings(nest: Nest) -> bool:
    """Whether a nest may be merged with others at all.

    Products, and contractions whose loops are no longer as they were, have a schedule that is made
    for the registers of one.
    """
    if nest.kind != "contraction":
        return nest.kind in _KINDS
    parts = facts_of(nest).contraction
    return parts is not None and not parts.multiplies_once


def forward_stored(nodes: list[Node]) -> None:
    """Use what an innermost loop stores where it loads that again."""
    known: dict[Value, Value] = {}
    for node in walk(nodes):
        if isinstance(node, For) and not any(isinstance(n, For) for n in node.body):
            forward(node.body, known)
    replace_values(nodes, known)


def clean(nest: Nest) -> None:
    """Forward what is stored, drop what nothing needs."""
    forward_stored(nest.body)
    local = local_buffers(nest.body)
    used = {n.buffer for n in all_accesses(nest.body) if isinstance(n, AnyLoad)}
    drop_stores(nest.body, local - used)
    remove_dead(nest.body)
    nest.replace()
