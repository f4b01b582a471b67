"""Words: integers that hold a key and its position, so that all words of a row are distinct.

A word has the key, made signed and ascending, in its upper half and the position in its lower one.
Comparing words compares keys, and positions where keys are equal: any way to sort them is stable.
"""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.rows import Rows, first
from polyblocks.mlir import dialect

#: Greatest width of keys, and extent of rows, that fit into words of 32 bits.
NARROW_KEY, NARROW_ROW = 16, 1 << 16
#: The same for words of 64 bits; wider keys are kept beside their positions.
WIDE_KEY, WIDE_ROW = 32, 1 << 31


def words_of(rows: Rows) -> Any:
    """The words of rows, along the last dimension; None if none can hold key and position."""
    bits, extent = rows.order.bits, rows.extent
    if bits <= NARROW_KEY and extent <= NARROW_ROW:
        word = t.integer(2 * NARROW_KEY)
    elif bits <= WIDE_KEY and extent <= WIDE_ROW:
        word = t.integer(2 * WIDE_KEY)
    else:
        return None
    last = len(rows.outer)

    def body(loaded: list[Any]) -> list[Any]:
        arith = dialect("arith")
        key = rows.key(loaded[0])
        if key.type != word:
            key = arith.ExtSIOp(word, key).result
        key = arith.ShLIOp(key, t.constant(word, word.width // 2)).result
        return [arith.OrIOp(key, t.loop_index(last, word)).result]

    (words,) = t.computed([*rows.outer, rows.extent], [word], [rows.operand(last)], body)
    return words


def places_of(words: Any, count: int) -> Any:
    """The positions in the first ``count`` words of rows along the last dimension, as int32."""
    shape = [*list(words.type.shape)[:-1], count]
    word, i32 = words.type.element_type, t.integer(32)
    mask = (1 << (word.width // 2)) - 1

    def body(loaded: list[Any]) -> list[Any]:
        arith = dialect("arith")
        place = arith.AndIOp(loaded[0], t.constant(word, mask)).result
        return [place if word == i32 else arith.TruncIOp(i32, place).result]

    operands = [(first(words, count), list(range(len(shape))))]
    (places,) = t.computed(shape, [i32], operands, body)
    return places
