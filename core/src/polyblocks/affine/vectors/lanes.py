"""Which values of an innermost loop differ from iteration to iteration, and how memory is walked.

A loop whose iterations become the lanes of a vector needs: values that are the same in all lanes
(uniform) or one per lane (varying), and accesses to one element or to neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import stride_along, strides
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.element import I32, I64, DType, dtype_of
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Check,
    For,
    GuardedStore,
    Index,
    IndirectAccess,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Op,
    Store,
    Value,
)
from polyblocks.affine.ops import is_constant
from polyblocks.affine.vectors.interleaves import Interleave, complete_interleaves, interleaves
from polyblocks.affine.vectors.scan_vectors import scan_combiners
from polyblocks.attributes import GCD

#: Integer divisions: no vector unit has them, and they are checked one by one.
_DIVISIONS = {
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.divsi",
    "arith.divui",
    "arith.floordivsi",
    "arith.remsi",
    "arith.remui",
}
#: Operations that do on vectors what they do on each lane; intrinsics are those of matrix units.
_LANE_BY_LANE = ("arith.", "math.", "llvm.call_intrinsic", GCD)
#: Operations from which on lanes pay for what a gather takes longer than loads one by one: it
#: moves less than an element per cycle on most chips, and a core starts a few operations in one.
PER_GATHER = 4


@dataclass
class Lanes:
    """Facts about a loop whose iterations can be lanes.

    Attributes:
        varying: the values that differ between lanes.
        combiners: for each carried value the commutative op that combines it.
        types: the type names of what vector operations compute, load and store, and how many
            there are of each.
        memory: bits of the widest element that is loaded or stored lane by lane.
        crossed: accesses that are in order along the loop around instead.
        scan: whether the loop uses what it carries, so that every lane needs its own.
        interleaved: accesses with small strides that are moved together, and their places.
        crossed_groups: the same of loads along the loop around.
        gathered: loads with an index of their own in every lane; the index as a vector, of 32 bits
            if the index was.
    """

    varying: set[Value]
    combiners: list[Op]
    types: dict[DType, int] = field(default_factory=dict)
    memory: int = 0
    crossed: list[AffineAccess] = field(default_factory=list)
    scan: bool = False
    interleaved: dict[AffineAccess, tuple[Interleave, int]] = field(default_factory=dict)
    crossed_groups: dict[AffineAccess, tuple[Interleave, int]] = field(default_factory=dict)
    gathered: dict[IndirectLoad, Value] = field(default_factory=dict)


class NoLanesError(Exception):
    """The loop stays scalar; the message says why."""


def lanes_of(loop: For, across: Var | None = None) -> Lanes:
    """Analyze a loop; whether its iterations are independent is the caller's to know.

    Args:
        loop: an innermost loop, or one whose loops inside run alike for all lanes.
        across: the variable of the loop around, along which accesses may be in order instead.

    Raises:
        NoLanesError: an operation, an access or a carried value forbids vectors.
    """
    combiners: list[Op] = []
    scan = False
    if loop.inits:
        # Values are combined lane by lane and across the lanes at the end: in any order.
        found = ReductionNest([], [], [loop], loop.body, []).combiners()
        if found is None:
            found, scan = scan_combiners(loop), True
        if found is None:
            raise NoLanesError("a carried value is no reduction")
        combiners = found
    # A scan goes on from lane to lane.
    together: dict[AffineAccess, tuple[Interleave, int]] = {}
    if across is not None:
        together = complete_interleaves(loop)
    elif not scan:
        together = interleaves(loop)
    lanes = Lanes(set(loop.arguments), combiners, scan=scan, interleaved=together)
    if across is not None:
        groups = complete_interleaves(loop, across).items()
        lanes.crossed_groups = {n: g for n, g in groups if isinstance(n, Load)}
    makers: dict[Value, Node] = {}
    for node in loop.body:
        _visit(loop, across, node, lanes, makers)
    if not lanes.types:
        raise NoLanesError("nothing differs between iterations")
    moving: list[Node] = [
        n for n in loop.body if isinstance(n, Op) and any(r in lanes.varying for r in n.results)
    ]
    # A register tile is made for vectors.
    if not loop.lanes and len(lanes.gathered) * PER_GATHER > cost.operations(moving):
        raise NoLanesError("a gather")
    return lanes


def _visit(
    loop: For, across: Var | None, node: Node, lanes: Lanes, makers: dict[Value, Node]
) -> None:
    varying = lanes.varying
    if isinstance(node, Op):
        _visit_op(node, lanes, makers)
    elif isinstance(node, Index):
        makers[node.result] = node
        factor = node.expr.coefficient(loop.var)
        if factor is None:
            raise NoLanesError("an index is not linear")
        if factor:
            varying.add(node.result)
    elif isinstance(node, Load):
        stride = _stride(loop, across, node, lanes)
        if stride not in (0, 1) and node not in lanes.interleaved:
            raise NoLanesError(f"a load with stride {'unknown' if stride is None else stride}")
        if stride:
            varying.add(node.result)
            _count_memory(lanes, dtype_of(node.result.type))
    elif isinstance(node, Store):
        stride = _stride(loop, across, node, lanes)
        if stride != 1 and node not in lanes.interleaved:
            raise NoLanesError(f"a store with stride {'unknown' if stride is None else stride}")
        _count_memory(lanes, dtype_of(node.buffer.element))
    elif isinstance(node, IndirectLoad):
        if not any(v in varying for v in node.index):
            return
        if not walks_in_order(loop, node, lanes, makers):
            lanes.gathered[node] = _gathered(across, node, lanes, makers)
        varying.add(node.result)
        _count_memory(lanes, dtype_of(node.result.type))
    elif isinstance(node, IndirectStore):
        if across is not None or not walks_in_order(loop, node, lanes, makers):
            raise NoLanesError("a scatter")
        _count_memory(lanes, dtype_of(node.buffer.element))
    elif isinstance(node, GuardedStore):
        if across is not None:
            raise NoLanesError("a scatter")
        _count_memory(lanes, dtype_of(node.buffer.element))
    elif isinstance(node, Check):
        if across is not None and any(v in varying for v in node.uses):
            raise NoLanesError("a check in every iteration")
    elif isinstance(node, For) and across is None and not loop.inits:
        _visit_loop(loop, node, lanes, makers)
    else:
        raise NoLanesError(f"it contains a {type(node).__name__}")


def _visit_loop(loop: For, inner: For, lanes: Lanes, makers: dict[Value, Node]) -> None:
    """A loop inside, which all lanes go through together; what it carries differs."""
    if any(loop.var in e.variables() for e in inner.bounds):
        raise NoLanesError("lanes leave a loop at different times")
    lanes.varying.update(inner.arguments)
    for node in inner.body:
        _visit(loop, None, node, lanes, makers)
    lanes.varying.update(inner.results)


def _visit_op(node: Op, lanes: Lanes, makers: dict[Value, Node]) -> None:
    for result in node.results:
        makers[result] = node
    if not any(v in lanes.varying for v in node.operands):
        return
    if not node.name.startswith(_LANE_BY_LANE):
        raise NoLanesError(f"{node.name} has no vector form")
    if node.name in _DIVISIONS and not _divides_by_constant(node, makers):
        raise NoLanesError("an integer division")
    for value in (*node.operands, *node.results):
        if not dtype_of(value.type).bits:
            raise NoLanesError(f"values of {value.type}")
    lanes.varying.update(node.results)
    _count(lanes, dtype_of(node.results[0].type))


def _divides_by_constant(node: Op, makers: dict[Value, Node]) -> bool:
    """Whether the divisor is a constant above 1, with which a division cannot fail."""
    from polyblocks.mlir import ir

    maker = makers.get(node.operands[1])
    if maker is None or not is_constant(maker):
        return False
    return bool(ir.IntegerAttr(maker.attributes["value"]).value > 1)


def _count(lanes: Lanes, dtype: DType) -> None:
    if not dtype.bits:
        raise NoLanesError(f"values of {dtype.name}")
    lanes.types[dtype] = lanes.types.get(dtype, 0) + 1


def _count_memory(lanes: Lanes, dtype: DType) -> None:
    _count(lanes, dtype)
    lanes.memory = max(lanes.memory, dtype.bits, 8)


def _stride(loop: For, across: Var | None, node: AffineAccess, lanes: Lanes) -> int | None:
    """Elements from lane to lane; 1 also for an access that is in order across."""
    stride = stride_along(node.buffer, node.index, loop.var)
    if across is None or stride in (0, 1, None) or node in lanes.interleaved:
        return stride
    along = stride_along(node.buffer, node.index, across)
    if along == 1 or node in lanes.crossed_groups:
        lanes.crossed.append(node)
        return 1
    return stride


def walks_in_order(
    loop: For, node: IndirectAccess, lanes: Lanes, makers: dict[Value, Node]
) -> bool:
    """Whether an access at run-time indices is to neighbours: only its last index counts lanes."""
    *outer, last = node.index
    maker = makers.get(last)
    return (
        not any(v in lanes.varying for v in outer)
        and isinstance(maker, Index)
        and maker.expr.coefficient(loop.var) == 1
        and last_is_contiguous(node)
    )


def _gathered(
    across: Var | None, node: IndirectLoad, lanes: Lanes, makers: dict[Value, Node]
) -> Value:
    """The index of a load whose lanes are anywhere in a row: where they are."""
    *outer, last = node.index
    if across is not None or dtype_of(node.result.type).bits not in (32, 64):
        raise NoLanesError("a gather")
    if any(v in lanes.varying for v in outer) or not last_is_contiguous(node):
        raise NoLanesError("a gather")
    maker = makers.get(last)
    if isinstance(maker, Op) and maker.name == "arith.index_cast":
        narrow = maker.operands[0]
        return narrow if dtype_of(narrow.type) in (I32, I64) else last
    return last


def last_is_contiguous(node: Access) -> bool:
    """Whether neighbours along the last dimension are neighbours in memory."""
    steps = strides(node.buffer)
    return bool(steps) and steps[-1] == 1
