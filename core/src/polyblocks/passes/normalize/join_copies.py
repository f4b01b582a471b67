"""join-copies: an array that is put together of parts of another one is one copy of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from polyblocks.affine.access import begins_and_ends_with_memory
from polyblocks.affine.analysis.coverage import Slab
from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    Buffer,
    Load,
    Nest,
    Sequence,
    Store,
    Value,
    around,
    reads_from,
)
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.affine.rewrites.moving import like
from polyblocks.affine.steps import StepFunction
from polyblocks.affine.subnests import copy_of
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class JoinCopiesPass(NestPass):
    """Copy an array into its place in another one, and its edges around it, by one nest.

    A stencil that holds an image at its edges, mirrors it or goes round has a copy of it with a
    margin, of nine parts for two dimensions. Where the place that an element comes from is affine
    but for a few steps, by each dimension, one nest copies all of them; being the only one that
    writes the array, it can be computed where it is read.

    Before::

        affine.for %i = 0 to 1 { %v = affine.load %x[0] ... affine.store %v, %p[0] }
        affine.for %i = 0 to 8 { %v = affine.load %x[%i] ... affine.store %v, %p[%i + 1] }
        affine.for %i = 0 to 1 { %v = affine.load %x[7] ... affine.store %v, %p[9] }

    After::

        affine.for %i = 0 to 10 {
          %v = affine.load %x[%i - (%i + 9) floordiv 10 - (%i + 1) floordiv 10]
          affine.store %v, %p[%i] }
    """

    name: ClassVar[str] = "join-copies"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Join the parts of every array that they cover."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        users, viewed = Users(sequence), sequence.viewed()
        changed = False
        for buffer in list(sequence.buffers):
            if buffer.kind != "alloc" or buffer.base is not buffer or buffer in viewed:
                continue
            if len(users.writers(buffer)) < 2 or not begins_and_ends_with_memory(buffer):
                continue
            joined = _joined(buffer, users)
            if joined is None:
                continue
            parts = users.writers(buffer)
            place = sequence.items.index(parts[-1])
            sequence.items.insert(place, joined)
            users.put_before([joined], parts[-1])
            for part in parts:
                sequence.items.remove(part)
                users.drop(part)
            context.decide(
                self.name, joined.name, "copies joined", buffer=list(buffer.shape), parts=len(parts)
            )
            changed = True
        if changed:
            # Copies of copies that nothing reads any more.
            drop_dead_nests(sequence)


@dataclass
class _Part:
    """A copy: a box of the array, and the source of its elements.

    Attributes:
        slab: the box.
        load: the access.
    """

    slab: Slab
    load: Load

    @classmethod
    def of(cls, nest: Nest, buffer: Buffer, users: Users) -> _Part | None:
        """The part that a nest copies; None if it does anything else."""
        copy = copy_of(nest.body)
        if copy is None or any(f.level for f in copy[0]) or copy[2].buffer is not buffer:
            return None
        loops, load, store = copy
        slab = Slab.of(store.index, loops)
        found = None if slab is None else _source(load, nest, users)
        return None if slab is None or found is None else cls(slab, found)


def _source(load: Load, nest: Nest, users: Users) -> Load | None:
    """The access to what is copied in the end, through whole copies of it."""
    while load.buffer.kind == "alloc":
        candidate = Candidate.of(users, load.buffer)
        producer = None if candidate is None else Producer.of(candidate)
        if candidate is None or producer is None or len(producer.body) != 1:
            break
        (only,) = producer.body
        if not isinstance(only, Load) or only.where or only.result is not producer.value:
            break
        if users.written_between({only.buffer.base}, candidate.producer, nest):
            break
        (node,), _ = producer.body_at(load.index)
        assert isinstance(node, Load)
        load = node
    simple = all(
        len(e.terms) <= 1 and all(isinstance(atom, Var) for atom, _ in e.terms) for e in load.index
    )
    return load if simple else None


def _joined(buffer: Buffer, users: Users) -> Nest | None:
    """The nest that copies all parts of a buffer; None if they are not of one array."""
    nests = users.writers(buffer)
    readers = users.readers(buffer)
    parts: list[_Part] = []
    for nest in nests:
        if not isinstance(nest, Nest) or reads_from(nest, buffer):
            return None
        part = _Part.of(nest, buffer, users)
        if part is None or (readers and users.before(readers[0], nest)):
            return None
        parts.append(part)
    source = parts[0].load.buffer
    if any(p.load.buffer is not source for p in parts) or source is buffer:
        return None
    if users.written_between({source.base}, nests[0], nests[-1]):
        return None
    cuts = [
        sorted({(p.slab.low[d], p.slab.high[d]) for p in parts}) for d in range(len(buffer.shape))
    ]
    if not _is_grid(buffer, parts, cuts):
        return None
    variables = [Var(extent) for extent in buffer.shape]
    index: list[Expr] = []
    for dimension in range(len(source.shape)):
        expr = _place(dimension, buffer, parts, variables)
        if expr is None:
            return None
        index.append(expr)
    value = Value(parts[0].load.result.type)
    location = parts[0].load.location
    place = tuple(Expr.of(v) for v in variables)
    body = around(
        [v for v in variables if v.extent > 1],
        [
            Load(value, source, tuple(index), location),
            Store(value, buffer, place, location),
        ],
    )
    first = nests[0]
    assert isinstance(first, Nest)
    joined = like(first, body)
    joined.sources = merged_sources([n for n in nests if isinstance(n, Nest)])
    return joined


def _is_grid(buffer: Buffer, parts: list[_Part], cuts: list[list[tuple[int, int]]]) -> bool:
    """Whether the boxes are all combinations of pieces of the dimensions."""
    for pieces, extent in zip(cuts, buffer.shape, strict=True):
        ends = [0, *(high for _, high in pieces)]
        if ends[-1] != extent or any(
            low != end for (low, _), end in zip(pieces, ends, strict=False)
        ):
            return False
    boxes = {(tuple(p.slab.low), tuple(p.slab.high)) for p in parts}
    return len(boxes) == len(parts) == prod(len(pieces) for pieces in cuts)


def _place(dimension: int, buffer: Buffer, parts: list[_Part], variables: list[Var]) -> Expr | None:
    """Where elements come from in a dimension of what is copied; None if that is not simple."""
    exprs = [p.load.index[dimension] for p in parts]
    along = {
        d
        for part, expr in zip(parts, exprs, strict=True)
        for d, var in enumerate(part.slab.variables)
        if var is not None and expr.coefficient(var)
    }
    if len(along) > 1:
        return None
    if not along:
        # It may still differ between the parts, by a dimension that nothing else follows.
        return exprs[0] if len(set(exprs)) == 1 and exprs[0].is_constant else None
    (d,) = along
    # By numbers of whole pieces: a row may have a million elements.
    pieces: dict[int, np.ndarray] = {}
    for part, expr in zip(parts, exprs, strict=True):
        var = part.slab.variables[d]
        slope = 0 if var is None else expr.coefficient(var) or 0
        low, high = part.slab.low[d], part.slab.high[d]
        places = expr.const + slope * np.arange(high - low)
        if not np.array_equal(pieces.setdefault(low, places), places):
            return None
    function = StepFunction.of(np.concatenate([pieces[low] for low in sorted(pieces)]))
    return None if function is None else function.at(Expr.of(variables[d]))
