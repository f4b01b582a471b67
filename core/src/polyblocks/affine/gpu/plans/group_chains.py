"""Plans of chains of products by a matrix unit that reads shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.gpu.plans.boxed_arrays import BoxedArray, boxed_array
from polyblocks.affine.gpu.plans.chained import ChainedProducts, is_at_border
from polyblocks.affine.gpu.plans.chains import (
    ChainPlan,
    have_same_rows,
    plans_of,
    takes_passed,
    width_of,
)
from polyblocks.affine.gpu.plans.group_units import (
    GroupUnitPlan,
    registers_at_first,
    registers_given,
)
from polyblocks.affine.gpu.plans.unit_access import UnitAccess, unit_accesses
from polyblocks.target import BulkCopies, GroupUnit, Multiprocessor, TargetDescription

#: Registers beside sums and operands: of addresses, of a row's numbers, and of loops. Three groups
#: for heads of 64 have 160 and spill none.
_OTHER = 44
#: Those where products overlap: operands are made when registers of those before are free. And
#: more of them where masks cut blocks.
_OF_OVERLAP, _OF_MASKS = 32, 16
#: Instructions of a block of steps that wait for barriers and arrive at them.
_OF_BARRIERS = 30


@dataclass(frozen=True, eq=False)
class GroupChainPlan(ChainPlan):
    """How groups of warps compute rows of a chain by a unit that reads shared memory.

    Groups have some rows each, and do not wait for each other: one multiplies while another one
    does what is between the products. A thread of one more group starts copies of the first
    products' operands in boxes, and another one those of the second product's.

    Attributes:
        bulk: how boxes are copied.
        arrays: the operands that are copied, as these copies see them: of each first product rows
            and steps, and the columns of the second product.
        pool: registers of a multiprocessor, which are given to the warps of one block.
        overlaps: whether the second product of a block runs beside the next block's first one, and
            under what follows that.
    """

    bulk: BulkCopies = field(kw_only=True)
    arrays: tuple[BoxedArray, ...] = field(kw_only=True)
    pool: int = field(kw_only=True)
    overlaps: bool = field(kw_only=True, default=False)

    @property
    def by_groups(self) -> tuple[GroupUnitPlan, ...]:
        """Of all products."""
        found = tuple(p for p in self.plans if isinstance(p, GroupUnitPlan))
        assert len(found) == len(self.plans)
        return found

    @property
    def consumers(self) -> int:
        """Threads that multiply."""
        return self.first.sizes.threads

    @property
    def threads(self) -> int:
        return self.consumers + self.first.warp

    @property
    def through_registers(self) -> bool:
        return False

    @property
    def alignment(self) -> int:
        """Of tiles in shared memory, in bytes."""
        return self.by_groups[0].alignment

    @property
    def barrier_stages(self) -> int:
        """Places with a barrier that they are filled, and one that they are free.

        Each stage of the steps, each of the columns, and the rows.
        """
        return 2 * self.stages + 1

    def copied(self) -> Iterator[tuple[int, Operand, BoxedArray]]:
        """The product of each operand that is copied, and its array."""
        arrays = iter(self.arrays)
        for number, first in enumerate(self.firsts):
            yield from ((number, o, next(arrays)) for o in first.product.operands)
        yield len(self.firsts), self.second.product.operands[1], next(arrays)

    def tile_bytes(self, number: int, operand: Operand) -> int:
        """Bytes of the tile of an operand of a product."""
        return prod(self.plans[number].shape(operand)[1:]) * self.first.element_bytes

    def shared_bytes(self) -> int:
        """Bytes of tiles, and of barriers at the alignment of tiles."""
        return super().shared_bytes() + self.alignment

    @property
    def words(self) -> int:
        """32-bit registers of a thread that multiplies, about."""
        (r, c), (_, d) = self.first.sizes.of_thread, self.second.sizes.of_thread
        elements = len(self.firsts) * r * c + self._of_columns * c
        if self.overlaps:
            # The second product's first operand is in registers until it is done.
            held = r * c * self.first.element_bytes // 4
            masks = any(map(is_at_border, self._of_steps))
            return elements + held + r * d + _OF_OVERLAP + (_OF_MASKS if masks else 0)
        # Elements become operands one after the other, in place of sums.
        return elements + r * c // 8 + r * d + _OTHER

    def overlapped(self) -> GroupChainPlan:
        """The same with products that overlap, if one of them is a first one and there is room."""
        plan = replace(self, overlaps=len(self.firsts) == 1)
        return plan if plan.registers() <= plan.begins else self

    @property
    def begins(self) -> int:
        """Registers of a thread with which a block begins that has all of them."""
        return registers_at_first(self.pool, self.threads)

    @property
    def given(self) -> tuple[int, int] | None:
        """See :attr:`polyblocks.affine.gpu.plans.group_units.GroupUnitPlan.given`."""
        return registers_given(self.bulk, self.begins, self.independent_parts)

    def registers(self) -> int:
        """32-bit registers of a thread at the beginning; what it needs, if that is too many."""
        most = self.begins if self.given is None else self.given[1]
        return self.words if self.words > most else self.begins

    @property
    def issued(self) -> float:
        (r, c), (_, d) = self.first.sizes.of_thread, self.second.sizes.of_thread
        calls = sum(p.reading for p in self.plans)
        return r * c * (self.parts.operations + len(self.firsts)) + r * d + calls + _OF_BARRIERS

    @property
    def read(self) -> float:
        """Each group reads all columns and its own rows; of the second product's it has these."""
        rows, width, block = self.tile
        depth = sum(p.tile[2] for p in self.firsts)
        return self.independent_parts * block * (depth + width) + rows * depth

    @property
    def independent_parts(self) -> int:
        return self.consumers // self.first.warp

    @property
    def slots_alone(self) -> float:
        # Of a partition it has one warp, whose instructions wait for those before them: so three
        # groups took 22 % less time than two for heads of 64 on an H200.
        return 1.6


