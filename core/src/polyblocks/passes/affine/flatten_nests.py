"""flatten-nests: neighbouring loops that walk memory without a gap become one loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address, strides
from polyblocks.affine.coverage import perfect_loops
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    Index,
    Load,
    LoadAt,
    Sequence,
    Store,
    StoreAt,
    walk,
)
from polyblocks.passes.affine.base import NestPass


@dataclass(frozen=True)
class FlattenNestsPass(NestPass):
    """Join two perfectly nested loops if all accesses treat them as one index.

    Buffers of such a nest are read through one-dimensional views, so that a tensor with a short
    innermost extent still gives long loops.

    Before::

        affine.for %i = 0 to 100 { affine.for %j = 0 to 3 {
          %x = affine.load %a[%i, %j] : memref<100x3xf32> ... } }

    After::

        %flat = memref.reinterpret_cast %a to offset: [0], sizes: [300], strides: [1]
        affine.for %t = 0 to 300 { %x = affine.load %flat[%t] ... }
    """

    name: ClassVar[str] = "flatten-nests"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Flatten every nest as far as it goes."""
        del context
        views: dict[Buffer, Buffer] = {}
        for nest in sequence.nests():
            loops, body = perfect_loops(nest.body)
            if len(loops) < 2 or any(f.inits or f.bounded for f in loops):
                continue
            nodes = list(walk(body))
            accesses = [n for n in nodes if isinstance(n, (Load, Store))]
            gathered = {n.buffer for n in nodes if isinstance(n, (LoadAt, StoreAt))}
            touched = {n.buffer for n in accesses}
            if touched & gathered or not all(flattenable(b) for b in touched):
                continue
            used_as_values = {v for n in nodes if isinstance(n, Index) for v in n.expr.variables()}
            addresses = {id(n): address(n.buffer, n.index) for n in accesses}
            pair = _joinable(loops, list(addresses.values()), used_as_values)
            if pair is None:
                continue
            while pair is not None:
                outer, inner = loops[pair], loops[pair + 1]
                joined = Var(outer.var.extent * inner.var.extent, "t")
                for key, expr in addresses.items():
                    addresses[key] = _join(expr, outer.var, inner.var, joined)
                loops[pair : pair + 2] = [For(joined, inner.body)]
                pair = _joinable(loops, list(addresses.values()), used_as_values)
            for access in accesses:
                access.index = (addresses[id(access)],)
                access.buffer = _flat(access.buffer, views, sequence)
            new = body
            for loop in reversed(loops):
                new = [For(loop.var, new)]
            nest.body = new
            nest.changed = True


def flattenable(buffer: Buffer) -> bool:
    """Whether a one-dimensional view of the buffer can be made."""
    return buffer.kind != "local" and all(e >= 0 for e in buffer.shape)


def _joinable(loops: list[For], addresses: list[Expr], values: set[Var]) -> int | None:
    """Position of an outer loop that can be joined with the next one."""
    for i in range(len(loops) - 2, -1, -1):
        outer, inner = loops[i].var, loops[i + 1].var
        if outer in values or inner in values:
            continue
        ok = True
        for expr in addresses:
            a, b = expr.coefficient(outer), expr.coefficient(inner)
            if a is None or b is None or a != b * inner.extent:
                ok = False
                break
        if ok:
            return i
    return None


def _join(expr: Expr, outer: Var, inner: Var, joined: Var) -> Expr:
    factor = expr.coefficient(inner) or 0
    rest = Expr(expr.const, {a: c for a, c in expr.terms if a is not outer and a is not inner})
    return rest + Expr.of(joined) * factor


def _flat(buffer: Buffer, views: dict[Buffer, Buffer], sequence: Sequence) -> Buffer:
    """The one-dimensional view of a buffer, over all that its strides reach."""
    if len(buffer.shape) == 1 and strides(buffer) == (1,):
        return buffer
    if buffer not in views:
        pairs = zip(buffer.shape, strides(buffer), strict=True)
        span = 1 + sum((extent - 1) * stride for extent, stride in pairs) if buffer.numel else 0
        views[buffer] = Buffer(
            (span,),
            buffer.element,
            "other",
            bytes_per_element=buffer.bytes_per_element,
            base=buffer,
        )
        sequence.buffers.append(views[buffer])
    return views[buffer]
