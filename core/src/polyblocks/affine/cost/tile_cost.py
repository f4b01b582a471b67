"""Cost of a group of stages that runs tile by tile, and the best tile for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, prod

from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import (
    CACHE_PART,
    CLEARLY,
    CLEARLY_LARGER,
    LONG_RUN,
    MOST_LOCAL,
    PRIVATE_BYTES,
    RECOMPUTED_ITERATIONS,
    ROW_START,
    RUN_START,
    SHARED_PART,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer
from polyblocks.affine.tiles.fusion_stages import FusionStage, full, lifetimes
from polyblocks.affine.tiles.overwriting import overwritten
from polyblocks.affine.tiles.passing_stores import BufferWriter, elements_stored
from polyblocks.affine.tiles.slices import Slices, Span, divisors
from polyblocks.target import MemoryLevel, TargetDescription

#: Elements of a dimension from which on tiles may leave a remainder of it, and of a tile that has
#: rows enough for registers.
UNEVEN, REGISTER_ROWS = 128, 16


@dataclass(frozen=True)
class Cost:
    """Predicted seconds of one run, and where they come from.

    Attributes:
        seconds: the prediction.
        compute: seconds of the vector units, recomputation and short rows included.
        memory: seconds to move what enters and leaves the group.
        cache: seconds to move what stays in caches.
        redundancy: iterations over those that are needed at least.
        tile_bytes: bytes that one tile touches.
        over: how much the local buffers exceed what they may take, 0 if they fit.
        local_bytes: that the local buffers of a tile take, but for those in registers.
        handicap: relative time that a tile is taken to need beyond that beside other tiles of the
            same group; no part of the prediction.
    """

    seconds: float
    compute: float
    memory: float
    cache: float
    redundancy: float
    tile_bytes: int
    over: float = 0.0
    local_bytes: int = 0
    handicap: float = 0.0

    def order(self, factor: float = 1.0) -> tuple[float, float]:
        """The best tile of a group has the smallest; ``factor``: of its time."""
        return self.over, self.seconds * (1 + self.handicap) * factor

    def is_better_than(self, other: Cost, larger: float) -> bool:
        """Whether this tile takes the place of another one.

        Args:
            other: the other one.
            larger: the part of the other one's seconds that it must stay below if it touches more
                bytes and does not compute less. Within a cache, stages are the nearer to each
                other the less a tile holds.
        """
        is_larger = self.tile_bytes > other.tile_bytes and self.compute >= other.compute
        least = larger if is_larger else 0.999
        return self.order() < other.order(least)


@dataclass
class _Row:
    """One stage: lanes per iteration, spans and extents of its loops.

    Attributes:
        slots: lanes of vector instructions of one iteration.
        spans: what a tile needs of each loop.
        extents: extents of the loops.
        accesses: how often one iteration accesses each buffer.
        guards: spans of dimensions in which it writes one index only, and how many indices all
            tiles together have there: most tiles do not have that index.
        vectorized: whether its last loop is the innermost one.
        loads: how many elements one iteration loads of each wrapped buffer.
        reaches: how many values the spans of all tiles have together. More than the extent where
            a stage writes a part of what the tiles cover: others have little or nothing of it.
    """

    slots: float
    spans: list[Span]
    extents: list[int]
    accesses: dict[Buffer, int]
    guards: list[tuple[Span, int]]
    vectorized: bool
    loads: dict[Buffer, int]
    reaches: list[int]

    def __post_init__(self) -> None:
        ends = zip(self.spans, self.extents, self.reaches, strict=True)
        self._partly = [(span, extent, reach) for span, extent, reach in ends if reach > extent]

    def active(self, extent_of: _Extents) -> float:
        """The part of all iterations of all tiles, alike in size, that there are."""
        part = 1.0
        for span, extent, reach in self._partly:
            # On average over tiles that begin anywhere.
            part *= min(1.0, extent_of(span, reach) * extent / reach / extent_of(span, extent))
        for span, extent in self.guards:
            part *= extent_of(span, extent) / extent
        return part


@dataclass
class TileCost:
    """The cost of one group for any tile.

    Attributes:
        target: whose rates are used.
        stages: the group.
        found: its slices.
        local: buffers that exist for one tile only.

    Raises:
        ValueError: the target's description lacks a rate, so that there is nothing to compare.
    """

    target: TargetDescription
    stages: list[FusionStage]
    found: Slices
    local: set[Buffer]
    _rows: list[_Row] = field(default_factory=list)
    _written: dict[Buffer, int] = field(default_factory=dict)
    _live: list[list[Buffer]] = field(default_factory=list)
    _large: bool = False
    #: Ends of spans with quotients and remainders.
    _digits: list[Expr] | None = None
    _seen: dict[tuple[tuple[int, ...], bool], Cost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if missing := rates.unknown_rates(self.target):
            raise ValueError(
                f"the cost of a tile is work over rates, and the description of target "
                f"'{self.target.name}' has no {', no '.join(missing)}; ask `unknown_rates` first "
                "and leave stages apart"
            )
        # One object for equal spans, so that their extents are looked up by it.
        known = {span: span for box in self.found.boxes.values() for span in box}
        for stage in self.stages:
            guards = [
                (span, min(extent, _reach(span)))
                for store in stage.stores
                for place, span, extent in zip(
                    stage.places(store) or (),
                    self.found.boxes.get(store.buffer, ()),
                    store.buffer.shape,
                    strict=False,
                )
                if place.var is None and not place.whole
            ]
            wanted = [self.found.spans.get(v) or full(v) for v in stage.variables]
            spans = [known.setdefault(span, span) for span in wanted]
            self._rows.append(
                _Row(
                    stage.slots * stage.width,
                    spans,
                    [v.extent for v in stage.variables],
                    # An inner loop accesses all of its buffers.
                    stage.touched if stage.body_is_flat else dict.fromkeys(stage.touched, 1 << 40),
                    guards,
                    stage.body_is_flat,
                    stage.elements_loaded(self.found.wrapped - self.local),
                    [_reach(span) for span in spans],
                )
            )
            for store in stage.stores:
                elements = elements_stored(stage, store)
                nbytes = elements * store.buffer.bytes_per_element
                self._written[store.buffer] = self._written.get(store.buffer, 0) + nbytes
        self._live = [[] for _ in self.stages]
        # Threads of a block write other elements than they read.
        blocks = self.target.has_shared_memory
        over = {} if blocks else overwritten(self.stages, self.local, self.found.boxes)
        for buffer, (start, end) in lifetimes(self.stages, self.local).items():
            # Its elements take the place of others that the stage reads.
            start += buffer in over
            for i in range(start, end + 1):
                self._live[i].append(buffer)
        level = self.target.shared_level
        self._threads = max(level.size, 1)
        self._overhead = level.overhead
        self._lanes = max(self.target.vector_bits // 32, 1)
        self._lane_rate = _known(rates.lane_rate(self.target))
        self._rates = {
            level.name: _known(rates.bandwidth(self.target, level, self._threads))
            for level in self.target.memory
        }
        outside = [b for b in self.found.boxes if b not in self.local]
        together = sum(b.nbytes for b in outside)
        self._outside = {b: (b.nbytes, self._home(b.nbytes, together)) for b in outside}
        self._wrapped = {b for row in self._rows for b in row.loads}
        read = {n.buffer.base for stage in self.stages for n in stage.loads}
        writers = {b: BufferWriter.of(self.stages, b) for b in outside if b.base not in read}
        passing = {
            b: writer.walks(self.local)
            and not rates.passes_caches(self.target, b, together, walks=True)
            for b, writer in writers.items()
            if rates.passes_caches(self.target, b, together) and writer.fills_rows
        }
        #: Outputs whose stores pass the caches, by the local bytes that a tile must exceed for it.
        nearest = self.target.memory[0].size if self.target.memory else 0
        self._passing = {b: nearest if kept else -1 for b, kept in passing.items()}
        writes = self.target.memory[-1].writes if self.target.memory else None
        self._passes = {b: writers[b].waits_to_pass(writes, outside) for b in passing}

    def best(self, start: tuple[int, ...] = ()) -> tuple[tuple[int, ...], Cost]:
        """The tile with the smallest predicted time, by descent along one dimension at a time.

        Args:
            start: the best tile of a part of the group; then only half and twice of it are tried
                at a time, since a group that grows by one stage changes its tile little.
        """
        extents = [y.extent for y in self.found.tile]
        sizes = [self.sizes(y) for y in self.found.tile]
        if any(stage.seconds is not None for stage in self.stages):
            sizes = self._without_remainders(sizes)
        near = len(start) == len(extents)
        tile = list(extents)
        # A start that keeps every thread busy and lets neighbours share what they read.
        for d in range(len(tile)):
            if self.found.tile[d] not in self.found.whole:
                first = 32 if d >= len(tile) - 2 else 1
                tile[d] = max(n for n in sizes[d] if n <= max(first, sizes[d][0]))
                if near:
                    tile[d] = self.nearest(start[d], sizes[d])
        fewer = self._with_fewer_rows(tile, sizes) if near else []
        best, cost = self._descent(tile, sizes, near)
        if fewer:
            best, cost = _better((best, cost), self._from(fewer, sizes))
        repeated = self._repeated() if near else []
        for d in repeated:
            if best[d] < extents[d]:
                best, cost = _better((best, cost), self._from(self._whole(d, best, sizes), sizes))
        if repeated and cost.redundancy > RECOMPUTED_ITERATIONS:
            # Tiles of all of such a dimension have few rows, and neighbours share many of them.
            self._large = True
            best, cost = _better((best, cost), self._from(best, sizes))
            self._large = False
        return tuple(best), cost

    def _without_remainders(self, sizes: list[list[int]]) -> list[list[int]]:
        """Those of the candidates that divide the dimensions.

        One long dimension without such may have a remainder, which is a nest of its own.
        """
        found: list[list[int]] = []
        uneven = False
        for y, each in zip(self.found.tile, sizes, strict=True):
            even = [n for n in each if y.extent % n == 0]
            long = y.extent >= UNEVEN and y not in self.found.whole
            if long and not uneven and max(n for n in even if n < y.extent) < REGISTER_ROWS:
                uneven = True
                even = [n for n in each if n >= REGISTER_ROWS]
            found.append(even)
        return found

    def _from(self, tile: list[int], sizes: list[list[int]]) -> tuple[list[int], Cost]:
        return self._descent(list(tile), sizes, near=True)

    def _descent(
        self, tile: list[int], sizes: list[list[int]], near: bool
    ) -> tuple[list[int], Cost]:
        """Change a tile along one dimension at a time while that makes it better.

        A larger tile has to be better by :data:`CLEARLY_LARGER`: each that is tried, or the last
        one against the first where steps are so small that each gains little. In the end, of all
        that were tried, one with less traffic with memory has to be better only.
        """
        first, best = list(tile), self._remembered(tuple(tile))
        tried = {}
        for _ in range(3 if not near else 8):
            before = list(tile)
            for d in reversed(range(len(tile))):
                if self.found.tile[d] in self.found.whole:
                    continue
                for size in _neighbours(tile[d], sizes[d]) if near else sizes[d]:
                    trial = (*tile[:d], size, *tile[d + 1 :])
                    cost = tried[trial] = self._remembered(trial)
                    if cost.is_better_than(best, larger=0.999 if near else CLEARLY_LARGER):
                        best, tile[d] = cost, size
            if tile == before:
                break
        if near and not best.is_better_than(
            start := self._remembered(tuple(first)), larger=CLEARLY_LARGER
        ):
            return first, start
        for trial, cost in () if near else tried.items():
            if cost.memory < 0.999 * best.memory and cost.is_better_than(best, larger=0.999):
                best, tile = cost, list(trial)
        return tile, best

    def _with_fewer_rows(self, tile: list[int], sizes: list[list[int]]) -> list[int]:
        """A tile with rows as long and fewer of them, for which there is room; [] if it has room.

        A descent begins with the innermost dimension, and cuts rows.
        """
        fewer = list(tile)
        for d in range(len(tile) - 1):
            if self.found.tile[d] not in self.found.whole:
                while self._remembered(tuple(fewer)).over > 0 and fewer[d] > sizes[d][0]:
                    fewer[d] = max(n for n in sizes[d] if n < fewer[d])
        fits = self._remembered(tuple(fewer)).over == 0
        return fewer if fits and fewer != tile else []

    def _remembered(self, tile: tuple[int, ...]) -> Cost:
        """As :meth:`of`: a descent comes back to tiles that it has seen."""
        key = tile, self._large
        if key not in self._seen:
            self._seen[key] = self.of(tile)
        return self._seen[key]

    def _whole(self, d: int, tile: list[int], sizes: list[list[int]]) -> list[int]:
        """A tile of about as many elements that is whole along one dimension."""
        whole = list(tile)
        whole[d] = self.found.tile[d].extent
        factor = whole[d] / tile[d]
        for e in range(len(tile)):
            if e != d and factor > 1 and self.found.tile[e] not in self.found.whole:
                whole[e] = max(n for n in sizes[e] if n <= max(tile[e] / factor, sizes[e][0]))
                factor *= whole[e] / tile[e]
        return whole

    def _repeated(self) -> list[int]:
        """Dimensions of the tile that some stage does not have: its parts compute that again."""
        variables = [
            {v for span in row.spans for expr in span for v in expr.variables()}
            for row in self._rows
        ]
        return [
            d
            for d, y in enumerate(self.found.tile)
            if y not in self.found.whole and any(y not in each for each in variables)
        ]

    def sizes(self, y: Var) -> list[int]:
        """Candidates for the extent of a tile in one dimension, in order.

        They are powers of two, and those times what the dimension is divided by in an index: tiles
        then begin where a group of neighbours does.
        """
        if self._digits is None:
            spans = [
                *self.found.spans.values(),
                *(s for box in self.found.boxes.values() for s in box),
            ]
            self._digits = [
                expr
                for span in spans
                for expr in span
                if any(not isinstance(atom, Var) for atom, _ in expr.terms)
            ]
        units = {1, *(k for expr in self._digits for k in divisors(expr, y))}
        sizes = {unit << k for unit in units for k in range(y.extent.bit_length())}
        return [*sorted(n for n in sizes if n < y.extent), y.extent]

    def nearest(self, size: int, sizes: list[int]) -> int:
        """Where the search begins, with an extent that was best for a part of the group."""
        return min(size, sizes[-1])

    def of(self, tile: tuple[int, ...]) -> Cost:
        """The cost with this tile: extents by dimension of the destination."""
        count = prod(ceil(y.extent / n) for y, n in zip(self.found.tile, tile, strict=True))
        return self._cost(tile, count, ceil(count / self._threads) * self._threads / count)

    def _cost(self, tile: tuple[int, ...], count: int, shares: float) -> Cost:
        """The cost of ``count`` tiles; the longest part of a thread is ``shares`` equal ones."""
        extent_of = _Extents(self.found.tile, tile)
        lanes = 0.0
        needed = 0.0
        spent = 0.0
        touched = 0.0
        executed: list[tuple[_Row, float, int]] = []
        for row in self._rows:
            iterations, inner = 1, 1
            least = 1
            for span, extent in zip(row.spans, row.extents, strict=True):
                inner = extent_of(span, extent)
                iterations *= inner
                least *= extent
            runs = count * row.active(extent_of)
            padded = iterations
            if row.vectorized:
                padded = iterations // max(inner, 1) * (ceil(inner / self._lanes) * self._lanes)
                lanes += runs * (iterations / max(inner, 1)) * ROW_START * self._lanes
            lanes += runs * padded * row.slots
            spent += runs * iterations * row.slots
            needed += least * row.slots
            executed.append((row, runs, iterations))
        bytes_of: dict[Buffer, int] = {}
        for buffer, box in self.found.boxes.items():
            n = buffer.bytes_per_element
            for span, extent in zip(box, buffer.shape, strict=True):
                n *= extent_of(span, extent)
            bytes_of[buffer] = n
        for buffer in self._wrapped:
            loaded = sum(n * row.loads.get(buffer, 0) for row, _, n in executed)
            bytes_of[buffer] = min(bytes_of[buffer], loaded * buffer.bytes_per_element)
        for row, runs, iterations in executed:
            for buffer, times in row.accesses.items():
                most = iterations * times * buffer.bytes_per_element
                touched += runs * min(bytes_of.get(buffer, 0), most)
        # Local buffers that are not alive at the same time share memory.
        local_bytes = max((sum(bytes_of.get(b, 0) for b in bs) for bs in self._live), default=0)
        tile_bytes = local_bytes + sum(n for b, n in bytes_of.items() if b not in self.local)
        memory = 0.0
        for buffer, (nbytes, home) in self._outside.items():
            n = bytes_of[buffer]
            moved = float(min(nbytes, count * n))
            if buffer in self._written:
                # A line is read before it is written, if stores do not pass the caches.
                passes = local_bytes > self._passing.get(buffer, local_bytes)
                ways = self._passes[buffer] if passes else 2.0
                moved = ways * min(moved, self._written[buffer])
            else:
                # Halos come from the last cache, if it holds them. Arrays that every tile reads
                # all of, tables of constants, stay where tiles are.
                again = max(0, count * n - nbytes) if n < nbytes else 0
                if tile_bytes > 0 and again:
                    held = self._holding(n * self._threads, outer=True)
                    memory += self._seconds(again, held, shares)
            jumps = _jumps(self.found.boxes[buffer], buffer, extent_of)
            memory += self._seconds(moved * (1 + RUN_START * jumps), home, shares)
        level = self._holding(tile_bytes)
        cache = touched / self._rate_of(level)
        room = self._room()
        over = max(0.0, local_bytes / room - 1.0)
        compute = lanes / self._lane_rate * shares
        seconds = rates.overlapped(compute, memory, cache * shares) + self._overhead
        redundancy = spent / needed if needed else 1.0
        return Cost(*(seconds, compute, memory, cache, redundancy, tile_bytes, over, local_bytes))

    def alone(self) -> float:
        """Seconds of one stage as a nest of its own, whose threads share its iterations."""
        cost = self._cost((), 1, 1.0 if self.stages[0].loops else self._threads)
        if self.stages[0].seconds is not None:
            # A register tile's results are stored at its end, when there is no arithmetic.
            return rates.overlapped(cost.compute, cost.memory) + self._overhead
        return max(cost.compute, cost.memory) + self._overhead

    def _room(self) -> float:
        """Bytes that the local buffers of one tile may take."""
        caches = [m for m in self.target.memory if m.size]
        # The last cache belongs to all.
        private = caches[:-1] or caches
        own = (private[-1].size if private else PRIVATE_BYTES) * CACHE_PART
        if not self._large or not caches:
            return own
        share = caches[-1].size / max(caches[-1].shared_by, 1) * SHARED_PART
        return max(own, min(share, MOST_LOCAL))

    def _holding(self, nbytes: int, outer: bool = False) -> MemoryLevel:
        """The fastest level that holds ``nbytes``; with ``outer`` no level of one core."""
        for level in self.target.memory:
            if outer and level is self.target.memory[0]:
                continue
            if level.size == 0 or nbytes <= level.size * CACHE_PART:
                return level
        return self.target.memory[-1]

    def _seconds(self, nbytes: float, level: MemoryLevel, shares: float) -> float:
        """Seconds to move bytes from or to a level.

        Args:
            nbytes: of all threads.
            level: a cache, which serves each thread at a rate of its own, or memory, from which
                some get more while others wait.
            shares: the longest part of a thread over an equal one.
        """
        return nbytes / self._rate_of(level) * (shares if level.size else 1.0)

    def _rate_of(self, level: MemoryLevel) -> float:
        """Bytes per second of all instances of a level."""
        return self._rates[level.name]

    def _home(self, nbytes: int, together: int = 0) -> MemoryLevel:
        """From where a buffer of the program comes: the last cache if it fits.

        It hopes for no share of what does not, as predictions of whole programs do: what others
        touch in between is not known here. With the share of a group alone, an image pipeline of
        2048 x 2048 is left in nests, which take 13.0 ms on a Zen 4, its tiles 5.1.

        Args:
            nbytes: of the buffer.
            together: of all buffers that the group reads and writes, which drive each other out.
        """
        caches = [m for m in self.target.memory if m.size]
        if caches and nbytes <= caches[-1].size / 4 and together <= caches[-1].size / 2:
            return caches[-1]
        return self.target.memory[-1]


def _better(best: tuple[list[int], Cost], other: tuple[list[int], Cost]) -> tuple[list[int], Cost]:
    """The better one of two tiles with their costs; if they are about as good, the first."""
    a, b = best[1], other[1]
    return other if b.order() < a.order(CLEARLY) else best


class _Extents:
    """The extents of spans for one tile; many stages share theirs."""

    def __init__(self, variables: list[Var], tile: tuple[int, ...]) -> None:
        self.first = dict.fromkeys(variables, 0)
        self.last = {y: min(n, y.extent) - 1 for y, n in zip(variables, tile, strict=True)}
        # By object: spans are compared in the time that an extent takes.
        self.known: dict[int, tuple[Span, int]] = {}

    def __call__(self, span: Span, extent: int) -> int:
        """Values in a span, at most ``extent``."""
        found = self.known.get(id(span))
        if found is not None:
            length = found[1]
        else:
            low, high = span
            if low.is_constant and high.is_constant:
                length = max(0, high.const - low.const + 1)
            else:
                length = max(1, high.evaluate(self.last) - low.evaluate(self.first) + 1)
            # With the span, which keeps its place.
            self.known[id(span)] = span, length
        return length if length < extent else extent


def _known(rate: float | None) -> float:
    """A rate of a target that has all."""
    assert rate is not None
    return rate


def _reach(span: Span) -> int:
    """How many values the spans of all tiles have together."""
    low, high = span[0].range()[0], span[1].range()[1]
    return max(high - low + 1, 1)


def _jumps(box: list[Span], buffer: Buffer, extent_of: _Extents) -> float:
    """How often per byte a walk through a tile's part of a buffer jumps to another address.

    0 for long runs, and for a single one: the next tile may go on where it ends.
    """
    run = buffer.bytes_per_element
    sizes = [extent_of(s, n) for s, n in zip(box, buffer.shape, strict=True)]
    for d in range(len(sizes) - 1, -1, -1):
        run *= sizes[d]
        if sizes[d] < buffer.shape[d]:
            many = any(n > 1 for n in sizes[:d])
            return 1.0 / max(run, 1) if many and run < LONG_RUN else 0.0
    return 0.0


def _neighbours(size: int, sizes: list[int]) -> list[int]:
    """The next smaller and the next larger candidate."""
    smaller = [n for n in sizes if n < size][-1:]
    return smaller + [n for n in sizes if n > size][:1]
