"""lower-sorts: a sort of rows becomes loops that distribute their elements by digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.bufferize.replacing import replace_each


@dataclass(frozen=True)
class LowerSortsPass:
    """Lower ``tm_tensor.sort`` by a signed key, along the last dimension, to loops.

    Rows are sorted by the digits of their keys; see :mod:`polyblocks.algorithms.sorting.digits`.
    Where rows are fewer than threads, these sort parts of rows and merge them; see
    :mod:`polyblocks.algorithms.sorting.merges`.

    Before::

        tm_tensor.sort dimension(1) outs(%words : memref<8x1000xi64>) {
          ^bb0(%a: i64, %b: i64): ... arith.shrsi %a, %c32 ... arith.cmpi slt ... }

    After::

        affine.for %r = 0 to 8 {
          ...                                       // %starts: where each digit's elements begin
          affine.for %i = 0 to 1000 {
            %w = affine.load %words[%r, %i]
            %d = ...                                // bits 32 to 39 of it
            %p = memref.load %starts[%r, %d]
            memref.store %w, %other[%r, %p]
            memref.store %p + 1, %starts[%r, %d] }
          ... }
    """

    name: ClassVar[str] = "lower-sorts"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.PROGRAM_LOOPS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was a sort."""
        threads = context.target.shared_level.size
        return replace_each(module, "tm_tensor.sort", lambda op: _write(op, threads))


def _write(op: Any, threads: int) -> None:
    from polyblocks.algorithms.sorting.digits import sort_by_digits
    from polyblocks.algorithms.sorting.order import order_of
    from polyblocks.mlir import ir

    order = order_of(op)
    buffers = list(op.operands)
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    assert order is not None, "plan-sorts writes comparators that can be read"
    assert order.signed
    assert dim == len(buffers[0].type.shape) - 1
    sort_by_digits(buffers, order, threads)
