"""fold-insertions: what is put into a part that goes back to its place is put there at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies


@dataclass(frozen=True)
class FoldInsertionsPass:
    """Put a slice into a tensor directly, not into a slice of it that is put back.

    Frontends write to a window one dimension after the other. The slices between would be copied,
    and of an empty tensor's nothing has written most.

    Before::

        %s = tensor.extract_slice %d[0, 3] [12, 9] [1, 1] : tensor<12x14xf32> to tensor<12x9xf32>
        %t = tensor.insert_slice %x into %s[4, 0] [7, 9] [1, 1]
            : tensor<7x9xf32> into tensor<12x9xf32>
        %r = tensor.insert_slice %t into %d[0, 3] [12, 9] [1, 1]
            : tensor<12x9xf32> into tensor<12x14xf32>

    After::

        %r = tensor.insert_slice %x into %d[4, 3] [7, 9] [1, 1]
            : tensor<7x9xf32> into tensor<12x14xf32>

    Slices with offsets, sizes or strides that are known at run time only stay as they are.
    """

    name: ClassVar[str] = "fold-insertions"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was anything to fold."""
        del context
        insertions = [op for op in besides_bodies(module) if op.name == "tensor.insert_slice"]
        # In the order of the program: what is put in may itself have been folded.
        folded = False
        for op in insertions:
            folded |= _fold(op)
        return folded


class _Window(NamedTuple):
    """A slice: offset, size and stride of each dimension of a tensor."""

    offsets: list[int]
    sizes: list[int]
    strides: list[int]

    def within(self, outer: _Window, kept: list[int]) -> _Window:
        """This window of the window ``outer``, which has kept these of its dimensions."""
        offsets, sizes, strides = (
            list(outer.offsets),
            [1] * len(outer.sizes),
            [1] * len(outer.sizes),
        )
        for place, offset, size, stride in zip(kept, *self, strict=True):
            offsets[place] += offset * outer.strides[place]
            sizes[place] = size
            strides[place] = stride * outer.strides[place]
        return _Window(offsets, sizes, strides)


def _fold(back: Any) -> bool:
    """Fold the insertion of a slice that goes back to where it has come from.

    Args:
        back: ``tensor.insert_slice``; erased if it is folded.
    """
    from polyblocks.mlir import dialect, ir

    inner = _made_by(back.operands[0], "tensor.insert_slice")
    slice_ = inner and _made_by(inner.operands[1], "tensor.extract_slice")
    if not slice_ or slice_.operands[0] != back.operands[1]:
        return False
    place, outer = _window(inner), _window(back)
    if place is None or outer is None or _window(slice_) != outer:
        return False
    kept = _kept(outer.sizes, list(ir.RankedTensorType(slice_.results[0].type).shape))
    with ir.InsertionPoint(back), back.location:
        new = dialect("tensor").InsertSliceOp(
            inner.operands[0], back.operands[1], [], [], [], *place.within(outer, kept)
        )
    back.results[0].replace_all_uses_with(new.result)
    back.erase()
    for op in (inner, slice_):
        if not list(op.results[0].uses):
            op.erase()
    return True


def _made_by(value: Any, name: str) -> Any:
    """The op of this name that a value is the result of, or nothing."""
    op = getattr(value.owner, "operation", None)
    return op if op is not None and op.name == name else None


def _window(op: Any) -> _Window | None:
    """The window of a slice, if all of it is known."""
    # The tensors are operands, too.
    if len(op.operands) > (2 if op.name == "tensor.insert_slice" else 1):
        return None
    names = ("static_offsets", "static_sizes", "static_strides")
    return _Window(*(list(op.attributes[name]) for name in names))


def _kept(sizes: list[int], shape: list[int]) -> list[int]:
    """Which dimensions of a slice a type of this shape has, which may lack some of extent 1."""
    kept: list[int] = []
    for place, size in enumerate(sizes):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(place)
    return kept
