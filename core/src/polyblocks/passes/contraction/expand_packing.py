"""expand-packing: copies of operands into panels are loops like others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.buffers.copies import PACK
from polyblocks.affine.model import For, Sequence, walk
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class ExpandPackingPass(NestPass):
    """Make loops of the copies that fill panels, which are then flattened and written in vectors.

    Before::

        "polyblocks.copy"(%b, %panel, %n) {
          kind = "pack", shape = array<i64: 512, 2, 32>,
          from = affine_map<(d0)[s0, s1, s2] -> (s0, d0 * 64 + s1 * 32 + s2)>,
          to = affine_map<(d0)[s0, s1, s2] -> (s1, s0, s2)>}

    After::

        affine.for %k = 0 to 512 { affine.for %p = 0 to 2 { affine.for %l = 0 to 32 {
          %x = affine.load %b[%k, %n * 64 + %p * 32 + %l]
          affine.store %x, %panel[%p, %k, %l] } } }
    """

    name: ClassVar[str] = "expand-packing"
    establishes: ClassVar[frozenset[str]] = frozenset({facts.PLAIN_LOOPS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Expand the copies of every nest."""
        del context
        for nest in sequence.nests():
            copies = [n for n in walk(nest.body) if isinstance(n, For) and n.copy == PACK]
            for loop in copies:
                loop.copy = ""
            if copies:
                nest.replace()
