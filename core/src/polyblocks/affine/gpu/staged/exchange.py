"""The exchange of sums as nodes: lanes get neighbouring columns of a row, to store them at once.

The unit leaves a column or two of a row in each lane. They go through shared memory, a row of a
warp's units at a time, behind a barrier since operands were there before.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.buffers.copies import BLOCK, CONSUMERS, SHARED, Barrier
from polyblocks.affine.expr import Var
from polyblocks.affine.gpu.plans.fragments import PHASE_BYTES
from polyblocks.affine.gpu.plans.kernel import Exchange
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.errors import StagedError
from polyblocks.affine.gpu.staged.steps import number_of
from polyblocks.affine.gpu.staged.warp_units import WarpUnits
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Store, Value, clone
from polyblocks.affine.swizzles import Swizzle, doubling, no_bits

#: Bytes of a sum; sums in one access of shared memory, and such accesses in a line of it.
_BYTES = 4
QUAD = 4
LINE = PHASE_BYTES // (QUAD * _BYTES)


def exchange_of(nodes: Sequence[Node]) -> tuple[Exchange | None, list[Node]]:
    """The exchange that begins the nodes behind a reduction, if any; and the nodes without it."""
    if not nodes or not isinstance(nodes[0], Alloca):
        return None, list(nodes)
    buffer, inside = nodes[0].buffer, list(nodes[1:])
    if len(inside) == 1 and isinstance(inside[0], For):
        inside = inside[0].body
    loads = [n for n in inside if isinstance(n, Load) and n.buffer is buffer]
    stores = [n for n in inside if isinstance(n, Store) and n.buffer is buffer]
    if len(loads) != 1 or len(stores) != 1 or loads[0].index != stores[0].index:
        raise StagedError(f"expected a store of a sum to {buffer}, and one load from there")
    own = {*loads, *stores}
    rest = [n for n in inside if n not in own and not isinstance(n, Barrier)]
    return Exchange(buffer, inside), clone(rest, {loads[0].result: stores[0].value}, {})


def exchange(plan: UnitPlan, total: Value, after: list[Node]) -> list[Node]:
    """Nodes behind the reduction, whose sum is ``total``; ``after`` are those that use it.

    ::

        for row of units { barrier; store sum, buffer; barrier; x = load buffer; after(x) }
    """
    parts, element = plan.sizes.parts, total.type
    buffer = Buffer(
        *(shape(plan), element, "local"),
        bytes_per_element=_BYTES,
        space=SHARED,
        layout=layout(plan),
    )
    row = number_of(parts.rows) % plan.sizes.tile[0]
    column = number_of(parts.columns) % plan.sizes.tile[1]
    (_, rows, pitch), rows_of_warp = buffer.shape, plan.of_warp[0] * plan.unit.shape[0]
    warp = row // rows_of_warp * plan.warps[1] + column // pitch
    index = (warp, row % rows, column % pitch)
    taken = Value(element)
    scope = BLOCK if plan.threads == plan.sizes.threads else CONSUMERS
    body: list[Node] = [
        Barrier(scope),
        Store(total, buffer, index),
        Barrier(scope),
        Load(taken, buffer, index),
        *clone(after, {total: taken}, {}),
    ]
    if plan.of_warp[0] > 1:
        own = WarpUnits(plan, 0).number
        # Each element is in one of the rows of units.
        body = [For(Var(plan.of_warp[0], "u"), body, lower=(own,), upper=(own + 1,))]
    return [Alloca(buffer), *body]


def shape(plan: UnitPlan) -> tuple[int, int, int]:
    """Warps, and rows and columns of one row of a warp's units."""
    rows, columns = plan.unit.shape[:2]
    return plan.warps[0] * plan.warps[1], rows, plan.of_warp[1] * columns


def layout(plan: UnitPlan) -> tuple[Swizzle, ...]:
    """Which places change, so that neither stores of sums nor loads of columns meet in a bank.

    Four columns are together, and the fours of a line are swizzled: warps write pairs of columns of
    four rows one after the other, or sixteen columns of two rows that are one or eight apart, and
    read fours of eight.
    """
    fours = min(shape(plan)[2] // QUAD, LINE)
    rows = LINE // fours
    # The number of a row's line, with its bits in the other order.
    reversed_ = tuple(QUAD * fours >> (bit + 1) for bit in range(fours.bit_length() - 1))
    if rows == 1:
        return (Swizzle(1, 2, (*reversed_, QUAD * fours >> 1)),)
    # The rows of a line change places as well.
    return (
        Swizzle(1, 2, (*no_bits(rows), *reversed_)),
        Swizzle(1, 1, (*no_bits(LINE), *doubling(1, rows))),
    )
