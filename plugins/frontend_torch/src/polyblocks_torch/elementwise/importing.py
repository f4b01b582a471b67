"""A node that computes element by element, as a ``linalg.generic``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from polyblocks import mlir
from polyblocks_torch.elementwise.operations import Operation
from polyblocks_torch.elementwise.scalars import Scalar, constant, convert, element_type, recast
from polyblocks_torch.elementwise.splats import splat_of


class ElementwiseImporter:
    """Imports nodes of one context; what recurs is made once."""

    def __init__(self) -> None:
        self._maps: dict[tuple[Sequence[int], Sequence[int]], Any] = {}
        self._iterators: dict[int, Any] = {}

    def run(self, node: fx.Node, operation: Operation, builtin: Callable[[fx.Node], Any]) -> Any:
        """Import a node, at the current insertion point and location.

        Args:
            node: of tensors, with ``meta["val"]``.
            operation: how it is imported.
            builtin: gives the builtin tensor that a node has become.

        Returns:
            A builtin tensor of the shape and type of the node's value.
        """
        ir = mlir.ir
        linalg, tensor = mlir.dialect("linalg"), mlir.dialect("tensor")
        result = node.meta["val"]
        shape, kind = tuple(result.shape), element_type(result.dtype)
        operands = [_operand(argument) for argument in node.args[: operation.operands]]
        read = [operand for operand in operands if isinstance(operand, fx.Node)]
        inputs = [builtin(operand) for operand in read]
        maps = [self._broadcast(tuple(operand.meta["val"].shape), shape) for operand in read]
        empty = tensor.EmptyOp(list(shape), kind)
        generic = linalg.GenericOp(
            [empty.result.type],
            inputs,
            [empty.result],
            ir.ArrayAttr.get([*maps, self._broadcast(shape, shape)]),
            self._parallel(len(shape)),
        )
        elements = [element_type(operand.meta["val"].dtype) for operand in read] + [kind]
        block = ir.Block.create_at_start(
            generic.regions[0], elements, arg_locs=[ir.Location.current] * len(elements)
        )
        with ir.InsertionPoint(block):
            arguments = iter(block.arguments)
            dtype = operation.rule(node)
            scalars = [_scalar(operand, arguments, dtype) for operand in operands]
            linalg.YieldOp([convert(operation.body(scalars, node), result.dtype).value])
        return generic.results[0]

    def _broadcast(self, operand: Sequence[int], result: Sequence[int]) -> Any:
        """Map of an operand's dimensions, aligned at the right, extents of 1 read at 0."""
        made = self._maps.get((operand, result))
        if made is None:
            ir = mlir.ir
            lead = len(result) - len(operand)
            exprs = [
                ir.AffineConstantExpr.get(0)
                if extent == 1 and result[lead + i] != 1
                else ir.AffineDimExpr.get(lead + i)
                for i, extent in enumerate(operand)
            ]
            made = ir.AffineMapAttr.get(ir.AffineMap.get(len(result), 0, exprs))
            self._maps[operand, result] = made
        return made

    def _parallel(self, rank: int) -> Any:
        made = self._iterators.get(rank)
        if made is None:
            parallel = mlir.ir.Attribute.parse("#linalg.iterator_type<parallel>")
            made = self._iterators[rank] = mlir.ir.ArrayAttr.get([parallel] * rank)
        return made


def _operand(argument: Any) -> Any:
    """A node, or a number and its type, which is None for Python's; None for what is left out."""
    if isinstance(argument, fx.Node):
        number = splat_of(argument)
        return argument if number is None else (number, argument.meta["val"].dtype)
    return None if argument is None else (argument, None)


def _scalar(operand: Any, arguments: Iterator[Any], dtype: torch.dtype | None) -> Any:
    """An operand in the type that is computed in; None for what is left out."""
    if operand is None:
        return None
    if isinstance(operand, fx.Node):
        scalar = Scalar(next(arguments), operand.meta["val"].dtype)
        return scalar if dtype is None else convert(scalar, dtype)
    number, own = operand
    if own is None:
        assert dtype is not None, "a number has no type of its own"
        return constant(number, dtype)
    return constant(number if dtype is None else recast(number, own, dtype), dtype or own)


def import_fill(value: torch.Tensor, number: bool | int | float) -> Any:
    """A builtin tensor all of whose elements are one number, at the current insertion point.

    Args:
        value: of the shape and the type that the tensor gets.
        number: its elements; they are converted to that type as Python numbers are.
    """
    linalg, tensor = mlir.dialect("linalg"), mlir.dialect("tensor")
    scalar = constant(number, value.dtype)
    empty = tensor.EmptyOp(list(value.shape), element_type(value.dtype))
    return linalg.fill(scalar.value, outs=[empty.result])
