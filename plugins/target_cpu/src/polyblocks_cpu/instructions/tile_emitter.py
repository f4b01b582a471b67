"""Products of tiles (Intel's AMX) in instructions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.units.tile_products import TileProduct, index_constant
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks_cpu.instructions.tile_code import Code, TileConfiguration
from polyblocks_cpu.instructions.tiles import ROWS, TILES, WORDS

#: Loops around products that may share a configuration of the tiles.
_LOOPS = ("affine.for", "scf.for")


class TileInstructions:
    """Emits products of tiles; see :class:`polyblocks.codegen.units.lower_units.TileEmitter`.

    Sums of 16 rows and 16 columns stay in a tile each while the unit goes through the steps, as
    many at a time as a row of a tile has words; what is left of rows, columns and steps is done in
    smaller tiles. A core's tiles are configured before the outermost loop in which their sizes
    stay the same, and released behind it.

    Before::

        "polyblocks.multiply"(%a, %b, %c, ...) {unit = "tdpbf16ps", shape = array<i64: 16, 16, 64>}

    After (``%p...`` are pointers into the buffers)::

        llvm.call_intrinsic "llvm.x86.ldtilecfg"(%configuration)
        llvm.call_intrinsic "llvm.x86.tilezero"(%t0)
        scf.for %g = %c0 to %c4 step %c1 {
          llvm.call_intrinsic "llvm.x86.tileloadd64"(%t1, %pa, %c256)
          llvm.call_intrinsic "llvm.x86.tileloadd64"(%t2, %pb, %c64)
          llvm.call_intrinsic "llvm.x86.tdpbf16ps"(%t0, %t1, %t2)
        }
        llvm.call_intrinsic "llvm.x86.tilestored64"(%t0, %pc, %c64)
        llvm.call_intrinsic "llvm.x86.tilerelease"()
    """

    def __init__(self) -> None:
        self._code: Code | None = None

    def begin(self, module: Any, products: Sequence[TileProduct]) -> None:
        """Tell the chip its tiles where they do not change inside, give them back behind that.

        Raises:
            UnsupportedError: a product needs more tiles than there are.
        """
        self._code = Code(module)
        in_tiles = [_Tiled(product) for product in products]
        for each in in_tiles:
            each.check()
        _configure(in_tiles, self._code)

    def emit(self, product: TileProduct) -> None:
        """Write the instructions of one product."""
        assert self._code is not None
        _Tiled(product).write(self._code)


def _configure(products: list[_Tiled], code: Code) -> None:
    done: set[Any] = set()
    for each in products:
        op = each.product.op
        if len(each.configurations) > 1:
            place = op
        else:
            place = _outermost(each, products)
            if place in done:
                continue
            done.add(place)
            with place.location, ir.InsertionPoint(place):
                code.configure(each.configurations[0])
        with place.location, _insertion_point_after(place):
            code.release()


def _insertion_point_after(op: Any) -> Any:
    """Where what follows an operation, which ends no block, is written."""
    operations = list(op.block.operations)
    position = next(i for i, other in enumerate(operations) if other.operation == op)
    return ir.InsertionPoint(operations[position + 1])


def _outermost(tiled: _Tiled, products: list[_Tiled]) -> Any:
    """The outermost loop around a product in which all products have the same tiles."""
    place = tiled.product.op
    while (parent := place.parent) is not None and parent.operation.name in _LOOPS:
        inside = [p for p in products if _is_around(parent.operation, p.product.op)]
        if any(p.configurations != tiled.configurations for p in inside):
            break
        place = parent.operation
    return place


def _is_around(loop: Any, op: Any) -> bool:
    while op is not None:
        if op.operation == loop:
            return True
        op = op.parent
    return False


def _parts(extent: int, size: int) -> list[int]:
    """An extent in whole parts, and what is left."""
    return [min(size, extent - first) for first in range(0, extent, size)]


@dataclass(frozen=True)
class _Tiled:
    """A product, cut into the chip's tiles."""

    product: TileProduct

    def check(self) -> None:
        """Raise an error unless there are tiles for all of it at once."""
        down, across = self._counts
        if down * across + down + across > TILES:
            raise UnsupportedError(
                f"internal error: a product of the matrix unit '{self.product.unit}' needs "
                f"{down * across + down + across} tiles, expected {TILES} at most; please report "
                "this program"
            )

    @property
    def _counts(self) -> tuple[int, int]:
        """Tiles of rows, and of columns."""
        return -(-self.product.rows // ROWS), -(-self.product.columns // WORDS)

    @property
    def configurations(self) -> list[TileConfiguration]:
        """The sizes of the tiles: for as many steps as a row has words, and for what is left."""
        whole, rest = divmod(self.product.steps, WORDS)
        return [self._configuration(n) for n in ([WORDS] if whole else []) + ([rest] * bool(rest))]

    def _configuration(self, steps: int) -> TileConfiguration:
        down, across = _parts(self.product.rows, ROWS), _parts(self.product.columns, WORDS)
        sums = [(rows, columns) for rows in down for columns in across]
        operands = [(rows, steps) for rows in down] + [(steps, columns) for columns in across]
        return TileConfiguration((*sums, *operands))

    def write(self, code: Code) -> None:
        """Write its instructions at the insertion point."""
        configurations = self.configurations
        sums = self.product.accumulator
        whole, rest = divmod(self.product.steps, WORDS)
        if whole:
            if len(configurations) > 1:
                code.configure(configurations[0])
            self._sums(lambda tile, *_: code.zero(tile))
            with code.loop(whole) as group:
                self._step(code, code.scaled(group, WORDS))
            self._sums(lambda tile, *at: code.store(tile, sums, *at))
        if rest:
            if len(configurations) > 1:
                code.configure(configurations[1])
            if whole:
                self._sums(lambda tile, *at: code.load(tile, sums, *at))
            else:
                self._sums(lambda tile, *_: code.zero(tile))
            self._step(code, index_constant(whole * WORDS))
            self._sums(lambda tile, *at: code.store(tile, sums, *at))

    def _sums(self, act: Any) -> None:
        """Do something for each tile of sums: its number, its first row and its first column."""
        for tile, (down, across) in enumerate(self._places()):
            act(tile, down * ROWS, across * WORDS)

    def _places(self) -> Iterator[tuple[int, int]]:
        down, across = self._counts
        return itertools.product(range(down), range(across))

    def _step(self, code: Code, step: Any) -> None:
        """Load operands and multiply them: each as soon as both of them are there."""
        down, across = self._counts
        rows, columns = down * across, down * across + down
        for i, j in self._places():
            if j == 0:
                code.load(rows + i, self.product.a, i * ROWS, step)
            if i == 0:
                code.load(columns + j, self.product.b, step, j * WORDS)
            code.multiply(self.product.unit, i * across + j, rows + i, columns + j)
