"""Results that leave shared memory in boxes."""

from __future__ import annotations

from polyblocks.affine.access import accesses
from polyblocks.affine.gpu.plans.boxed_arrays import BoxedArray, boxed
from polyblocks.affine.gpu.plans.unit_access import UnitAccess
from polyblocks.affine.model import Store
from polyblocks.affine.subnests import is_affine_code
from polyblocks.target import BulkCopies

#: Bytes of a result, and how many neighbouring columns a lane has, which fill a bank.
RESULT_BYTES, COLUMNS = 2, 2


def boxed_result(access: UnitAccess, copies: BulkCopies) -> BoxedArray | None:
    """The array of a product's results, columns first; None if they do not leave in boxes.

    There is one result of an element, computed without conditions, and whole pieces are stored:
    where a row ended inside of one, what is behind it would be stored to. The columns of a lane
    are iterations of the innermost loop alone.
    """
    parts = access.product.contraction
    if parts.columns[-1].extent % COLUMNS:
        return None
    nodes = [*parts.before, *parts.after]
    stores = [n for n in nodes if isinstance(n, Store)]
    if not is_affine_code(nodes) or len(stores) != 1 or parts.after[-1] is not stores[0]:
        return None
    (store,) = stores
    if store.buffer.bytes_per_element != RESULT_BYTES or any(n.where for n in accesses(nodes)):
        return None
    orders = [list(parts.columns), list(parts.rows), *([var] for var in parts.batch)]
    array = boxed(store, orders, copies)
    if array is None or array.extents[0] * RESULT_BYTES % copies.alignment:
        return None
    return array
