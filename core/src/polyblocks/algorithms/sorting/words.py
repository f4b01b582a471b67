"""Words: integers that hold a key and its position, so that all words of a row are distinct.

A word has the key, made signed and ascending, in its upper bits and the position in the others.
Comparing words compares keys, and positions where keys are equal: any way to sort them is stable.
"""

from __future__ import annotations

from typing import Any

from polyblocks.algorithms.sorting import tensors as t
from polyblocks.algorithms.sorting.rows import Rows, first
from polyblocks.mlir import dialect


def words_of(rows: Rows) -> Any:
    """The words of rows, along the last dimension; None if none can hold key and position."""
    bits = rows.order.bits
    # One number more than there are positions is for what comes last of all.
    widths = [width for width in (32, 64) if bits + rows.extent.bit_length() <= width]
    if not widths or bits > 32:
        return None
    word = t.integer(widths[0])
    last = len(rows.outer)

    def body(loaded: list[Any]) -> list[Any]:
        arith = dialect("arith")
        key = rows.key(loaded[0])
        if key.type != word:
            key = arith.ExtSIOp(word, key).result
        key = arith.ShLIOp(key, t.constant(word, word.width - bits)).result
        return [arith.OrIOp(key, t.loop_index(last, word)).result]

    (words,) = t.computed([*rows.outer, rows.extent], [word], [rows.operand(last)], body)
    return words


def places_of(words: Any, count: int, bits: int) -> Any:
    """The positions in the first ``count`` words of rows along the last dimension, as int32.

    Args:
        words: [..., n].
        count: at most n.
        bits: of a word that are its position.
    """
    shape = [*list(words.type.shape)[:-1], count]
    word, i32 = words.type.element_type, t.integer(32)
    mask = (1 << bits) - 1

    def body(loaded: list[Any]) -> list[Any]:
        arith = dialect("arith")
        place = arith.AndIOp(loaded[0], t.constant(word, mask)).result
        return [place if word == i32 else arith.TruncIOp(i32, place).result]

    operands = [(first(words, count), list(range(len(shape))))]
    (places,) = t.computed(shape, [i32], operands, body)
    return places
