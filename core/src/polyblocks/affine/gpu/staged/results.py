"""Results that leave in boxes as nodes: they wait in shared memory until all of a block are there.

::

    x = after(sum); store x, buffer; barrier; copy buffer to the array; commit; wait

Where blocks compute tile after tile, the wait is for the tile before, and behind a barrier its
place is free.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.affine.buffers.copies import (
    BULK,
    CONSUMERS,
    RESULTS,
    SHARED,
    Barrier,
    BoxCopy,
    Commit,
    Wait,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.boxed_arrays import RESULT_BYTES
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Exchange
from polyblocks.affine.gpu.staged.errors import StagedError
from polyblocks.affine.gpu.staged.steps import number_of
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Store, Value


def boxes(plan: GroupUnitPlan, after: Sequence[Node]) -> list[Node]:
    """Nodes behind the reduction; ``after`` are those of the plain nest, the last one a store."""
    parts = plan.sizes.parts
    *computed, store = after
    assert isinstance(store, Store)
    buffer = Buffer(
        *(plan.result_shape, store.value.type, "local"),
        bytes_per_element=RESULT_BYTES,
        space=SHARED,
        layout=plan.result_layout,
    )
    row = number_of(parts.rows) % plan.sizes.tile[0]
    column = number_of(parts.columns) % plan.sizes.tile[1]
    line = buffer.shape[2]
    index = (column // line, row, column % line)
    load = Load(Value(store.value.type), buffer, index, store.location)
    to = Store(load.result, store.buffer, store.index, store.location)
    one = For(Var(1, "u"), [], lower=(Expr(0),), upper=(Expr(1),))
    return [
        Alloca(buffer),
        *([Wait(0, of=RESULTS), Barrier(CONSUMERS)] if plan.persistent else []),
        *computed,
        Store(store.value, buffer, index, store.location),
        Barrier(CONSUMERS),
        BoxCopy(BULK, (one,), load, (), to).loop(),
        Commit(of=RESULTS),
        *([] if plan.persistent else [Wait(0, of=RESULTS)]),
    ]


def box_copy(node: Node) -> BoxCopy | None:
    """The copy of a box that a loop is; None for other nodes."""
    return BoxCopy.of(node) if isinstance(node, For) and node.copy == BULK else None


def boxes_of(nodes: Sequence[Node]) -> tuple[Exchange | None, list[Node]]:
    """The nodes of such results behind a reduction, if any; and those of the plain nest."""
    copies = [found for found in map(box_copy, nodes) if found is not None]
    if not copies:
        return None, list(nodes)
    copy, buffer = copies[0], copies[0].source.buffer
    stores = [n for n in nodes if isinstance(n, Store) and n.buffer is buffer]
    if len(copies) != 1 or len(stores) != 1 or stores[0].index != copy.source.index:
        raise StagedError(f"expected a store of a result to {buffer}, and one copy from there")
    to, end = copy.destination, list(nodes).index(stores[0])
    plain = [n for n in nodes[:end] if n.defines]
    plain.append(Store(stores[0].value, to.buffer, to.index, to.location))
    return Exchange(buffer, [n for n in nodes if not isinstance(n, Alloca)]), plain
