"""Operands in the type that an operation computes in, where torch-mlir imports it.

torch-mlir promotes types by rules of its own, takes ``uint8`` for signed in most operations, and
fails on others of 8 bits. So ``sum`` of booleans is given the integers that it adds up, ``cat`` of
bytes and floats gets floats, and what computes with bytes or booleans does so in 32 bits::

    %0 = amax(%x, [0]) : uint8

becomes::

    %0 = _to_copy(%x, dtype=int32)
    %1 = amax(%0, [0]) : int32
    %2 = _to_copy(%1, dtype=uint8)

A conversion back wraps around as PyTorch does. Operations that only move elements stay as they are,
and so do those that :mod:`polyblocks_torch.elementwise` imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from polyblocks_torch.elementwise import fill_of, number_in, operation_of
from polyblocks_torch.importing.checks import CHECK
from polyblocks_torch.rewrites.conversions import compute_again, converted

aten = torch.ops.aten

#: Integers that are computed with in 32 bits.
SMALL = frozenset({torch.uint8, torch.int8, torch.bool})

#: Overload packets that move elements, besides views.
_MOVES = frozenset(
    """_to_copy _unsafe_index _unsafe_view alias arange cat clone constant_pad_nd copy
    diagonal_scatter embedding empty empty_like empty_permuted empty_strided expand_copy flip
    full_like gather index index_put index_select lift_fresh_copy masked_scatter new_empty
    new_empty_strided nonzero pixel_shuffle pixel_unshuffle repeat roll scatter select_scatter
    slice_scatter tril triu unfold""".split()
)
#: Products of bytes whose results are of 32 bits.
_WIDE_PRODUCTS = frozenset({aten._int_mm})
#: Those that ask for the truth of elements; of bytes, their results are bytes.
_TRUTH = frozenset({aten.all, aten.any})

#: Overload packets whose operand has the type of the result.
_SUMS = frozenset(
    {
        *(aten.cumprod, aten.cumsum, aten.linalg_vector_norm, aten.mean, aten.prod, aten.sum),
        *(aten._log_softmax, aten._softmax),
    }
)
#: Overload packets -> where the values stand that are stored into the first operand.
_STORED = {
    aten.index_put: 2,
    aten.masked_scatter: 2,
    aten.scatter: 3,
    aten.scatter_add: 3,
    aten.scatter_reduce: 3,
    aten.select_scatter: 1,
    aten.slice_scatter: 1,
}


def make_types_explicit(gm: fx.GraphModule) -> None:
    """Rewrite a graph in place; every node has ``meta["val"]``."""
    rewriter = _Rewriter(gm.graph)
    for node in list(gm.graph.nodes):
        if (
            node.op == "call_function"
            and isinstance(node.target, torch._ops.OpOverload)
            and fill_of(node) is None
            and operation_of(node) is None
        ):
            rewriter.run(node)
    if rewriter.converted:
        gm.recompile()


class _Rewriter:
    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        #: (Node, type) -> the node converted to it.
        self.converted: dict[tuple[fx.Node, torch.dtype], fx.Node] = {}

    def run(self, node: fx.Node) -> None:
        packet = node.target.overloadpacket  # type: ignore[union-attr]
        value: Any = node.meta.get("val")
        if packet in _SUMS and isinstance(value, torch.Tensor):
            self._sum(node, value.dtype)
        elif packet is aten.constant_pad_nd and len(node.args) > 2:
            number = node.args[2]
            if isinstance(number, (bool, int, float)) and not value.is_complex():
                node.update_arg(2, number_in(number, value.dtype))
        elif packet in _TRUTH:
            self._operands(node, node.all_input_nodes, torch.bool)
            compute_again(node)
        elif packet is aten.cat:
            self._operands(node, node.all_input_nodes, value.dtype)
        elif packet in _STORED:
            target, stored = node.args[0], node.args[_STORED[packet] : _STORED[packet] + 1]
            self._operands(node, _nodes(stored), _dtype(target))
        elif _is_pointwise(node) and isinstance(value, torch.Tensor) and value.dtype != torch.bool:
            self._operands(node, node.all_input_nodes, value.dtype)
        if _computes(node):
            self._widen(node)

    def _sum(self, node: fx.Node, dtype: torch.dtype) -> None:
        (operand,) = node.all_input_nodes
        if dtype is not torch.bool:
            self._operands(node, [operand], dtype)
            return
        # Of truths, a sum is a disjunction and a product a conjunction.
        node.replace_input_with(operand, self._as(node, operand, torch.bool))
        _drop_dtype(node)
        (operand,) = node.all_input_nodes
        node.replace_input_with(operand, self._as(node, operand, torch.int64))
        compute_again(node)

    def _operands(self, node: fx.Node, operands: Any, dtype: torch.dtype) -> None:
        for operand in operands:
            value = operand.meta.get("val")
            if isinstance(value, torch.Tensor) and value.dtype != dtype:
                node.replace_input_with(operand, self._as(node, operand, dtype))

    def _widen(self, node: fx.Node) -> None:
        small = [n for n in node.all_input_nodes if _dtype(n) in SMALL]
        if not small:
            return
        for operand in small:
            node.replace_input_with(operand, self._as(node, operand, torch.int32))
        _drop_dtype(node)
        compute_again(node)

    def _as(self, before: fx.Node, operand: fx.Node, dtype: torch.dtype) -> fx.Node:
        """An operand in a type, converted before the first node that reads it so."""
        if _dtype(operand) == dtype:
            return operand
        made = self.converted.get((operand, dtype))
        if made is None:
            with self.graph.inserting_before(before):
                made = converted(operand, dtype, before)
            self.converted[operand, dtype] = made
        return made


def _nodes(arguments: Any) -> Iterator[fx.Node]:
    return (a for a in arguments if isinstance(a, fx.Node))


def _dtype(node: Any) -> Any:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _is_pointwise(node: fx.Node) -> bool:
    return torch.Tag.pointwise in node.target.tags and not _moves(node)  # type: ignore[union-attr]


def _moves(node: fx.Node) -> bool:
    """Whether the result of an operation consists of elements that it was given."""
    target: Any = node.target
    if target.overloadpacket is aten.index_put and len(node.args) > 3 and node.args[3]:
        return False
    return target.is_view or target.overloadpacket.__name__ in _MOVES


def _computes(node: fx.Node) -> bool:
    target: Any = node.target
    packet = target.overloadpacket
    if (
        target is CHECK
        or packet in _TRUTH
        or packet in _WIDE_PRODUCTS
        or target.namespace == "prims"
    ):
        return False
    return not _moves(node)


def _drop_dtype(node: fx.Node) -> None:
    """Let an operation give its result in the type of its operand."""
    node.kwargs = {k: v for k, v in node.kwargs.items() if k != "dtype"}
