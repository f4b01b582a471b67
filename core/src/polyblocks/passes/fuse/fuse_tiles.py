"""fuse-tiles: chains of nests run tile by tile, with what is between them in on-chip buffers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import ceil, inf, prod
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.dependent_reductions import have_dependent_reductions
from polyblocks.affine.analysis.facts import NestFacts, facts_of
from polyblocks.affine.contraction.tile_prologue import prologues_of
from polyblocks.affine.contraction.tilings.choice import Choices, filling_seconds, tilings_of
from polyblocks.affine.contraction.tilings.eligibility import is_tiled
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.block_cost import BlockCost
from polyblocks.affine.cost.block_room import room_of_block
from polyblocks.affine.cost.group_cost import alone, cost_of
from polyblocks.affine.cost.tile_cost import Cost
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.fusion.product_chains import chain_of, is_large
from polyblocks.affine.likeness import likeness
from polyblocks.affine.masks.shares import share_left
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    Buffer,
    For,
    Nest,
    Node,
    Opaque,
    Sequence,
    clone,
    reads,
    walk,
    writes,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.padding.absorbed import without_margins
from polyblocks.affine.padding.margins import margins_of
from polyblocks.affine.preparation import Preparation
from polyblocks.affine.rewrites.merging import fits
from polyblocks.affine.subnests import change_subnests
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import KnownSlices, Slices, all_run, slices
from polyblocks.affine.tiles.staging import copy_nest, worth_copies
from polyblocks.affine.tiles.tile_writer import has_remainder, shared_bytes, tiled
from polyblocks.affine.tiles.updates import in_place
from polyblocks.affine.users import Users
from polyblocks.affine.vectors.scan_lanes import rows_in_lanes
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription

#: Iterations of a group with a product over those that are needed: neighbours of a tile, which are
#: computed again, would be computed with all steps.
MAX_HALO = 1.05
#: Times of a launch that a kernel's work takes, from which on idle multiprocessors are looked at.
LONG_BEHIND_LAUNCH = 0.5


@dataclass(frozen=True)
class FuseTilesPass(NestPass):
    """Group nests around a destination, tile the destination, compute producers where needed.

    Groups grow from the consumers backwards: what writes a buffer that a group reads joins it
    when the cost model says that the group with the best tile is faster than the parts. A tile
    computes of every stage what it needs, its neighbours' parts included, so that tiles stay
    independent; buffers that only the group uses shrink to the size of a tile. Nothing is asked
    but accesses and costs: chains of stencils, normalizations over rows and updates of a part of a
    buffer are the same thing. Two contractions in register tiles are in one group if all that is
    between them is, and would not stay in caches otherwise: such is attention. On GPUs tiles have
    copies of what they read several times, and steps of a chain may write over what they have read
    (:mod:`polyblocks.affine.tiles.updates`).

    Before::

        affine.for %i = 0 to 1026 { ... affine.store %v, %b[%i] }
        affine.for %i = 0 to 1024 { ... affine.load %b[%i] ... affine.load %b[%i + 2] ... }

    After::

        affine.for %t = 0 to 16 {
          %l = memref.alloca() : memref<66xf32>
          affine.for %r = 0 to 66 { ... %t * 64 + %r ... affine.store %v, %l[%r] }
          affine.for %r = 0 to 64 { ... affine.load %l[%r] ... affine.load %l[%r + 2] ... } }
    """

    name: ClassVar[str] = "fuse-tiles"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.KINDS, facts.UNTILED}
    )
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PADDING, facts.UNFUSED, facts.UNTILED})
    #: Stages of one group.
    max_stages: int = 64
    #: Nodes of one group; LLVM's time grows with it.
    max_nodes: int = 3000
    #: Predicted times, with copies of the inputs over those without, up to which they are made.
    worse: float = 1.5

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Grow groups from the last nest to the first, then write them."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        if rates.unknown_rates(context.target):
            # No tile is better than another one: stages stay apart.
            return
        grouping = _Grouping(self, sequence, context)
        groups = grouping.grow()
        if context.target.has_shared_memory:
            groups = grouping.stage_inputs(groups)
            sequence.items[:] = [n for n in sequence.items if n not in grouping.spared]
        for group in groups:
            grouping.write(group)
        if groups:
            name_nests(self.name, sequence, context)


@dataclass(eq=False)
class _Group:
    """Stages that run together, in program order; the last one gives the destination."""

    stages: list[FusionStage]
    seconds: float
    found: Slices | None = None
    tile: tuple[int, ...] = ()
    cost: Cost | None = None
    local: set[Buffer] = field(default_factory=set)
    refused: set[Buffer] = field(default_factory=set)
    #: Of the work of its stages, the part that masks leave.
    share: float = 1.0
    #: The stages to write, if not the group's own.
    staged: list[FusionStage] | None = None

    @property
    def elements(self) -> tuple[int, ...]:
        """Elements of a tile, along each dimension of the destination."""
        units = self.found.units if self.found is not None else ()
        return tuple(n * unit for n, unit in zip(self.tile, units, strict=True))

    @property
    def last(self) -> Nest:
        """Where the group stands in the program."""
        return self.stages[-1].nest

    def nests(self) -> set[Nest]:
        """The nests of its stages."""
        return {stage.nest for stage in self.stages}


@dataclass(frozen=True)
class _Slicing:
    """The parts of stages in a tile of their group, and the buffers that shrink to its size."""

    found: Slices
    local: set[Buffer]


def _with_best_tile(
    stages: list[FusionStage], start: tuple[int, ...], slicing: _Slicing, target: TargetDescription
) -> _Group:
    found, local = slicing.found, slicing.local
    near = tuple(max(1, n // unit) for n, unit in zip(start, found.units, strict=False))
    tile, cost = cost_of(target, stages, found, local).best(near)
    return _Group(stages, cost.seconds, found, tile, cost, local)


def _has_register_tiles(contraction: Contraction, target: TargetDescription) -> bool:
    """Whether a thread will compute a contraction in tiles of its registers."""
    return target.has_register_tiles and is_tiled(contraction, target)


def _seconds_in_tiles(nest: Nest, target: TargetDescription) -> float:
    """Seconds of a contraction by blocks that compute tiles of it; infinite if there are none."""
    # The model of tiles of a chip's blocks is large.
    from polyblocks.affine.gpu.choose import copy_of, quickest_tiles

    if not target.launches_nests:
        return inf
    found = quickest_tiles(copy_of(nest), target)
    return inf if found is None else found[1] + target.shared_level.overhead


def _better(a: _Group, b: _Group) -> bool:
    """Whether one group is better than another one; ties go to the second one."""
    assert a.cost is not None
    assert b.cost is not None
    return (a.cost.over, a.seconds) < (b.cost.over, b.seconds)


def _shrink(group: _Group, target: TargetDescription) -> bool:
    """Make the tiles of a group smaller until a block has the memory for one; whether it has.

    The model of a block knows which buffers live at once, not whether one can take the place
    of another.
    """
    assert group.found is not None
    chip = target.multiprocessor
    if chip is None:
        return True
    stages, most = group.staged or group.stages, room_of_block(chip)
    if shared_bytes(stages, group.found, group.tile, group.local) <= most:
        return True
    model = cost_of(target, stages, group.found, group.local)
    assert isinstance(model, BlockCost)
    for tile, cost in model.smaller(group.tile):
        if shared_bytes(stages, group.found, tile, group.local) <= most:
            group.tile, group.cost, group.seconds = tile, cost, cost.seconds
            return True
    return False


def _reason_apart(options: CompileOptions, stages: list[FusionStage]) -> str:
    """Why these stages stay apart, whatever their tile would be; nothing if they may not."""
    if options.polyblocks_disable_reduce_reduce_fusion and (
        have_dependent_reductions(stage.nest for stage in stages)
    ):
        return "option"
    return ""


def _is_blocked(users: Users, stages: list[FusionStage]) -> bool:
    """Whether a stage cannot move down to the last one past the nests between them."""
    inside = {stage.nest for stage in stages}
    last = stages[-1].nest
    for stage in stages[:-1]:
        read = {b.base for b in reads(stage.nest)}
        written = {b.base for b in writes(stage.nest)}
        if users.written_between(read | written, stage.nest, last, inside):
            return True
        if users.read_between(written, stage.nest, last, inside):
            return True
    return False


class _Grouping:
    def __init__(self, owner: FuseTilesPass, sequence: Sequence, context: Any) -> None:
        self.owner = owner
        self.sequence = sequence
        self.context = context
        self.users, self.viewed = Users(sequence), sequence.viewed()
        #: Nests whose copies of padded arrays are no longer read.
        self.spared: set[Nest] = set()
        self.margins = margins_of(sequence) if context.target.launches_nests else {}
        self.nodes: dict[Nest, int] = {}
        self.group_of: dict[Nest, _Group] = {}
        self.known_slices, self.kernel_seconds = KnownSlices(), dict[Hashable, float]()
        #: Those that are contractions in register tiles.
        self.products: set[Nest] = set()
        #: These, and contractions whose steps are unrolled.
        self.contractions: set[Nest] = set()
        target = context.target
        views, rate = FlatViews(sequence), rates.lane_rate(target)
        self.preparation = Preparation.of(sequence)
        known: dict[Hashable, float | None] = {}
        for nest in sequence.nests():
            contraction = facts_of(nest).contraction
            seconds = None
            if contraction is not None and _has_register_tiles(contraction, target):
                choices = Choices(sequence, nest.body)
                # Panels made before the program depend on each other.
                if self.preparation is None and choices.code in known:
                    seconds = known[choices.code]
                else:
                    room = target.shared_level.size
                    ahead = prologues_of(sequence, nest, [], self.preparation, room)
                    tilings = tilings_of(contraction, views, target, None, ahead, choices)
                    seconds = next((tiled.seconds for tiled in tilings), None)
                    known[choices.code] = seconds
            # A product lives by its reuse in registers, which the cost model does not cover,
            # unless it will have register tiles.
            product = contraction is not None and contraction.multiplies_once and seconds is None
            # Neither does it cover a scan whose rows become lanes, many of them in one tile.
            found = rows_in_lanes(nest, target)
            apart = product or (found is not None and found.pays)
            stage = None if apart else FusionStage.of(nest, checks=True)
            if stage is not None and not stage.gathered & self.viewed:
                if seconds is not None and rate is not None:
                    stage.take(seconds, rate)
                    self.products.add(nest)
                seconds_alone = alone(target, stage)
                if contraction is not None:
                    self.contractions.add(nest)
                    seconds_alone = min(seconds_alone, _seconds_in_tiles(nest, target))
                self.group_of[nest] = _Group([stage], seconds_alone)
                self.nodes[nest] = sum(1 for _ in walk(nest.body))

    def grow(self) -> list[_Group]:
        """The groups of more than one stage."""
        nests = self.sequence.nests()
        for nest in reversed(nests):
            self._join_chain(nest)
        for nest in reversed(nests):
            group = self.group_of.get(nest)
            if group is not None and group.last is nest:
                self._grow(group)
        _join_siblings(self)
        # Groups that were better apart may be better together after they have grown.
        for nest in reversed(nests):
            group = self.group_of.get(nest)
            if group is not None and group.last is nest:
                group.refused -= {b for b in group.refused if self._has_grown(b)}
                self._grow(group)
        groups = (self.group_of.get(nest) for nest in reversed(nests))
        return [g for g in dict.fromkeys(groups) if g is not None and len(g.stages) > 1]

    def _has_grown(self, buffer: Buffer) -> bool:
        """Whether those who write a buffer are in groups of several stages."""
        groups = [self.group_of.get(w) for w in self.users.writers(buffer) if isinstance(w, Nest)]
        return any(group is not None and len(group.stages) > 1 for group in groups)

    def _grow(self, group: _Group) -> None:
        """Let those who write what a group reads join it, one buffer after the other."""
        again = True
        while again:
            again = False
            for buffer in self._candidates(group):
                merged = self._merge(group, buffer) or _with_more(self, group, buffer)
                if merged is None:
                    group.refused.add(buffer)
                    continue
                for stage in merged.stages:
                    self.group_of[stage.nest] = merged
                group, again = merged, True
                break

    def _join_chain(self, last: Nest) -> None:
        """Group a contraction with another one that it depends on, and all between them.

        Each part alone may be as well apart: only together are results of the first one nowhere in
        memory.
        """
        group = self.group_of.get(last)
        if group is None or last not in self.products or len(group.stages) > 1:
            return
        buffers = list(dict.fromkeys(n.buffer.base for n in group.stages[0].loads))
        # A divisor behind the product comes through another buffer than its terms.
        for some in dict.fromkeys([tuple(buffers), *((b,) for b in buffers)]):
            buffer = some[0]
            chain = chain_of(last, some, self.contractions, self.group_of, self.users)
            if chain is None or not is_large(chain, self.context.target):
                continue
            parts = list(dict.fromkeys(self.group_of[nest] for nest in chain))
            # Only the group leaves out what masks do.
            joined = self._grouped(parts, group, buffer, share_left(chain))
            if joined is not None:
                for stage in joined.stages:
                    self.group_of[stage.nest] = joined
                return

    def stage_inputs(self, groups: list[_Group]) -> list[_Group]:
        """Let the tiles of every group have copies of what they read several times.

        Inputs from outside are then read once, with unit stride; stages
        of one nest become groups of their own, if that is what they do.
        """
        found: list[_Group] = []
        alone = [g for g in dict.fromkeys(self.group_of.values()) if len(g.stages) == 1]
        for group in [*groups, *alone]:
            staged = self._staged(group)
            if _in_windows(self, group, staged or group):
                continue
            if staged is not None or len(group.stages) > 1:
                found.append(staged or group)
        return [g for g in found if g.last not in self.spared]

    def _staged(self, group: _Group) -> _Group | None:
        copies = {b: b.like() for b in worth_copies(group.stages)}
        if not copies:
            return None
        stages: list[FusionStage] = []
        for buffer, copy in copies.items():
            stage = FusionStage.of(copy_nest(buffer, copy))
            if stage is None:
                return None
            stages.append(stage)
        for stage in group.stages:
            if any(n.buffer in copies for n in stage.loads):
                body = clone(stage.nest.body, {}, {}, dict(copies))
                changed = FusionStage.of(Nest(body, []))
                if changed is None:
                    return None
                stages.append(changed)
            else:
                stages.append(stage)
        nests = [s.nest for s in group.stages]
        joined = self._joined(stages, group.elements, nests)
        local = set(copies.values()) | (joined.local if joined is not None else set())
        versions = in_place(stages, local)
        if joined is not None and versions is not None:
            again = self._joined(versions[0], joined.elements, nests, versions[1])
            if again is not None and _better(again, joined):
                joined, stages = again, versions[0]
        if joined is not None:
            joined.staged, joined.stages = stages, group.stages
        accept = joined is not None and joined.cost is not None and joined.cost.over == 0
        accept = accept and joined is not None and _shrink(joined, self.context.target)
        # The model does not see all that copies spare, but a tile may be too small for them.
        accept = accept and joined is not None and joined.seconds < self.owner.worse * group.seconds
        if joined is not None and joined.cost is not None:
            self.context.decide(
                self.owner.name,
                group.last.name,
                "inputs copied" if accept else "inputs left",
                buffers=[list(b.shape) for b in copies],
                in_place=versions is not None and stages is versions[0],
                tile=list(joined.elements),
                tile_bytes=joined.cost.tile_bytes,
                seconds=joined.seconds,
                seconds_before=group.seconds,
            )
        return joined if accept else None

    def _candidates(self, group: _Group) -> list[Buffer]:
        """Buffers that join the group with those who write them, the latest written first."""
        inside = group.nests()
        found: dict[Buffer, float] = {}
        for stage in group.stages:
            for buffer in stage.touched:
                if buffer in group.refused or buffer in found or buffer.kind == "input":
                    continue
                outside = [w for w in self.users.writers(buffer.base) if w not in inside]
                before = [w for w in outside if self.users.before(w, group.last)]
                if before:
                    found[buffer] = self.users.position(before[-1])
        return sorted(found, key=lambda b: -found[b])

    def _merge(self, group: _Group, buffer: Buffer) -> _Group | None:
        """The group with all who write ``buffer``, if that is allowed and pays."""
        if buffer.base is not buffer or buffer in self.viewed:
            return None
        parts: dict[_Group, None] = {group: None}
        inside = group.nests()
        for writer in self.users.writers(buffer):
            if writer in inside:
                continue
            if isinstance(writer, Opaque) or self.users.before(group.last, writer):
                return None
            part = self.group_of.get(writer)
            if part is None:
                return None
            parts.setdefault(part)
        if sum(not self.products.isdisjoint(part.nests()) for part in parts) > 1:
            self._decided(group, list(parts), buffer, "several products", None)
            return None
        return self._grouped(list(parts), group, buffer)

    def _grouped(
        self, parts: list[_Group], group: _Group, buffer: Buffer, share: float = 1.0
    ) -> _Group | None:
        """Groups as one that ends with ``group``, if that is allowed and pays.

        Args:
            parts: the groups.
            group: the last one of them.
            buffer: that brings them together.
            share: of its work that it does.
        """
        stages = [stage for part in parts for stage in part.stages]
        stages.sort(key=lambda s: self.users.position(s.nest))
        if len(stages) > self.owner.max_stages or stages[-1].nest is not group.last:
            return None
        if sum(self.nodes[s.nest] for s in stages) > self.owner.max_nodes:
            return None
        apart = sum(part.seconds for part in parts)
        share = min(share, *(part.share for part in parts))
        reason, joined = _reason_apart(self.context.options, stages), None
        if not reason:
            slicing = self._sliced(stages)
            if slicing is None:
                return None
            # The best tile takes a search: only of those that it could bring together.
            if _is_blocked(self.users, stages):
                reason = "order"
            else:
                joined = _with_best_tile(stages, group.elements, slicing, self.context.target)
        if joined is not None:
            assert joined.cost is not None
            if joined.cost.over > 0 or not _shrink(joined, self.context.target):
                reason = "room"
            elif joined.seconds * share >= apart:
                reason = "time"
            else:
                reason = _idle(self, joined, parts) or self._slowed(joined, apart / share)
            joined.share = share
            joined.seconds *= share
        self._decided(group, parts, buffer, reason, joined)
        return None if reason else joined

    def _decided(
        self,
        group: _Group,
        parts: list[_Group],
        buffer: Buffer,
        reason: str,
        joined: _Group | None,
    ) -> None:
        """Report whether groups are one; ``reason`` says why they are not."""
        details: dict[str, Any] = {
            "with_": [s.nest.name for part in parts if part is not group for s in part.stages],
            "buffer": list(buffer.shape),
            "buffer_bytes": buffer.nbytes,
        }
        if joined is not None:
            assert joined.cost is not None
            details |= {
                "tile": list(joined.elements),
                "apart_seconds": sum(part.seconds for part in parts),
                "fused_seconds": joined.seconds,
                "compute_seconds": joined.cost.compute,
                "memory_seconds": joined.cost.memory,
                "cache_seconds": joined.cost.cache,
                "redundancy": joined.cost.redundancy,
                "tile_bytes": joined.cost.tile_bytes,
            }
        if reason:
            details["reason"] = reason
        what = "kept apart" if reason else "fused"
        self.context.decide(self.owner.name, group.last.name, what, **details)

    def _joined(
        self,
        stages: list[FusionStage],
        start: tuple[int, ...],
        nests: list[Nest] | None = None,
        updated: set[Buffer] | None = None,
    ) -> _Group | None:
        """These stages as one group with its best tile; None if they cannot be.

        ``nests`` are those of the program that they stand for, if not their own; ``updated`` are
        buffers with several versions.
        """
        slicing = self._sliced(stages, nests, updated)
        target = self.context.target
        return None if slicing is None else _with_best_tile(stages, start, slicing, target)

    def _sliced(
        self,
        stages: list[FusionStage],
        nests: list[Nest] | None = None,
        updated: set[Buffer] | None = None,
    ) -> _Slicing | None:
        """The parts of these stages in a tile, see :meth:`_joined`; None if they have no tiles."""
        inside = {stage.nest for stage in stages} | set(nests or ())
        local: set[Buffer] = set()
        kept: set[Buffer] = set()
        for written in dict.fromkeys(s.buffer for stage in stages for s in stage.stores):
            if written.base is not written or written in self.viewed:
                return None
            users = [*self.users.readers(written), *self.users.writers(written)]
            if written.kind == "alloc" and all(u in inside for u in users):
                local.add(written)
            else:
                kept.add(written)
        own = dict.fromkeys(s.buffer for s in stages[-1].stores)
        root = next((b for b in own if b in kept), None)
        if root is None:
            return None
        rows = not self.context.target.has_shared_memory
        found = slices(stages, root, kept, updated, rows, self.known_slices)
        if found is None or not all(all_run(s, found) for s in stages if s.checked):
            return None
        return _Slicing(found, local)

    def _slowed(self, group: _Group, apart: float) -> str:
        """The reason against a product in a tile; empty if there is no product, or no reason."""
        assert group.cost is not None
        products = [s.seconds for s in group.stages if s.seconds is not None]
        if not products:
            return ""
        if group.cost.redundancy > MAX_HALO:
            return "computed again"
        seconds = self._tiled_seconds(group)
        if seconds is None:
            return "thin tiles"
        # A tile has fewer ways to be cut, and copies what several tiles need more than once.
        group.seconds += seconds - sum(products)
        return "time" if group.seconds >= apart else ""

    def _tiled_seconds(self, group: _Group) -> float | None:
        """Seconds of a group's product, done tile by tile; None if tiles are too thin for it."""
        bodies = self.bodies(group)
        if bodies is None:
            return None
        target = self.context.target
        views, threads = FlatViews(self.sequence), target.shared_level.size
        found: list[float] = []

        def see(nodes: list[Node], around: list[For]) -> None:
            contraction = NestFacts(nodes).contraction
            if contraction is None or not _has_register_tiles(contraction, target):
                return
            choices = Choices(self.sequence, nodes)
            ahead = prologues_of(self.sequence, within, around, self.preparation, threads)
            tiled = next(tilings_of(contraction, views, target, 1, ahead, choices), None)
            if tiled is not None and tiled.seconds is not None:
                runs = prod(loop.trips for loop in around)
                found.append(-(-runs // target.shared_level.size) * tiled.seconds)
                found.append(filling_seconds(tiled.cost, ahead))

        for within in (Nest(body, []) for body in bodies):
            change_subnests(within, see)
        return sum(found) or None

    def write(self, group: _Group) -> None:
        """Replace a group's last stage by its nest."""
        bodies = self.bodies(group)
        if bodies is None:
            return
        last = group.last
        last.sources = merged_sources([stage.nest for stage in group.stages])
        last.replace(bodies[0])
        for body in bodies[1:]:
            remainder = Nest(body, [], changed=True)
            remainder.name, remainder.kind = f"{last.name}_remainder", last.kind
            remainder.sources = last.sources
            self.sequence.items.insert(self.sequence.items.index(last) + 1, remainder)
        for stage in group.stages[:-1]:
            self.sequence.items.remove(stage.nest)

    def bodies(self, group: _Group) -> list[list[Node]] | None:
        """The body of the nest of a group; None if its tiles cannot be written.

        Contractions have no bounds of their own: tiles that do not divide the rows leave a
        remainder, which is a second nest.
        """
        assert group.found is not None
        stages, rows = group.staged or group.stages, not self.context.target.has_shared_memory
        parts: tuple[bool | None, ...] = (None,)
        if any(stage.seconds is not None for stage in stages):
            parts = (False, True) if has_remainder(group.found, group.tile) else (None,)
        bodies = [tiled(stages, group.found, group.tile, group.local, rows, p) for p in parts]
        found = [body for body in bodies if body is not None]
        return found if len(found) == len(bodies) else None


def _idle(grouping: _Grouping, group: _Group, parts: list[_Group]) -> str:
    """A reason if tiles leave multiprocessors idle, and kernels of the parts are quicker therefore.

    The model of groups knows no threads that read rows apart from their neighbours': where there
    are few tiles, and these take long, that of kernels decides.
    """
    target = grouping.context.target
    launch = target.shared_level.overhead
    if not target.launches_nests or group.seconds < (1 + LONG_BEHIND_LAUNCH) * launch:
        return ""
    assert group.found is not None
    sizes = zip(group.found.tile, group.tile, strict=True)
    if prod(ceil(y.extent / n) for y, n in sizes) >= target.shared_level.size:
        return ""
    # The model of a chip's blocks is large.
    from polyblocks.affine.gpu.choose import choose, copy_of

    def seconds(some: _Group) -> float:
        bodies = grouping.bodies(some) if some.found is not None else [some.last.body]
        return sum(seconds_of(body) + launch for body in bodies or ()) or inf

    def seconds_of(body: list[Node]) -> float:
        known, key = grouping.kernel_seconds, likeness(body)
        if key not in known:
            known[key] = choose(copy_of(Nest(body, [])), target)[1].seconds
        return known[key]

    try:
        return "idle" if seconds(group) > sum(map(seconds, parts)) else ""
    except UnsupportedError:
        return ""


def _join_siblings(grouping: _Grouping) -> None:
    """Let groups that read the same arrays from memory be one, which reads them once.

    On GPUs alone: threads of a team find in caches what the nest before has read.
    """
    if not grouping.context.target.launches_nests:
        return
    for nest in reversed(grouping.sequence.nests()):
        again = True
        while again:
            group = grouping.group_of.get(nest)
            again = group is not None and group.last is nest and _join_sibling(grouping, group)


def _join_sibling(grouping: _Grouping, group: _Group) -> bool:
    """Let the nearest group before this one that reads the same be one with it, if that pays."""
    read = _read_from_memory(grouping, group)
    found = {
        part: buffer
        for buffer in read
        for reader in grouping.users.readers(buffer.base)
        if isinstance(reader, Nest) and (part := grouping.group_of.get(reader)) is not None
    }
    nearest = sorted(found, key=lambda part: -grouping.users.position(part.last))
    for part in nearest:
        if part is group or not grouping.users.before(part.last, group.last):
            continue
        if not grouping.contractions.isdisjoint(part.nests() | group.nests()):
            continue
        stored = {store.buffer for stage in part.stages for store in stage.stores}
        if any(load.buffer in stored for stage in group.stages for load in stage.loads):
            # Growing has weighed that.
            continue
        loops = [n.body[0] for n in (part.last, group.last)]
        single = [n for n in loops if isinstance(n, For)] if len(part.stages) == 1 else []
        if len(group.stages) == 1 and len(single) == 2 and fits(*single):
            # Loops that can be one need no tiles for that.
            continue
        joined = grouping._grouped([part, group], group, found[part])
        if joined is not None:
            for stage in joined.stages:
                grouping.group_of[stage.nest] = joined
            return True
    return False


def _with_more(grouping: _Grouping, group: _Group, buffer: Buffer) -> _Group | None:
    """A group with all who write ``buffer``, and all who write what these read, if that pays.

    It may where what is read once more is two nests away: sums that are divided before the rows
    that they are of are read again.
    """
    if not grouping.context.target.launches_nests or not grouping.contractions.isdisjoint(
        group.nests()
    ):
        return None
    read = set(_read_from_memory(grouping, group))
    parts, farther = _writers(grouping, group, buffer), dict[_Group, None]()
    for part in parts:
        for needed in part.stages[0].touched if part is not group else ():
            farther |= dict.fromkeys(_writers(grouping, part, needed))
    more = [p for p in farther if p not in (group, *parts)]
    if not any(read & set(_read_from_memory(grouping, part)) for part in more):
        return None
    if any(not grouping.contractions.isdisjoint(p.nests()) for p in (*parts, *more)):
        return None
    return grouping._grouped([*dict.fromkeys([*more, *parts, group])], group, buffer)


def _writers(grouping: _Grouping, group: _Group, buffer: Buffer) -> list[_Group]:
    """The groups of the nests before a group that write a buffer."""
    nests = [w for w in grouping.users.writers(buffer.base) if isinstance(w, Nest)]
    found = (grouping.group_of.get(w) for w in nests if grouping.users.before(w, group.last))
    return [part for part in dict.fromkeys(found) if part is not None]


def _read_from_memory(grouping: _Grouping, group: _Group) -> list[Buffer]:
    """The buffers that a group reads and no cache has."""
    target = grouping.context.target
    main = len(target.memory) - 1
    loads = dict.fromkeys(load.buffer for stage in group.stages for load in stage.loads)
    return [b for b in loads if rates.found_in(target, b.nbytes) == main and b not in group.local]


def _in_windows(grouping: _Grouping, group: _Group, tiles: _Group) -> bool:
    """Let threads read their neighbours' windows of memory, if that is quicker than tiles.

    Zeros around an array are nowhere in memory then.
    """
    target, nest, copies = grouping.context.target, group.last, group.nests() - {group.last}
    if not target.launches_nests:
        return False
    absorbed = without_margins(nest, grouping.margins, grouping.users)
    instead, spared = (nest, set()) if absorbed is None else (absorbed.nest, absorbed.copies)
    in_tiles = tiles.staged is not None or copies
    if not copies <= spared or (absorbed is None and not in_tiles):
        return False
    # Tiles of other nests are not undone.
    parts = [grouping.group_of[n] for n in spared - copies if n in grouping.group_of]
    if any(len(part.stages) > 1 for part in parts):
        return False
    # The model of a chip's blocks is large.
    from polyblocks.affine.gpu.windows import compared

    bodies = grouping.bodies(tiles) if in_tiles else [nest.body]
    found = compared(instead, [*(bodies or []), *(n.body for n in spared - copies)], target)
    if found is None:
        return False
    nest.replace(instead.body)
    grouping.spared |= spared
    what = "windows read"
    grouping.context.decide(grouping.owner.name, nest.name, what, copies=len(spared), **found)
    return True
