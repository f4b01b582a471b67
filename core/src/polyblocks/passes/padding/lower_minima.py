"""lower-minima: masks of finite minima become masks of minus infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.masks.addends import arrays_of_indices, spell_out
from polyblocks.affine.masks.minima import LEAST, Minima, Minimum, takes_maxima
from polyblocks.affine.model import For, Nest, Node, Sequence, remove_dead
from polyblocks.affine.ops import constant
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class LowerMinimaPass(NestPass):
    """Mask by minus infinity where a large negative number gives the same weights.

    Libraries mask scores of a softmax by the least number of a type, or by one like ``-1e9``. Where
    every row has a score that no mask hides, and all that is done with the others is to find the
    largest one and to take exponentials of differences to it, the number may be minus infinity,
    whose exponential is zero as well. Loops have bounds by it then, as by other masks.

    That a row has such a score follows from affine conditions alone: one of ``%i >= %j`` has at
    ``%j = 0``. Scores are sums of products, and functions of them: an array that is added to them
    may hide what is left.

    Before::

        %m = arith.cmpi sge, %i, %j
        %y = arith.select %m, %x, -3.40282347E+38

    After::

        %m = arith.cmpi sge, %i, %j
        %y = arith.select %m, %x, 0xFF800000
    """

    name: ClassVar[str] = "lower-minima"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS, facts.UNTILED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Replace what may be in all nests."""
        nests = sequence.nests()
        if not any(takes_maxima(nest) for nest in nests):
            return
        users, known = Users(sequence), arrays_of_indices(sequence)
        addends = [a for nest in nests for a in spell_out(nest, users, known, LEAST)]
        for nest in {a.nest: None for a in addends}:
            users.refresh(nest)
        found = Minima(users).replaceable(nests)
        counts: dict[Nest, int] = {}
        for minimum in found:
            _replace(minimum)
            counts[minimum.nest] = counts.get(minimum.nest, 0) + 1
        lowered = {id(minimum.select) for minimum in found}
        for addend in addends:
            if id(addend.select) not in lowered:
                addend.undo()
        for nest, count in counts.items():
            remove_dead(nest.body)
            nest.replace()
            context.decide(self.name, nest.name, "minus infinity", masks=count)
        if counts:
            drop_dead_nests(sequence)


def _replace(minimum: Minimum) -> None:
    select = minimum.select
    low = constant(-math.inf, select.results[0].type, select.location)
    nodes = _around(minimum.nest.body, select)
    nodes.insert(next(i for i, n in enumerate(nodes) if n is select), low)
    select.operands[minimum.operand] = low.results[0]


def _around(nodes: list[Node], node: Node) -> list[Node]:
    """The list of nodes that a node is in."""
    if any(n is node for n in nodes):
        return nodes
    inner = (_around(n.body, node) for n in nodes if isinstance(n, For))
    return next((found for found in inner if found), [])
