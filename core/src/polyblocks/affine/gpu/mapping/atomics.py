"""Updates at run-time indices that threads may do in any order: one atomic operation each."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.analysis.reductions import NEED_FLAG
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Node,
    Op,
    Value,
    index_exprs,
    walk,
)
from polyblocks.affine.ops import has_flag

#: The name of each op in ``arith::AtomicRMWKind``, whose numbers differ between versions of MLIR.
KINDS = {
    "arith.addf": "addf",
    "arith.addi": "addi",
    "arith.mulf": "mulf",
    "arith.muli": "muli",
    "arith.maximumf": "maximumf",
    "arith.minimumf": "minimumf",
    "arith.maxsi": "maxs",
    "arith.maxui": "maxu",
    "arith.minsi": "mins",
    "arith.minui": "minu",
    "arith.ori": "ori",
    "arith.andi": "andi",
}
#: Types that the hardware updates at once.
_TYPES = ("f32", "f64", "i32", "i64")


def form_atomics(body: list[Node]) -> int:
    """Replace a load, an op and a store at the same place by one update, in place; how many.

    Only where nothing else in the nest looks at the buffer: then the order of the updates does not
    matter, as far as the op allows (floating point: where reassociation is allowed). The results
    of sums of floating-point numbers then differ from run to run in the last bits.
    """
    nodes = list(walk(body))
    touched: dict[Buffer, list[Node]] = {}
    uses: dict[Value, int] = {}
    for node in nodes:
        if isinstance(node, Access):
            touched.setdefault(node.buffer.base, []).append(node)
        for value in node.uses:
            uses[value] = uses.get(value, 0) + 1
    return _replace(body, touched, uses)


def _replace(nodes: list[Node], touched: dict[Buffer, list[Node]], uses: dict[Value, int]) -> int:
    count = 0
    for node in list(nodes):
        if isinstance(node, For):
            count += _replace(node.body, touched, uses)
        elif isinstance(node, IndirectStore):
            found = _update(node, nodes, touched, uses)
            if found is not None:
                load, op, update = found
                nodes[nodes.index(node)] = update
                nodes.remove(load)
                nodes.remove(op)
                count += 1
    return count


def _update(
    store: IndirectStore,
    nodes: list[Node],
    touched: dict[Buffer, list[Node]],
    uses: dict[Value, int],
) -> tuple[IndirectLoad, Op, IndirectAtomic] | None:
    others = [n for n in touched[store.buffer.base] if n is not store]
    load = others[0] if len(others) == 1 else None
    if not isinstance(load, IndirectLoad):
        return None
    op = next((n for n in nodes if isinstance(n, Op) and store.value in n.results), None)
    if op is None or op.name not in KINDS or str(store.value.type) not in _TYPES:
        return None
    if op.name in NEED_FLAG and not has_flag(op, "reassoc"):
        return None
    if load.buffer is not store.buffer:
        return None
    exprs: dict[Value, Any] = dict(index_exprs(nodes))
    if [exprs.get(v, v) for v in load.index] != [exprs.get(v, v) for v in store.index]:
        return None
    if load not in nodes or uses.get(load.result) != 1 or uses.get(store.value) != 1:
        return None
    if load.result not in op.operands:
        return None
    value = next(v for v in op.operands if v is not load.result)
    return load, op, IndirectAtomic(op.name, value, store.buffer, list(store.index), store.location)
