"""Rows of keys: what is sorted, along any dimension of a tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
        element = self.order.compared(element)
        if not self.order.signed:
            element = _flipped(element, 1 << (self.order.bits - 1))
        return _flipped(element, -1) if self.order.descending else element

    def ordered(self) -> Any:
        """The keys as :meth:`key` gives them, along the last dimension."""
        last = len(self.outer)
        operands = [self.operand(last)]
        shape = [*self.outer, self.extent]
        return t.computed(shape, [self.kind], operands, lambda x: [self.key(x[0])])[0]

    def plain(self) -> Rows:
        """The same keys signed, along the last dimension, all of them still different."""
        last = len(self.outer)
        order = replace(self.order, signed=True)
        keys = self.tensor
        if self.dim != last or order != self.order:
            (keys,) = t.computed(
                [*self.outer, self.extent],
                [self.kind],
                [self.operand(last)],
                lambda loaded: [self._turned(loaded[0])],
            )
        return Rows(keys, last, order)

    def element(self, key: Any, kind: Any) -> Any:
        """The number that a key of :meth:`plain` rows is of.

        Args:
            key: an integer.
            kind: the number's type: an integer type, or a floating-point type whose numbers the
                keys are in their total order.
        """
        arith = dialect("arith")
        key = self._turned(key)
        if not isinstance(kind, ir.IntegerType):
            sign = arith.ShRSIOp(key, t.constant(key.type, self.order.bits - 1)).result
            flip = arith.AndIOp(sign, t.constant(key.type, t.greatest(key.type))).result
            return arith.BitcastOp(kind, arith.XOrIOp(key, flip).result).result
        return key if key.type == kind else arith.TruncIOp(kind, key).result

    def _turned(self, key: Any) -> Any:
        """A key as a signed one, or the other way round."""
        return key if self.order.signed else _flipped(key, 1 << (self.order.bits - 1))

    def part(self, begin: int, extent: int) -> Rows:
        """Neighbouring elements of every row."""
        return Rows(sliced(self.tensor, self.dim, begin, extent), self.dim, self.order)


def _flipped(number: Any, bits: int) -> Any:
    """An integer with some bits turned."""
    width = int(number.type.width)
    bits -= (bits >> (width - 1) == 1) << width
    return dialect("arith").XOrIOp(number, t.constant(number.type, bits)).result


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


def concatenated(front: Any, back: Any) -> Any:
    """Two tensors behind each other along the last dimension."""
    tensor = dialect("tensor")
    shape = list(front.type.shape)
    last = len(shape) - 1
    shape[last] += back.type.shape[last]
    whole = tensor.EmptyOp(shape, front.type.element_type).result
    for part, begin in ((front, 0), (back, front.type.shape[last])):
        offsets, ones = [0] * last + [begin], [1] * len(shape)
        sizes = list(part.type.shape)
        whole = tensor.InsertSliceOp(part, whole, [], [], [], offsets, sizes, ones).result
    return whole


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
