"""Rows of keys: what is sorted, along any dimension of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.order import Order
from polyblocks.mlir import dialect, ir


@dataclass(frozen=True)
class Rows:
    """A tensor of integers whose elements along one dimension are sorted.

    Attributes:
        tensor: the keys.
        dim: the dimension of a row.
        order: of the keys; equal ones are in the order in which they lie.
    """

    tensor: Any
    dim: int
    order: Order

    @property
    def extent(self) -> int:
        """Elements of a row."""
        return int(self.tensor.type.shape[self.dim])

    @property
    def outer(self) -> list[int]:
        """Extents of the other dimensions."""
        shape = list(self.tensor.type.shape)
        return shape[: self.dim] + shape[self.dim + 1 :]

    @property
    def kind(self) -> Any:
        """Element type."""
        return self.tensor.type.element_type

    def operand(self, *places: Any) -> t.Operand:
        """The elements at places of all rows, whose loops are the outermost ones."""
        index: list[Any] = list(range(len(self.outer)))
        return self.tensor, [*index[: self.dim], *places, *index[self.dim :]]

    def key(self, element: Any) -> Any:
        """The key of an element as a signed number that is smaller for what comes first."""
        arith = dialect("arith")
        if not self.order.signed:
            sign = t.constant(element.type, -(1 << (self.order.bits - 1)))
            element = arith.XOrIOp(element, sign).result
        if self.order.descending:
            element = arith.XOrIOp(element, t.constant(element.type, -1)).result
        return element

    def part(self, begin: int, extent: int) -> Rows:
        """Neighbouring elements of every row."""
        return Rows(sliced(self.tensor, self.dim, begin, extent), self.dim, self.order)


def ascending(tensor: Any) -> Rows:
    """Rows along the last dimension of keys that are signed and ascending."""
    kind = tensor.type
    return Rows(tensor, len(kind.shape) - 1, Order(kind.element_type.width))


def sliced(tensor: Any, dim: int, begin: int, extent: int) -> Any:
    """Neighbouring elements along a dimension of a tensor."""
    shape = list(tensor.type.shape)
    if (begin, extent) == (0, shape[dim]):
        return tensor
    offsets, ones = [0] * len(shape), [1] * len(shape)
    offsets[dim], shape[dim] = begin, extent
    kind = ir.RankedTensorType.get(shape, tensor.type.element_type)
    slice_ = dialect("tensor").ExtractSliceOp
    return slice_(kind, tensor, [], [], [], offsets, shape, ones).result


def first(tensor: Any, count: int) -> Any:
    """The first elements of rows along the last dimension."""
    return sliced(tensor, len(tensor.type.shape) - 1, 0, count)


def split(tensor: Any, dim: int, inner: int) -> Any:
    """A dimension as two, the second one of extent ``inner``."""
    shape = list(tensor.type.shape)
    long = [*shape[:dim], shape[dim] // inner, inner, *shape[dim + 1 :]]
    groups = [[d + (d > dim)] for d in range(len(shape))]
    groups[dim] = [dim, dim + 1]
    return _regrouped("expand_shape", tensor, long, groups)


def joined(tensor: Any) -> Any:
    """The last two dimensions as one."""
    shape = list(tensor.type.shape)
    last = len(shape) - 2
    groups = [*([d] for d in range(last)), [last, last + 1]]
    return _regrouped("collapse_shape", tensor, [*shape[:last], shape[-2] * shape[-1]], groups)


def _regrouped(name: str, tensor: Any, shape: list[int], groups: list[list[int]]) -> Any:
    indices = [[ir.IntegerAttr.get(t.integer(64), d) for d in group] for group in groups]
    attributes: dict[str, Any] = {
        "reassociation": ir.ArrayAttr.get([ir.ArrayAttr.get(group) for group in indices])
    }
    if name == "expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(shape)
    kind = ir.RankedTensorType.get(shape, tensor.type.element_type)
    op = ir.Operation.create(
        f"tensor.{name}", results=[kind], operands=[tensor], attributes=attributes
    )
    return op.results[0]
