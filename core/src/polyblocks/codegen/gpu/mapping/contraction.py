"""Reductions whose operands are read again and again, tile by tile: as contractions are.

Of the outer loops of such a nest some move one part of the operands, the *rows*, others the other
part, the *columns*; the rest is a *batch*. A block computes a tile of rows and columns, step by
step along the reduction: its threads copy what a step needs to shared memory, then every thread
adds to the elements that it keeps in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Var
from polyblocks.affine.model import Buffer, For, IndirectLoad, Load, Nest, Node, Op, Store
from polyblocks.codegen.gpu.mapping.distribution import chain_of, fastest_last
from polyblocks.codegen.gpu.mapping.kernel import DistributedLoop, Kernel

#: Elements of a thread along rows and along columns.
_OF_THREAD = (1, 2, 4, 8)
#: Threads along columns and along rows.
_COLUMNS = (16, 32)
_ROWS = (4, 8, 16)
#: Steps of the reduction of which the operands are copied at once.
_DEPTHS = (1, 2, 4, 8, 16)
#: Values of all operands for one row or column that are copied at once, at most.
_COPIED = 32


@dataclass(frozen=True)
class Operand:
    """A load in the reduction that has a tile in shared memory.

    Attributes:
        load: one of the loads of these elements.
        of_rows: whether rows move it; else columns do.
        steps_first: whether neighbours in memory are neighbouring steps of the reduction.
    """

    load: Load
    of_rows: bool
    steps_first: bool


@dataclass(eq=False)
class Contraction:
    """The parts of a nest.

    Attributes:
        batch, rows, columns: the outer variables, the fastest one last.
        reduction: the chain of loops that carry values.
        before, after: straight-line code around these.
        operands: what is copied to shared memory.
    """

    batch: list[Var]
    rows: list[Var]
    columns: list[Var]
    reduction: DistributedLoop
    before: list[Node]
    after: list[Node]
    operands: list[Operand]

    def operand(self, load: Load) -> Operand | None:
        """The operand whose elements a load reads."""
        for operand in self.operands:
            if operand.load.buffer is load.buffer and operand.load.index == load.index:
                return operand
        return None


@dataclass(eq=False)
class TiledKernel(Kernel):
    """A kernel whose blocks compute tiles of a contraction.

    Attributes:
        parts: of the nest.
        of_thread: rows and columns of a thread.
        across: threads of a block along rows and along columns.
        depth: steps of the reduction whose operands are in shared memory at a time.
        banks: of the shared memory.
    """

    parts: Contraction = field(default=None)  # type: ignore[assignment]
    of_thread: tuple[int, int] = (1, 1)
    across: tuple[int, int] = (1, 1)
    depth: int = 1
    banks: int = 32

    @property
    def tile(self) -> tuple[int, ...]:
        """Rows, columns and steps of a block."""
        (r, c), (rows, columns) = self.of_thread, self.across
        return r * rows, c * columns, self.depth

    @property
    def counts(self) -> tuple[int, int, int]:
        """Rows, columns and steps that there are."""
        parts = self.parts
        return extent(parts.rows), extent(parts.columns), parts.reduction.trips

    @property
    def grid(self) -> tuple[int, int]:
        """Tiles along rows and along columns."""
        (rows, columns, _), (height, width, _) = self.counts, self.tile
        return -(-rows // height), -(-columns // width)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.across)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return extent(self.parts.batch) * prod(self.grid)

    @property
    def ragged(self) -> bool:
        """Whether tiles reach beyond the last row or column."""
        return any(n % size for n, size in zip(self.counts[:2], self.tile[:2], strict=True))

    def shape(self, operand: Operand) -> tuple[int, int]:
        """Steps and elements of an operand's tile; rows have a pitch that keeps banks apart.

        Threads that store neighbouring steps are a row apart, and several elements of each step
        are stored at once.
        """
        length = self.tile[0 if operand.of_rows else 1]
        pad = max(1, self.banks // self.depth) if operand.steps_first and self.depth > 1 else 0
        return self.depth, length + pad

    def shared_bytes(self) -> int:
        """Bytes of the operands' tiles."""
        return sum(
            prod(self.shape(o)) * o.load.buffer.bytes_per_element for o in self.parts.operands
        )


