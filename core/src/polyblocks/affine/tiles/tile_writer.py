"""From a group of stages and a tile to one nest."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from polyblocks.affine.access import address, row_of_lines
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    Buffer,
    For,
    Node,
    Value,
    clone,
    walk,
)
from polyblocks.affine.tiles.contiguity import held_by_iterations
from polyblocks.affine.tiles.fusion_stages import FusionStage, full, lifetimes
from polyblocks.affine.tiles.overwriting import overwritten
from polyblocks.affine.tiles.row_padding import ROW, padded_rows, row_of
from polyblocks.affine.tiles.slices import Slices, Span, fixed_extent
from polyblocks.occupancy import padded_bytes

#: After the last stage of all groups.
_ALWAYS = 1 << 30


def tiled(
    stages: list[FusionStage],
    found: Slices,
    tile: tuple[int, ...],
    local: set[Buffer],
    rows: bool = True,
    remainder: bool | None = None,
) -> list[Node] | None:
    """The body of the nest that computes all stages tile by tile.

    Loops over a part of a box count from the first element of the slice, so that their extents
    are those of the tile; where a slice reaches beyond the box they are cut by bounds. None if a
    slice has not the same extent for every tile. With ``rows``, those of local buffers are as long
    as whole vectors, and computed to their end.

    Args:
        stages: in order.
        found: their slices.
        tile: extents by dimension of the destination.
        local: buffers of the tile's size.
        rows: see above.
        remainder: False for whole tiles only, True for what they leave of the dimension that they
            do not divide, None for tiles that are cut by bounds there.
    """
    loops, at, end = _corners(found, tile, remainder)
    writer = _Tile(at, end, found, local, rows)
    body = writer.body(stages)
    if body is None:
        return None
    if not loops:
        # One iteration, so that it is one nest and one kernel.
        loops.append(For(Var(1, "t"), []))
    for loop in reversed(loops):
        loop.body = body
        body = [loop]
    loops[-1].tile = True
    return body


def shared_bytes(
    stages: list[FusionStage], found: Slices, tile: tuple[int, ...], local: set[Buffer]
) -> int:
    """Bytes of the local buffers of a tile that no thread keeps, an element more for each row."""
    _, at, end = _corners(found, tile)
    writer = _Tile(at, end, found, local, rows=False)
    writer.place(stages)
    shared = [s.buffer for s in writer.storages if not s.held]
    return sum(padded_bytes(b.shape, b.bytes_per_element) for b in shared)


def has_remainder(found: Slices, tile: tuple[int, ...]) -> bool:
    """Whether a dimension of the destination is no multiple of the tile's."""
    return any(y.extent % size for y, size in zip(found.tile, tile, strict=True))


def _corners(
    found: Slices, tile: tuple[int, ...], remainder: bool | None = None
) -> tuple[list[For], dict[Var, Expr], dict[Var, Expr]]:
    """The loops over tiles, and a tile's first and last index of each dimension."""
    loops: list[For] = []
    at: dict[Var, Expr] = {}
    end: dict[Var, Expr] = {}
    for y, size in zip(found.tile, tile, strict=True):
        count, first = ceil(y.extent / size), Expr(0)
        if remainder is not None and y.extent % size:
            count = y.extent // size
            if remainder:
                first, size, count = Expr(count * size), y.extent % size, 1
        if count > 1:
            var = Var(count, "t")
            loops.append(For(var, []))
            first = Expr.of(var) * size
        at[y], end[y] = first, first + (size - 1)
    return loops, at, end


@dataclass
class _Storage:
    """A tile-sized buffer that several local ones use one after the other."""

    buffer: Buffer
    last: int = -1
    held: bool = False

    def fits(self, other: Buffer) -> bool:
        """Whether it can hold elements of such a buffer, large enough or not."""
        return self.buffer.element == other.element and len(self.buffer.shape) == len(other.shape)

    def _joined(self, shape: list[int]) -> tuple[int, ...]:
        return tuple(max(a, b) for a, b in zip(self.buffer.shape, shape, strict=True))

    def growth(self, shape: list[int]) -> int:
        """Elements that it is too small by."""
        return prod(self._joined(shape)) - self.buffer.numel

    def waste(self, shape: list[int]) -> bool:
        """Whether shapes are so different that both together would leave much of it unused."""
        return 8 * prod(self._joined(shape)) > 9 * max(self.buffer.numel, prod(shape))

    def grow(self, shape: list[int]) -> None:
        """Make room: each dimension is as long as the longest need."""
        self.buffer.shape = self._joined(shape)


