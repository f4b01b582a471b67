"""fill-empties: elements of an empty tensor read before they are written are zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import lcm, prod
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies

#: Longest pattern of strides that is followed.
_LONGEST_PERIOD = 64


@dataclass(frozen=True)
class FillEmptiesPass:
    """Fill an empty tensor with elements that are read before they are written.

    Programs copy or compute on whole arrays while parts of them are still unset, and set these
    later: a circular pad does. Without the fill results would depend on what memory holds. A tensor
    that slices cover until something reads it is not filled, nor one that ops write completely, nor
    one that a loop carries. ``eliminate-overwritten-stores`` removes the part of the fill that
    later slices cover.

    Before::

        %e = tensor.empty() : tensor<6xf32>
        %a = tensor.insert_slice %x into %e[2] [4] [1] : tensor<4xf32> into tensor<6xf32>
        %l = tensor.extract_slice %a[3] [2] [1] : tensor<6xf32> to tensor<2xf32>
        %r = tensor.insert_slice %l into %a[0] [2] [1] : tensor<2xf32> into tensor<6xf32>

    After: ``%e`` is filled with zeros.
    """

    name: ClassVar[str] = "fill-empties"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether anything was filled."""
        from polyblocks.mlir import ir

        del context
        empties = [op for op in besides_bodies(module) if op.name == "tensor.empty"]
        filled = False
        for op in empties:
            if not _has_elements(op.results[0].type):
                continue
            # One empty tensor may be the destination of several ops.
            exposed = [use for use in op.results[0].uses if _is_exposed(use, [])]
            if exposed:
                # Where each use is, in the body of a loop as well.
                for use in exposed:
                    owner = use.owner.operation
                    with ir.InsertionPoint(owner), owner.location:
                        owner.operands[use.operand_number] = _zeros(op.results[0].type)
                filled = True
        return filled


def _is_exposed(use: Any, windows: list[list[range]]) -> bool:
    """Whether a use reads elements that nothing has written.

    Args:
        use: of an empty tensor into which slices were put.
        windows: of these, the indices along each dimension.
    """
    from polyblocks.mlir import ir

    op, operand = use.owner.operation, use.operand_number
    if op.name == "tensor.insert_slice" and operand == 1:
        window = _window(op)
        windows = windows if window is None else [*windows, window]
        shape = ir.RankedTensorType(op.results[0].type).shape
        if is_covered(list(shape), windows):
            return False
        return any(_is_exposed(further, windows) for further in op.results[0].uses)
    if op.name == "linalg.generic":
        inputs = op.attributes["operandSegmentSizes"][0]
        return operand < inputs or bool(list(op.regions[0].blocks[0].arguments[operand].uses))
    return op.name in (
        "func.return",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tensor.extract",
        "tensor.extract_slice",
        "tensor.insert_slice",
    )


def _window(op: Any) -> list[range] | None:
    """The indices that a slice is put to, if all of them are known."""
    if len(op.operands) > 2:
        return None
    names = ("static_offsets", "static_sizes", "static_strides")
    return [
        range(offset, offset + size * stride, stride)
        for offset, size, stride in zip(*(op.attributes[n] for n in names), strict=True)
    ]


def is_covered(shape: list[int], windows: list[list[range]]) -> bool:
    """Whether every element of an array is in a window.

    Args:
        shape: extents of the array.
        windows: for each, the indices along each dimension.
    """
    every = frozenset(range(len(windows)))
    found = {every}
    for dimension, extent in enumerate(shape):
        of_indices = frozenset(_cells(extent, [window[dimension] for window in windows]))
        found = {a & b for a in found for b in of_indices}
    return frozenset() not in found


def _cells(extent: int, ranges: list[range]) -> Iterator[frozenset[int]]:
    """Which of the ranges have an index, for at least one index of each kind there is."""
    period = _period(ranges)
    if period > _LONGEST_PERIOD:
        yield frozenset()
        return
    ends = {end for r in ranges for end in (r.start, r.stop)}
    bounds = sorted({0, extent, *(min(end, extent) for end in ends)})
    for low, high in pairwise(bounds):
        for index in range(low, min(high, low + period)):
            yield frozenset(k for k, r in enumerate(ranges) if index in r)


def _period(ranges: Iterable[range]) -> int:
    return reduce(lcm, (r.step for r in ranges), 1)


def _has_elements(type_: Any) -> bool:
    from polyblocks.mlir import ir

    return prod(ir.RankedTensorType(type_).shape) > 0


def _zeros(type_: Any) -> Any:
    """A tensor of zeros, at the insertion point."""
    from polyblocks.mlir import dialect, ir

    type_ = ir.RankedTensorType(type_)
    element, rank = type_.element_type, type_.rank
    if isinstance(element, ir.ComplexType):
        part = ir.FloatAttr.get(element.element_type, 0.0)
        zero = ir.Operation.create(
            "complex.constant",
            results=[element],
            attributes={"value": ir.ArrayAttr.get([part] * 2)},
        ).results[0]
    else:
        kind = ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr
        zero = dialect("arith").ConstantOp(element, kind.get(element, 0)).result
    empty = dialect("tensor").EmptyOp(list(type_.shape), element).result
    loop = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    maps = (ir.AffineMap.get(rank, 0, []), ir.AffineMap.get_identity(rank))
    op = ir.Operation.create(
        "linalg.generic",
        results=[type_],
        operands=[zero, empty],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            "iterator_types": ir.ArrayAttr.get([loop] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
    return op.results[0]
