"""plan-contractions: the tiles of every contraction, written down as its schedule."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.facts import NestFacts
from polyblocks.affine.contraction.tile_prologue import prologues_of
from polyblocks.affine.contraction.tilings.choice import Choices, tilings_of
from polyblocks.affine.contraction.tilings.dot_products import dot_seconds
from polyblocks.affine.contraction.tilings.eligibility import has_enough, min_extent
from polyblocks.affine.contraction.tilings.schedule import schedule_of
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import For, Nest, Node, Sequence, program_buffers
from polyblocks.affine.padding.margins import margins_of
from polyblocks.affine.preheader import Preheader
from polyblocks.affine.preparation import Preparation
from polyblocks.affine.rewrites.digit_loops import split_at_digits
from polyblocks.affine.subnests import change_subnests
from polyblocks.affine.vectors.lanes import NoLanesError
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.contraction.tiled_nodes import tiled_nodes


@dataclass(frozen=True)
class PlanContractionsPass(NestPass):
    """Attach to every contraction its schedule, the way to tile it. For CPUs.

    The sizes are those that :mod:`polyblocks.affine.contraction.tilings.choice` predicts to be the
    fastest, of the products that the contraction can be seen as: either side may be that of the
    vectors, results may be staged, and a matrix unit may take the steps.
    :mod:`polyblocks.affine.plan.keys` documents the keys. Nothing else changes;
    ``tile-contractions``, the next pass, obeys the schedule.

    Before::

        affine.for %i = 0 to 56 { affine.for %j = 0 to 64 {
          %r = affine.for %k = 0 to 100 iter_args(%s = %z) {
            ... affine.load %a[%i, %k] ... affine.load %b[%k, %j] ... }
          affine.store %r, %c[%i, %j] } }

    After::

        affine.for %i = 0 to 56 { ...
        } {polyblocks.schedule = {block_tile = [56, 32], chunks = [1, 2], k_block = 100,
           packed = [false, true], register_tile = [4, 8], staged = false, sum_chunk = 100,
           threads = 2, transposed = false, windows = false}}
    """

    name: ClassVar[str] = "plan-contractions"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS, facts.KINDS})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.PLANS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Give every nest and sub-nest that is a contraction its schedule."""
        target = context.target
        views = FlatViews(sequence)
        prologue = Preparation.of(sequence) or Preheader.of(sequence)
        margins = margins_of(sequence)

        known: dict[Hashable, Any] = {}

        def plan(nest: Nest, nodes: list[Node], around: list[For]) -> None:
            inside = bool(around)
            contraction = NestFacts(nodes).contraction
            if contraction is not None and split_at_digits(contraction.reduction.loops):
                nest.replace()
                contraction = NestFacts(nodes).contraction
            if contraction is None or min_extent(contraction) < 2:
                return
            if inside and not has_enough(contraction):
                return
            choices = Choices(sequence, nodes)
            # Panels made before the program depend on each other, margins on their buffers.
            by_code = (
                prologue is None
                and not inside
                and margins.keys().isdisjoint(program_buffers(nodes))
            )
            if not by_code or (schedule := known.get((choices.code, inside))) is None:
                schedule = schedule_or_reason(nest, contraction, choices, around)
            if by_code:
                known[choices.code, inside] = schedule
            if isinstance(schedule, str):
                context.decide(self.name, nest.name, "no register tiles", reason=schedule)
                return
            (loop,) = nodes
            assert isinstance(loop, For)
            loop.schedule = schedule
            nest.replace()

        def schedule_or_reason(
            nest: Nest, contraction: Contraction, choices: Choices, around: list[For]
        ) -> dict[str, Any] | str:
            reason = "no tile fits"
            # Inside of a tile there is one thread.
            threads = 1 if around else None
            team = target.shared_level.size
            ahead = prologues_of(sequence, nest, around, prologue, team)
            found = tilings_of(contraction, views, target, threads, ahead, choices)
            if not has_enough(contraction):
                # Operands that are used so seldom are not worth packing.
                reason = "few rows or columns"
                found = (tiled for tiled in found if tiled.cost.in_place)
            elif (best := next(found, None)) is not None:
                found = chain([best], found)
                dots = None if best.cost.in_place else dot_seconds(contraction, target, threads)
                if dots is not None and dots < (best.seconds or 0.0):
                    reason, found = "rows are multiplied sooner than they are packed", iter(())
            level = None if around else target.shared_level.name
            for tiled in found:
                try:
                    tiled_nodes(tiled, nest, level, ahead, margins)
                except NoLanesError as error:
                    reason = str(error)
                    continue
                return schedule_of(tiled)
            return reason

        for nest in sequence.nests():

            def visit(nodes: list[Node], around: list[For], nest: Nest = nest) -> None:
                plan(nest, nodes, around)

            change_subnests(nest, visit)