def group_chain_plan(
    parts: ChainedProducts,
    accesses: tuple[UnitAccess, ...],
    chip: Multiprocessor,
    groups: int,
    height: int,
    stages: int,
) -> GroupChainPlan | None:
    """The plan whose blocks have some groups of warps; None if the chip cannot run it.

    Args:
        parts: of the nest.
        accesses: see :func:`group_chain_accesses`.
        chip: with that unit.
        groups: of a block.
        height: rows of each.
        stages: blocks of steps in shared memory.
    """
    unit, bulk = accesses[0].unit, chip.bulk_copies
    assert isinstance(unit, GroupUnit)
    if bulk is None or bulk.line != unit.line or stages < 2:
        return None
    line = unit.line // accesses[0].product.element.nbytes
    plans = plans_of(parts, accesses, chip, groups, height, stages, line)
    if plans is None:
        return None
    firsts, second = plans
    # Copies are the chain's, and not those of each product.
    alone = [_by_threads(p) for p in (*firsts, second)]
    copied = [(access, o) for access in accesses[:-1] for o in access.product.operands]
    copied.append((accesses[-1], accesses[-1].product.operands[1]))
    found = [boxed_array(access, operand, bulk) for access, operand in copied]
    arrays = tuple(array for array in found if array is not None)
    if len(arrays) < len(found):
        return None
    given = {"bulk": bulk, "arrays": arrays, "pool": chip.registers}
    plan = GroupChainPlan(parts, tuple(alone[:-1]), alone[-1], **given)  # type: ignore[arg-type]
    return plan if _is_possible(plan, chip) else None


def _by_threads(plan: object) -> GroupUnitPlan:
    """A plan without copies of its own."""
    assert isinstance(plan, GroupUnitPlan)
    return replace(plan, bulk=None, arrays=(), result=None)


def _is_possible(plan: GroupChainPlan, chip: Multiprocessor) -> bool:
    """Whether operands are in whole panels, and a block has room."""
    for number, operand, _ in plan.copied():
        product = plan.by_groups[number]
        wide = operand.side if product.is_transposed(operand) else 2
        whole = product.sizes.tile[wide] % product.line == 0
        if wide < 2:
            whole = whole and product.unit.shape[wide] % product.line == 0
        if not whole or product.lines(operand) > plan.bulk.rows:
            return False
    fits = plan.threads <= chip.threads_per_block and plan.registers() <= plan.begins
    return fits and plan.shared_bytes() <= chip.shared_per_block_optin


def group_chain_accesses(
    parts: ChainedProducts, target: TargetDescription
) -> tuple[UnitAccess, ...] | None:
    """How units that read shared memory find the operands of all products.

    Those with the most columns that are whole in a block of steps, and in the second product.
    None if there are none, or the second one's operand cannot be in registers.
    """
    units = [u for u in target.matrix_units if isinstance(u, GroupUnit) and u.first is not None]
    units.sort(key=lambda unit: unit.shape[1], reverse=True)
    if not units:
        return None
    firsts = [_whole(unit_accesses(p, units), parts.block) for p in parts.firsts]
    found = unit_accesses(parts.second, units, passed=True)
    second = _whole(found, width_of(found[0])) if found else None
    given = [first for first in firsts if first is not None]
    if second is None or len(given) < len(firsts):
        return None
    alike = all(have_same_rows(first, second) for first in given)
    same = len({access.unit for access in given}) == 1
    return (*given, second) if alike and same and takes_passed(second, given[0], parts) else None


def _whole(accesses: list[UnitAccess], columns: int) -> UnitAccess | None:
    """The first one whose unit's columns divide a number."""
    return next((a for a in accesses if columns % a.unit.shape[1] == 0), None)