def extent(variables: list[Var]) -> int:
    """Values of variables together."""
    return prod(v.extent for v in variables)


def contraction_of(outer: list[For], body: list[Node]) -> Contraction | None:
    """The parts of a nest; None if its operands are not moved by different loops."""
    loops = [i for i, n in enumerate(body) if isinstance(n, For)]
    if len(loops) != 1:
        return None
    (at,) = loops
    loop = body[at]
    assert isinstance(loop, For)
    # Every thread does all steps of its elements in their order.
    chain = chain_of(loop)
    reduction = DistributedLoop(chain, [f.var for f in chain])
    if not loop.inits or any(f.bounded for f in (*outer, *chain)):
        return None
    if not all(isinstance(n, (Op, Load)) for n in reduction.body):
        return None
    before, after = body[:at], body[at + 1 :]
    if not all(isinstance(n, (Op, Load, IndirectLoad, Store)) for n in (*before, *after)):
        return None
    if any(isinstance(n, (IndirectLoad, Store)) for n in before):
        return None
    written = {n.buffer.base for n in after if isinstance(n, Store)}
    loads = [n for n in reduction.body if isinstance(n, Load)]
    if any(n.buffer.base in written for n in loads):
        return None
    order = fastest_last([f.var for f in outer], body)
    return _parts(order, reduction, loads, before, after)


def _parts(
    order: list[Var],
    reduction: DistributedLoop,
    loads: list[Load],
    before: list[Node],
    after: list[Node],
) -> Contraction | None:
    moved = {n: {v for e in n.index for v in e.variables()} & set(order) for n in loads}
    sets = [s for s in moved.values() if s]
    if not sets:
        return None
    common = set.intersection(*sets)
    groups: list[set[Var]] = []
    for one in sets:
        rest = one - common
        if rest:
            touching = [g for g in groups if g & rest]
            groups = [g for g in groups if not g & rest] + [rest.union(*touching)]
    if len(groups) != 2:
        return None
    last = next((v for v in reversed(order) if v in groups[0] | groups[1]), None)
    first, second = groups if last in groups[1] else groups[::-1]
    rows, columns = [v for v in order if v in first], [v for v in order if v in second]
    operands: dict[tuple[Buffer, object], Operand] = {}
    for load in loads:
        if moved[load] - common:
            step = stride_along(load.buffer, load.index, reduction.order[-1])
            fastest = (rows if moved[load] & first else columns)[-1]
            along = stride_along(load.buffer, load.index, fastest)
            operand = Operand(load, bool(moved[load] & first), along != 1 and bool(step))
            operands.setdefault((load.buffer, load.index), operand)
    batch = [v for v in order if v not in first | second]
    return Contraction(batch, rows, columns, reduction, before, after, list(operands.values()))


def tiled_kernels(
    nest: Nest, outer: list[For], body: list[Node], warp: int, banks: int, most: int
) -> Iterator[TiledKernel]:
    """Candidates for a nest; none if it is no contraction. ``most`` are threads of a block."""
    parts = contraction_of(outer, body)
    if parts is None:
        return
    order = [f.var for f in outer]
    widest = max(sum(o.of_rows for o in parts.operands), sum(not o.of_rows for o in parts.operands))
    for depth in _DEPTHS:
        if depth > 1 and (depth * widest > _COPIED or depth > parts.reduction.trips):
            continue
        for r, c, rows, columns in product(_OF_THREAD, _OF_THREAD, _ROWS, _COLUMNS):
            kernel = TiledKernel(
                nest, outer, order, body, warp=warp, parts=parts, of_thread=(r, c),
                across=(rows, columns), depth=depth, banks=banks,
            )  # fmt: skip
            if kernel.threads <= most and _fits(kernel):
                yield kernel


def _fits(kernel: TiledKernel) -> bool:
    """Whether less than half of a tile is beyond the end."""
    pairs = zip(kernel.counts[:2], kernel.tile[:2], kernel.of_thread, strict=True)
    return all(size < 2 * n or per == 1 for n, size, per in pairs)
