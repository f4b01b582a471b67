"""Scatters that overwrite: each thread makes the updates of a range of the places."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For, GuardedStore, IndirectStore, Node
from polyblocks.affine.ops import Integers, Ops
from polyblocks.affine.scatters.scatter import Scatter
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.affine.vectors.update_lists import may_be_listed
from polyblocks.target import TargetDescription


def in_ranges(scatter: Scatter, target: TargetDescription) -> For | None:
    """The updates, once for each thread, which makes those in its range of the places.

    So updates of an element keep their order, and the lines that a thread stores to are its own.
    None where the updates have no vector form, in which those of other threads cost little.
    """
    level, buffer = target.shared_level, scatter.buffer
    listed = target.compress and target.masked_vectors
    if level.size < 2 or not listed or scatter.loads or len(buffer.shape) != 1:
        return None
    (loop, *others) = scatter.loops
    if others or loop.bounded or loop.inits:
        return None
    elements = max(1, target.line // buffer.bytes_per_element)
    share = -(-buffer.numel // (level.size * elements)) * elements
    part = Var(-(-buffer.numel // share))
    if part.extent < 2:
        return None
    body: list[Node] = []
    for node in scatter.body:
        if isinstance(node, IndirectStore):
            ops = Ops(body, node.location)
            (place,) = node.index
            offset = ops.op("arith.subi", [place, ops.index(Expr.of(part) * share)])
            mine = ops.compare(Integers.BELOW, offset, ops.index(share))
            body.append(GuardedStore(mine, node.value, buffer, [place], node.location))
        else:
            body.append(node)
    inner = For(loop.var, body)
    try:
        varying = lanes_of(inner).varying
    except NoLanesError:
        return None
    (store,) = (n for n in body if isinstance(n, GuardedStore))
    if not may_be_listed(store, varying):
        return None
    return For(part, [inner], level=level.name)
