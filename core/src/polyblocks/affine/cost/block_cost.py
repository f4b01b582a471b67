"""Cost of a group of stages when a block of threads runs each tile, as on GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations, product
from math import ceil, log2, prod

from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.block_room import room_of_tile
from polyblocks.affine.cost.constants import (
    RECOMPUTED,
    REGISTER_SHARE,
    RESERVED_REGISTERS,
    ROWS_IN_TURN,
)
from polyblocks.affine.cost.tile_cost import Cost, TileCost, _Extents
from polyblocks.affine.expr import Var
from polyblocks.affine.model import AffineAccess, Buffer, For, Node, walk
from polyblocks.affine.tiles.contiguity import held_by_iterations, written_out
from polyblocks.affine.tiles.fusion_stages import slots
from polyblocks.affine.tiles.slices import has_even_slices
from polyblocks.occupancy import padded_bytes, registers_for
from polyblocks.target import MemoryLevel, Multiprocessor

#: Threads of a block, where nothing speaks for another number.
THREADS = 256
#: Bands of rows that the threads of a warp read of neighbouring columns.
BANDS = (1, 2, 4)
#: A tile that repeats so much of the work may be the wrong one of two good ones.
SUSPECT = 1.25
#: Tiles so long are tried in sizes between the powers of two.
BETWEEN = 64
#: Tiles that are tried instead of one that a block has no memory for.
TRIED = 32
#: How much smaller they are at most.
FEWER = 8


@dataclass
class BlockCost(TileCost):
    """As :class:`TileCost`, for the blocks of a grid.

    The threads of a block share every stage of a tile; local buffers are in shared memory, and
    reused data stays there or in registers as far as it fits. A buffer whose elements each
    belong to one iteration of each stage is in registers of the threads that run these.
    There must be tiles for all multiprocessors, and several for each, so that one computes while
    the other waits.
    """

    #: Iterations of a thread that may be written out for a buffer that it keeps elements of.
    _held: dict[Buffer, int] = field(default_factory=dict)
    #: Whether tiles with a number of elements of a dimension all have slices of the same extents.
    _even: dict[tuple[Var, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        scanned = {b for stage in self.stages for b in _scanned(stage.body)}
        for buffer in self.local - scanned:
            if held_by_iterations(self.stages, buffer):
                self._held[buffer] = written_out(
                    len(_innermost(s.body))
                    for s in self.stages
                    if any(n.buffer is buffer for n in s.accesses)
                )
        for row, stage in zip(self._rows, self.stages, strict=True):
            if any(n.buffer in self._held for n in stage.accesses):
                # Elements in registers cost no access.
                row.slots *= slots(stage.body, self._held) / stage.slots if stage.slots else 1.0

    def of(self, tile: tuple[int, ...]) -> Cost:
        """The cost with this tile."""
        chip = self.target.multiprocessor
        assert chip is not None
        sizes = list(zip(self.found.tile, tile, strict=True))
        count = prod(ceil(y.extent / size) for y, size in sizes)
        extent_of = _Extents(self.found.tile, tile)
        shapes = {
            buffer: [extent_of(s, n) for s, n in zip(box, buffer.shape, strict=True)]
            for buffer, box in self.found.boxes.items()
        }
        bytes_of = {b: prod(shape, start=b.bytes_per_element) for b, shape in shapes.items()}
        held = self._in_registers(bytes_of, chip, extent_of)
        local = self._local(shapes, bytes_of, chip, held)
        tile_bytes = local + sum(n for b, n in bytes_of.items() if b not in self.local)
        again = self._read_again()
        kept = local + sum(bytes_of.get(b, 0) for b in again)
        lanes = needed = spent = touched = 0.0
        shared: list[tuple[float, float]] = []
        widest = in_turn = 1.0
        for row in self._rows:
            iterations = prod(extent_of(s, n) for s, n in zip(row.spans, row.extents, strict=True))
            runs = count * row.active(extent_of)
            # Inner loops of a stage are shared as well.
            inner = 1.0 if row.vectorized else row.slots / 2
            # A stage may have nothing to do: what it reads is beyond the edge of an array.
            parallel = (float(iterations) if row.vectorized else inner) or 1.0
            widest = max(widest, parallel)
            steps = 1 if row.vectorized else iterations
            in_turn = max(in_turn, steps)
            shared.append((runs / count * steps, parallel))
            masked = ceil(parallel / chip.warp) * chip.warp / parallel
            lanes += runs * iterations * row.slots * masked
            spent += runs * iterations * row.slots
            needed += prod(row.extents) * row.slots
            for buffer, times in row.accesses.items():
                if buffer in held or buffer not in (*again, *self.local):
                    continue
                most = iterations * times * buffer.bytes_per_element
                touched += runs * min(bytes_of.get(buffer, 0), most)
        busy = self._busy(count * min(widest, chip.threads_per_block), chip)
        memory = self._traffic(count, bytes_of, chip, extent_of, 1) / busy
        by_rows = not all(row.vectorized for row in self._rows)
        room = room_of_tile(chip)
        for bands in BANDS if by_rows else ():
            neighbours = chip.warp // bands
            if local * neighbours > room:
                continue
            blocks = ceil(count / neighbours)
            sharing = min(busy, self._busy(blocks * chip.threads_per_block, chip))
            traffic = self._traffic(count, bytes_of, chip, extent_of, neighbours)
            memory = min(memory, traffic / sharing)
        on_chip = kept <= max(room, chip.registers * 4 * REGISTER_SHARE)
        cache = touched / self._on_chip_rate(on_chip)
        waits = min(self._waits(group, count, local, shared) for group in _groups(widest, chip))
        latency = chip.latencies.memory + waits
        compute = lanes / self._lane_rate / busy
        seconds = rates.overlapped(compute, memory, cache, latency) + self._overhead
        if by_rows:
            # Rows are better off in blocks of their own than one after the other.
            free = [n for y, n in sizes if y not in self.found.whole]
            seconds *= 1 + 0.004 * log2(max(prod(free), 1))
        redundancy = spent / needed if needed else 1.0
        # Recomputed work also reads and stores again.
        seconds *= 1 + RECOMPUTED * max(redundancy - 1, 0)
        over = max(0.0, local / room - 1.0)
        handicap = ROWS_IN_TURN * log2(in_turn)
        parts = compute, memory, cache, redundancy
        return Cost(seconds, *parts, tile_bytes, over, local, handicap)

    def alone(self) -> float:
        """Seconds of one stage as a kernel of its own, every thread with an iteration."""
        chip = self.target.multiprocessor
        assert chip is not None
        lanes = sum(prod(row.extents) * row.slots for row in self._rows)
        parallel = sum(
            prod(row.extents) * (1 if row.vectorized else row.slots / 2) for row in self._rows
        )
        memory = 0.0
        for buffer, box in self.found.boxes.items():
            size = prod(
                (high.const - low.const + 1 for low, high in box), start=buffer.bytes_per_element
            )
            moved = self._written.get(buffer, size)
            memory += min(moved, size) / self._rate_of(self._home(buffer.nbytes))
        busy = self._busy(parallel, chip)
        compute = lanes / self._lane_rate / busy
        return rates.overlapped(compute, memory / busy, chip.latencies.memory) + self._overhead

    def _busy(self, threads: float, chip: Multiprocessor) -> float:
        """The fraction of the chip that ``threads`` threads keep busy; 1 for 0 threads."""
        return min(1.0, threads / (self._threads * (chip.busy_threads or chip.threads))) or 1.0

    def best(self, start: tuple[int, ...] = ()) -> tuple[tuple[int, ...], Cost]:
        """As in the base; from the beginning as well, where tiles near ``start`` repeat work."""
        found = super().best(start)
        if start and (found[1].over or found[1].redundancy > SUSPECT):
            found = min(found, super().best(), key=_order)
        found = self._exchanged(found)
        return self._between(found) if found[1].redundancy > 1 else found

    def sizes(self, y: Var) -> list[int]:
        """As in the base, of those with which a tile can be written."""
        return [n for n in super().sizes(y) if self._is_even(y, n)]

    def nearest(self, size: int, sizes: list[int]) -> int:
        """As in the base, or the next one with which a tile can be written."""
        return size if size in sizes else min(n for n in sizes if n > size or n == sizes[-1])

    def _is_even(self, y: Var, size: int) -> bool:
        if (y, size) not in self._even:
            self._even[y, size] = size >= y.extent or has_even_slices(self.found, y, size)
        return self._even[y, size]

    def smaller(self, tile: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Cost]]:
        """Tiles of fewer elements that fit, the fastest ones first."""
        sizes = [
            [n] if y in self.found.whole else self.sizes(y)
            for y, n in zip(self.found.tile, tile, strict=True)
        ]
        most = prod(tile)
        tiles = (t for t in product(*sizes) if most <= FEWER * prod(t) < FEWER * most)
        fewer = ((t, self.of(t)) for t in tiles)
        yield from sorted((found for found in fewer if not found[1].over), key=_order)[:TRIED]

    def _exchanged(self, found: tuple[tuple[int, ...], Cost]) -> tuple[tuple[int, ...], Cost]:
        """Longer one way and shorter the other way, where the tile cannot grow any more."""
        sizes = [self.sizes(y) for y in self.found.tile]
        free = [d for d, y in enumerate(self.found.tile) if y not in self.found.whole]
        for up, down in permutations(free, 2):
            tile = list(found[0])
            larger = [n for n in sizes[up] if n > tile[up]]
            smaller = [n for n in sizes[down] if n < tile[down]]
            if larger and smaller:
                tile[up], tile[down] = larger[0], smaller[-1]
                trial = (tuple(tile), self.of(tuple(tile)))
                found = min(found, trial, key=_order)
        return found

    def _between(self, found: tuple[tuple[int, ...], Cost]) -> tuple[tuple[int, ...], Cost]:
        """Half as long again or three quarters as long, where neighbours repeat work.

        Powers of two leave up to half of a multiprocessor's memory empty, and the less a tile is
        surrounded by what others compute as well, the larger it is.
        """
        factors = [
            (2, 3, 4, 6) if y not in self.found.whole and size >= BETWEEN else (4,)
            for y, size in zip(self.found.tile, found[0], strict=True)
        ]
        for parts in product(*factors):
            tile = tuple(n * part // 4 for n, part in zip(found[0], parts, strict=True))
            fits = all(
                n <= y.extent and self._is_even(y, n)
                for n, y in zip(tile, self.found.tile, strict=True)
            )
            if fits and {3, 6} & set(parts):
                found = min(found, (tile, self.of(tile)), key=_order)
        return found

    def _in_registers(
        self, bytes_of: dict[Buffer, int], chip: Multiprocessor, extent_of: _Extents
    ) -> set[Buffer]:
        """Local buffers whose elements the threads of a block keep."""
        held = {
            buffer
            for buffer, turns in self._held.items()
            if bytes_of.get(buffer, 0) <= turns * chip.threads_per_block * buffer.bytes_per_element
        }
        for row in self._rows:
            if not row.vectorized and held & row.accesses.keys():
                spans = zip(row.spans, row.extents, strict=True)
                if prod(extent_of(span, extent) for span, extent in spans) > 1:
                    # A loop around what the threads share: registers have no indices.
                    held -= row.accesses.keys()
        return held

    def _local(
        self,
        shapes: dict[Buffer, list[int]],
        bytes_of: dict[Buffer, int],
        chip: Multiprocessor,
        held: set[Buffer],
    ) -> int:
        """Bytes of shared memory that the local buffers of a tile take, as a plan counts them.

        Those that threads would keep are there from the first one on that their registers have no
        room for.
        """
        room = registers_for(chip, chip.threads_per_block, 1) - RESERVED_REGISTERS
        registers = min(chip.buffer_registers, room) * 4 * chip.threads_per_block
        most = 0
        for live in self._live:
            kept = shared = 0
            for buffer in sorted((b for b in live if b in shapes), key=lambda b: b.number):
                words = bytes_of[buffer] * self._words(buffer, bytes_of, held)
                if buffer in held and kept + words <= registers:
                    kept += words
                else:
                    shared += padded_bytes(shapes[buffer], buffer.bytes_per_element)
            most = max(most, shared)
        return most

    def _words(self, buffer: Buffer, bytes_of: dict[Buffer, int], held: set[Buffer]) -> int:
        """Registers for each element of a held buffer: one more if a place waits with it."""
        for row in self._rows:
            if buffer in row.accesses and any(
                b in self.local and b not in held and bytes_of.get(b, 0) >= bytes_of[buffer]
                for b in row.accesses
            ):
                return 2
        return 1

    def _read_again(self) -> set[Buffer]:
        """Buffers of the program that several stages read, or one at several places."""
        times = Counter(b for stage in self.stages for b in {n.buffer for n in stage.loads})
        several = {
            b
            for stage in self.stages
            for b, n in Counter(n.buffer for n in stage.loads).items()
            if n > 1
        }
        return {b for b, n in times.items() if n > 1 or b in several} - self.local

    def _waits(
        self, group: int, count: int, local: int, stages: list[tuple[float, float]]
    ) -> float:
        """Seconds that threads wait for others of theirs, all tiles together.

        Args:
            group: threads that do a tile.
            count: of tiles.
            local: bytes of shared memory that a tile takes.
            stages: how often the threads share a loop of each stage of a tile, and its iterations.
        """
        chip = self.target.multiprocessor
        assert chip is not None
        takes = chip.latencies
        # A warp waits for no other one.
        exchange = takes.warp_reduce if group == chip.warp else takes.exchange
        resident = self._resident(chip, local, group)
        # Blocks have more threads where few of them fit.
        threads = max(group, min(chip.threads_per_block, chip.threads // resident))
        waits = sum(
            steps * (exchange + max(1.0, parallel / threads) * takes.shared_load)
            for steps, parallel in stages
        )
        return waits * max(1.0, count / (self._threads * resident))

    def _resident(self, chip: Multiprocessor, local: int, group: int) -> int:
        """Tiles that a multiprocessor has room for."""
        by_threads = chip.threads // group
        return max(1, min(by_threads, chip.shared // local if local else by_threads))

    def _traffic(
        self,
        count: int,
        bytes_of: dict[Buffer, int],
        chip: Multiprocessor,
        extent_of: _Extents,
        together: int,
    ) -> float:
        """Seconds to move what enters and leaves the tiles.

        Neighbouring threads may do that many neighbouring tiles, whose parts of a sector they move
        together.
        """
        seconds = through = 0.0
        for buffer, n in bytes_of.items():
            if buffer in self.local:
                continue
            box = self.found.boxes[buffer]
            run = buffer.bytes_per_element
            whole = True
            for span, extent in reversed(list(zip(box, buffer.shape, strict=True))):
                length = extent_of(span, extent)
                run *= length
                if length < extent:
                    if run < chip.sector:
                        run, length = run * together, length * together
                    # Tiles without neighbours' parts begin where the one before ends.
                    whole = extent % length == 0 and run % chip.sector == 0
                    break
            # Other runs begin and end somewhere in a sector.
            waste = 1.0 if whole else 1 + chip.sector / max(run, 1)
            moved = float(min(buffer.nbytes, count * n))
            if buffer in self._written:
                moved = min(moved, self._written[buffer])
                through += moved * waste
            elif n >= buffer.nbytes and n <= chip.shared_per_block:
                # Data read by all tiles stays near to each multiprocessor.
                through += min(count, self._threads) * n
            else:
                # Halos come from the last cache.
                through += count * n * waste
            # Of the sectors at the ends of runs neighbouring tiles need the other part.
            seconds += min(buffer.nbytes, moved * waste) / self._rate_of(self._home(buffer.nbytes))
        return rates.overlapped(seconds, through / self._rate_of(self._last_cache()))

    def _on_chip_rate(self, on_chip: bool) -> float:
        shared = self.target.memory_level("shared")
        return self._rate_of(shared if on_chip and shared is not None else self._last_cache())

    def _last_cache(self) -> MemoryLevel:
        """The level in front of the main memory, or that itself."""
        caches = [m for m in self.target.memory if m.size]
        return caches[-1] if caches else self.target.memory[-1]


def _groups(widest: float, chip: Multiprocessor) -> Iterator[int]:
    """Threads that may do a tile: more of them only as long as they have work."""
    group = chip.warp
    yield group
    while group < min(widest, THREADS):
        group *= 2
        yield group


def _scanned(nodes: list[Node]) -> set[Buffer]:
    """Buffers that scans access: scans need indices, which registers do not have."""
    found: set[Buffer] = set()
    for loop in (n for n in walk(nodes) if isinstance(n, For) and n.inits):
        inner = any(isinstance(n, For) for n in loop.body)
        if not inner and ReductionNest([], [], [loop], loop.body, []).combiners() is None:
            found |= {n.buffer for n in loop.body if isinstance(n, AffineAccess)}
    return found


def _innermost(nodes: list[Node]) -> list[Node]:
    """The longest body without loops."""
    inner = [_innermost(n.body) for n in nodes if isinstance(n, For)]
    return max(inner, key=len) if inner else nodes


def _order(found: tuple[tuple[int, ...], Cost]) -> tuple[float, float]:
    return found[1].order()
