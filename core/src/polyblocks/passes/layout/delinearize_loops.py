"""delinearize-loops: a loop whose indices are digits of its variable becomes a loop per digit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import accesses
from polyblocks.affine.element import dtype_of
from polyblocks.affine.model import For, Nest, Sequence
from polyblocks.affine.rewrites.digit_loops import lowest_digit, split_at_digits
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class DelinearizeLoopsPass(NestPass):
    """Split an innermost loop at a digit of its variable if its iterations can be no lanes else.

    All pairs of the elements of two arrays are an example, which are rows of one array.

    Before::

        affine.for %t = 0 to 10000 {
          %x = affine.load %a[%t floordiv 100] ... affine.store %x, %c[%t, 0] }

    After::

        affine.for %i = 0 to 100 { affine.for %j = 0 to 100 {
          %x = affine.load %a[%i] ... affine.store %x, %c[%i * 100 + %j, 0] } }
    """

    name: ClassVar[str] = "delinearize-loops"
    #: Iterations of the inner loop at least, in vectors.
    min_vectors: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Split the innermost loop of every nest that stands to gain."""
        for nest in sequence.nests():
            loops, body = parallel_shell(nest.body)
            if not loops or any(isinstance(n, For) for n in body):
                continue
            digit = lowest_digit(loops[-1])
            if digit is None or not self._fills_vectors(nest, digit, context.target.vector_bits):
                continue
            if _has_lanes(loops[-1]):
                continue
            split_at_digits(loops[-1:])
            nest.replace()
            context.decide(self.name, nest.name, "delinearized", iterations=digit)

    def _fills_vectors(self, nest: Nest, trips: int, vector_bits: int) -> bool:
        widest = max((dtype_of(n.buffer.element).bits for n in accesses(nest.body)), default=0)
        return trips * widest >= self.min_vectors * vector_bits


def _has_lanes(loop: For) -> bool:
    """Whether iterations can be lanes without gathers."""
    try:
        return not lanes_of(loop).gathered
    except NoLanesError:
        return False
