"""The block of a contraction that is computed: its place, buffers, and code for its elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from polyblocks.affine.analysis.reductions import identities
from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.step_loops import Place
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Op, Store, Value, clone
from polyblocks.affine.ops import Ops
from polyblocks.target import TileUnit

#: Bytes of a buffer that has room on a thread's stack.
STACK_BYTES = 256 * 1024


@dataclass(frozen=True)
class Blocks:
    """Blocks of one side in one piece.

    Attributes:
        extent: all rows or columns.
        size: of a block.
        loop: counts the piece's blocks.
        number: the block's number, of those of all pieces.
        tile: rows or columns of a register tile.
    """

    extent: int
    size: int
    loop: Var
    number: Expr
    tile: int

    @classmethod
    def of(cls, extent: int, size: int, piece: Expr, pieces: int, tile: int) -> Blocks:
        count = -(-extent // size)
        mine = Var(-(-count // pieces))
        return cls(extent, size, mine, piece * mine.extent + Expr.of(mine), tile)

    @property
    def count(self) -> int:
        return -(-self.extent // self.size)

    @property
    def begin(self) -> Expr:
        """The first row or column of the block."""
        return self.number * self.size

    def around(self, body: list[Node]) -> list[Node]:
        """The loop over the blocks of the piece."""
        upper: tuple[Expr, ...] = ()
        if self.number.range()[1] >= self.count:
            upper = (Expr(self.count) - self.number + Expr.of(self.loop),)
        return body if self.loop.extent == 1 and not upper else [For(self.loop, body, upper=upper)]

    def remaining(self) -> Expr:
        """Rows or columns from the block's first to the matrix edge."""
        return Expr(self.extent) - self.begin

    def full_steps(self, step: int = 1) -> tuple[Var, tuple[Expr, ...]]:
        """Variable and bounds over whole steps of ``step`` elements."""
        upper = () if self.extent % self.size == 0 else (self.remaining() // step,)
        return Var(self.size // step), upper

    def at_end(self, body: list[Node]) -> list[Node]:
        """Code for the block with the last rows or columns only."""
        if self.count == 1:
            return body
        return [For(Var(1), body, upper=(self.number - (self.count - 2),))]

    def partial_step(self, step: int) -> tuple[int, int]:
        """Where whole steps end in the last block, and the elements behind them."""
        rest = self.extent % step
        return self.extent - rest - (self.count - 1) * self.size, rest


def _digits(number: Expr, variables: list[Var]) -> Place:
    """The values of variables whose number, the last one counting fastest, is given."""
    place: Place = {}
    for var in reversed(variables[1:]):
        place[var], number = number % var.extent, number // var.extent
    return place | dict.fromkeys(variables[:1], number)


class Frame:
    """A block of rows and columns, of a piece that a thread computes.

    Args:
        product: the contraction.
        tiling: its sizes.
        width: lanes of one vector.
        inside: whether it is in a tile, which one thread computes.

    Attributes:
        thread, turn: variables of the threads, and of the pieces of one thread.
        over: pieces from a thread's first one to the last of all.
        place: the batch's variables in terms of these.
        row, column: blocks of the two sides.
        by_pass: whether columns are copied in each pass over a block.
        one_pass: whether there is only one pass over the steps.
        allocas: buffers of a thread.
    """

    def __init__(self, product: FlatProduct, tiling: Tiling, width: int, inside: bool) -> None:
        self.product = product
        self.tiling = tiling
        self.width = width
        self.inside = inside
        self.batch = prod(v.extent for v in product.batch)
        pieces = tiling.row_pieces * tiling.column_pieces
        # Threads have equal shares of the pieces, one after the other.
        total = self.batch * pieces
        shares = min(tiling.threads, total)
        self.thread, self.turn = Var(shares, "t"), Var(-(-total // shares))
        at = Expr.of(self.thread) * self.turn.extent + self.turn
        self.over = (Expr(total) - Expr.of(self.thread) * self.turn.extent,)
        self.place = _digits(at // pieces, product.batch)
        down, across = tiling.row_pieces, tiling.column_pieces
        row, column = at % pieces // across, at % pieces % across
        self.row = Blocks.of(product.row.extent, tiling.row_block, row, down, tiling.rows)
        self.column = Blocks.of(
            product.column.extent, tiling.column_block, column, across, tiling.lanes
        )
        self.by_pass = tiling.by_pass(product)
        self.one_pass = tiling.depth >= product.step.extent
        self.allocas: list[Node] = []

    def local(self, shape: tuple[int, ...], type_: object) -> Buffer:
        """A buffer of one thread: on its stack, or a part of one for all threads."""
        size = element_bytes(type_)
        if prod(shape) * size <= STACK_BYTES or self.inside:
            buffer = Buffer(shape, type_, "local", bytes_per_element=size)
            self.allocas.append(Alloca(buffer))
            return buffer
        return Buffer((self.thread.extent, *shape), type_, "alloc", bytes_per_element=size)

    def index(self, buffer: Buffer, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where an element of the thread's part of a buffer is."""
        return index if buffer.kind == "local" else (Expr.of(self.thread), *index)

    def store(self, value: Value, buffer: Buffer, index: tuple[Expr, ...]) -> Store:
        """Store to the thread's part of a buffer."""
        return Store(value, buffer, self.index(buffer, index))

    def load(self, out: list[Node], buffer: Buffer, index: tuple[Expr, ...]) -> Value:
        """Load from the thread's part of a buffer."""
        value = Value(buffer.element)
        out.append(Load(value, buffer, self.index(buffer, index)))
        return value

    def before(self, row: Expr, column: Expr) -> tuple[list[Node], dict[Value, Value]]:
        """The code before the reduction for one element, and its values."""
        values: dict[Value, Value] = {}
        return clone(self.product.before, values, self.at(row, column)), values

    def at(self, row: Expr, column: Expr) -> Place:
        """Values of the variables at an element of the block."""
        return {
            **self.place,
            self.product.row: self.row.begin + row,
            self.product.column: self.column.begin + column,
        }

    def neutral(self) -> list[Op] | None:
        """Constants that partial results start with, if these may be joined in any order."""
        combiners = self.product.combiners
        return None if combiners is None else identities(combiners)

    def with_inits(
        self, found: list[Value], values: dict[Value, Value], out: list[Node]
    ) -> list[Value]:
        """Results of an element joined to what its sums start with."""
        combiners = self.product.combiners
        assert combiners is not None
        inits = [values.get(v, v) for v in self.product.inits]
        ops = Ops(out)
        return [
            ops.like(op, [init, value])
            for op, init, value in zip(combiners, inits, found, strict=True)
        ]

    def in_panels(self, tile: Callable[[Expr, int], list[Node]]) -> list[Node]:
        """Code for each panel of a block, and for the remaining columns.

        Args:
            tile: gets the panel, and how many columns of it.
        """
        lanes = self.tiling.lanes
        panel, ends = self.column.full_steps(lanes)
        out: list[Node] = []
        if panel.extent:
            out.append(For(panel, tile(Expr.of(panel), lanes), upper=ends))
        begin, rest = self.column.partial_step(lanes)
        if rest:
            out += self.column.at_end(tile(Expr(begin // lanes), rest))
        return out

    def in_heights(self, tile: Callable[[Expr, int], list[Node]]) -> list[Node]:
        """Code for the rows of each register tile of a block, and for the remaining rows.

        Args:
            tile: gets the first row, and how many.
        """
        height = self.tiling.rows
        number, ends = self.row.full_steps(height)
        out: list[Node] = []
        if number.extent:
            out.append(For(number, tile(Expr.of(number) * height, height), upper=ends))
        begin, rest = self.row.partial_step(height)
        if rest:
            out += self.row.at_end(tile(Expr(begin), rest))
        return out

    @property
    def in_tiles(self) -> bool:
        """Whether a matrix unit computes it in tiles of its own."""
        return isinstance(self.product.unit, TileUnit)


def like(values: list[Value]) -> list[Value]:
    """New values of the same types."""
    return [Value(v.type) for v in values]
