"""narrow-values: value ranges simplify conditions and narrow integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.known_values import compares_places
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import Check, IndirectLoad, Op, Sequence, remove_dead, walk
from polyblocks.affine.rewrites.flat_addresses import flatten_addresses
from polyblocks.affine.rewrites.folding import fold
from polyblocks.affine.rewrites.narrowing import narrow
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.passes.base import NestPass

#: Operations that conditions and conversions of numbers begin with.
_CONDITIONS = ("arith.cmpf", "arith.fptosi")


@dataclass(frozen=True)
class NarrowValuesPass(NestPass):
    """Follow the intervals of numbers through a nest, and use them.

    * A condition with one outcome is that outcome; a check that cannot fail is gone, and so is the
      minimum of integers one of which is never above the other.
    * Where a check fails of what no number becomes, it asks for a number before that.
    * What was extended, to be compared with a number of its own type, is compared as it was.
    * A load at several run-time indices is one at an address: quotients and remainders of one
      number, put together again, are that number.
    * Integers that floating-point numbers become, and places that masks compare, have 32 bits where
      they fit these.

    Before::

        %low = arith.select %negative, %zero, %x : f32
        %clamped = arith.select %high, %c7, %low : f32
        %i = arith.fptosi %clamped : f32 to i64
        %k = arith.index_cast %i : i64 to index
        %ok = arith.cmpi ult, %k, %c8 : index
        cf.assert %ok, "index out of range"
        %v = memref.load %table[%k] : memref<8xf32>

    After (where ``%x`` is a number)::

        %i = arith.fptosi %clamped : f32 to i32
        %k = arith.index_cast %i : i32 to index
        %v = memref.load %table[%k] : memref<8xf32>
    """

    name: ClassVar[str] = "narrow-values"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Narrow in every nest that computes conditions or indices of numbers."""
        views = FlatViews(sequence)
        for nest in sequence.nests():
            if not any(
                isinstance(n, (Check, IndirectLoad))
                or (isinstance(n, Op) and n.name in _CONDITIONS)
                for n in walk(nest.body)
            ):
                continue
            intervals, folded = fold(nest.body)
            flat = flatten_addresses(nest.body, views, intervals)
            narrowed = narrow(nest.body, intervals, compares_places(nest.body))
            if folded or flat or narrowed:
                eliminate_common(nest.body)
                remove_dead(nest.body)
                nest.replace()
                numbers = {"folded": folded, "flat": flat, "narrowed": narrowed}
                context.decide(self.name, nest.name, "ranges used", **numbers)
