"""Plans of chains of products by a matrix unit: results of the first ones are operands of the last.

A lane's sums of a first product are the elements that it needs of the second one's rows, where the
unit's accumulator and its first operand have rows, and columns or steps, in the same lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from polyblocks.affine.gpu.plans.chained import ChainedProducts, is_at_border
from polyblocks.affine.gpu.plans.fragments import exchanges_of, turned
from polyblocks.affine.gpu.plans.lanes import ADDRESSES
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.sizes import TileSizes, extent
from polyblocks.affine.gpu.plans.unit_access import UnitAccess, unit_accesses
from polyblocks.affine.gpu.plans.unit_plan import unit_plan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.model import For, Load
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.occupancy import occupancy
from polyblocks.target import MatrixUnit, Multiprocessor, TargetDescription

#: Columns of the second product's tile are a multiple of this, so that it is read by columns.
_COLUMNS = 64
#: Registers beside sums and operands: of addresses, of a row's numbers, and of loops.
_OTHER = 38 - ADDRESSES
#: The same where operands come through registers: of addresses for each place of a swizzle as well.
_THROUGH = 44
#: Those of the exchanges of each of a warp's units along rows but the first.
_EXCHANGES = 48


@dataclass(frozen=True, eq=False)
class ChainPlan:
    """How the warps of blocks compute rows of a chain of products.

    Attributes:
        parts: of the nest.
        firsts, second: how the products are computed; a block has all columns of the second one,
            and all steps of a first one at once.
        holds_rows: whether the first products' rows stay in registers, and are not read from shared
            memory for each block of steps.
    """

    kind: ClassVar[PlanKind] = PlanKind.CHAIN

    parts: ChainedProducts
    firsts: tuple[UnitPlan, ...]
    second: UnitPlan
    holds_rows: bool = False

    @property
    def first(self) -> UnitPlan:
        """The first of the first ones: all have the same rows and steps."""
        return self.firsts[0]

    @property
    def unit(self) -> MatrixUnit:
        """The matrix unit."""
        return self.first.unit

    @property
    def plans(self) -> tuple[UnitPlan, ...]:
        """Of all products."""
        return *self.firsts, self.second

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.first.threads

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        sizes = self.second.sizes
        return extent(sizes.parts.batch) * sizes.grid[0]

    @property
    def tile(self) -> tuple[int, ...]:
        """Rows and columns of a block, and steps of the second product at a time."""
        return self.second.tile

    @property
    def stages(self) -> int:
        """Blocks of steps whose operands are in shared memory.

        With one, the second product's come while the first one is computed, and the next block's
        while the second one is.
        """
        return self.first.stages

    @property
    def through_registers(self) -> bool:
        """Whether operands come to shared memory through the registers, of one stage then."""
        return self.first.copies is None

    @cached_property
    def shared(self) -> tuple[tuple[int, ...], ...]:
        """Shapes in shared memory: of each first product's operands, and of the second one's."""
        found: list[tuple[int, ...]] = []
        for first in self.firsts:
            rows, steps = (first.shape(o) for o in first.product.operands)
            found += [(1, *rows[1:]), steps]
        return *found, self.second.shape(self.second.product.operands[1])

    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        total = 0
        for stages, length, depth in self.shared:
            total += stages * length * depth
        return total * self.first.element_bytes

    def registers(self) -> int:
        """32-bit registers of a thread, about."""
        (r, c), (_, d) = self.first.sizes.of_thread, self.second.sizes.of_thread
        width = self.first.element_bytes
        assert self.unit.fragments is not None
        a, b, _ = self.unit.fragments
        rows = self.first.of_warp[0] * a.elements * width // 4
        elements = len(self.firsts) * r * c + self._of_columns * c
        if self.through_registers:
            # Rows of this call and of the next one, a part of the columns, and what is on its way.
            columns = self.first.read_ahead * b.elements * width // 4
            copied = sum(p.copied_words(p.product.operands[1]) for p in self.plans)
            # Of masks, where each column is.
            masks = c if any(map(is_at_border, self._of_steps)) else 0
            sums = (
                elements
                + r * d
                + (self._exchanged(r * c) if exchanges_of(self.unit, self.unit) else 0)
            )
            return sums + 2 * rows + columns + copied + masks + _THROUGH
        columns = max(p.of_warp[1] for p in self.plans) * b.elements * width // 4
        # Elements become operands one after the other, in place of sums; a part of a call's columns
        # is on its way from shared memory.
        elements += r * c // 8
        if self.holds_rows:
            rows *= sum(first.calls for first in self.firsts)
        return elements + r * d + rows + columns // 8 + _OTHER + ADDRESSES

    @property
    def issued(self) -> float:
        """Instructions of a thread for a block of steps."""
        (r, c), (_, d) = self.first.sizes.of_thread, self.second.sizes.of_thread
        copying = sum(p.copying(p.product.operands[1]) for p in self.plans)
        reading = sum(p.reading for p in self.plans)
        return r * c * (self.parts.operations + len(self.firsts)) + r * d + copying + reading

    @property
    def read(self) -> float:
        """Elements in shared memory that a block's warps read for a block of steps."""
        assert self.unit.fragments is not None
        columns, (_, n, k) = self.unit.fragments[1], self.unit.shape
        # Lanes of a warp read the same element.
        replicas = self.first.warp * columns.elements // (n * k)
        rows, width, block = self.tile
        depth = sum(p.tile[2] for p in self.firsts)
        read = replicas * (self.threads // self.first.warp) * block * (depth + width)
        return read + (0 if self.holds_rows else rows * depth)

    @property
    def independent_parts(self) -> int:
        """Parts of a block whose warps wait for what its others do, but not for each other."""
        return 1

    @property
    def slots_alone(self) -> float:
        """Issue slots of an instruction of such a part while no other one has instructions."""
        return 1.0

    @property
    def has_idle_copiers(self) -> bool:
        """Whether some threads have nothing to copy in a round of a block of steps."""
        return any(p.pieces(p.product.operands[1]) % p.threads for p in self.plans)

    @cached_property
    def _of_columns(self) -> int:
        """Numbers of each step that statements of a block load, whatever the row is.

        Elements that they pass on are in registers; where there is one row, it has no variable.
        """
        rows = {v for first in self.parts.firsts for v in first.rows}
        return sum(
            not rows.intersection(node.variables())
            for statement in self._of_steps
            if statement is not self.parts.used
            for node in statement.body
            if isinstance(node, Load) and statement.var in node.variables()
            if node.buffer not in self.parts.passed
        )

    @property
    def _of_steps(self) -> list[For]:
        """Statements of a block that are loops."""
        return [n for n in self.parts.statements if isinstance(n, For)]

    def _exchanged(self, elements: int) -> int:
        """Registers of elements that lanes exchange: words of them, and copies on the way."""
        words = elements * self.first.element_bytes // 4
        return words + _EXCHANGES * (self.first.of_warp[0] - 1)

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The plan as data."""
        tiles = self.first.tiles.schedule()
        return {**tiles, "stages": self.stages, "unit": self.unit.name, "chained": True}

    def derived(self) -> dict[str, Any]:
        """Keys that follow from these: none."""
        return {}

    def decision(self) -> dict[str, Any]:
        """Its numbers for reports; ``extents`` has rows, columns and steps of the first product,
        to which columns of the second one are added, and how many chains there are."""
        (rows, columns, steps), (_, more, _) = self.first.sizes.counts, self.second.sizes.counts
        sizes = self.second.sizes.decision()
        return {
            **sizes,
            "extents": [rows, columns, steps * len(self.firsts) + more, sizes["extents"][-1]],
            "causal": any(map(is_at_border, self._of_steps)),
            "unit": self.unit.name,
            "operands": self.unit.operands,
        }

    def last_sizes(self) -> TileSizes:
        """The sizes of the second product, with what is done with its totals."""
        sizes = self.second.sizes
        return TileSizes(self.parts.last, sizes.of_thread, sizes.across, sizes.depth)


def chain_plan(
    parts: ChainedProducts,
    accesses: tuple[UnitAccess, ...],
    chip: Multiprocessor,
    warps: int,
    height: int,
    stages: int,
) -> ChainPlan | None:
    """The plan whose blocks have ``warps`` warps along rows; None if the chip cannot run it.

    Args:
        parts: of the nest.
        accesses: see :func:`chain_accesses`; of a unit that warps call one by one.
        chip: with that unit.
        warps: of a block.
        height: rows of each.
        stages: blocks of steps in shared memory.
    """
    plans = plans_of(parts, accesses, chip, warps, height, stages, accesses[-1].unit.shape[2])
    if plans is None:
        return None
    plan = ChainPlan(parts, *plans)
    if not _is_possible(plan, chip):
        return None
    held = replace(plan, holds_rows=True)
    return held if _has_room(held, plan, chip) else plan


def plans_of(
    parts: ChainedProducts,
    accesses: tuple[UnitAccess, ...],
    chip: Multiprocessor,
    warps: int,
    height: int,
    stages: int,
    multiple: int,
) -> tuple[tuple[UnitPlan, ...], UnitPlan] | None:
    """How the first products and the last one are computed; None if tiles are no whole units.

    Arguments as of :func:`chain_plan`; steps of the first ones are a multiple of ``multiple``.
    """
    *firsts, second = accesses
    m, n, k = firsts[0].unit.shape
    block, width = parts.block, width_of(second)
    if height % m or block % n or block % k or block % 16 or width % second.unit.shape[1]:
        return None
    rows = warps * height
    wanted = [(first, block, -(-_trips(first) // multiple) * multiple) for first in firsts]
    *plans, last = [
        unit_plan(chip, access, Tiles((height, columns), (rows, columns), steps), stages)
        for access, columns, steps in (*wanted, (second, width, block))
    ]
    return tuple(plans), last


def width_of(second: UnitAccess) -> int:
    """Columns of the second product's tile: all of them."""
    return -(-extent(second.product.columns) // _COLUMNS) * _COLUMNS


def _has_room(held: ChainPlan, plan: ChainPlan, chip: Multiprocessor) -> bool:
    """Whether a plan that holds rows leaves as many blocks on a multiprocessor as another one."""
    if held.through_registers or held.registers() > chip.registers_per_thread:
        return False
    with_rows, without = (
        occupancy(chip, p.registers(), p.shared_bytes(), p.threads).blocks for p in (held, plan)
    )
    return with_rows == without


def _trips(access: UnitAccess) -> int:
    return access.product.contraction.reduction.trips


def _is_possible(plan: ChainPlan, chip: Multiprocessor) -> bool:
    """Whether operands can be copied to shared memory, and a block has room for them."""
    second = plan.second
    copied = [(first, o) for first in plan.firsts for o in first.product.operands]
    copied.append((second, second.product.operands[1]))
    if plan.through_registers:
        if plan.stages > 1 or not all(e.along(o) in ("steps", "outer") for e, o in copied):
            return False
        # Branches of copies: operands of the rows are read before the loop, and spilled.
        if plan.has_idle_copiers:
            return False
    elif not all(e.is_asynchronous(o) and e.loads is not None for e, o in copied):
        return False
    if plan.registers() > chip.registers_per_thread:
        return False
    return plan.shared_bytes() <= chip.shared_per_block_optin


def chain_accesses(
    parts: ChainedProducts, target: TargetDescription
) -> tuple[UnitAccess, ...] | None:
    """How a unit that warps call one by one finds the operands of all products.

    None if no such unit computes them in turn.
    """
    units = [unit for unit in target.matrix_units if unit.fragments is not None]
    units += [turned(unit) for unit in units]
    firsts = [unit_accesses(p, units) for p in parts.firsts]
    for second in unit_accesses(parts.second, units):
        fitting = [next((f for f in found if _fit(f, second)), None) for found in firsts]
        given = [f for f in fitting if f is not None]
        if len(given) == len(firsts) and takes_passed(second, given[0], parts):
            return *given, second
    return None


def _fit(first: UnitAccess, second: UnitAccess) -> bool:
    """Whether two products are by the same unit, and have the same rows."""
    return first.unit is second.unit and have_same_rows(first, second)


def have_same_rows(first: UnitAccess, second: UnitAccess) -> bool:
    """Whether two products have the same rows, and the first one's columns are one loop's."""
    one, other = first.product, second.product
    return [one.batch, one.rows] == [other.batch, other.rows] and len(one.columns) == 1


def takes_passed(second: UnitAccess, first: UnitAccess, parts: ChainedProducts) -> bool:
    """Whether the last product takes what the others give: its operand is passed, as it is."""
    operand = second.product.operands[0]
    passed = operand.load.buffer in parts.passed and not operand.on_the_way
    single = len(second.product.columns) == 1 and len(second.product.steps) == 1
    return passed and single and exchanges_of(second.unit, first.unit) is not None
