"""Plans of chains of two products by a matrix unit: the results of one are operands of the next.

A lane's sums of the first product are the elements that it needs of the second one's rows, where
the unit's accumulator and its first operand have rows, and columns or steps, in the same lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from polyblocks.affine.gpu.plans.chained import ChainedProducts
from polyblocks.affine.gpu.plans.fragments import outers_of, steps_of
from polyblocks.affine.gpu.plans.lanes import ADDRESSES
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.sizes import TileSizes, extent
from polyblocks.affine.gpu.plans.unit_access import UnitAccess, unit_accesses
from polyblocks.affine.gpu.plans.unit_plan import unit_plan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.target import MatrixUnit, Multiprocessor, TargetDescription

#: Columns of the second product's tile are a multiple of this, so that it is read by columns.
_COLUMNS = 64
#: Registers beside sums and operands: of addresses, of a row's numbers, and of loops.
_OTHER = 38 - ADDRESSES


@dataclass(frozen=True, eq=False)
class ChainPlan:
    """How the warps of blocks compute rows of a chain of products.

    Attributes:
        parts: of the nest.
        first, second: how the products are computed; a block has all columns of the second one,
            and all steps of the first one at once.
    """

    kind: ClassVar[PlanKind] = PlanKind.CHAIN

    parts: ChainedProducts
    first: UnitPlan
    second: UnitPlan

    @property
    def unit(self) -> MatrixUnit:
        """The matrix unit."""
        return self.first.unit

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

    @cached_property
    def shared(self) -> tuple[tuple[int, ...], ...]:
        """Shapes in shared memory: of the first product's operands, and of the second one's."""
        rows, steps = (self.first.shape(o) for o in self.first.product.operands)
        return (1, *rows[1:]), steps, self.second.shape(self.second.product.operands[1])

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
        columns = max(p.of_warp[1] for p in (self.first, self.second)) * b.elements * width // 4
        # Elements become operands one after the other, in place of sums; a part of a call's columns
        # is on its way from shared memory.
        elements = r * c + r * c // 8
        return elements + r * d + rows + columns // 8 + _OTHER + ADDRESSES

    def schedule(self, numbers: Numbers) -> dict[str, Any]:
        """The plan as data."""
        tiles = self.first.tiles.schedule()
        return {**tiles, "stages": self.stages, "unit": self.unit.name, "chained": True}

    def derived(self) -> dict[str, Any]:
        """Keys that follow from these: none."""
        return {}

    def decision(self) -> dict[str, Any]:
        """Its numbers for reports."""
        unit = {"unit": self.unit.name, "operands": self.unit.operands}
        return {**self.second.sizes.decision(), **unit}

    def last_sizes(self) -> TileSizes:
        """The sizes of the second product, with what is done with its totals."""
        sizes = self.second.sizes
        return TileSizes(self.parts.last, sizes.of_thread, sizes.across, sizes.depth)


def chain_plan(
    parts: ChainedProducts,
    pair: tuple[UnitAccess, UnitAccess],
    chip: Multiprocessor,
    warps: int,
    height: int,
    stages: int,
) -> ChainPlan | None:
    """The plan whose blocks have ``warps`` warps along rows; None if the chip cannot run it.

    Args:
        parts: of the nest.
        pair: see :func:`chain_accesses`.
        chip: with that unit.
        warps: of a block.
        height: rows of each.
        stages: blocks of steps in shared memory.
    """
    (first, second), (m, n, k) = pair, pair[0].unit.shape
    block = parts.block
    if height % m or block % n or block % k or block % 16:
        return None
    depth = -(-first.product.contraction.reduction.trips // k) * k
    width = -(-extent(second.product.columns) // _COLUMNS) * _COLUMNS
    rows = warps * height
    plans = [
        unit_plan(chip, access, Tiles((height, columns), (rows, columns), steps), stages)
        for access, columns, steps in ((first, block, depth), (second, width, block))
    ]
    plan = ChainPlan(parts, *plans)
    return plan if _is_possible(plan, chip) else None


def _is_possible(plan: ChainPlan, chip: Multiprocessor) -> bool:
    """Whether operands go to shared memory past the registers, and a block has room for them."""
    first, second = plan.first, plan.second
    copied = [*((first, o) for o in first.product.operands), (second, second.product.operands[1])]
    if not all(each.is_asynchronous(operand) for each, operand in copied):
        return False
    if first.loads is None or second.loads is None:
        return False
    if plan.registers() > chip.registers_per_thread:
        return False
    return plan.shared_bytes() <= chip.shared_per_block_optin


def chain_accesses(
    parts: ChainedProducts, target: TargetDescription
) -> tuple[UnitAccess, UnitAccess] | None:
    """How a unit finds the operands of both products; None if no unit computes both in turn."""
    firsts, seconds = (unit_accesses(p, target.matrix_units) for p in (parts.first, parts.second))
    for first in firsts:
        for second in seconds:
            if (
                first.unit.fragments is None
                or first.unit is not second.unit
                or not _fit(first, second, parts)
            ):
                continue
            return first, second
    return None


def _fit(first: UnitAccess, second: UnitAccess, parts: ChainedProducts) -> bool:
    """Whether both products have the same rows, and the second one takes what the first one gives.

    Its operand is what is passed, as it is.
    """
    one, other = first.product, second.product
    same = [one.batch, one.rows] == [other.batch, other.rows]
    operand = other.operands[0]
    passed = operand.load.buffer in parts.passed and not operand.on_the_way
    single = len(one.columns) == 1 and len(other.columns) == 1 and len(other.steps) == 1
    return same and passed and single and keeps_lanes(first.unit)


def keeps_lanes(unit: MatrixUnit) -> bool:
    """Whether a lane's sums are elements of the first operand that it has as well."""
    assert unit.fragments is not None
    operand, _, sums = unit.fragments
    if operand.lanes != sums.lanes or unit.shape[2] % unit.shape[1]:
        return False
    rows, columns = outers_of(sums), steps_of(sums)
    places = (operand.at(p) for p in range(operand.elements))
    return all(row in rows and step % unit.shape[1] in columns for row, step in places)
