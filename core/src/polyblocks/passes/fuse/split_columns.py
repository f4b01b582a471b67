"""split-columns: reductions over very long rows of results are done in blocks of columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any, ClassVar

from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import PRIVATE_BYTES
from polyblocks.affine.fusion.candidates import candidate_buffers
from polyblocks.affine.fusion.column_blocks import in_blocks
from polyblocks.affine.fusion.column_chains import ColumnChain
from polyblocks.affine.fusion.column_copies import straightened
from polyblocks.affine.fusion.column_picks import ColumnPicks
from polyblocks.affine.model import Buffer, For, Nest, Sequence, walk, writes
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription

#: The part of a core's own cache that a tile of all arrays with columns may take.
CACHE_PART = 0.5
#: Loads from a cache in whose time a result of a block is stored in memory, and loaded.
JOINED = 8
#: Whole rows of a tile, from which on a tile has rows enough.
ROWS = 16


@dataclass(frozen=True)
class SplitColumnsPass(NestPass):
    """Cut the columns of an array where a cache holds only a few whole rows.

    The array is what a nest computes for all pairs of rows and columns, scores or distances; other
    nests go through it element by element, and reduce each row. Then a block of columns is enough
    for each step, and `fuse-tiles` finds tiles of rows and columns that stay in a cache. Reductions
    of the blocks are joined in the end. Sums of terms that are scaled by the exponential of a row's
    maximum, those of a softmax and the products with them, take each block's own maximum, and are
    scaled again where blocks are joined (:mod:`polyblocks.affine.fusion.rescaling`): with one sweep
    over the columns in place of one for each reduction. That is left out with
    `polyblocks_disable_reduce_reduce_fusion`, and where rounding is not free. An element of a row
    that is looked up, such as the score of its class, is a sum over the row as well
    (:mod:`polyblocks.affine.fusion.column_picks`).

    Before::

        affine.for %i .. { affine.for %j = 0 to 65536 { ... affine.store %s, %scores[%i, %j] } }
        affine.for %i .. { %m = max of %scores[%i, %j] .. ; affine.store %m, %max[%i] }
        affine.for %i .. { %t = sum of exp(%scores[%i, %j] - %max[%i]) .. }

    After::

        affine.for %b = 0 to 128 { affine.for %i .. { affine.for %j = 0 to 512 {
          ... affine.store %s, %scores[%b, %i, %j] } } }
        affine.for %b .. { affine.for %i .. { ... affine.store %m, %maxima[%b, %i] } }
        affine.for %b .. { affine.for %i .. { sum of exp(%scores[%b, %i, %j] - %maxima[%b, %i]) } }
        affine.for %i .. { %m = max of %maxima[%b, %i] .. ; affine.store %m, %max[%i] }
        affine.for %b .. { affine.for %i .. { exp(%maxima[%b, %i] - %max[%i]) } }
        affine.for %i .. { %t = sum of %sums[%b, %i] * %scales[%b, %i] .. }
    """

    name: ClassVar[str] = "split-columns"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.KINDS, facts.UNTILED}
    )

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Cut the columns of every array whose rows are too long."""
        options, target = context.options, context.target
        if options.polyblocks_disable_affine_fusion or not target.has_register_tiles:
            return
        if rates.unknown_rates(target):
            return
        done = False
        users = Users(sequence)
        for buffer in candidate_buffers(sequence):
            if buffer.kind != "alloc" or buffer not in {*sequence.buffers}:
                continue
            writers = users.writers(buffer)
            if len(writers) != 1 or not isinstance(writers[0], Nest):
                continue
            if facts_of(writers[0]).contraction is None:
                continue
            for dimension in reversed(range(len(buffer.shape))):
                if _rows_at_once(buffer.shape[dimension] * buffer.bytes_per_element, target) > ROWS:
                    continue
                if self._cut_where_it_pays(buffer, dimension, sequence, users, context):
                    users, done = Users(sequence), True
                    break
        if done:
            name_nests(self.name, sequence, context)

    def _cut_where_it_pays(
        self, buffer: Buffer, dimension: int, sequence: Sequence, users: Users, context: Any
    ) -> bool:
        """Cut the columns of an array if all goes through them in order; whether that is so."""
        picks = ColumnPicks.of(buffer, dimension, users, sequence)
        if picks is not None:
            picks.make()
            users = Users(sequence)
        chain = ColumnChain.of(buffer, dimension, users)
        if chain is not None:
            rescaled = any(s for r in chain.reductions for s in r.rescaling)
            allowed = not (rescaled and context.options.polyblocks_disable_reduce_reduce_fusion)
            length = _length(chain, context.target)
            if allowed and length * 2 <= chain.columns:
                if picks is not None:
                    # A maximum that others scale by stays alone.
                    scaling = {*chain.maxima}
                    reducing = [r.nest for r in chain.reductions]
                    picks.join([n for n in reducing if scaling.isdisjoint(writes(n))])
                    users = Users(sequence)
                    chain = ColumnChain.of(buffer, dimension, users)
                    assert chain is not None
                self._cut(chain, length, sequence, users, context)
                return True
        if picks is not None:
            picks.undo()
        return False

    def _cut(
        self, chain: ColumnChain, length: int, sequence: Sequence, users: Users, context: Any
    ) -> None:
        first, *_ = chain.in_order
        old = {*chain.nests}
        last = max(old, key=users.position)
        context.decide(
            self.name,
            first.name,
            "split",
            columns=chain.columns,
            block=length,
            rescaled=any(s for r in chain.reductions for s in r.rescaling),
            nests=[nest.name for nest in chain.in_order],
        )
        at = sequence.items.index(last)
        before = [item for item in sequence.items[:at] if item not in old]
        copies = None
        if not any(isinstance(n, For) and n.inits for n in walk(first.body)):
            # Loops of steps have panels of what they read.
            copies = straightened(first, chain.variables[first])
        copied = [] if copies is None else [copies]
        sequence.items[: at + 1] = [*before, *copied, *in_blocks(chain, length)]


def _rows_at_once(nbytes: int, target: TargetDescription) -> float:
    """Rows of this size that a core's own cache holds beside other things."""
    return _room(target) / nbytes


def _room(target: TargetDescription) -> float:
    return CACHE_PART * (rates.private_cache(target) or PRIVATE_BYTES)


def _length(chain: ColumnChain, target: TargetDescription) -> int:
    """Columns of a block.

    A tile of rows has room for all arrays. The more of them are rows, the less often an element
    that is read for a column is loaded; the more are columns, the fewer results are joined.
    """
    elements = _room(target) / sum(b.bytes_per_element for b in chain.dimensions)
    contraction = facts_of(chain.in_order[0]).contraction
    steps = 1 if contraction is None else contraction.reduction.trips
    results = sum(r.shape.iterations for r in chain.reductions) / max(chain.rows, 1)
    ratio = (steps + JOINED * results) / (steps + results)
    columns = max((elements * ratio) ** 0.5, elements / max(chain.rows, 1))
    return 1 << max(round(log2(columns)), 4)
