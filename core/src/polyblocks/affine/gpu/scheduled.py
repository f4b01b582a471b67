"""From a schedule back to a kernel: what is written is obeyed, or refused with the limit it breaks.

Whatever a schedule leaves out is found by the rule by which it would have been chosen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.buffers.copies import CopyError
from polyblocks.affine.gpu.mapping.banks import pitch_rows
from polyblocks.affine.gpu.mapping.barriers import place_barriers
from polyblocks.affine.gpu.mapping.distribution import (
    ThreadDistribution,
    fastest_last,
    outer_loops,
)
from polyblocks.affine.gpu.mapping.live_registers import live_registers
from polyblocks.affine.gpu.mapping.placement import (
    COPIED_BYTES,
    elements_per_thread,
    place_buffers,
    same_for_all,
)
from polyblocks.affine.gpu.mapping.wide import is_one_walk, widen_loops, widest
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.gpu.plans.kernel import Kernel, Plan, resident_blocks
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.sizes import TileSizes
from polyblocks.affine.gpu.plans.unit_access import unit_accesses
from polyblocks.affine.gpu.plans.unit_plan import in_order, unit_plan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.scheduled_chain import scheduled_chain
from polyblocks.affine.gpu.staged.errors import StagedError
from polyblocks.affine.gpu.staged.nests import is_staged, mismatch, plain
from polyblocks.affine.gpu.tiles.lane_plans import refusal
from polyblocks.affine.model import For, Nest
from polyblocks.affine.multiply import UnitTileError
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.plan.schedule import Schedule
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.target import Multiprocessor, TargetDescription


def kind_of(schedule: Schedule) -> PlanKind:
    """The kind of plan that a schedule of a kernel is of."""
    if "chained" in schedule:
        return PlanKind.CHAIN
    if "unit" in schedule:
        return PlanKind.UNIT
    return PlanKind.LANES if "register_tile" in schedule else PlanKind.GROUPS


def scheduled_kernel(
    nest: Nest,
    numbers: Numbers,
    schedule: Schedule,
    target: TargetDescription,
    block: bool = False,
) -> tuple[Kernel, dict[str, Any]]:
    """The kernel of a nest in which atomic updates have been formed, and its whole schedule.

    Args:
        nest: what it computes.
        numbers: of the nest, from before that.
        schedule: of a kernel.
        target: of the kernel; has grids.
        block: whether one block runs the nest, and others before and behind it.

    Raises:
        UnsupportedError: the nest or the chip does not allow for the schedule; says why.
    """
    chip = target.multiprocessor
    assert chip is not None
    kind = kind_of(schedule)
    schedule.check_keys(kind)
    if block and kind is not PlanKind.GROUPS:
        raise schedule.unexpected(
            f"keys of {PlanKind.GROUPS.value}, since one block runs several nests",
            f"a schedule of {kind.value}",
        )
    plan: Plan
    if kind is PlanKind.GROUPS:
        plan = _Groups(nest, numbers, schedule, chip, block).plan()
    elif kind is PlanKind.CHAIN:
        plan = scheduled_chain(nest, Tiles.read(schedule), schedule, target)
    else:
        contraction = facts_of(nest).contraction
        tiles = Tiles.read(schedule)
        if kind is PlanKind.UNIT:
            plan = _unit_plan(contraction, tiles, schedule, target, chip)
        else:
            plan = _lane_plan(contraction, tiles, schedule, chip)
        for key, value in plan.derived().items():
            schedule.check_derived(key, value)
    schedule.within_chip(plan.blocks, chip.grid_limits[0], "blocks of a grid")
    return Kernel(nest, plan), _whole(nest, schedule, plan, target, chip)


def _whole(
    nest: Nest, schedule: Schedule, plan: Plan, target: TargetDescription, chip: Multiprocessor
) -> dict[str, Any]:
    """The schedule, with what it leaves out of the keys that all kernels have."""
    units = max(target.shared_level.size, 1)
    name = schedule.given.get("kernel", nest.name)
    if not isinstance(name, str):
        raise schedule.unexpected("a name for 'kernel'", repr(name))
    resident = schedule.number("resident", resident_blocks(plan, chip, units))
    return {**schedule.given, "kernel": name, "resident": resident}


def staged_kernel(
    nest: Nest, schedule: Schedule, target: TargetDescription
) -> tuple[Kernel, dict[str, Any]]:
    """As :func:`scheduled_kernel`, of a contraction in tiles from a nest with its copies as nodes.

    The nest is the plain one afterwards, and the kernel has the nodes.

    Raises:
        UnsupportedError: as above; or the nodes are not those of the schedule.
    """
    pipeline = None
    if "steps" in schedule:
        try:
            body, pipeline = plain(nest.body, schedule.given["steps"])
        except (StagedError, CopyError, UnitTileError) as error:
            raise schedule.refuse(str(error)) from error
        nest.replace(body)
    kernel, whole = scheduled_kernel(nest, Numbers(nest), schedule, target)
    if not is_staged(kernel.plan):
        return kernel, whole
    if pipeline is None:
        raise schedule.refuse(
            "the nest has no copies of its operands; run stage-operands before emit-kernels"
        )
    if reason := mismatch(pipeline, kernel.plan):
        raise schedule.refuse(reason)
    return replace(kernel, pipeline=pipeline), whole


def _lane_plan(
    contraction: Contraction | None, tiles: Tiles, schedule: Schedule, chip: Multiprocessor
) -> LanePlan:
    """The plan of a schedule of tiles by lanes."""
    if contraction is None:
        raise schedule.refuse("'register_tile' is of contractions, and the nest is none")
    if reason := refusal(contraction):
        raise schedule.refuse(f"the contraction has no tiles, since {reason}")
    schedule.at_most(tiles.k_block, contraction.reduction.trips, "steps along K", "k_block")
    across = tiles.in_a_block(schedule)
    sizes = TileSizes(contraction, tiles.register_tile, across, tiles.k_block)
    plan = LanePlan(sizes, chip.banks, chip.access_bits // 8)
    _check_resources(plan, schedule, chip, chip.shared_per_block)
    return plan


def _unit_plan(
    contraction: Contraction | None,
    tiles: Tiles,
    schedule: Schedule,
    target: TargetDescription,
    chip: Multiprocessor,
) -> UnitPlan:
    """The plan of a schedule of tiles by a unit."""
    known = [] if contraction is None else unit_accesses(contraction, target.matrix_units)
    wanted = schedule.given["unit"]
    access = next((each for each in known if each.unit.name == wanted), None)
    if access is None:
        possible = ", ".join(each.unit.name for each in known) or "none"
        raise schedule.unexpected(f"a unit that computes the nest ({possible})", repr(wanted))
    tiles.in_a_block(schedule)
    (m, n, k), (rows, columns), name = access.unit.shape, tiles.register_tile, access.unit.name
    schedule.multiple("register_tile", rows, m, f"rows of {name}")
    schedule.multiple("register_tile", columns, n, f"columns of {name}")
    schedule.multiple("k_block", tiles.k_block, k, f"steps of {name}")
    stages = schedule.number("stages", 2, least=2)
    cluster = schedule.pair("cluster") if "cluster" in schedule else (1, 1)
    plan = in_order(unit_plan(chip, access, tiles, stages, cluster), target)
    if not (plan.has_clusters if isinstance(plan, GroupUnitPlan) else cluster == (1, 1)):
        expected = f"a cluster of two tiles beside each other whose parts {name} can copy in boxes"
        raise schedule.unexpected(expected, str(list(cluster)), "omit 'cluster'")
    if isinstance(plan, GroupUnitPlan) and not plan.is_possible:
        expected = f"{plan.line} steps, lines of {name}, and 3 stages at least"
        raise schedule.unexpected(expected, f"{tiles.k_block} steps and {stages} stages")
    _check_resources(plan, schedule, chip, chip.shared_per_block_optin)
    return plan


def _check_resources(
    plan: LanePlan | UnitPlan, schedule: Schedule, chip: Multiprocessor, shared: int
) -> None:
    """Check what a block of a plan takes; ``shared`` is the limit of its shared memory."""
    check = schedule.within_chip
    check(plan.threads, chip.threads_per_block, "threads of a block", "block_tile")
    of = "bytes of shared memory of a block"
    check(plan.shared_bytes(), shared, of, "block_tile", "k_block")
    check(plan.registers(), chip.registers_per_thread, "registers of a thread", "register_tile")


class _Groups:
    """A schedule of groups of threads that is read."""

    def __init__(
        self,
        nest: Nest,
        numbers: Numbers,
        schedule: Schedule,
        chip: Multiprocessor,
        block: bool,
    ) -> None:
        self.numbers, self.schedule = numbers, schedule
        self.chip, self.block = chip, block
        self.outer, self.body = ([], nest.body) if block else outer_loops(nest.body)

    def plan(self) -> GroupPlan:
        """The plan of the schedule."""
        schedule = self.schedule
        group, groups = schedule.number("group"), schedule.number("groups")
        strided = schedule.choice("strided", False)
        self._check_sizes(group, groups, strided)
        if self.block and groups > 1:
            raise self.schedule.refuse("one block runs several nests, so 'groups' must be 1")
        variables = [f.var for f in self.outer]
        by_threads = group == 1 or strided
        order = fastest_last(variables, self.body, True) if by_threads else list(variables)
        if "order" in self.schedule:
            loops = self.numbers.loops(variables)
            named = self.schedule.permutation(self.schedule.given["order"], loops, "'order'")
            order = [variables[loops.index(number)] for number in named]
        plan = GroupPlan(self.outer, order, self.body, group, groups, strided)
        plan.warp, plan.live = self.chip.warp, live_registers(self.body)
        plan.access_bytes = self.chip.access_bits // 8
        plan.in_flight = self.chip.loads_in_flight
        self._distribute(plan)
        self._widen_loops(plan)
        self._place(plan)
        self._pitch(plan)
        self._copy(plan)
        self._widen(plan)
        self._wait(plan)
        needed, limit = plan.shared_bytes(), self.chip.shared_per_block_optin
        schedule.within_chip(needed, limit, "bytes of shared memory of a block", "groups")
        return plan

    def _check_sizes(self, group: int, groups: int, strided: bool) -> None:
        chip = self.chip
        if group & (group - 1):
            raise self.schedule.refuse(f"expected a power of two for 'group', got {group}")
        if strided and groups % chip.warp and chip.warp % groups:
            raise self.schedule.refuse(
                f"expected a multiple or a part of {chip.warp} (the warp size) for 'groups' of a "
                f"strided block, got {groups}"
            )
        if 1 < group < chip.warp and not strided:
            raise self.schedule.refuse(
                f"expected 1 or a multiple of {chip.warp} (the warp size) for 'group' unless "
                f"'strided', got {group}"
            )
        self.schedule.within_chip(
            group * groups, chip.threads_per_block, "threads of a block", "group", "groups"
        )

    def _distribute(self, plan: GroupPlan) -> None:
        rule = ThreadDistribution(self.body)
        if "distributed" not in self.schedule:
            plan.distributed = rule.of(plan.group, scans=not plan.strided)
        else:
            for entry in self.schedule.given["distributed"]:
                loop = self._loop(entry)
                found = rule.whole(loop) if plan.group > 1 else None
                if found is None or (found.scan and plan.strided):
                    raise self.schedule.refuse(
                        f"the threads of a group cannot share loop {entry['loop']}: its iterations "
                        "depend on each other, or there is one thread only"
                    )
                self._order(found, entry)
                plan.distributed[loop] = found
            uniform = set(plan.uniform())
            if not plan.distributed.keys() <= uniform:
                raise self.schedule.refuse(
                    "'distributed' names a loop inside of another one that it names"
                )
        if plan.group > 1 and (plan.groups > 1 or plan.strided) and plan.may_differ():
            raise self.schedule.refuse(
                "groups of one block cannot synchronize here: a loop has different bounds in each; "
                "set 'groups' to 1"
            )

    def _widen_loops(self, plan: GroupPlan) -> None:
        if not self.block:
            widen_loops(plan, self.chip)
        for entry in self.schedule.given.get("distributed", ()):
            loop = plan.distributed[self._loop(entry)]
            if "width" not in entry:
                loop.width = 1 if entry.get("pitch") else loop.width
                continue
            width = entry["width"]
            (width,) = self.schedule.numbers([width], f"'width' of loop {entry['loop']}", 1)
            if not width or loop.width % width:
                raise self.schedule.refuse(
                    f"'width' of loop {entry['loop']} is {width}, and one access is for "
                    f"{loop.width} neighbouring iterations at most, or a part of these"
                )
            loop.width = width

    def _loop(self, entry: Any) -> For:
        number = entry.get("loop") if isinstance(entry, dict) else None
        statements = self.numbers.statements
        if type(number) is int and 0 <= number < len(statements):
            found = statements[number]
            if isinstance(found, For):
                return found
        raise self.schedule.refuse(f"an entry of 'distributed' names a 'loop', not {entry!r}")

    def _order(self, found: DistributedLoop, entry: dict[str, Any]) -> None:
        if "order" not in entry:
            return
        loops = self.numbers.loops(found.order)
        named = self.schedule.permutation(entry["order"], loops, f"'order' of loop {entry['loop']}")
        found.order = [found.order[loops.index(number)] for number in named]

    def _place(self, plan: GroupPlan) -> None:
        place_buffers(plan, self.chip)
        if "places" not in self.schedule:
            return
        names = self.schedule.given["places"]
        local = self.numbers.local
        kinds = {p.value: p for p in Place}
        if not isinstance(names, list) or len(names) != len(local) or {*names} - kinds.keys():
            known = ", ".join(f"'{name}'" for name in kinds)
            raise self.schedule.refuse(
                f"expected one of {known} for each of {len(local)} local buffers in 'places', got "
                f"{names!r}"
            )
        wanted = {b: kinds[name] for b, name in zip(local, names, strict=True)}
        uniform = list(plan.uniform())
        for number, (buffer, place) in enumerate(wanted.items()):
            usual = plan.places[buffer]
            kept = usual is not Place.PRIVATE and elements_per_thread(plan, uniform, buffer) > 0
            possible = {usual, *([Place.SHARED, Place.DISTRIBUTED_REGISTERS] if kept else [])}
            if place not in possible:
                named = " or ".join(sorted(f"'{p.value}'" for p in possible))
                raise self.schedule.refuse(
                    f"local buffer {number} can live in {named}, since other threads need its "
                    f"elements or none does, not in '{place.value}'"
                )
        place_buffers(plan, self.chip, wanted)

    def _pitch(self, plan: GroupPlan) -> None:
        pitch_rows(plan, self.chip.sector)
        for entry in self.schedule.given.get("distributed", ()):
            if "pitch" not in entry and "lead" not in entry:
                continue
            loop = plan.distributed[self._loop(entry)]
            row = loop.order[-1].extent
            pitch, lead = entry.get("pitch", 0), entry.get("lead", 0)
            self.schedule.numbers([pitch, lead], "'pitch' and 'lead'", 2)
            alone = bool(loop.combiners) or len(loop.order) < 2 or loop.width > 1
            if pitch and (alone or pitch < lead + row) or (lead and not pitch):
                raise self.schedule.refuse(
                    f"expected 0 for 'pitch' of loop {entry['loop']}, or at least {row + lead} for "
                    f"a loop over rows ({row} elements and 'lead' {lead}), got {pitch}"
                )
            loop.pitch, loop.lead = pitch, lead
        uniform = list(plan.uniform())
        for buffer, place in plan.places.items():
            kept = place is Place.DISTRIBUTED_REGISTERS
            if kept and not elements_per_thread(plan, uniform, buffer):
                number = self.numbers.local.index(buffer)
                raise self.schedule.refuse(
                    f"local buffer {number} cannot live in registers: by 'order' and 'pitch' of "
                    "the loops another thread needs its elements than stores them"
                )

    def _copy(self, plan: GroupPlan) -> None:
        numbers = self.schedule.numbers(self.schedule.given.get("copies", []), "'copies'")
        if not numbers:
            return
        buffers = self.numbers.buffers
        possible = [buffers.index(b) for b in same_for_all(plan)] if plan.group > 1 else []
        for number in numbers:
            if number not in possible:
                raise self.schedule.refuse(
                    f"buffer {number} cannot be copied: not all groups read all of it, or the nest "
                    f"changes it; possible are {possible}"
                )
        plan.copied = [buffers[number] for number in numbers]
        copied = sum(b.nbytes for b in plan.copied)
        if copied > COPIED_BYTES:
            raise self.schedule.refuse(f"'copies' have {copied} bytes, and may have {COPIED_BYTES}")

    def _widen(self, plan: GroupPlan) -> None:
        width = self.schedule.number("width", 1)
        most = widest(plan, self.chip)
        if most % width:
            raise self.schedule.refuse(
                f"'width' is {width}, and one access is for {most} neighbouring iterations at "
                "most, or a part of these"
            )
        plan.width, plan.as_one = width, width > 1 and is_one_walk(plan)

    def _wait(self, plan: GroupPlan) -> None:
        place_barriers(plan)
        if "barriers" not in self.schedule:
            return
        given = set(self.schedule.numbers(self.schedule.given["barriers"], "'barriers'"))
        needed = {self.numbers.statement(n) for n in plan.barriers}
        if not needed <= given:
            raise self.schedule.refuse(
                f"missing barrier before {sorted(needed - given)}: threads exchange data there; "
                "add them to 'barriers', or omit the key"
            )
        uniform = set(plan.uniform()) if plan.group > 1 else set()
        possible = {self.numbers.statement(n) for n in uniform if n in self.numbers}
        if not given <= possible:
            raise self.schedule.refuse(
                f"barrier before {sorted(given - possible)}, which not all threads of the block "
                f"reach; possible are {sorted(possible)}"
            )
        plan.barriers = {self.numbers.statements[number] for number in given}
