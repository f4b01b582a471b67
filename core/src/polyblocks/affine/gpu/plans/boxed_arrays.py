"""Operands and results as arrays for bulk copies of boxes: lines of their innermost dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyblocks.affine.access import accesses, address
from polyblocks.affine.analysis.contractions import Operand
from polyblocks.affine.expr import Atom, Div, Expr, Var
from polyblocks.affine.gpu.plans.sizes import extent
from polyblocks.affine.gpu.plans.unit_access import UnitAccess, begins_inside
from polyblocks.affine.gpu.plans.windowed_arrays import WindowedArray, windowed
from polyblocks.affine.model import AffineAccess, Store
from polyblocks.affine.subnests import is_affine_code
from polyblocks.target import BulkCopies

#: Bytes of a result, and how many neighbouring columns a lane has, which fill a bank.
RESULT_BYTES, COLUMNS = 2, 2


@dataclass(frozen=True, eq=False)
class BoxedArray:
    """An operand: its steps, its rows (or columns), and then what batches are of.

    Attributes:
        loops: whose iterations each dimension counts, the innermost dimension first.
        extents: of the dimensions.
        strides: bytes between neighbours along each of them.
        offset: bytes before the first element.
        quotients: of variables that count no iterations, but what quotients of batches are.
    """

    loops: tuple[tuple[Var, ...], ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    quotients: Mapping[Var, Expr] = field(default_factory=dict)


def boxed_arrays(
    access: UnitAccess, copies: BulkCopies
) -> tuple[BoxedArray | WindowedArray, ...] | None:
    """Those of both operands, of rows first; None if one of them is no such array."""
    found = [
        boxed_array(access, operand, copies) or _windowed_array(access, operand, copies)
        for operand in access.product.operands
    ]
    arrays = tuple(array for array in found if array is not None)
    return arrays if len(arrays) == len(found) else None


def boxed_array(access: UnitAccess, operand: Operand, copies: BulkCopies) -> BoxedArray | None:
    """The array of an operand; None if it has no such dimensions, or no copies can be of it.

    Quotients of batches, such as heads of queries that share those of keys, have dimensions.
    """
    load, parts = operand.load, access.product.contraction
    at, quotients = _without_quotients(address(load.buffer, load.index), parts.batch)
    outer = parts.rows if operand.of_rows else parts.columns
    inner = [access.product.steps, outer]
    if access.along[operand.side] == "outer":
        inner.reverse()
    batch = ([var] for var in (*parts.batch, *quotients) if at.coefficient(var) != 0)
    found = boxed(load, [*inner, *batch], copies, at)
    return None if found is None else replace(found, quotients=quotients)


def _windowed_array(
    access: UnitAccess, operand: Operand, copies: BulkCopies
) -> WindowedArray | None:
    """The array of an operand whose rows are windows; None if they are not."""
    parts = access.product.contraction
    if access.along[operand.side] != "steps":
        return None
    outer = parts.rows if operand.of_rows else parts.columns
    return windowed(operand.load, outer, access.product.steps, copies)


def _without_quotients(at: Expr, batch: Sequence[Var]) -> tuple[Expr, dict[Var, Expr]]:
    """A place whose quotients of batches are variables, and these."""
    terms: dict[Atom, int] = {}
    found: dict[Var, Expr] = {}
    for atom, factor in at.terms:
        low, high = Expr(0, {atom: 1}).range()
        if isinstance(atom, Div) and low == 0 and set(atom.dividend.variables()) <= set(batch):
            var = Var(high + 1)
            found[var], terms[var] = Expr(0, {atom: 1}), factor
        else:
            terms[atom] = factor
    return (Expr(at.const, terms) if found else at), found


def boxed(
    node: AffineAccess,
    loops: Sequence[Sequence[Var]],
    copies: BulkCopies,
    at: Expr | None = None,
) -> BoxedArray | None:
    """The array that an access is of.

    Args:
        node: of an element.
        loops: that each dimension is to count, the innermost dimension first.
        copies: what they can be of.
        at: the place of the element in these, if that is not how the access has it.
    """
    if node.where or node.buffer.base.kind == "global":
        return None
    # The driver counts from where the memory begins.
    if begins_inside(node.buffer):
        return None
    size, at = node.buffer.bytes_per_element, at or address(node.buffer, node.index)
    known = {var for order in loops for var in order}
    if not set(at.variables()) <= known or at.const < 0:
        return None
    strides = [_stride(at, order, size) for order in loops]
    if None in strides or strides[0] != size or len(strides) > copies.dimensions:
        return None
    # A dimension of one element may have any stride.
    bytes_ = [size, *(s or copies.alignment for s in strides[1:])]
    extents = [extent(list(order)) for order in loops]
    if not copies.describes(extents, bytes_[1:]) or at.const * size % copies.alignment:
        return None
    return BoxedArray(*(tuple(map(tuple, loops)), tuple(extents), tuple(bytes_)), at.const * size)


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


def _stride(at: Expr, order: Sequence[Var], size: int) -> int | None:
    """Bytes from one iteration of loops to the next; 0 of a single one, None if they differ."""
    found: int | None = None
    times = 1
    for var in reversed([var for var in order if var.extent > 1]):
        step = at.coefficient(var)
        if step is None or step <= 0 or (found is not None and step != found * times):
            return None
        found = step if found is None else found
        times *= var.extent
    return 0 if found is None else found * size
