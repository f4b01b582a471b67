"""jam-stencils: neighbouring rows of a stencil are computed together and share what they read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import address, stride_along
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.cost.returning_loads import returning_slots, window_slots
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.likeness import Remembered
from polyblocks.affine.model import (
    AffineAccess,
    AnyLoad,
    Check,
    For,
    Load,
    Node,
    Pure,
    Sequence,
    Store,
    clone,
)
from polyblocks.affine.rewrites.jam import jammed, of_group, shares_loads
from polyblocks.affine.subnests import change_subnests, parallel_shell
from polyblocks.passes.base import NestPass
from polyblocks.target import MemoryLevel, TargetDescription

#: Nodes allowed in a body. Checks stay in order, before later nodes.
_NODES = (Pure, AnyLoad, Check, Store)


@dataclass(frozen=True)
class JamStencilsPass(NestPass):
    """Unroll a parallel loop around the innermost one, and jam the copies, where they share loads.

    Windows of neighbouring rows overlap: what one has loaded, and multiplied, and summed, others
    need as well. Vectors of a row that do not begin at a line of the cache are two loads each, so
    that a stencil in vectors is bound by loads before anything else. How many rows are jammed is
    what takes the fewest slots for a row, as long as what is needed at once has registers. In a
    tile whose iterations read the same rows, which the first cache has lost in between, they are
    read once.

    Before::

        affine.for %y = 0 to 64 { affine.for %x .. {
          ... affine.load %a[%y, %x] ... affine.load %a[%y + 1, %x] ... affine.load %a[%y + 2, %x]
          affine.store %s, %b[%y, %x] } }

    After::

        affine.for %y = 0 to 32 { affine.for %x .. {
          %0 = affine.load %a[%y * 2, %x] ... %3 = affine.load %a[%y * 2 + 3, %x]
          %m = arith.addf %1, %2 ... arith.addf %0, %m ... arith.addf %m, %3
          affine.store %s, %b[%y * 2, %x] ... affine.store %t, %b[%y * 2 + 1, %x] } }
    """

    name: ClassVar[str] = "jam-stencils"
    #: Rows in one.
    most: int = 4
    #: Nodes of a jammed body; LLVM's time grows with it.
    max_nodes: int = 400
    #: Slots of a row over those of a row that stands alone, at which nothing is jammed.
    gain: float = 0.85
    #: Iterations of the innermost loop, in vectors.
    min_vectors: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Jam in every nest and sub-nest."""
        factors: list[int] = []
        known: Remembered[tuple[int, int] | None] = Remembered(sequence.nests())

        def change(nodes: list[Node], around: list[For]) -> list[Node] | None:
            inside = bool(around)
            found = known.get(
                nest, nodes, lambda: self._best(nodes, inside, context.target), inside
            )
            if found is None:
                return None
            position, factor = found
            factors.append(factor)
            registers = context.target.vector_registers
            return _jammed(nodes, parallel_shell(nodes)[0][position], factor, registers)

        for nest in sequence.nests():
            factors.clear()
            if change_subnests(nest, change):
                context.decide(self.name, nest.name, "rows jammed", unroll_factors=list(factors))

    def _best(
        self, nodes: list[Node], inside: bool, target: TargetDescription
    ) -> tuple[int, int] | None:
        """The loop to jam, from the outside in, and how many of its iterations.

        None if nothing gains.
        """
        loops, body = parallel_shell(nodes)
        if len(loops) < 2 or not all(isinstance(n, _NODES) for n in body):
            return None
        if any(loop.level or loop.lanes or loop.unit for loop in loops):
            return None
        stored = {n.buffer.base for n in body if isinstance(n, Store)}
        if any(isinstance(n, AnyLoad) and n.buffer.base in stored for n in body):
            # Stores come last in a jammed body.
            return None
        *outer, inner = loops
        lanes, registers = target.lanes, target.vector_registers
        if inner.trips < self.min_vectors * lanes or not is_parallel(inner, nodes):
            return None
        returning = dict.fromkeys(outer, 0.0)
        around: list[Var] = []
        if inside and not any(b.kind == "output" for b in stored):
            # Stores to several rows at a time could not pass the caches.
            returning = {f: returning_slots(body, f.var, inner.var, target) for f in outer}
            around = [f.var for f in outer]
        if not any(shares_loads(body, loop.var) or returning[loop] for loop in outer):
            return None
        alone = _slots(jammed(body, [{}], inner.var, registers), inner.var, target)
        # One iteration of whichever loop.
        alone += window_slots(body, around, inner.var, outer[0].var, 1, target)
        best: tuple[int, int] | None = None
        least = self.gain
        for position, loop in enumerate(outer):
            again = returning[loop]
            if not (shares_loads(body, loop.var) or again):
                continue
            if not _may_jam(loops, position, nodes, inside):
                continue
            single = alone + again
            for factor in _factors(loop, inside, self.most, bool(again)):
                rows = of_group(loop.var, Var(loop.var.extent // factor), factor)
                found = jammed(body, rows, inner.var, registers)
                if len(found) > self.max_nodes or _collide(found, target.memory[0]):
                    break
                rest = min(1.0, _left_over(loop, factor) / loop.var.extent)
                slots = _slots(found, inner.var, target) + again
                slots = (
                    slots + window_slots(body, around, inner.var, loop.var, factor, target)
                ) / factor
                part = ((1 - rest) * slots + rest * single) / single
                if part < least:
                    least, best = part, (position, factor)
        return best


def _may_jam(loops: list[For], position: int, nodes: list[Node], inside: bool) -> bool:
    """Whether iterations of a loop can be jammed, and the bounds of all loops allow it."""
    loop = loops[position]
    bounds = [e for inner in loops[position + 1 :] for e in inner.bounds]
    if any(loop.var in set(e.variables()) for e in bounds):
        return False
    if loop.bounded and (not inside or len(loop.lower) > 1 or len(loop.upper) > 1):
        return False
    return is_parallel(loop, nodes)


def _factors(loop: For, inside: bool, most: int, whole: bool) -> list[int]:
    """How many iterations may be one; outside of a tile without a rest, which would be a nest.

    With ``whole`` it may be all of them.
    """
    extent = loop.var.extent
    found = [n for n in range(2, min(most, extent // 2) + 1) if inside or extent % n == 0]
    if whole and 2 <= extent <= most and extent not in found and not loop.bounded:
        found.append(extent)
    return found


def _left_over(loop: For, factor: int) -> int:
    """Iterations that are in no group of ``factor``: at the end, and beside bounds, at most."""
    uneven = [e for e in loop.bounds if e.const % factor or any(c % factor for _, c in e.terms)]
    return loop.var.extent % factor + (factor - 1) * len(uneven)


def _collide(body: list[Node], cache: MemoryLevel) -> bool:
    """Whether rows that a body walks along want the same places of a cache, more than there are.

    Buffers begin at pages, and rows of a power of two at multiples of what a way of the cache
    holds. A quarter of the ways is for what passes through.
    """
    if not cache.associativity:
        return False
    way = cache.size // cache.associativity
    rows = {
        (node.buffer, address(node.buffer, node.index).const * node.buffer.bytes_per_element)
        for node in body
        if isinstance(node, AffineAccess)
    }
    lines = {(buffer, at // cache.line) for buffer, at in rows}
    sets = Counter(line % (way // cache.line) for _, line in lines)
    return max(sets.values(), default=0) > cache.associativity * 3 // 4


def _slots(body: list[Node], lanes: Var, target: TargetDescription) -> float:
    """Slots of vectors that a body takes: of its operations or of its accesses, and of spills."""
    line, vector = target.memory[0].line, target.vector_bits // 8
    accesses = 0.0
    for node in body:
        if isinstance(node, AffineAccess):
            moves = stride_along(node.buffer, node.index, lanes)
            # Unaligned accesses cross a line half of the time.
            apart = moves and isinstance(node, Load) and node.index[-1].const % 16 and vector
            accesses += (1.0 if isinstance(node, Load) else 2.0) + (vector / line if apart else 0.0)
    operations = float(cost.operations(body))
    spilled = max(0, cost.alive(body) - target.vector_registers)
    accesses += 3.0 * spilled
    return max(operations, accesses) + 0.25 * min(operations, accesses)


def _jammed(nodes: list[Node], loop: For, factor: int, registers: int) -> list[Node]:
    """The loops with ``factor`` iterations of one of them jammed, and its remainder."""
    loops, body = parallel_shell(nodes)
    var, extent, lanes = loop.var, loop.var.extent, loops[-1].var

    def around(new: For, inner: list[Node]) -> list[Node]:
        for each in reversed(loops):
            if each is loop:
                if new.var.extent != 1 or new.bounded:
                    new.body, inner = inner, [new]
            else:
                inner = [For(each.var, inner, lower=each.lower, upper=each.upper, tile=each.tile)]
        # Each gets loops of its own.
        return clone(inner, {}, {})

    def remainder(
        first: int, count: int, lower: tuple[Expr, ...], upper: tuple[Expr, ...]
    ) -> list[Node]:
        one = Var(count)
        loop = For(one, [], lower=lower, upper=upper)
        return around(loop, jammed(body, [{var: Expr.of(one) + first}], lanes, registers))

    group = Var(extent // factor)
    main = For(group, [], lower=tuple(_up(e, factor) for e in loop.lower))
    main.upper = tuple(e // factor for e in loop.upper)
    out: list[Node] = []
    for low in loop.lower:
        out += remainder(0, extent, lower=(low,), upper=(_up(low, factor) * factor, *loop.upper))
    out += around(main, jammed(body, of_group(var, group, factor), lanes, registers))
    for high in loop.upper:
        # Nothing where the bound is beyond the end.
        out += remainder(0, extent, lower=(high // factor * factor, *loop.lower), upper=(high,))
    if rest := extent % factor:
        first = extent - rest
        lower, upper = (tuple(e - first for e in es) for es in (loop.lower, loop.upper))
        out += remainder(first, rest, lower=lower, upper=upper)
    return out


def _up(expr: Expr, factor: int) -> Expr:
    """An expression divided by a factor, rounded up."""
    return (expr * -1 // factor) * -1
