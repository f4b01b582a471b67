"""fuse-sibling-loops: loops over the same values that touch the same data become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.fusion.siblings import SiblingFusion, clean, forward_stored
from polyblocks.affine.model import (
    Nest,
    Node,
    Sequence,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.subnests import has_register_tile, tile_of
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class FuseSiblingLoopsPass(NestPass):
    """Merge neighbours that load the same data, or load what the other one stores.

    Inside of a nest these are the sweeps over a tile: what one loop stores and the next one loads
    at the same place stays in a register, and a buffer that nothing loads any more goes. Nests
    that read the same buffer, one of which may move up to the other, read it once. Where one loop
    stores every other element of a row and its neighbour the elements between, both together store
    whole vectors.

    Before::

        affine.for %j = 0 to 1024 { ... affine.store %e, %t[%j] }
        %s = affine.for %k = 0 to 1024 iter_args(...) { %x = affine.load %t[%k] ... }

    After::

        %s = affine.for %j = 0 to 1024 iter_args(...) { ... affine.store %e, %t[%j] ... %e ... }
    """

    name: ClassVar[str] = "fuse-sibling-loops"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.KINDS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED})
    #: Instructions of an innermost loop's body; more values than registers would have to wait.
    max_operations: int = 160
    #: Accesses of it: as many streams as hardware follows.
    max_accesses: int = 32
    #: Nests that lie between two that are merged, at most.
    reach: int = 8

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Merge inside of every nest, then siblings."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        siblings = SiblingFusion(self.max_operations, self.max_accesses, self.reach)
        for nest in sequence.nests():
            self._inside(siblings, nest, context)
        if self._siblings(siblings, sequence, context):
            drop_dead_nests(sequence)
            name_nests(self.name, sequence, context)

    def _inside(self, siblings: SiblingFusion, nest: Nest, context: Any) -> None:
        if has_register_tile(nest.body):
            count = self._beside_register_tiles(siblings, nest)
        else:
            count = siblings.merge_loops(nest.body)
            if count:
                clean(nest)
        if count:
            context.decide(self.name, nest.name, "merged", loops=count)

    def _beside_register_tiles(self, siblings: SiblingFusion, nest: Nest) -> int:
        """Merge loops between contractions of one tile, which stay as they are made."""
        loops, body = tile_of(nest.body)
        if not loops or not loops[-1].tile:
            return 0
        count = 0
        out: list[Node] = []
        between: list[Node] = []
        for node in [*body, None]:
            if node is not None and not has_register_tile([node]):
                between.append(node)
                continue
            merged = siblings.merge_loops(between)
            if merged:
                forward_stored(between)
            count += merged
            out += [*between, *([] if node is None else [node])]
            between = []
        if count:
            body[:] = out
            nest.replace()
        return count

    def _siblings(self, siblings: SiblingFusion, sequence: Sequence, context: Any) -> int:
        """Merge nests with earlier ones that read the same; the number that are gone."""
        count = 0
        position = 0
        while position < len(sequence.items):
            nest = sequence.items[position]
            first = siblings.partner(sequence, position) if isinstance(nest, Nest) else None
            if first is None or not isinstance(nest, Nest):
                position += 1
                continue
            context.decide(self.name, first.name, "merged", with_=[nest.name])
            siblings.join(sequence, first, nest)
            count += 1
        return count
