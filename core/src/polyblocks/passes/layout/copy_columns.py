"""copy-columns: vectors of what is scattered are read from rows of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import strides
from polyblocks.affine.buffers.row_copies import copied, place_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import (
    Buffer,
    Check,
    For,
    IndirectAccess,
    Load,
    Nest,
    Sequence,
    index_exprs,
    stored_bases,
    writes,
)
from polyblocks.affine.subnests import is_affine_code, perfect_loops
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class CopyColumnsPass(NestPass):
    """Copy an array whose columns meet rows at run-time places, so that its columns are rows.

    Gradients of samples are added to all channels of an element at once: a vector of channels is a
    row of what they are added to, but each of them lies in an image of its own. Point-wise nests
    transpose squares in registers; where rows are anywhere a copy is transposed before.

    Before::

        affine.for %p = 0 to 4096 { affine.for %c = 0 to 16 {
          %x = affine.load %images[%c, %p]
          %v = memref.load %sums[%at, %c] ... memref.store %w, %sums[%at, %c] } }

    After::

        affine.for %p = 0 to 4096 { affine.for %c = 0 to 16 {
          ... affine.load %images[%c, %p] ... affine.store %a, %rows[%p, %c] } }
        affine.for %p = 0 to 4096 { affine.for %c = 0 to 16 {
          %x = affine.load %rows[%p, %c]
          %v = memref.load %sums[%at, %c] ... memref.store %w, %sums[%at, %c] } }

    All nests that read an array so share its copy.
    """

    name: ClassVar[str] = "copy-columns"
    #: Elements of a row at least, as a part of a vector's lanes, and at most.
    part: float = 0.5
    most: int = 256
    #: Reads of each element of a copy, at least.
    often: float = 0.75

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Copy what every nest reads so."""
        copies: dict[tuple[Buffer, int], tuple[Buffer, Nest]] = {}
        for nest in sequence.nests():
            found = self._columns(nest, context.target)
            for load, d in found.items():
                key = load.buffer, d
                if key not in copies or _written(sequence, load.buffer, copies[key][1], nest):
                    new, copy = copies[key] = copied(*key, nest)
                    sequence.buffers.append(new)
                    sequence.items.insert(sequence.items.index(nest), copy)
                    context.decide(self.name, nest.name, "copied", elements=new.numel)
                load.index = place_of(load.buffer, d, load.index), load.index[d]
                load.buffer = copies[key][0]
            if found:
                nest.replace()

    def _columns(self, nest: Nest, target: TargetDescription) -> dict[Load, int]:
        """The loads along columns of a nest that goes through rows, with their dimensions."""
        loops, body = perfect_loops(nest.body)
        if len(loops) < 2 or any(f.inits or f.bounded or f.level or f.lanes for f in loops):
            return {}
        if not is_affine_code(body, IndirectAccess, Check) or not _goes_through_rows(loops[-1]):
            return {}
        rows, times = loops[-1], 1
        if not self.part * target.vector_bits / 32 <= rows.trips <= self.most:
            return {}
        for loop in loops:
            times *= loop.trips
        written = stored_bases(body)
        found: dict[Load, int] = {}
        for load in body:
            if not isinstance(load, Load) or load.where or load.buffer.base in written:
                continue
            along = [d for d, e in enumerate(load.index) if e.depends_on(rows.var)]
            if len(along) != 1 or load.index[along[0]] != Expr.of(rows.var):
                continue
            (d,), buffer = along, load.buffer
            whole = buffer.shape[d] == rows.trips and buffer.kind != "local"
            if whole and strides(buffer)[d] != 1 and times >= self.often * buffer.numel:
                found[load] = d
        return found


def _goes_through_rows(loop: For) -> bool:
    """Whether all accesses at run-time places are along rows of memory."""
    exprs = index_exprs(loop.body)
    mine = {v for n in loop.body for v in n.defines if loop.var in n.variables()}
    found = [n for n in loop.body if isinstance(n, IndirectAccess)]
    for access in found:
        *outer, last = access.index
        if exprs.get(last) != Expr.of(loop.var) or strides(access.buffer)[-1] != 1:
            return False
        if any(v in mine for v in outer):
            return False
    return bool(found)


def _written(sequence: Sequence, buffer: Buffer, first: Nest, last: Nest) -> bool:
    """Whether a buffer is written behind ``first`` and before ``last``."""
    begin, end = sequence.items.index(first), sequence.items.index(last)
    between = sequence.items[begin + 1 : end]
    return any(b.base is buffer.base for item in between for b in writes(item))
