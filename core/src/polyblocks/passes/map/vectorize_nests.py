"""vectorize-nests: the iterations of innermost loops become lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import address, stride_along
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.analysis.reductions import free_of_order
from polyblocks.affine.element import I1, dtype_of
from polyblocks.affine.expr import Var
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    IndirectAccess,
    Load,
    Nest,
    Node,
    Prefetch,
    Sequence,
    Simd,
    Store,
    walk,
)
from polyblocks.affine.naming.estimates import estimate_nests
from polyblocks.affine.rewrites.blocks import in_blocks
from polyblocks.affine.vectors.interleaves import complete_interleaves
from polyblocks.affine.vectors.lanes import Lanes, NoLanesError, lanes_of, last_is_contiguous
from polyblocks.affine.vectors.update_lists import guarded_store, listed_lanes
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.map.nontemporal_stores import mark_nontemporal_stores
from polyblocks.passes.map.prefetches import (
    mark_copied_rows,
    mark_next_columns,
    mark_next_panel,
    mark_next_rows,
    mark_passing,
    mark_prefetches,
    mark_rows_below,
)


@dataclass(frozen=True)
class VectorizeNestsPass(NestPass):
    """Write innermost loops in vectors, with what is left of the iterations in a masked one.

    A loop is taken if its iterations are independent, or combined by operations whose order does
    not matter, and if it walks memory element by element. A reduction is carried in several
    vectors, so that one addition need not wait for the other. A loop that threads share is cut
    into blocks first, each of which is walked in vectors.

    Before::

        affine.for %i = 0 to 1000 {
          %x = affine.load %a[%i] ... affine.store %y, %b[%i] }

    After::

        scf.for %i = 0 to 992 step 16 {
          %x = vector.load %a[%i] ... vector.store %y, %b[%i] }
        %x = vector.maskedload %a[992], %first_eight ...
        vector.maskedstore %b[992], %first_eight, %y
    """

    name: ClassVar[str] = "vectorize-nests"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.PLAIN_LOOPS})
    breaks: ClassVar[frozenset[str]] = frozenset(
        {facts.KINDS, facts.NESTS, facts.PADDING, facts.REDUCTIONS}
    )
    #: Shorter loops are left to be unrolled, in nests that have no vectors otherwise.
    min_trips: int = 4
    #: Iterations of a block of a loop that threads share: long against the start of a loop, short
    #: against the share of a thread.
    block: int = 8192
    #: Vectors of a reduction in flight: latency in cycles, with one load per cycle.
    accumulators: int = 4
    #: Instructions of a loop's body above which it is not written for several accumulators, or for
    #: several vectors side by side.
    body: int = 48
    #: Instructions, each waiting for the one before it, that a core hides by looking ahead: about a
    #: hundred may wait, each takes four cycles, and ten of them could start in that time.
    chain: int = 8
    #: Registers that one vector's operations hold, about.
    held: int = 8
    #: Values of the body that are needed at once, of these; the others are of functions.
    alive: int = 4

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Mark the loops of every nest."""
        target = context.target
        level = target.shared_level
        flat = _OrderedViews(sequence)
        for nest in sequence.nests():
            loops = list(_innermost(nest.body, []))
            # Short ones at last: where there are vectors, nothing unrolls what is left.
            for loop, around in sorted(loops, key=lambda one: self._is_short(one[0])):
                if loop.lanes:
                    self._register_tile(nest, loop, around, flat, context)
                    continue
                if around and self._square(nest, around[-1], loop, flat, context):
                    continue
                reason = self._refusal(loop, nest, target.masked_vectors)
                lanes = None
                if not reason:
                    try:
                        lanes = lanes_of(loop)
                    except NoLanesError as error:
                        reason = str(error)
                if lanes is not None and lanes.gathered and not target.gathers:
                    lanes, reason = None, "a gather"
                if lanes is None or not flat.possible(nest, loop):
                    context.decide(self.name, nest.name, "scalar", reason=reason or "a local view")
                    continue
                flat.apply(nest, loop)
                simd = replace(self._simd(loop, lanes, target), line=target.memory[0].line)
                loop = _outside_of_team(nest, loop, simd, self.block, level.size)
                loop.simd = simd
                mark_nontemporal_stores(loop, None, simd.width, sequence, target, around)
                mark_next_rows(loop, lanes.gathered, around, target)
                mark_copied_rows(nest, loop, around, target)
                if guarded_store(loop) is not None:
                    mark_passing(loop, target)
                for op in lanes.combiners:
                    free_of_order(op)
                if loop.inits:
                    _mark_chain(loop, around, simd)
                nest.replace()
                context.decide(
                    self.name,
                    nest.name,
                    "vectors",
                    width=simd.width,
                    accumulators=simd.accumulators,
                    interleaved=simd.interleaved,
                    trips=loop.trips,
                )
            mark_prefetches(nest, target)
            _forget_padding(nest)
        # While the loops are there: vector code is not read again.
        estimate_nests(sequence, self.name, context)

    def _register_tile(
        self, nest: Nest, loop: For, around: list[For], flat: _OrderedViews, context: Any
    ) -> None:
        """Mark a loop that ``tile-contractions`` has made."""
        target = context.target
        bits = max(dtype.bits for dtype in lanes_of(loop).types)
        width = min(target.vector_bits // bits, loop.lanes)
        flat.apply(nest, loop)
        loop.simd = Simd(
            width, 1, target.masked_vectors, loop.lanes // width, line=target.memory[0].line
        )
        mark_next_columns(loop, target)
        mark_next_panel(nest, loop, around, target)
        mark_rows_below(nest, loop, target)
        nest.replace()
        context.decide(
            self.name, nest.name, "vectors of tiles", width=width, interleaved=loop.lanes // width
        )

    def _square(
        self, nest: Nest, outer: For, inner: For, flat: _OrderedViews, context: Any
    ) -> bool:
        """Mark a tile that ``tile-transposes`` has made; whether it is one."""
        width = inner.var.extent
        if outer.body != [inner] or outer.var.extent != width or width & (width - 1):
            return False
        if inner.bounded or inner.inits or outer.bounded or outer.inits or outer.level:
            return False
        try:
            lanes = lanes_of(inner, outer.var)
        except NoLanesError:
            return False
        widest = max(dtype.bits for dtype in lanes.types)
        if not lanes.crossed or width * widest > context.target.vector_bits:
            return False
        if not (is_parallel(outer, nest.body) and is_parallel(inner, nest.body)):
            return False
        written = {n.buffer.base for n in inner.body if isinstance(n, Store)}
        if any(isinstance(n, Load) and n.buffer.base in written for n in inner.body):
            return False
        if not flat.possible(nest, inner, outer.var):
            return False
        flat.apply(nest, inner, outer.var)
        outer.simd = Simd(width, square=True)
        mark_nontemporal_stores(inner, outer.var, width, flat.sequence, context.target)
        nest.replace()
        context.decide(self.name, nest.name, "transposed", width=width)
        return True

    def _is_short(self, loop: For) -> bool:
        return not loop.lanes and loop.trips < self.min_trips

    def _refusal(self, loop: For, nest: Nest, masked: bool) -> str:
        """Why a loop must or should stay scalar; empty if nothing is against vectors."""
        if self._is_short(loop):
            whole = loop.trips & (loop.trips - 1) == 0
            possible = loop.trips >= 2 and not loop.inits and (whole or masked)
            if not possible or not any(isinstance(n, For) and n.simd for n in walk(nest.body)):
                return "few iterations"
        # Updates are stored in order, whatever lanes they come from.
        if guarded_store(loop) is None and not is_parallel(loop, nest.body):
            return "iterations depend on each other"
        return ""

    def _simd(self, loop: For, lanes: Lanes, target: Any) -> Simd:
        width = _width(lanes, target.vector_bits)
        if lanes.scan:
            # As many lanes as one register holds: every vector waits for the one before it. The
            # remainder is done one by one, since the last lane is what counts.
            width = target.vector_bits // max(dtype_of(v.type).bits for v in loop.inits)
            return Simd(max(2, width), masked=False)
        if (store := guarded_store(loop)) is not None:
            # As many as are listed at a time, though their places are computed with more bits.
            width = listed_lanes(store, target.vector_bits)
            return Simd(width, compress=target.compress)
        while width > 2 and width >= 2 * loop.trips:
            width //= 2
        accumulators = self.accumulators if loop.inits else 1
        # Long bodies have other work to do while one waits.
        bits = width * sum(dtype_of(v.type).bits for v in loop.inits)
        registers = -(-bits // target.vector_bits)
        most = max(1, self.body // max(1, cost.operations(loop.body)))
        while accumulators > 1 and (
            accumulators * width > loop.trips
            or accumulators * registers > target.vector_registers // 2
            or accumulators > most
        ):
            accumulators //= 2
        interleaved = self._interleaved(loop, width, target.vector_registers)
        if interleaved > 1:
            return Simd(width, 1, target.masked_vectors, interleaved)
        return Simd(width, accumulators, target.masked_vectors)

    def _interleaved(self, loop: For, width: int, registers: int) -> int:
        """Vectors to compute side by side, so that a core need not look far ahead for work.

        Long bodies of several chains have other work while one waits, and the target puts it
        between; unless a result is carried, which every vector waits for. But where the constants
        of functions have no room in registers, every vector loads them again, and a core looks no
        further ahead than a few dozen loads: two vectors share them.
        """
        depth = cost.depth(loop.body)
        operations = cost.operations(loop.body)
        enough = max(self.body, 2 * depth)
        crowded = cost.constants(loop.body) + self.held > registers
        if crowded and cost.alive(loop.body) <= self.alive:
            enough = max(enough, operations + 1)
        count = 1
        while (
            count * self.held < registers
            and depth > self.chain * count
            and (loop.inits or operations * count < enough)
        ):
            count *= 2
        while count > 1 and 2 * count * width > loop.trips:
            count //= 2
        return count


def _width(lanes: Lanes, vector_bits: int) -> int:
    """Lanes with which the type that most operations work on fills a register.

    Rarer wider types take several registers then, rarer narrower ones a part of one.
    """
    total = sum(lanes.types.values())
    sizes = sorted({dtype.bits for dtype in lanes.types if dtype != I1}, reverse=True) or [8]
    for size in sizes:
        count = sum(n for dtype, n in lanes.types.items() if dtype.bits == size)
        if 2 * count >= total or size == sizes[-1]:
            break
        total -= count
    width = vector_bits // size
    # Narrow elements that are computed with as wide ones: loads and stores of half a register.
    while lanes.memory and 2 * width * lanes.memory < vector_bits:
        width *= 2
    return max(2, width)


def _forget_padding(nest: Nest) -> None:
    """Take off the numbers of paddings: kernels that differ in nothing else are the same code."""
    marked = [n for n in walk(nest.body) if isinstance(n, (Load, Store)) and n.padding]
    for node in marked:
        node.padding = frozenset()
    if marked:
        nest.replace()


def _innermost(nodes: list[Node], around: list[For]) -> Iterator[tuple[For, list[For]]]:
    """Loops without loops in them, and those of register tiles, each with the loops around it.

    Products on matrix units have no vectors.
    """
    for node in nodes:
        if isinstance(node, For) and not node.unit:
            if not node.lanes and any(isinstance(n, For) for n in node.body):
                yield from _innermost(node.body, [*around, node])
            else:
                yield node, around


def _outside_of_team(nest: Nest, loop: For, simd: Simd, block: int, threads: int) -> For:
    """The loop to vectorize: the loop itself, or what is inside of it if it is a kernel's range.

    A loop that threads share hands out blocks; the only loop of a nest stays one loop.
    """
    if loop.level is None:
        if nest.body == [loop] and not loop.inits:
            nest.replace([For(Var(1), [loop])])
        return loop
    extent = loop.var.extent
    step = 4 * simd.width
    share = -(-extent // (4 * threads * step)) * step
    length = min(block, share)
    blocks = in_blocks(loop, length)
    nest.replace([blocks])
    (inner,) = blocks.body
    assert isinstance(inner, For)
    return inner


def _mark_chain(loop: For, around: list[For], simd: Simd) -> None:
    """Loops around that do nothing but hand on what is carried hand on vectors."""
    for outer in reversed(around):
        if not outer.inits or outer.level is not None or outer.body != [loop]:
            return
        if loop.inits != outer.arguments or outer.yields != loop.results:
            return
        outer.simd = simd
        loop = outer


class _OrderedViews:
    """One-dimensional views, for buffers whose last dimension is not the one in order."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self._views = FlatViews(sequence)

    def possible(self, nest: Nest, loop: For, across: Var | None = None) -> bool:
        """Whether every access that needs a view can have one.

        A buffer of the nest itself gets another shape instead, for all that access it.
        """
        local = {n.buffer for n in self._needed(loop, across) if n.buffer.kind == "local"}
        return not any(isinstance(n, IndirectAccess) and n.buffer in local for n in walk(nest.body))

    def apply(self, nest: Nest, loop: For, across: Var | None = None) -> None:
        """Replace the accesses that need it by accesses of views."""
        for node in list(self._needed(loop, across)):
            if node.buffer.kind == "local":
                self._flatten(nest, node.buffer)
            else:
                node.index = (address(node.buffer, node.index),)
                node.buffer = self._views.of(node.buffer)

    def _needed(self, loop: For, across: Var | None) -> Iterator[AffineAccess]:
        """Accesses that are in order in memory, which their indices do not show."""
        variables = [loop.var] if across is None else [loop.var, across]
        along = {v: complete_interleaves(loop, v) for v in variables if across is not None}
        for node in walk(loop.body):
            if not isinstance(node, AffineAccess):
                continue
            found = [stride_along(node.buffer, node.index, v) for v in variables]
            if None in found:
                continue
            hidden = any(e.coefficient(v) is None for e in node.index for v in variables)
            # Elements between those of one access belong to others, or to none.
            turns = across is None and found[0] not in (0, 1)
            shown = last_is_contiguous(node) and not (
                turns and node.index[-1].coefficient(loop.var) != found[0]
            )
            for v, groups in along.items():
                if node in groups:
                    shown = shown and node.index[-1].coefficient(v) == groups[node][0].step
            if hidden or (any(found) and not shown):
                yield node

    def _flatten(self, nest: Nest, buffer: Buffer) -> None:
        """Let a buffer of the nest have one dimension."""
        flat = Buffer(
            (buffer.numel,), buffer.element, "local", bytes_per_element=buffer.bytes_per_element
        )
        for node in walk(nest.body):
            fetches = node.prefetches if isinstance(node, For) else []
            for access in (node, *fetches):
                if isinstance(access, (AffineAccess, Prefetch)) and access.buffer is buffer:
                    access.index = (address(buffer, access.index),)
                    access.buffer = flat
            if isinstance(node, Alloca) and node.buffer is buffer:
                node.buffer = flat
