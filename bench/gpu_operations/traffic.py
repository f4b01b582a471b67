"""Bytes that an operation has to move beyond each operand and result once.

What is computed from a result that needs more of an operand than one multiprocessor has room for
cannot begin before all of that was read; what it needs of the operand besides is read again. So it
is with the gradients of a loss that its value scales, and with values less the mean of their batch.
Rows that a multiprocessor has room for are read once.

What sums at places that are known at run time alone reads and writes elements of its result once
more: all of it has its first values before the first sum. Results that the last cache holds do not
go to memory for that.

Rows that are read at run-time places come from the last cache each time but where a multiprocessor
still has them: of a table in no order that is as likely as it has room for the table. All that is
read comes through that cache, at its rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from polyblocks.target import TargetDescription

aten = torch.ops.aten
#: Reductions with what is made of them, which are one core operation.
NORMS = (
    aten.native_batch_norm,
    aten._native_batch_norm_legit,
    aten.native_batch_norm_backward,
    aten.native_layer_norm,
    aten.native_layer_norm_backward,
    aten.native_group_norm,
    aten.native_group_norm_backward,
)
#: Sums at run-time places of elements, and which argument says these.
SUMS = {aten.scatter_add: 2, aten.scatter_reduce: 2, aten.index_reduce: 2}
#: What reads rows of a table at run-time places, and which arguments are the table and the places.
ROWS = {
    aten.index_select: (0, 2),
    aten.embedding: (0, 1),
    aten._embedding_bag: (0, 1),
    aten._embedding_bag_forward_only: (0, 1),
}
#: What is of one element each beside operations that say so.
ELEMENTWISE = (aten.detach, aten.alias, aten.clone)


@dataclass(frozen=True)
class Traffic:
    """What is moved more than once.

    Attributes:
        readings: how often each operand has to be read.
        updates: bytes of the elements that sums at run-time places, and what follows them, read
            and write.
        rows: bytes that come from the last cache for rows at run-time places, beyond their tables
            once.
    """

    readings: tuple[int, ...]
    updates: int
    rows: int = 0

    def beyond(self, operands: Sequence[torch.Tensor]) -> int:
        """Bytes beyond each operand and result once."""
        again = sum((n - 1) * x.nbytes for n, x in zip(self.readings, operands, strict=True))
        return again + 2 * self.updates


def traffic(
    function: Callable[..., Any], operands: Sequence[torch.Tensor], target: TargetDescription
) -> Traffic:
    """Of a call; as if all were moved once where PyTorch cannot trace the function.

    Args:
        function: of the operands, which are not read.
        operands: of any kind.
        target: with multiprocessors. Operands that its last cache holds are read once.
    """
    chip = target.multiprocessor
    assert chip is not None
    room = chip.shared_per_block_optin + 4 * chip.registers
    cache = max((level.size for level in target.memory), default=0)
    table = {**core_aten_decompositions(), **get_decompositions(NORMS)}

    graph = _traced(function, operands, table)
    if graph is None:
        return Traffic((1,) * len(operands), 0)
    large = [x.nbytes > cache for x in operands]
    rows = _row_bytes(graph, chip.shared, chip.sector)
    return Traffic(tuple(_readings(graph, large, room)), _summed(graph, cache), rows)


def is_elementwise(function: Callable[..., Any], operands: Sequence[torch.Tensor]) -> bool:
    """Whether elements of the results are functions of one element of each operand."""
    graph = _traced(function, operands, {})
    calls = [] if graph is None else [n for n in graph.nodes if n.op == "call_function"]
    return bool(calls) and all(_is_elementwise(n) for n in calls)


def _is_elementwise(node: fx.Node) -> bool:
    """Whether elements of a result are functions of one element each, or numbers."""
    number = not node.all_input_nodes and all(x.numel() == 1 for x in _tensors(node))
    same = getattr(node.target, "overloadpacket", None) in ELEMENTWISE
    return number or same or torch.Tag.pointwise in getattr(node.target, "tags", ())


def _traced(
    function: Callable[..., Any], operands: Sequence[torch.Tensor], table: Mapping[Any, Any]
) -> fx.Graph | None:
    """The operations of a function, those in the table in parts; None where none can be traced."""

    def called(*given: torch.Tensor) -> Any:
        return function(*given)

    try:
        graph = make_fx(called, decomposition_table=table, tracing_mode="fake")(*operands).graph
    except Exception:
        return None
    graph.eliminate_dead_code()
    return graph


def _readings(graph: fx.Graph, large: Sequence[bool], room: int) -> list[int]:
    """How often each operand has to be read; those that are not ``large`` once."""
    phases: dict[fx.Node, int] = {}
    # Of each node, the operands from which its elements are computed without a reduction.
    sources: dict[fx.Node, frozenset[int]] = {}
    # Of each node, the operands that it needs anything of.
    reached: dict[fx.Node, frozenset[int]] = {}
    found: list[set[int]] = [set() for _ in large]
    given = [node for node in graph.nodes if node.op == "placeholder"]
    for number, node in enumerate(given):
        phases[node] = 0
        sources[node] = reached[node] = frozenset({number} if large[number] else ())
    for node in graph.nodes:
        if node in phases or node.op == "output":
            continue
        inputs = [n for n in node.all_input_nodes if n in phases]
        phase = max((phases[n] for n in inputs), default=0)
        read = frozenset(number for n in inputs for number in sources[n])
        for number in read:
            found[number].add(phase)
        reduced = torch.Tag.reduction in getattr(node.target, "tags", ())
        reached[node] = frozenset(number for n in inputs for number in reached[n])
        # One number of all rows needs what the numbers of all rows need.
        of_all = bool(reached[node]) and all(x.numel() == 1 for x in _tensors(node))
        phases[node] = phase + (reduced and (of_all or _needed(node, inputs) > room))
        sources[node] = frozenset() if reduced else read
    return [max(len(each), 1) for each in found]


def _needed(node: fx.Node, inputs: Sequence[fx.Node]) -> float:
    """Bytes of the largest input for each element of a result."""
    results = min((x.numel() for x in _tensors(node)), default=1)
    return max((x.nbytes for n in inputs for x in _tensors(n)), default=0) / max(results, 1)


def _summed(graph: fx.Graph, cache: int) -> int:
    """Bytes of elements that sums at run-time places read and write, beyond those in a cache."""
    given: set[fx.Node] = set()
    total = 0
    for node in graph.nodes:
        if node.op == "placeholder" or not given.isdisjoint(node.all_input_nodes):
            given.add(node)
        result = next(_tensors(node), None)
        places = _places(node)
        if result is not None and result.nbytes > cache and not given.isdisjoint(places):
            moved = min(_updates(node, places, result) * result.element_size(), result.nbytes)
            # Numbers of updates are updated, too; then sums are read again, and quotients stored.
            total += moved + (moved + result.nbytes if "mean" in node.args else 0)
    return total


def _row_bytes(graph: fx.Graph, near: int, sector: int) -> int:
    """Bytes of rows at run-time places that a multiprocessor does not have, beyond tables once.

    Args:
        graph: of a function.
        near: bytes that a multiprocessor keeps.
        sector: the fewest that are moved; of shorter rows more is moved, which is not counted.
    """
    total = 0.0
    # Of rows that are read twice at the same places a shape may be all that is asked for.
    for nodes in dict.fromkeys(map(_table_and_places, graph.nodes)):
        if nodes is None:
            continue
        table, places = (n.meta["val"] for n in nodes)
        row = table.nbytes // max(table.shape[0], 1)
        if row >= sector and table.nbytes > near:
            moved = row * places.numel() * (1 - near / table.nbytes)
            total += max(0.0, moved - table.nbytes)
    return int(total)


def _table_and_places(node: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """What a node reads rows of, and what says where; None where it does not."""
    packet = getattr(node.target, "overloadpacket", None)
    if packet is aten.index:
        at = [n for n in node.args[1] if n is not None]
        return (node.args[0], at[0]) if len(at) == 1 and node.args[1][0] is not None else None
    if packet not in ROWS or (packet is aten.index_select and node.args[1] != 0):
        return None
    first, second = ROWS[packet]
    return node.args[first], node.args[second]


def _places(node: fx.Node) -> list[fx.Node]:
    """What says where a node sums to; none where it does not."""
    packet = getattr(node.target, "overloadpacket", None)
    if packet is aten.index_put and len(node.args) > 3 and node.args[3]:
        return [n for n in node.args[1] if n is not None]
    return [node.args[SUMS[packet]]] if packet in SUMS else []


def _updates(node: fx.Node, places: Sequence[fx.Node], result: torch.Tensor) -> int:
    """How many elements a node updates, each as often as it does."""
    count = prod(torch.broadcast_shapes(*(n.meta["val"].shape for n in places)))
    if not isinstance(node.args[1], Sequence):
        rows = getattr(node.target, "overloadpacket", None) is aten.index_reduce
        return int(node.args[3].meta["val"].numel()) if rows else count
    indexed = dict(enumerate(node.args[1]))
    return count * prod(n for d, n in enumerate(result.shape) if indexed.get(d) is None)


def _tensors(node: fx.Node) -> Iterator[torch.Tensor]:
    """The results of a node whose sizes are known."""
    for x in pytree.tree_leaves(node.meta.get("val")):
        if isinstance(x, torch.Tensor) and all(isinstance(n, int) for n in x.shape):
            yield x
