"""Contractions by matrix units: which ones there are, and the kernels that could compute them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd, lcm, prod
from typing import Any

from polyblocks.affine.access import address, stride_along
from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.factors import ELEMENTS, factors_of
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Nest, Node, Op
from polyblocks.codegen.gpu.mapping.contraction import TiledKernel, extent
from polyblocks.codegen.gpu.matrix.fragments import (
    ACCESS_BYTES,
    PHASE_BYTES,
    TILE,
    Steps,
    has_tiles,
    outers_of,
    steps_given,
    steps_of,
)
from polyblocks.target import (
    AsynchronousCopies,
    BoundedLoads,
    MatrixUnit,
    Multiprocessor,
    TileLoads,
)

#: Warps of a block along rows and along columns.
_WARPS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (2, 4), (4, 2))
#: Rows and columns of a warp.
_HEIGHTS = (16, 32, 48, 64, 80, 96, 128)
_WIDTHS = (16, 32, 64, 128)
#: Sums of a warp's tile for each lane, at most: what is left of the registers are operands.
_SUMS = 128
#: Calls of a unit one after the other for which the operands are copied at once.
_CALLS = (1, 2, 4)
#: Such calls, at most, where a tile has whole windows; and tiles that have them together.
_CALLS_OF_WINDOWS = 9
#: Tiles of each operand that are in shared memory: one is used and the others are filled; with
#: copies that take no registers there can be several of these.
_STAGES = (3, 4, 2)
#: How elements of an operand follow each other in memory, the best way last.
_PREFERRED = ("", "step", "outer", "steps")
#: Registers that the addresses of operands take where tiles are read by columns.
_ADDRESSES = 4
#: Products of a unit that go on while the operands of the one behind them come from shared memory,
#: where copies go through registers.
AHEAD = 4
#: Instructions that find a loop's variable for a step, where it depends on the thread.
_DECODED = 40
#: Registers for what divisions leave unfinished.
_DIVIDED = 12
#: Registers for what copies and loops need, beside what every kernel has.
_OTHER = 16
#: Registers that loads and places of tiles take that are written out one after the other.
_SEVERAL_TILES = 24
#: dtype of operands -> bytes.
_BYTES = {"float16": 2, "bfloat16": 2, "int8": 1, "tfloat32": 4}

#: Warps of a block, units of a warp, calls of a unit, and stages.
Tiling = tuple[tuple[int, int], tuple[int, int], int, int]


@dataclass(frozen=True)
class Product:
    """The product in a nest that a matrix unit computes.

    Attributes:
        parts: of the nest.
        operands: of rows, and of columns.
        unit: that multiplies them.
        steps: how those of a unit are given out to the lanes.
        order: the loops over all steps, the one that is run through first last.
        along: along what each operand's elements follow each other in memory, a piece at a time:
            ``steps``, ``outer`` (its rows or columns); or ``step``: steps follow each other, but
            no piece of them can be loaded at once; or nothing.
        linear: whether the address of each operand's elements is that of the first step and the
            number of the step.
        aligned: whether each operand's pieces are at multiples of their size, if its buffer is.
        window: steps of a window, all but those of the outermost loop, which places in memory
            follow evenly; 1 if that is not so.
        conditions: dimensions that the conditions of each operand's load are about.
        on_the_way: what each operand's elements are rounded by, see
            :class:`polyblocks.affine.contraction.factors.Factors`.
    """

    parts: Contraction
    operands: tuple[Operand, Operand]
    unit: MatrixUnit
    steps: Steps
    order: list[Var]
    along: tuple[str, str]
    linear: tuple[bool, bool]
    aligned: tuple[bool, bool]
    window: int
    conditions: tuple[int, int]
    on_the_way: tuple[tuple[Op, ...], tuple[Op, ...]] = ((), ())

    @property
    def element(self) -> str:
        """The type of an element in shared memory."""
        return ELEMENTS[self.unit.operands]


def products_of(parts: Contraction, units: Sequence[MatrixUnit]) -> list[Product]:
    """The units that can compute a contraction, see :func:`factors_of`."""
    factors = factors_of(parts)
    if factors is None:
        return []
    rows, columns = factors.rows, factors.columns
    size = _BYTES[factors.dtype]
    pair = (rows, columns)
    piece = ACCESS_BYTES // size

    def ways(order: list[Var]) -> tuple[str, str]:
        return _along(parts, rows, order, piece), _along(parts, columns, order, piece)

    order = max(_orders(parts), key=lambda o: sum(_PREFERRED.index(way) for way in ways(o)))
    along = ways(order)
    aligned = [_is_aligned(parts, o, order, way, piece) for o, way in zip(pair, along, strict=True)]
    linear = [_runs_on(o, order) == len(order) for o in pair]
    found = []
    for unit in units:
        if not factors.computed_by(unit):
            continue
        steps = steps_given(unit, size)
        if steps is not None:
            found.append(
                Product(
                    *(parts, pair, unit, steps, order, along),
                    linear=(linear[0], linear[1]),
                    aligned=(aligned[0], aligned[1]),
                    window=_window(pair, along, order),
                    conditions=(_conditions(rows), _conditions(columns)),
                    on_the_way=factors.on_the_way,
                )
            )
    return found


@dataclass(eq=False)
class MatrixKernel(TiledKernel):
    """A kernel whose warps compute tiles of a contraction by a matrix unit.

    ``of_thread`` and ``across`` are those of the sums: of each lane, and the lanes that have
    different ones.

    Attributes:
        product: what the unit computes.
        warps: of a block along rows and along columns.
        of_warp: units of a warp along rows and along columns.
        calls: of a unit one after the other that a stage of the operands is for.
        stages: tiles of each operand that are in shared memory.
        copies: how they get there past the registers; None if they cannot.
        bounded: loads that find zeros beyond the end of a buffer; None if there are none.
        loads: how tiles of both operands are read; None if each lane reads its own chunks.
        fence: see :class:`polyblocks.target.Multiprocessor`.
    """

    product: Product = field(default=None)  # type: ignore[assignment]
    warps: tuple[int, int] = (1, 1)
    of_warp: tuple[int, int] = (1, 1)
    calls: int = 1
    stages: int = 2
    copies: AsynchronousCopies | None = None
    bounded: BoundedLoads | None = None
    loads: TileLoads | None = None
    fence: str = ""

    @property
    def tiling(self) -> Tiling:
        """The tiling that :func:`matrix_kernel` was given."""
        return self.warps, self.of_warp, self.calls, self.stages

    @property
    def unit(self) -> MatrixUnit:
        """The matrix unit."""
        return self.product.unit

    @property
    def element_bytes(self) -> int:
        """Of an element of an operand in shared memory."""
        return _BYTES[self.unit.operands]

    @property
    def piece(self) -> int:
        """Elements that a thread copies at once."""
        return ACCESS_BYTES // self.element_bytes

    @property
    def beside(self) -> int:
        """Pieces of a row (or column) that neighbouring threads copy, and that swizzles mix.

        A line of the caches, or the part of one that rows are a multiple of.
        """
        return gcd(PHASE_BYTES // ACCESS_BYTES, self.depth // self.piece)

    def window(self, operand: Operand) -> int:
        """Steps of a window, if every thread knows the places in it of the steps that it loads.

        It loads them one by one: all steps of a row (or column), whose places come again after some
        tiles; or a part of them, of tiles that are made of windows. 1: it does not know them.
        """
        window = self.product.window
        length = self.tile[operand.side]
        if window == 1 or along(self, operand) or self.counts[2] % lcm(window, self.depth):
            return 1
        if self.has_rows_of_threads(operand):
            return window if lcm(window, self.depth) // self.depth <= _CALLS_OF_WINDOWS else 1
        if self.threads % length:
            return 1
        groups = self.threads // length
        return window if self.depth % (groups * lcm(window, self.piece)) == 0 else 1

    def has_rows_of_threads(self, operand: Operand) -> bool:
        """Whether there is a row (or column) of a tile for each thread, or several."""
        return self.tile[operand.side] % self.threads == 0

    @property
    def period(self) -> int:
        """Tiles after which the steps have the same places in windows again, if that matters."""
        window = max(self.window(o) for o in self.product.operands)
        return lcm(window, self.depth) // self.depth if window > 1 else 1

    def shape(self, operand: Operand) -> tuple[int, ...]:
        """Stages, rows or columns, and steps; of an operand that is read by columns transposed.

        Pieces are swizzled, see :mod:`polyblocks.codegen.gpu.matrix_emission.swizzles`.
        """
        length = self.tile[operand.side]
        if self.is_transposed(operand):
            return self.stages, self.depth, length
        return self.stages, length, self.depth

    @property
    def together(self) -> int:
        """Pieces of a row (or column) that the lanes of a warp read together."""
        if self.loads is not None:
            return 1
        steps = self.product.steps
        chunk = steps.chunk * self.element_bytes
        low = [bit for bit in steps.bits if chunk << bit < PHASE_BYTES]
        return max(1, (chunk << len(low)) // ACCESS_BYTES)

    def is_transposed(self, operand: Operand) -> bool:
        """Whether an operand is stored as it lies in memory, step by step, and read by columns."""
        length = self.tile[operand.side]
        return (
            self.loads is not None
            and along(self, operand) == "outer"
            and self.element_bytes == 2
            # As many pieces as the swizzle tells apart.
            and length % (TILE * self.piece) == 0
        )

    def is_asynchronous(self, operand: Operand) -> bool:
        """Whether an operand is copied past the registers."""
        if self.copies is None or self.copies.bytes != ACCESS_BYTES:
            return False
        side = operand.side
        by_rows = along(self, operand) == "steps" or self.is_transposed(operand)
        return by_rows and self.product.aligned[side] and not self.product.on_the_way[side]

    @property
    def copies_through_registers(self) -> bool:
        """Whether no operand is copied past the registers."""
        return not any(self.is_asynchronous(o) for o in self.product.operands)

    def element_of(self, operand: Operand) -> Any:
        """The MLIR type of an element of an operand's tile."""
        from polyblocks.mlir import ir

        return ir.Type.parse(self.product.element)

    def shared_bytes(self) -> int:
        """Bytes of the operands' tiles."""
        return sum(prod(self.shape(o)) for o in self.product.operands) * self.element_bytes

    @property
    def copied_bytes(self) -> int:
        """Of memory that a step of a tile takes."""
        pairs = zip(self.product.operands, self.tile[:2], strict=True)
        return sum(o.load.buffer.bytes_per_element * size for o, size in pairs)

    def pieces(self, operand: Operand) -> int:
        """Vector chunks of an operand's tile; a thread copies one at a time."""
        length, chunk = self.tile[operand.side], self.piece
        if along(self, operand) == "step":
            return self.depth * length
        if along(self, operand) == "outer" and not self.is_transposed(operand):
            return self.depth // 2 * (length // chunk)
        return self.depth // chunk * length

    @property
    def has_idle_copiers(self) -> bool:
        """Whether some threads have nothing to copy in a round, where copies go through registers.

        Copies are then branches, past which products are not moved: loads are waited for.
        """
        return any(
            self.pieces(o) % self.threads
            for o in self.product.operands
            if not self.is_asynchronous(o)
        )

    def of_places(self, operand: Operand) -> int:
        """Registers of a place in memory that is not a constant away from that of other rows.

        An address, and a number for each dimension that a condition is about.
        """
        side = operand.side
        order = (self.parts.rows, self.parts.columns)[side]
        if len(order) == 1 and self.counts[side] % self.tile[side] == 0:
            return 0
        return 2 + self.product.conditions[side]

    def copying(self, operand: Operand) -> int:
        """Instructions of a thread, about, that copy a tile of an operand.

        A place is an addition, and a condition a sum and a comparison for each of its dimensions;
        what is loaded one by one is put together.
        """
        rounds = -(-self.pieces(operand) // self.threads)
        side = operand.side
        place = self.of_places(operand) + 3 * self.product.conditions[side]
        if self.is_asynchronous(operand):
            return rounds * (1 + place)
        if along(self, operand):
            return rounds * (3 + place)
        if (window := self.window(operand)) > 1:
            # Loads at constant distances of each other, under conditions that do not change.
            return rounds * (1 + self.piece + self.piece // 2) + min(window, self.depth)
        # The loops' variables of each step are divisions, of each thread if it has its own steps.
        same = self.product.linear[side] or self.has_rows_of_threads(operand)
        inside = 0 if same else _DECODED * (len(self.product.order) - 1)
        return rounds * (1 + self.piece * (3 + place + inside))

    @property
    def reading(self) -> int:
        """Instructions of a thread that read the operands of a tile, and that multiply them."""
        assert self.unit.fragments is not None
        first, second, _ = self.unit.fragments
        rows, columns = self.of_warp
        if self.loads is not None:
            words = [f.elements * self.element_bytes // 4 for f in (first, second)]
            return self.calls * ((rows * words[0] + columns * words[1]) // 4 + rows * columns)
        lines = rows * len(outers_of(first)) + columns * len(outers_of(second))
        return self.calls * (lines * self.product.steps.chunks + rows * columns)

    def read_early(self, side: int) -> int:
        """Units along rows (or columns) whose operands are read during the call before.

        See :class:`polyblocks.codegen.gpu.matrix_emission.register_pipeline.RegisterPipeline`.
        """
        units = self.of_warp[side]
        if self.loads is not None:
            return units
        each = 1 if side else self.of_warp[1]
        return min(units, -(-AHEAD // each))

    @property
    def words(self) -> int:
        """32-bit registers: sums, operands of this call and the next one, copies, and addresses."""
        r, c = self.of_thread
        assert self.unit.fragments is not None
        first, second, sums = self.unit.fragments
        through = self.copies_through_registers
        held = 0
        for side, fragment in enumerate((first, second)):
            units = self.of_warp[side]
            # Registers that are tuples of several have to be put together.
            times = 3 if fragment.register_bits > 32 else 2
            tuples = units + self.read_early(side) if through else times * units
            held += tuples * fragment.elements * self.element_bytes // 4
        copied = 0
        for operand in self.product.operands:
            # Swizzles make addresses differ by more than a constant: those of calls, or of columns.
            mixed = max(1, self.beside * self.piece // self.unit.shape[2])
            copied += _ADDRESSES if self.is_transposed(operand) else mixed
            rounds = -(-self.pieces(operand) // self.threads)
            if (window := self.window(operand)) > 1:
                # Each element and each condition has a register; all have one place.
                copied += rounds * self.piece + window + self.of_places(operand)
                continue
            copied += rounds * self.of_places(operand)
            if self.is_asynchronous(operand):
                continue
            pairs = along(self, operand) == "outer" and not self.is_transposed(operand)
            # Rounded when they have come.
            words = 4 * operand.load.buffer.bytes_per_element // self.element_bytes
            if not along(self, operand):
                # Steps that are loaded one by one, for several rows each, have their own places,
                # and each takes divisions to find.
                copied += self.depth + _DIVIDED
            single = along(self, operand) == "step"
            copied += rounds * (1 if single else 2 * words if pairs else words)
        # Where the sums of an iteration are others than those of the one before, tuples leave gaps.
        gaps = r * c // 4 if sums.register_width > 1 and not through else 0
        several = _SEVERAL_TILES if self.period > 1 else 0
        return r * c + gaps + held + copied + several + _OTHER


def _conditions(operand: Operand) -> int:
    return len({frozenset(e.variables()) for e in operand.load.where})


def along(kernel: MatrixKernel, operand: Operand) -> str:
    """See :class:`Product`."""
    return kernel.product.along[operand.side]


def _orders(parts: Contraction) -> Iterator[list[Var]]:
    """Orders of the loops over steps: as they are, and with each of them as the innermost one."""
    order = [v for v in parts.reduction.order if v.extent > 1] or parts.reduction.order
    yield order
    for var in order[:-1]:
        yield [*(v for v in order if v is not var), var]


def _runs_on(operand: Operand, order: list[Var], piece: int = 0) -> int:
    """Of how many of the innermost loops the steps follow each other in memory.

    With a ``piece``, conditions may be about the last loop where they hold for whole
    pieces.
    """
    load, run, step = operand.load, 0, 1
    fixed = {
        v
        for e in load.where
        for v in e.variables()
        if not piece or v is not order[-1] or not _holds_by_pieces(e, v, piece)
    }
    for var in reversed(order):
        if var in fixed or stride_along(load.buffer, load.index, var) != step:
            break
        run, step = run + 1, step * var.extent
    return run


def _holds_by_pieces(condition: Expr, var: Var, piece: int) -> bool:
    """Whether an expression is negative for all steps of a piece or for none."""
    begins = all(factor % piece == 0 for atom, factor in condition.terms if atom is not var)
    ends = condition.coefficient(var) == -1 and (condition.const + 1) % piece == 0
    return begins and ends and var.extent % piece == 0


def _window(pair: tuple[Operand, Operand], along: tuple[str, str], order: list[Var]) -> int:
    apart = [o for o, way in zip(pair, along, strict=True) if not way]
    for operand in apart:
        fixed = {v for e in operand.load.where for v in e.variables()}
        place = address(operand.load.buffer, operand.load.index)
        if order[0] in fixed or place.coefficient(order[0]) is None:
            return 1
    return extent(order[1:]) if apart else 1


def _along(parts: Contraction, operand: Operand, order: list[Var], piece: int) -> str:
    run = _runs_on(operand, order, piece)
    if run and extent(order[-run:]) % piece == 0:
        return "steps"
    load = operand.load
    side = (parts.rows if operand.of_rows else parts.columns)[-1]
    fixed = any(side in set(e.variables()) for e in load.where)
    if not fixed and side.extent % piece == 0 and stride_along(load.buffer, load.index, side) == 1:
        return "outer"
    # Each of a thread's many rows would be a place of its own.
    apart = load.where or len(parts.rows if operand.of_rows else parts.columns) > 1
    return "step" if run and not apart else ""


def _is_aligned(
    parts: Contraction, operand: Operand, order: list[Var], way: str, piece: int
) -> bool:
    load = operand.load
    if not way or any(_begins_inside(b) for b in (load.buffer, load.buffer.base)):
        return False
    side = parts.rows if operand.of_rows else parts.columns
    along = order[-_runs_on(operand, order, piece) :] if way == "steps" else side[-1:]
    at = address(load.buffer, load.index)
    others = [factor for atom, factor in at.terms if atom not in along]
    return at.const % piece == 0 and all(factor % piece == 0 for factor in others)


def _begins_inside(buffer: Buffer) -> bool:
    """Whether a buffer's first element may not be where its memory begins."""
    type_ = buffer.memref_type
    return type_ is not None and type_.get_strides_and_offset()[1] != 0


def product_of(nest: Nest, units: Sequence[MatrixUnit]) -> Product | None:
    """The product of a nest for the first of some units that supports it, or None."""
    parts = facts_of(nest).contraction
    if parts is None or not parts.reduction.loops or not any(u.fragments for u in units):
        return None
    return next(iter(products_of(parts, units)), None)


def matrix_kernels(
    nest: Nest, outer: list[For], body: list[Node], chip: Multiprocessor, found: Product
) -> Iterator[MatrixKernel]:
    """Candidates for a nest whose product a unit computes."""
    m, n, _ = found.unit.shape
    # Of so few columns that they are those of one unit there is a tile of one.
    few = extent(found.parts.columns) <= n
    widths = (n,) if few else _WIDTHS
    for warps, height, width, calls in product(_WARPS, _HEIGHTS, widths, calls_of(found)):
        if height % m or width % n or height * width > _SUMS * chip.warp:
            continue
        given = (nest, outer, body, chip, found, warps, (height // m, width // n), calls)
        kernel = matrix_kernel(*given)
        if kernel.depth % kernel.piece or kernel.threads > chip.threads_per_block:
            continue
        if not _fits(kernel):
            continue
        # Where each lane reads its own chunks, those of other counts of calls take all registers.
        many = calls not in _CALLS
        if many and (kernel.loads is None or max(map(kernel.window, found.operands)) == 1):
            continue
        if kernel.period > 1 and not _is_straight(kernel):
            continue
        if kernel.copies_through_registers:
            # Places in shared memory come again when those in windows do.
            kernel.stages = next((s for s in (2, 3) if kernel.period % s == 0), 2)
            yield kernel
        else:
            yield from (matrix_kernel(*given, stages) for stages in _STAGES)


def calls_of(found: Product) -> list[int]:
    """Calls of a unit for which operands are copied at once, of any kernel."""
    windows = lcm(found.window, found.unit.shape[2]) // found.unit.shape[2]
    return sorted({*_CALLS, windows if windows <= _CALLS_OF_WINDOWS else 1})


def matrix_kernel(
    nest: Nest,
    outer: list[For],
    body: list[Node],
    chip: Multiprocessor,
    found: Product,
    warps: tuple[int, int],
    of_warp: tuple[int, int],
    calls: int,
    stages: int = 2,
) -> MatrixKernel:
    """The kernel with these numbers of warps, units of a warp, and stages."""
    assert found.unit.fragments is not None
    sums = found.unit.fragments[2]
    own = (len(outers_of(sums)), len(steps_of(sums)))
    m, n, _ = found.unit.shape
    kernel = MatrixKernel(
        nest, outer, [f.var for f in outer], body, warp=chip.warp, parts=found.parts,
        of_thread=(of_warp[0] * own[0], of_warp[1] * own[1]),
        across=(warps[0] * m // own[0], warps[1] * n // own[1]),
        depth=calls * found.unit.shape[2], banks=chip.banks,
    )  # fmt: skip
    kernel.product, kernel.warps, kernel.of_warp = found, warps, of_warp
    kernel.calls, kernel.stages, kernel.copies = calls, stages, chip.asynchronous_copies
    kernel.fence = chip.scheduling_fence
    kernel.bounded = chip.bounded_loads
    loads = chip.tile_loads
    if loads is not None and has_tiles(found.unit, loads, of_warp, kernel.element_bytes):
        kernel.loads = loads
    return kernel


def _is_straight(kernel: MatrixKernel) -> bool:
    """Whether copies go through registers and have no branches, past which no load is moved.

    Nor has a tile rows beyond the end, whose few blocks let the assembler spend all registers.
    """
    branches = kernel.has_idle_copiers or kernel.ragged or kernel.bounded is None
    return kernel.copies_through_registers and not branches


def _fits(kernel: MatrixKernel) -> bool:
    """Whether less than half of a tile is beyond the end, but for the smallest ones."""
    sizes = zip(kernel.counts, kernel.tile, kernel.unit.shape, strict=True)
    return all(size < 2 * count or size <= smallest for count, size, smallest in sizes)
