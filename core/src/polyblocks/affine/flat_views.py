"""One-dimensional views of buffers, in which the index is the address."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.access import begins_and_ends_with_memory, strides
from polyblocks.affine.model import Buffer, Sequence


class FlatViews:
    """The views of one sequence's buffers, each made once."""

    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence
        self._views: dict[Buffer, Buffer] = {}
        self._words: dict[Buffer, Buffer | None] = {}

    def of(self, buffer: Buffer) -> Buffer:
        """The view over all that a buffer's strides reach; itself if it is one already.

        Args:
            buffer: see :func:`is_row`.
        """
        if len(buffer.shape) == 1 and strides(buffer) == (1,):
            return buffer
        if buffer not in self._views:
            pairs = zip(buffer.shape, strides(buffer), strict=True)
            span = 1 + sum((extent - 1) * stride for extent, stride in pairs) if buffer.numel else 0
            size = buffer.bytes_per_element
            view = Buffer((span,), buffer.element, "other", bytes_per_element=size, base=buffer)
            self._views[buffer] = view
            self._sequence.buffers.append(view)
        return self._views[buffer]

    def of_words(self, buffer: Buffer, count: int, word: Any) -> Buffer | None:
        """The flat view of a buffer in words; None if it begins in the middle of memory.

        Args:
            buffer: what is viewed.
            count: elements of a word.
            word: its MLIR type. The same for all words of a buffer.
        """
        if not flattenable(buffer):
            return None
        flat = self.of(buffer)
        if flat not in self._words:
            type_ = buffer.memref_type
            begins = type_ is None or type_.get_strides_and_offset()[1] == 0
            words = flat.numel // count
            size = count * flat.bytes_per_element
            self._words[flat] = (
                Buffer((words,), word, "other", bytes_per_element=size, base=flat)
                if begins and words
                else None
            )
            if (view := self._words[flat]) is not None:
                self._sequence.buffers.append(view)
        return self._words[flat]


def is_flat(view: Buffer) -> bool:
    """Whether a view is what :class:`FlatViews` makes of the whole of a buffer."""
    viewed = view.viewed
    if viewed is None or viewed.viewed is not None or len(view.shape) != 1:
        return False
    pairs = zip(viewed.shape, strides(viewed), strict=True)
    span = 1 + sum((extent - 1) * stride for extent, stride in pairs)
    return view.shape == (span,) and begins_and_ends_with_memory(view)


def flattenable(buffer: Buffer) -> bool:
    """Whether a one-dimensional view of the buffer can be made."""
    return buffer.kind != "local" and all(e >= 0 for e in buffer.shape)


def is_row(buffer: Buffer) -> bool:
    """Whether the buffer is one-dimensional itself, or can be viewed so."""
    return flattenable(buffer) or (len(buffer.shape) == 1 and strides(buffer) == (1,))
