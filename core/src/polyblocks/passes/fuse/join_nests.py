"""join-nests: small nests that do not need each other are launched together."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Any, ClassVar

from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.products.factors import is_product
from polyblocks.affine.cost.block_cost import THREADS
from polyblocks.affine.cost.small_nests import seconds_of_small
from polyblocks.affine.expr import Var
from polyblocks.affine.fusion.common_parts import iterations, part_counts, parts
from polyblocks.affine.fusion.independence import independent
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import For, Nest, Node, Opaque, Sequence
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription

#: Rows, and columns, of products from which a matrix unit is not mostly idle.
_SIDE = 8


@dataclass(frozen=True)
class JoinNestsPass(NestPass):
    """Make one nest of small ones that may run in any order, such as the margins of an array.

    Each block runs a part of all of them, one after the other: there are as many blocks as the
    loops of all nests can be divided by, and as have work for a block's threads. None of the nests
    may take longer in these than it takes to launch a kernel, and all no longer than half of their
    launches: two may be iterations of one nest otherwise, see
    :mod:`polyblocks.passes.fuse.roll_nests`. They need no barrier. Products of a matrix unit stay
    apart.

    Before::

        affine.for %j = 0 to 100 { affine.store %zero, %b[0, %j] }
        affine.for %i = 0 to 10 { affine.store %one, %b[%i + 1, 100] }

    After::

        affine.for %u = 0 to 10 {
          affine.for %j = 0 to 10 { affine.store %zero, %b[0, %u * 10 + %j] }
          affine.for %i = 0 to 1 { affine.store %one, %b[%u + %i + 1, 100] }
        }
    """

    name: ClassVar[str] = "join-nests"
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED})
    #: Nests that lie between two of them, at most.
    reach: int = 8

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Join nests with the first of each group."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        for position, nest in enumerate(sequence.items):
            # The list gets shorter behind the position.
            if not isinstance(nest, Nest) or not _fits([nest], context.target):
                continue
            group = self._group(sequence.items[position:], context.target)
            if len(group) == 1:
                continue
            context.decide(self.name, nest.name, "joined", with_=[n.name for n in group[1:]])
            nodes = [n for each in group for n in each.body]
            part = Var(_blocks(nodes))
            nest.replace([For(part, parts(nodes, part.extent, part), tile=True)])
            nest.sources = list(dict.fromkeys(s for each in group for s in each.sources))
            for other in group[1:]:
                sequence.items.remove(other)

    def _group(self, items: list[Nest | Opaque], target: TargetDescription) -> list[Nest]:
        """The nests that can run together with the first."""
        first = items[0]
        assert isinstance(first, Nest)
        group, between = [first], list[Nest | Opaque]()
        for item in items[1:]:
            if len(between) > self.reach:
                break
            if (
                isinstance(item, Nest)
                and _fits([item], target)
                and _fits([*group, item], target)
                and stands_before(item, first)
                and all(independent(item, other) for other in (*group, *between))
            ):
                group.append(item)
            else:
                between.append(item)
        return group


def _fits(nests: list[Nest], target: TargetDescription) -> bool:
    """Whether blocks that do all take less time than half of their launches, or one, take."""
    level, total = target.shared_level, 0.0
    for nest in nests:
        seconds = seconds_of_small(nest, target)
        if seconds is None or _is_of_unit(nest, target):
            return False
        total += seconds
    blocks = _blocks([n for nest in nests for n in nest.body])
    total *= max(1.0, level.size / blocks)
    return total < level.overhead * max(1.0, len(nests) / 2)


def _is_of_unit(nest: Nest, target: TargetDescription) -> bool:
    """Whether a matrix unit computes a nest, which it does not as a part of another one."""
    found = facts_of(nest).contraction
    if found is None or not is_product(found, target):
        return False
    return min(prod(v.extent for v in side) for side in (found.rows, found.columns)) >= _SIDE


def _blocks(nodes: list[Node]) -> int:
    """Blocks that take part."""
    most = max(1, ceil(iterations(nodes) / THREADS))
    return max(count for count in part_counts(nodes) if count <= most)
