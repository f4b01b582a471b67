"""From a schedule back to a kernel: what is written is obeyed, or refused with the limit it breaks.

Whatever a schedule leaves out is found by the rule by which it would have been chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

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
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.gpu.plans.kernel import Kernel, Plan, resident_blocks
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.sizes import TileSizes
from polyblocks.affine.gpu.plans.unit_access import unit_accesses
from polyblocks.affine.gpu.plans.units import UnitPlan, UnitTiling, unit_plan
from polyblocks.affine.gpu.schedule import COMMON, OF_GROUPS, OF_TILES, OF_UNITS
from polyblocks.affine.gpu.staged.nests import StagedError, is_staged, mismatch, plain
from polyblocks.affine.gpu.tiles.lane_plans import refusal
from polyblocks.affine.model import For, Nest
from polyblocks.affine.multiply import UnitTileError
from polyblocks.errors import UnsupportedError
from polyblocks.target import Multiprocessor, TargetDescription


def scheduled_kernel(
    nest: Nest,
    numbers: Numbers,
    schedule: dict[str, Any],
    target: TargetDescription,
    block: bool = False,
) -> tuple[Kernel, dict[str, Any]]:
    """The kernel of a nest in which atomic updates have been formed, and its whole schedule.

    Args:
        nest: what it computes.
        numbers: of the nest, from before that.
        schedule: see :mod:`polyblocks.affine.gpu.schedule`.
        target: of the kernel; has grids.
        block: whether one block runs the nest, and others before and behind it.

    Raises:
        UnsupportedError: the nest or the chip does not allow for the schedule; says why.
    """
    chip = target.multiprocessor
    assert chip is not None
    made = _Schedule(nest, numbers, schedule, target, chip, block)
    plan: Plan
    if "unit" in schedule:
        plan = made.units()
    else:
        plan = made.tiles() if "thread_tile" in schedule else made.groups()
    made.within(plan.blocks, chip.grid_limits[0], "blocks of a grid")
    return Kernel(nest, plan), made.common(plan)


def staged_kernel(
    nest: Nest, schedule: dict[str, Any], target: TargetDescription
) -> tuple[Kernel, dict[str, Any]]:
    """As :func:`scheduled_kernel`, of a product by a matrix unit whose copies may be nodes.

    The nest is the plain one afterwards, and the kernel has the nodes.

    Raises:
        UnsupportedError: as above; or the nodes are not those of the schedule.
    """
    chip = target.multiprocessor
    assert chip is not None
    refuse = _Schedule(nest, Numbers(nest), schedule, target, chip, False).refuse
    pipeline = None
    if "steps" in schedule:
        try:
            body, pipeline = plain(nest.body, schedule["steps"])
        except (StagedError, CopyError, UnitTileError) as error:
            raise refuse(str(error)) from error
        nest.replace(body)
    kernel, whole = scheduled_kernel(nest, Numbers(nest), schedule, target)
    if not is_staged(kernel.plan):
        if pipeline is not None:
            raise refuse("the nest has copies, and no operand of it can be copied asynchronously")
    elif pipeline is None:
        raise refuse(
            "the nest has no copies of its operands; run stage-operands before emit-kernels"
        )
    elif reason := mismatch(pipeline, kernel.plan):
        raise refuse(reason)
    return replace(kernel, pipeline=pipeline), whole


class _Schedule:
    """One schedule being read."""

    def __init__(
        self,
        nest: Nest,
        numbers: Numbers,
        schedule: dict[str, Any],
        target: TargetDescription,
        chip: Multiprocessor,
        block: bool,
    ) -> None:
        self.nest, self.numbers, self.schedule = nest, numbers, schedule
        self.target, self.chip, self.block = target, chip, block
        self.outer, self.body = ([], nest.body) if block else outer_loops(nest.body)

    def refuse(self, reason: str) -> UnsupportedError:
        """The error that says why the schedule is invalid."""
        name = self.schedule.get("kernel") or self.nest.name or "a nest"
        return UnsupportedError(f"invalid schedule for '{name}': {reason}")

    def within(self, number: int, limit: int, of: str) -> None:
        """Check a number against a limit of the chip."""
        if number > limit:
            chip = f"{self.target.name}:{self.target.arch}"
            raise self.refuse(f"expected at most {limit} {of} on {chip}, got {number}")

    def common(self, plan: Plan) -> dict[str, Any]:
        """The schedule, with what it leaves out of the keys that all have."""
        units = max(self.target.shared_level.size, 1)
        name = self.schedule.get("kernel", self.nest.name)
        if not isinstance(name, str):
            raise self.refuse(f"expected a name for 'kernel', got {name!r}")
        resident = self._number("resident", resident_blocks(plan, self.chip, units))
        return {**self.schedule, "kernel": name, "resident": resident}

    # Values

    def _known(self, keys: Iterable[str]) -> None:
        unknown = sorted(self.schedule.keys() - {*COMMON, *keys})
        if unknown:
            known = ", ".join(sorted(keys))
            raise self.refuse(f"unknown key '{unknown[0]}'; expected one of {known}")

    def _number(self, key: str, default: int | None = None, least: int = 1) -> int:
        value = self.schedule.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.refuse(f"expected an integer of at least {least} for '{key}', got {value!r}")
        return value

    def _numbers(self, value: Any, what: str, length: int | None = None) -> list[int]:
        right = isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)
        if not right or (length is not None and len(value) != length):
            many = "a list of" if length is None else f"{length}"
            raise self.refuse(f"expected {many} non-negative integers for {what}, got {value!r}")
        return list(value)

    def _permutation(self, value: Any, loops: list[int], what: str) -> list[int]:
        found = self._numbers(value, what, len(loops))
        if sorted(found) != sorted(loops):
            raise self.refuse(
                f"expected a permutation of loops {sorted(loops)} for {what}, got {found}"
            )
        return found

    def _choice(self, key: str, default: bool) -> bool:
        value = self.schedule.get(key, default)
        if not isinstance(value, bool):
            raise self.refuse(f"expected true or false for '{key}', got {value!r}")
        return value

    # Tiles of a contraction

    def tiles(self) -> LanePlan:
        """The plan of a schedule with ``thread_tile``."""
        self._known(OF_TILES)
        if self.block:
            raise self.refuse("'thread_tile' is of kernels of one nest")
        parts = facts_of(self.nest).contraction
        if parts is None:
            raise self.refuse("'thread_tile' is of contractions, and the nest is none")
        if reason := refusal(parts):
            raise self.refuse(f"the contraction has no tiles, since {reason}")
        r, c = self._numbers(self.schedule["thread_tile"], "'thread_tile'", 2)
        rows, columns = self._numbers(self.schedule.get("threads"), "'threads'", 2)
        if not r * c * rows * columns:
            raise self.refuse("'thread_tile' and 'threads' are numbers from 1 on")
        depth = self._number("depth")
        steps = parts.reduction.trips
        if depth > steps:
            raise self.refuse(f"'depth' is {depth}, and the reduction has {steps} steps")
        sizes = TileSizes(parts, (r, c), (rows, columns), depth)
        plan = LanePlan(sizes, self.chip.banks, self.chip.access_bits // 8)
        self.within(plan.threads, self.chip.threads_per_block, "threads of a block")
        self.within(plan.shared_bytes(), self.chip.shared_per_block, "bytes of shared memory")
        self.within(plan.registers(), self.chip.registers_per_thread, "registers of a thread")
        self._check_staging(plan)
        return plan

    # Tiles by a matrix unit

    def units(self) -> UnitPlan:
        """The plan of a schedule with ``unit``."""
        self._known(OF_UNITS)
        if self.block:
            raise self.refuse("'unit' is of kernels of one nest")
        parts = facts_of(self.nest).contraction
        known = [] if parts is None else unit_accesses(parts, self.target.matrix_units)
        names = {(p.unit.name, p.unit.operands): p for p in known}
        wanted = self.schedule["unit"]
        found = names.get(tuple(wanted)) if isinstance(wanted, list) else None
        if found is None:
            possible = ", ".join(f"{name} of {dtype}" for name, dtype in names) or "none"
            raise self.refuse(f"units that compute it are: {possible}; not {wanted!r}")
        warps = self._numbers(self.schedule.get("warps"), "'warps'", 2)
        of_warp = self._numbers(self.schedule.get("units_of_warp"), "'units_of_warp'", 2)
        if not all((*warps, *of_warp)):
            raise self.refuse("'warps' and 'units_of_warp' are numbers from 1 on")
        counts = self._number("calls"), self._number("stages", 2, least=2)
        tiling = UnitTiling((warps[0], warps[1]), (of_warp[0], of_warp[1]), *counts)
        plan = unit_plan(self.chip, found, tiling)
        self.within(plan.threads, self.chip.threads_per_block, "threads of a block")
        limit = self.chip.shared_per_block_optin
        self.within(plan.shared_bytes(), limit, "bytes of shared memory of a block")
        self.within(plan.registers(), self.chip.registers_per_thread, "registers of a thread")
        self._check_staging(plan)
        return plan

    def _check_staging(self, plan: LanePlan | UnitPlan) -> None:
        staging = plan.schedule(self.numbers)["staging"]
        if self.schedule.get("staging", staging) != staging:
            raise self.refuse(
                f"expected {staging} for 'staging', which follows from the other keys, got "
                f"{self.schedule['staging']}; change those, or omit it"
            )

    # Groups of threads

    def groups(self) -> GroupPlan:
        """The plan of a schedule with ``group``."""
        self._known(OF_GROUPS)
        group, groups = self._number("group"), self._number("groups")
        strided = self._choice("strided", False)
        self._check_sizes(group, groups, strided)
        if self.block and groups > 1:
            raise self.refuse("one block runs several nests, so 'groups' must be 1")
        variables = [f.var for f in self.outer]
        by_threads = group == 1 or strided
        order = fastest_last(variables, self.body) if by_threads else list(variables)
        if "order" in self.schedule:
            loops = self.numbers.loops(variables)
            named = self._permutation(self.schedule["order"], loops, "'order'")
            order = [variables[loops.index(number)] for number in named]
        plan = GroupPlan(self.outer, order, self.body, group, groups, strided)
        plan.warp, plan.live = self.chip.warp, live_registers(self.body)
        plan.access_bytes = self.chip.access_bits // 8
        self._distribute(plan)
        self._widen_loops(plan)
        self._place(plan)
        self._pitch(plan)
        self._copy(plan)
        self._widen(plan)
        self._wait(plan)
        needed, limit = plan.shared_bytes(), self.chip.shared_per_block_optin
        self.within(needed, limit, "bytes of shared memory of a block")
        return plan

    def _check_sizes(self, group: int, groups: int, strided: bool) -> None:
        chip = self.chip
        if group & (group - 1):
            raise self.refuse(f"expected a power of two for 'group', got {group}")
        if strided and groups % chip.warp:
            raise self.refuse(
                f"expected a multiple of {chip.warp} (the warp size) for 'groups' of a strided "
                f"block, got {groups}"
            )
        if 1 < group < chip.warp and not strided:
            raise self.refuse(
                f"expected 1 or a multiple of {chip.warp} (the warp size) for 'group' unless "
                f"'strided', got {group}"
            )
        self.within(group * groups, chip.threads_per_block, "threads of a block")

    def _distribute(self, plan: GroupPlan) -> None:
        rule = ThreadDistribution(self.body)
        if "distributed" not in self.schedule:
            plan.distributed = rule.of(plan.group, scans=not plan.strided)
        else:
            for entry in self.schedule["distributed"]:
                loop = self._loop(entry)
                found = rule.whole(loop) if plan.group > 1 else None
                if found is None or (found.scan and plan.strided):
                    raise self.refuse(
                        f"the threads of a group cannot share loop {entry['loop']}: its iterations "
                        "depend on each other, or there is one thread only"
                    )
                self._order(found, entry)
                plan.distributed[loop] = found
            uniform = set(plan.uniform())
            if not plan.distributed.keys() <= uniform:
                raise self.refuse("'distributed' names a loop inside of another one that it names")
        if plan.group > 1 and (plan.groups > 1 or plan.strided) and plan.may_differ():
            raise self.refuse(
                "groups of one block cannot synchronize here: a loop has different bounds in each; "
                "set 'groups' to 1"
            )

    def _widen_loops(self, plan: GroupPlan) -> None:
        if not self.block:
            widen_loops(plan, self.chip)
        for entry in self.schedule.get("distributed", ()):
            loop = plan.distributed[self._loop(entry)]
            if "width" not in entry:
                loop.width = 1 if entry.get("pitch") else loop.width
                continue
            width = entry["width"]
            (width,) = self._numbers([width], f"'width' of loop {entry['loop']}", 1)
            if not width or loop.width % width:
                raise self.refuse(
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
        raise self.refuse(f"an entry of 'distributed' names a 'loop', not {entry!r}")

    def _order(self, found: DistributedLoop, entry: dict[str, Any]) -> None:
        if "order" not in entry:
            return
        loops = self.numbers.loops(found.order)
        named = self._permutation(entry["order"], loops, f"'order' of loop {entry['loop']}")
        found.order = [found.order[loops.index(number)] for number in named]

    def _place(self, plan: GroupPlan) -> None:
        place_buffers(plan, self.chip)
        if "places" not in self.schedule:
            return
        names = self.schedule["places"]
        local = self.numbers.local
        kinds = {p.value: p for p in Place}
        if not isinstance(names, list) or len(names) != len(local) or {*names} - kinds.keys():
            known = ", ".join(f"'{name}'" for name in kinds)
            raise self.refuse(
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
                raise self.refuse(
                    f"local buffer {number} can live in {named}, since other threads need its "
                    f"elements or none does, not in '{place.value}'"
                )
        place_buffers(plan, self.chip, wanted)

    def _pitch(self, plan: GroupPlan) -> None:
        pitch_rows(plan, self.chip.sector)
        for entry in self.schedule.get("distributed", ()):
            if "pitch" not in entry and "lead" not in entry:
                continue
            loop = plan.distributed[self._loop(entry)]
            row = loop.order[-1].extent
            pitch, lead = entry.get("pitch", 0), entry.get("lead", 0)
            self._numbers([pitch, lead], "'pitch' and 'lead'", 2)
            alone = bool(loop.combiners) or len(loop.order) < 2 or loop.width > 1
            if pitch and (alone or pitch < lead + row) or (lead and not pitch):
                raise self.refuse(
                    f"expected 0 for 'pitch' of loop {entry['loop']}, or at least {row + lead} for "
                    f"a loop over rows ({row} elements and 'lead' {lead}), got {pitch}"
                )
            loop.pitch, loop.lead = pitch, lead
        uniform = list(plan.uniform())
        for buffer, place in plan.places.items():
            kept = place is Place.DISTRIBUTED_REGISTERS
            if kept and not elements_per_thread(plan, uniform, buffer):
                number = self.numbers.local.index(buffer)
                raise self.refuse(
                    f"local buffer {number} cannot live in registers: by 'order' and 'pitch' of "
                    "the loops another thread needs its elements than stores them"
                )

    def _copy(self, plan: GroupPlan) -> None:
        numbers = self._numbers(self.schedule.get("copies", []), "'copies'")
        if not numbers:
            return
        buffers = self.numbers.buffers
        possible = [buffers.index(b) for b in same_for_all(plan)] if plan.group > 1 else []
        for number in numbers:
            if number not in possible:
                raise self.refuse(
                    f"buffer {number} cannot be copied: not all groups read all of it, or the nest "
                    f"changes it; possible are {possible}"
                )
        plan.copied = [buffers[number] for number in numbers]
        copied = sum(b.nbytes for b in plan.copied)
        if copied > COPIED_BYTES:
            raise self.refuse(f"'copies' have {copied} bytes, and may have {COPIED_BYTES}")

    def _widen(self, plan: GroupPlan) -> None:
        width = self._number("width", 1)
        most = widest(plan, self.chip)
        if most % width:
            raise self.refuse(
                f"'width' is {width}, and one access is for {most} neighbouring iterations at "
                "most, or a part of these"
            )
        plan.width, plan.as_one = width, width > 1 and is_one_walk(plan)

    def _wait(self, plan: GroupPlan) -> None:
        place_barriers(plan)
        if "barriers" not in self.schedule:
            return
        given = set(self._numbers(self.schedule["barriers"], "'barriers'"))
        needed = {self.numbers.statement(n) for n in plan.barriers}
        if not needed <= given:
            raise self.refuse(
                f"missing barrier before {sorted(needed - given)}: threads exchange data there; "
                "add them to 'barriers', or omit the key"
            )
        uniform = set(plan.uniform()) if plan.group > 1 else set()
        possible = {self.numbers.statement(n) for n in uniform if n in self.numbers}
        if not given <= possible:
            raise self.refuse(
                f"barrier before {sorted(given - possible)}, which not all threads of the block "
                f"reach; possible are {sorted(possible)}"
            )
        plan.barriers = {self.numbers.statements[number] for number in given}
