"""Rows of words: integers that hold a key and its position, so that all of a row are distinct.

A word has the key, made signed and ascending, in its upper half and the position in its lower one.
Comparing words compares keys, and positions where keys are equal: any way to sort them is stable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.order import Order
from polyblocks.mlir import dialect, ir

#: Greatest width of keys, and extent of rows, that fit into words of 32 bits.
NARROW_KEY, NARROW_ROW = 16, 1 << 16
#: The same for words of 64 bits; wider keys are kept beside their positions.
WIDE_KEY, WIDE_ROW = 32, 1 << 31


def word_bits(order: Order, extent: int) -> int | None:
    """Bits of the words of rows of ``extent`` elements; None if no word can hold key and place."""
    if order.bits <= NARROW_KEY and extent <= NARROW_ROW:
        return 32
    if order.bits <= WIDE_KEY and extent <= WIDE_ROW:
        return 64
    return None


def ascending(key: Any, order: Order) -> Any:
    """The key as a signed number that is smaller for what comes first."""
    arith = dialect("arith")
    if not order.signed:
        key = arith.XOrIOp(key, t.constant(key.type, -(1 << (order.bits - 1)))).result
    if order.descending:
        key = arith.XOrIOp(key, t.constant(key.type, -1)).result
    return key


@dataclass(frozen=True)
class Rows:
    """Rows to sort: a tensor whose elements along one dimension are sorted.

    Attributes:
        tensor: the keys, or words.
        dim: the dimension of a row.
        order: the order of the keys; None for words.
        word: type of the words.
    """

    tensor: Any
    dim: int
    order: Order | None
    word: Any

    @property
    def extent(self) -> int:
        """Elements of a row."""
        return int(self.tensor.type.shape[self.dim])

    @property
    def outer(self) -> list[int]:
        """Extents of the other dimensions."""
        shape = list(self.tensor.type.shape)
        return shape[: self.dim] + shape[self.dim + 1 :]

    def operand(self, place: Any) -> t.Operand:
        """The elements at a place of all rows, whose loops are the outermost ones."""
        index: list[Any] = list(range(len(self.outer)))
        return self.tensor, [*index[: self.dim], place, *index[self.dim :]]

    def element(self, place: Any) -> Any:
        """The element at a run-time place (of type index) of the row, in a generic's body."""
        linalg = dialect("linalg")
        index = [linalg.IndexOp(loop).result for loop in range(len(self.outer))]
        return t.extract(self.tensor, [*index[: self.dim], place, *index[self.dim :]])

    def to_word(self, element: Any, place: Any) -> Any:
        """The word of an element at a place (of type index)."""
        if self.order is None:
            return element
        arith = dialect("arith")
        half = self.word.width // 2
        key = ascending(element, self.order)
        if key.type != self.word:
            key = arith.ExtSIOp(self.word, key).result
        key = arith.ShLIOp(key, t.constant(self.word, half)).result
        return arith.OrIOp(key, arith.IndexCastOp(self.word, place).result).result

    def words(self) -> Rows:
        """The words, as rows along the last dimension."""
        if self.order is None:
            return self
        last = len(self.outer)

        def body(loaded: list[Any]) -> list[Any]:
            return [self.to_word(loaded[0], dialect("linalg").IndexOp(last).result)]

        (made,) = t.computed([*self.outer, self.extent], [self.word], [self.operand(last)], body)
        return Rows(made, last, None, self.word)


def places_of(words: Any, count: int, kind: Any) -> Any:
    """The positions in the first ``count`` words of rows along the last dimension."""
    shape = [*list(words.type.shape)[:-1], count]
    word = words.type.element_type
    mask = (1 << (word.width // 2)) - 1

    def body(loaded: list[Any]) -> list[Any]:
        arith = dialect("arith")
        place = arith.AndIOp(loaded[0], t.constant(word, mask)).result
        return [_resized(place, kind)]

    words = first(words, count)
    (made,) = t.computed(shape, [kind], [(words, list(range(len(shape))))], body)
    return made


def first(rows: Any, count: int) -> Any:
    """The first elements of rows along the last dimension."""
    if count == rows.type.shape[-1]:
        return rows
    shape = [*list(rows.type.shape)[:-1], count]
    kind = ir.RankedTensorType.get(shape, rows.type.element_type)
    zeros, ones = [0] * len(shape), [1] * len(shape)
    return dialect("tensor").ExtractSliceOp(kind, rows, [], [], [], zeros, shape, ones).result


def _resized(value: Any, kind: Any) -> Any:
    """A number that is not negative as another integer type."""
    arith = dialect("arith")
    if value.type.width == kind.width:
        return value
    wider = kind.width > value.type.width
    return (arith.ExtUIOp if wider else arith.TruncIOp)(kind, value).result
