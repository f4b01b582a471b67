"""Copies of what a nest reads along columns with a stride, in the order in which it reads them."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Nest, Node, Store, Value, nested, walk


def straightened(nest: Nest, columns: Var) -> Nest | None:
    """Let a nest read copies of what only columns move, with a stride from one to the next.

    Coordinates of points are such: vectors of columns would be put together from several loads,
    again for each row.

    Args:
        nest: changed in place.
        columns: the loop that counts the columns.

    Returns:
        The nest that copies, which belongs in front; None if there is nothing to copy.
    """
    found: dict[tuple[Buffer, tuple[Expr, ...]], list[Load]] = {}
    for node in walk(nest.body):
        if isinstance(node, Load) and not node.where and _has_stride(node, columns):
            found.setdefault((node.buffer, tuple(node.index)), []).append(node)
    by_type: dict[str, list[list[Load]]] = {}
    for loads in found.values():
        by_type.setdefault(str(loads[0].buffer.element), []).append(loads)
    var, body = Var(columns.extent), list[Node]()
    for places in by_type.values():
        like = places[0][0].buffer
        copy = Buffer(
            (len(places), columns.extent),
            like.element,
            "alloc",
            bytes_per_element=like.bytes_per_element,
        )
        for row, loads in enumerate(places):
            value = Value(like.element)
            at = {columns: Expr.of(var)}
            body.append(
                Load(value, loads[0].buffer, tuple(e.substitute(at) for e in loads[0].index))
            )
            body.append(Store(value, copy, (Expr(row), Expr.of(var))))
            for load in loads:
                load.buffer, load.index = copy, (Expr(row), Expr.of(columns))
    if not body:
        return None
    nest.replace()
    copies = Nest(nested([var], body), [], changed=True)
    copies.sources = nest.sources
    return copies


def _has_stride(load: Load, columns: Var) -> bool:
    """Whether only columns move a load, and their neighbours are not neighbours in memory."""
    moved = [d for d, e in enumerate(load.index) if e == Expr.of(columns)]
    others = [e for d, e in enumerate(load.index) if d not in moved]
    if len(moved) != 1 or not all(e.is_constant for e in others):
        return False
    return any(n > 1 for n in load.buffer.shape[moved[0] + 1 :])
