"""How many threads work on one outer iteration: the smallest predicted time of a few choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from polyblocks.affine.analysis.access_order import fastest_last
from polyblocks.affine.cost.block_cost import BANDS, THREADS
from polyblocks.affine.cost.block_room import SCRATCH
from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.mapping.atomics import form_atomics
from polyblocks.affine.gpu.mapping.banks import pitch_rows
from polyblocks.affine.gpu.mapping.barriers import place_barriers
from polyblocks.affine.gpu.mapping.distribution import (
    ThreadDistribution,
    has_loops,
    outer_loops,
)
from polyblocks.affine.gpu.mapping.kernel_cost import least_groups
from polyblocks.affine.gpu.mapping.live_registers import live_registers
from polyblocks.affine.gpu.mapping.placement import COPIED_BYTES, place_buffers, same_for_all
from polyblocks.affine.gpu.mapping.wide import is_one_walk, widen_loops, widest
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.gpu.plans.kernel import Kernel, Plan
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.sizes import Grid
from polyblocks.affine.gpu.predict import predict
from polyblocks.affine.gpu.scheduled import scheduled_kernel
from polyblocks.affine.gpu.tiles.lanes_cost import quickest_lanes
from polyblocks.affine.gpu.tiles.units_cost import quickest_units
from polyblocks.affine.model import For, Nest, clone
from polyblocks.affine.plan.schedule import Schedule
from polyblocks.errors import UnsupportedError
from polyblocks.target import Multiprocessor, TargetDescription


def choose(
    nest: Nest, target: TargetDescription, beside: Sequence[Grid] = ()
) -> tuple[Kernel, Predicted]:
    """The kernel of a nest.

    Args:
        nest: what it does.
        target: has grids.
        beside: sizes of the products that are launched with a product.

    Raises:
        ValueError: the target has no grids.
        UnsupportedError: it takes more blocks than a grid may have, or more shared memory than a
            block may have.
    """
    chip = target.multiprocessor
    if chip is None:
        raise ValueError(f"the target '{target.name}' has no grids of blocks: it maps to a team")
    if (chain := _chained(nest, target)) is not None:
        return chain, predict(chain, target)
    form_atomics(nest.body)
    if beside and (found := quickest_units(nest, target, chip, beside)) is not None:
        kernel = Kernel(nest, found[0])
        return kernel, predict(kernel, target)
    tiles = quickest_tiles(nest, target)
    least = least_groups(nest, target)
    groups = None if tiles is not None and tiles[1] < least else _groups(nest, target, chip)
    plan: Plan
    if tiles is None and groups is None:
        raise UnsupportedError(
            f"its reductions take more than the {chip.shared_per_block_optin} bytes of shared "
            f"memory that a block of the target '{target.name}' has"
        )
    if groups is None or (tiles is not None and groups[0] > (False, tiles[1])):
        assert tiles is not None
        plan, _ = tiles
    else:
        _, by_groups = groups
        _widen(by_groups, target, chip)
        _fit_grid(by_groups, chip)
        place_barriers(by_groups)
        plan = by_groups
    if plan.blocks > chip.grid_limits[0]:
        raise UnsupportedError(
            f"it would take {plan.blocks} blocks of {plan.threads} threads, where a grid of "
            f"the target '{target.name}' has at most {chip.grid_limits[0]}; compute parts of the "
            "arrays one after the other"
        )
    kernel = Kernel(nest, plan)
    return kernel, predict(kernel, target)


def choose_with(
    nest: Nest, target: TargetDescription, threads: int
) -> tuple[Kernel, Predicted] | None:
    """The quickest kernel of groups of threads whose blocks have this number of threads.

    None if a grid cannot have it, or if threads would have private memory.
    """
    chip = target.multiprocessor
    assert chip is not None
    found = _groups(nest, target, chip, threads)
    if found is None or found[0][0] or found[1].blocks > chip.grid_limits[0]:
        return None
    _, plan = found
    place_barriers(plan)
    kernel = Kernel(nest, plan)
    return kernel, predict(kernel, target)


def copy_of(nest: Nest) -> Nest:
    """Another nest that does the same: to choose a kernel of a nest may change it."""
    copied = Nest(clone(nest.body, {}, {}), [])
    copied.name, copied.kind = nest.name, nest.kind
    return copied


def _chained(nest: Nest, target: TargetDescription) -> Kernel | None:
    """The kernel of a nest that has its schedule already: a chain of products."""
    loop = nest.body[0] if nest.body else None
    if not isinstance(loop, For) or loop.schedule is None:
        return None
    schedule = Schedule(loop.schedule, nest.name, f"{target.name} {target.arch}")
    return scheduled_kernel(nest, Numbers(nest), schedule, target)[0]


def _groups(
    nest: Nest, target: TargetDescription, chip: Multiprocessor, threads: int = 0
) -> tuple[tuple[bool, float], GroupPlan] | None:
    """The quickest plan whose groups of threads do outer iterations, after the key of choice.

    None if a block has the shared memory for none, or if it should have ``threads`` of them.
    """
    plans = _Plans(nest, chip)
    found: list[tuple[tuple[bool, float], GroupPlan]] = []
    for group, groups, strided, copies in _choices(chip, has_loops(plans.body)):
        # A block has as many groups, or fewer.
        if threads and not group <= threads <= group * groups:
            continue
        plan = plans.of(group, groups, strided)
        if group > 1 and not plan.distributed:
            continue
        if group % chip.warp and strided and not plan.strided:
            continue
        if copies:
            plan.copied = same_for_all(plan) if plan.groups == groups else []
            if not plan.copied or sum(b.nbytes for b in plan.copied) > COPIED_BYTES:
                continue
        else:
            _shrink(plan, target.shared_level.size)
        if plan.shared_bytes() + SCRATCH > chip.shared_per_block_optin:
            continue
        if threads and plan.threads != threads:
            continue
        seconds = predict(Kernel(nest, plan), target).seconds
        # Private memory that is no register is worse than anything the model knows of.
        scratch = plan.registers() > chip.registers_per_thread
        found.append(((scratch, seconds), plan))
    # Ties go to the simpler one, which comes first.
    return min(found, key=lambda entry: entry[0], default=None)


def quickest_tiles(nest: Nest, target: TargetDescription) -> tuple[Plan, float] | None:
    """The quickest plan that computes tiles of a contraction, and its seconds, if there is one."""
    chip = target.multiprocessor
    assert chip is not None
    by_unit = quickest_units(nest, target, chip)
    most = inf if by_unit is None else by_unit[1].seconds
    found = quickest_lanes(nest, target, chip, most=most) or by_unit
    return None if found is None else (found[0], found[1].seconds)


def _fit_grid(plan: GroupPlan, chip: Multiprocessor) -> None:
    """Larger blocks where there would be too many; only of threads that work by themselves."""
    while plan.blocks > chip.grid_limits[0] and plan.group == 1 and not plan.distributed:
        if 2 * plan.threads > chip.threads_per_block:
            return
        plan.groups *= 2


def _widen(plan: GroupPlan, target: TargetDescription, chip: Multiprocessor) -> None:
    """Let threads do several iterations at once, where as many threads are left as keep busy."""
    width = widest(plan, chip)
    while width > 1 and plan.iterations // width < target.shared_level.size * chip.threads:
        width //= 2
    plan.width, plan.as_one = width, width > 1 and is_one_walk(plan)


def _choices(chip: Multiprocessor, loops: bool) -> Iterator[tuple[int, int, bool, bool]]:
    """Threads of a group, groups of a block, and whether a group's threads are apart.

    And whether a block begins with copies of what all of its groups read.
    """
    yield 1, THREADS, False, False
    if not loops:
        return
    group = chip.warp
    while group <= min(chip.threads_per_block, 1024):
        yield group, max(1, THREADS // group), False, False
        groups = 2
        while group * groups <= chip.threads_per_block:
            yield group, groups, False, True
            groups *= 2
        group *= 2
    most = min(chip.threads_per_block, 1024)
    # Neighbours of a warp read what memory moves at once, the others what is some rows below.
    for groups in (chip.warp // bands for bands in BANDS):
        group = 4 * chip.warp // groups
        while group * groups <= most:
            yield group, groups, True, False
            group *= 2


class _Plans:
    """Ways to run one nest; what they have in common is found out once."""

    def __init__(self, nest: Nest, chip: Multiprocessor) -> None:
        self.chip = chip
        self.outer, self.body = outer_loops(nest.body)
        self._variables = [loop.var for loop in self.outer]
        # Neighbouring threads work on neighbouring outer iterations.
        self._by_threads = fastest_last(self._variables, self.body, by_threads=True)
        self._sharing = ThreadDistribution(self.body)
        self._live = live_registers(self.body)

    def of(self, group: int, groups: int, strided: bool) -> GroupPlan:
        """The kernel with ``group`` threads per group and ``groups`` groups per block."""
        order = self._by_threads if group == 1 or strided else self._variables
        plan = GroupPlan(self.outer, list(order), self.body, group, groups, strided)
        plan.warp, plan.live = self.chip.warp, self._live
        plan.access_bytes = self.chip.access_bits // 8
        plan.in_flight = self.chip.loads_in_flight
        plan.distributed = self._sharing.of(group, scans=not strided)
        if group > 1 and plan.may_differ():
            plan.groups, plan.strided = 1, False
        widen_loops(plan, self.chip)
        place_buffers(plan, self.chip)
        pitch_rows(plan, self.chip.sector)
        return plan


def _shrink(plan: GroupPlan, units: int) -> None:
    """Smaller blocks, as long as there are too few for all multiprocessors."""
    least = plan.groups if plan.strided else plan.warp if plan.group == 1 else 1
    while plan.groups > least and plan.blocks < 2 * units:
        plan.groups //= 2


def choose_block(nests: list[Nest], chip: Multiprocessor) -> list[Kernel]:
    """How one block of threads runs nests one after the other: the threads share all loops."""
    most = max((_iterations(nest) for nest in nests), default=1)
    threads = chip.warp
    while threads < min(most, THREADS, chip.threads_per_block):
        threads *= 2
    return [Kernel(nest, _of_block(nest, threads, chip)) for nest in nests]


def _of_block(nest: Nest, threads: int, chip: Multiprocessor) -> GroupPlan:
    form_atomics(nest.body)
    plan = GroupPlan([], [], nest.body, threads, warp=chip.warp)
    plan.distributed = ThreadDistribution(nest.body).of(threads)
    place_buffers(plan, chip)
    pitch_rows(plan, chip.sector)
    place_barriers(plan)
    return plan


def _iterations(nest: Nest) -> int:
    """Most iterations of a loop of the nest, with those nested perfectly in it."""
    most = 1
    for node in nest.body:
        count, body = 1, [node]
        while len(body) == 1 and isinstance(body[0], For):
            count *= max(body[0].var.extent, 1)
            body = body[0].body
        most = max(most, count)
    return most