class _Tile:
    """One tile: its corners, and the local buffers with their first elements."""

    def __init__(
        self,
        at: dict[Var, Expr],
        end: dict[Var, Expr],
        found: Slices,
        local: set[Buffer],
        rows: bool,
    ) -> None:
        self.at = at
        self.end = end
        self.found = found
        self.local = local
        self.rows = rows
        self.origins: dict[Buffer, list[Expr]] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self.storages: list[_Storage] = []
        self.held: set[Buffer] = set()
        self.overwritten: dict[Buffer, Buffer] = {}

    def place(self, stages: list[FusionStage]) -> bool:
        """Give every local buffer its storage; whether all have sizes that are the same always."""
        if not self.rows:
            self.held = {b for b in self.local if held_by_iterations(stages, b)}
        else:
            self.overwritten = overwritten(stages, self.local, self.found.boxes)
        return all(
            self._place(stages, b, *used) for b, used in lifetimes(stages, self.local).items()
        )

    def body(self, stages: list[FusionStage]) -> list[Node] | None:
        if not self.place(stages):
            return None
        out: list[Node] = [Alloca(storage.buffer) for storage in self.storages]
        for i, stage in enumerate(stages):
            nodes = self._stage(stage, stages[:i])
            if nodes is None:
                return None
            out.extend(nodes)
        self._flatten(stages, out)
        return out

    def _flatten(self, stages: list[FusionStage], nodes: list[Node]) -> None:
        """Let what contractions read be one row of memory: they use it where it is then.

        Buffers that are read through windows stay as they are: margins are those of dimensions.
        """
        loads = [n for stage in stages if stage.seconds is not None for n in stage.loads]
        windows = {n.buffer for n in loads if any(len(e.terms) > 1 for e in n.index)}
        wanted = {self.buffers.get(n.buffer) for n in loads if n.buffer not in windows}
        flat = {b for b in wanted if b is not None and len(b.shape) > 1}
        for node in walk(nodes):
            if isinstance(node, AffineAccess) and node.buffer in flat:
                node.index = (address(node.buffer, node.index),)
        for buffer in flat:
            buffer.shape = (buffer.numel,)

    def _place(self, stages: list[FusionStage], buffer: Buffer, first: int, last: int) -> bool:
        """Find a local buffer's storage: one whose contents are done with, or a new one."""
        shape: list[int] = []
        origin: list[Expr] = []
        for span, extent in zip(self.found.boxes[buffer], buffer.shape, strict=True):
            size = fixed_extent(span, self.at, self.end)
            if size is None:
                return False
            shape.append(max(1, min(size, extent)))
            origin.append(span[0].substitute(self.at) if size < extent else Expr(0))
        if self.rows and len(shape) > 1 and shape[-1] > ROW:
            # Every row starts on a line of its own.
            shape[-1] = row_of(shape[-1])
            if any(stage.seconds is not None for stage in stages):
                # A register tile of a contraction reads several rows side by side.
                shape[-1] = row_of_lines(shape[-1], buffer.bytes_per_element)
        held = buffer in self.held
        free = [s for s in self.storages if s.last < first and s.fits(buffer) and not held]
        # The model counts what lives at once, and what it counts has to fit.
        free = [s for s in free if not s.waste(shape)]
        if not self.rows:
            # A number among the elements of a row would keep these out of registers.
            free = [s for s in free if prod(shape) <= 2 * s.buffer.numel <= 4 * prod(shape)]
        over = self.overwritten.get(buffer)
        if over is not None:
            storage = next(s for s in self.storages if s.buffer is self.buffers[over])
            storage.grow(shape)
        elif free:
            storage = min(free, key=lambda s: s.growth(shape))
            storage.grow(shape)
        else:
            size = buffer.bytes_per_element
            new = Buffer(tuple(shape), buffer.element, "local", bytes_per_element=size)
            storage = _Storage(new, held=held)
            self.storages.append(storage)
        # Registers are not memory that others could use.
        storage.last = _ALWAYS if held else last
        self.origins[buffer] = origin
        self.buffers[buffer] = storage.buffer
        return True

    def _stage(self, stage: FusionStage, earlier: list[FusionStage]) -> list[Node] | None:
        values: dict[Var, Expr] = {}
        loops: list[For] = []
        for var in stage.variables:
            loop = self._loop(self.found.spans.get(var) or full(var), var, values)
            if loop is None:
                return None
            if loop.var.extent != 1 or loop.bounded:
                loops.append(loop)
        if loops and self.rows:
            loops[-1] = self._whole_vectors(stage, earlier, loops[-1], values)
        guards = self._guards(stage)
        if guards is None:
            return None
        if not all(loop.trips for loop in (*guards, *loops)):
            # No tile needs what the stage computes, such as a border that nothing reads.
            return []
        body = clone(stage.body, dict[Value, Value](), values)
        for node in walk(body):
            if isinstance(node, AffineAccess) and node.buffer in self.local:
                origin = self.origins[node.buffer]
                node.index = tuple(e - o for e, o in zip(node.index, origin, strict=True))
                node.buffer = self.buffers[node.buffer]
        for loop in reversed([*guards, *loops]):
            loop.body = body
            body = [loop]
        return body

    def _loop(self, span: Span, var: Var, values: dict[Var, Expr]) -> For | None:
        """The loop over what a tile needs of one variable; ``values`` says what the variable is."""
        size = fixed_extent(span, self.at, self.end)
        if size is None:
            return None
        first = span[0].substitute(self.at)
        if size > var.extent:
            # Most of the slice lies outside: count from 0.
            new = Var(var.extent)
            values[var] = Expr.of(new)
            low, high = first, first + size
            lower = (low,) if low.range()[1] > 0 else ()
            upper = (high,) if high.range()[0] < var.extent else ()
            return For(new, [], lower=lower, upper=upper)
        new = Var(size)
        values[var] = first + new
        low, high = Expr(0) - first, Expr(var.extent) - first
        return For(
            new,
            [],
            lower=(low,) if low.range()[1] > 0 else (),
            upper=(high,) if high.range()[0] < size else (),
        )

    def _whole_vectors(
        self, stage: FusionStage, earlier: list[FusionStage], loop: For, values: dict[Var, Expr]
    ) -> For:
        """The innermost loop of a stage, without bounds and remainders if nothing needs them."""
        var = stage.variables[-1]
        size = loop.var.extent
        first = values[var] - loop.var
        if loop.var not in set(values[var].variables()) or not (loop.bounded or size % ROW):
            return loop
        if loop.bounded and first.is_constant:
            # It counts from 0, and its bounds say what is needed.
            return loop
        firsts = {**values, var: first}
        rows = padded_rows(stage, earlier, size, firsts, self.origins, self.buffers)
        if rows is None:
            return loop
        for buffer, row in rows.items():
            buffer.shape = (*buffer.shape[:-1], row)
        new = Var(row_of(size))
        values[var] = first + new
        return For(new, [])

    def _guards(self, stage: FusionStage) -> list[For] | None:
        """Loops of at most one iteration: whether the tile has the constant index that is stored.

        None if stores of one stage need different ones.
        """
        found: list[For] = []
        for store in stage.stores:
            box = self.found.boxes[store.buffer]
            for place, span in zip(stage.places(store) or (), box, strict=True):
                if place.var is not None or place.whole:
                    continue
                if span[0].is_constant and span[1].is_constant:
                    continue
                low = span[0].substitute(self.at) - place.at
                high = span[1].substitute(self.end) - place.at + 1
                if low.is_constant and high.is_constant and low.const <= 0 < high.const:
                    # The tile is as long as the dimension.
                    continue
                if len(stage.stores) > 1:
                    return None
                # Iteration 0 is there if low <= constant <= high.
                found.append(For(Var(1), [], lower=(low,), upper=(high,)))
        return found
