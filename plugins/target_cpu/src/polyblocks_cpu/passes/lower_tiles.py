"""lower-tiles: products of tiles in the chip's instructions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import UNIT_ATTRIBUTE
from polyblocks.codegen.walk import nested
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks_cpu.instructions.tiles import PRODUCTS, ROWS, TILES, WORDS
from polyblocks_cpu.passes.tile_code import Code, Matrix, TileConfiguration

#: Loops around products that may share a configuration of the tiles.
_LOOPS = ("affine.for", "scf.for")


@dataclass(frozen=True)
class LowerTilesPass:
    """Let the loops that a unit of tiles computes be its instructions.

    Sums of 16 rows and 16 columns stay in a tile each while the unit goes through the steps, as
    many at a time as a row of a tile has words; what is left of rows, columns and steps is done in
    smaller tiles. A core's tiles are configured before the outermost loop in which their sizes
    stay the same, and released behind it.

    Before::

        affine.for %i = 0 to 16 { affine.for %j = 0 to 16 {
          %r = affine.for %k = 0 to 64 iter_args(%s = %zero) -> (f32) {
            %x = affine.load %a[%i, %k] : memref<16x64xi32>
            %y = affine.load %b[%k, %j] : memref<64x16xi32>
            %d = llvm.call_intrinsic "llvm.polyblocks.dot.tdpbf16ps"(%s, %x, %y)
            affine.yield %d : f32 }
          affine.store %r, %c[%i, %j] : memref<16x16xf32>
        } } {polyblocks.unit = "tdpbf16ps"}

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

    name: ClassVar[str] = "lower-tiles"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do.

        Raises:
            UnsupportedError: loops are marked that are no product of tiles.
        """
        if not any(unit.has_tiles for unit in context.target.matrix_units):
            return False
        marked = [op for op in nested(module.operation) if UNIT_ATTRIBUTE in op.attributes]
        with module.context, ir.Location.unknown():
            products = [_Product.of(op) for op in marked]
            code = Code(module)
            _configure(products, code)
            for product in products:
                with product.op.location, ir.InsertionPoint(product.op):
                    product.write(code)
                product.op.erase()
        return bool(products)


def _configure(products: list[_Product], code: Code) -> None:
    """Tell the chip its tiles where they do not change inside, and give them back behind that."""
    done: set[Any] = set()
    for product in products:
        if len(product.configurations) > 1:
            place = product.op
        else:
            place = _outermost(product, products)
            if place in done:
                continue
            done.add(place)
            with place.location, ir.InsertionPoint(place):
                code.configure(product.configurations[0])
        with place.location, _insertion_point_after(place):
            code.release()


def _insertion_point_after(op: Any) -> Any:
    """Where what follows an operation, which ends no block, is written."""
    operations = list(op.block.operations)
    position = next(i for i, other in enumerate(operations) if other.operation == op)
    return ir.InsertionPoint(operations[position + 1])


def _outermost(product: _Product, products: list[_Product]) -> Any:
    """The outermost loop around a product in which all products have the same tiles."""
    place = product.op
    while (parent := place.parent) is not None and parent.operation.name in _LOOPS:
        inside = [p for p in products if _is_around(parent.operation, p.op)]
        if any(p.configurations != product.configurations for p in inside):
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
class _Product:
    """One product of tiles.

    Attributes:
        op: the loop over rows.
        unit: name of the unit.
        rows, columns, steps: extents of the three loops, steps in words.
        first, second: rows and columns as matrices of words.
        sums: where the sums are stored.
    """

    op: Any
    unit: str
    rows: int
    columns: int
    steps: int
    first: Matrix
    second: Matrix
    sums: Matrix

    @classmethod
    def of(cls, op: Any) -> _Product:
        """Read the loops.

        Raises:
            UnsupportedError: they are no product of tiles.
        """
        name = op.attributes[UNIT_ATTRIBUTE].value
        loops = [op]
        for _ in range(2):
            inner = [o.operation for o in _body(loops[-1]) if o.operation.name == "affine.for"]
            if len(inner) != 1:
                raise _wrong(name, "three loops")
            loops.extend(inner)
        rows, columns, steps = (_extent(loop, name) for loop in loops)
        variables = [loop.regions[0].blocks[0].arguments[0] for loop in loops]
        dots = [o.operation for o in _body(loops[2]) if o.operation.name == "llvm.call_intrinsic"]
        stores = [o.operation for o in _body(loops[1]) if o.operation.name == "affine.store"]
        if len(dots) != 1 or len(stores) != 1 or name not in PRODUCTS:
            raise _wrong(name, "one dot product and one store")
        loads = [value.owner.operation for value in list(dots[0].operands)[1:]]
        if any(load.name != "affine.load" for load in loads):
            raise _wrong(name, "operands in memory")
        row, column, step = variables
        first = Matrix.of(loads[0], row, step)
        second = Matrix.of(loads[1], step, column)
        sums = Matrix.of(stores[0], row, column)
        product = cls(op, name, rows, columns, steps, first, second, sums)
        product.check()
        return product

    def check(self) -> None:
        """Raise an error unless its rows and tiles are in order and enough."""
        down, across = len(_parts(self.rows, ROWS)), len(_parts(self.columns, WORDS))
        if down * across + down + across > TILES:
            raise _wrong(self.unit, f"{TILES} tiles at most")
        for matrix, extent in (
            (self.first, self.steps),
            (self.second, self.columns),
            (self.sums, self.columns),
        ):
            if matrix.apart is None or (matrix.along != 1 and extent > 1):
                raise _wrong(self.unit, "neighbours in order")

    @property
    def configurations(self) -> list[TileConfiguration]:
        """The sizes of the tiles: for as many steps as a row has words, and for what is left."""
        whole, rest = divmod(self.steps, WORDS)
        return [self._configuration(n) for n in ([WORDS] if whole else []) + ([rest] * bool(rest))]

    def _configuration(self, steps: int) -> TileConfiguration:
        down, across = _parts(self.rows, ROWS), _parts(self.columns, WORDS)
        sums = [(rows, columns) for rows in down for columns in across]
        operands = [(rows, steps) for rows in down] + [(steps, columns) for columns in across]
        return TileConfiguration((*sums, *operands))

    def write(self, code: Code) -> None:
        """Write its instructions before the insertion point."""
        configurations = self.configurations
        whole = self.steps // WORDS
        if whole:
            if len(configurations) > 1:
                code.configure(configurations[0])
            self._sums(lambda tile, *_: code.zero(tile))
            with code.loop(whole) as group:
                self._step(code, code.scaled(group, WORDS))
            self._sums(lambda tile, *at: code.store(tile, self.sums, *at))
        if self.steps % WORDS:
            if len(configurations) > 1:
                code.configure(configurations[1])
            if whole:
                self._sums(lambda tile, *at: code.load(tile, self.sums, *at))
            else:
                self._sums(lambda tile, *_: code.zero(tile))
            self._step(code, code.number(whole * WORDS))
            self._sums(lambda tile, *at: code.store(tile, self.sums, *at))

    def _sums(self, act: Any) -> None:
        """Do something for each tile of sums: its number, its first row and its first column."""
        for tile, (down, across) in enumerate(self._places()):
            act(tile, down * ROWS, across * WORDS)

    def _places(self) -> Iterator[tuple[int, int]]:
        down, across = len(_parts(self.rows, ROWS)), len(_parts(self.columns, WORDS))
        return itertools.product(range(down), range(across))

    def _step(self, code: Code, step: Any) -> None:
        """Load operands and multiply them: each as soon as both of them are there."""
        down, across = len(_parts(self.rows, ROWS)), len(_parts(self.columns, WORDS))
        rows, columns = down * across, down * across + down
        for i, j in self._places():
            if j == 0:
                code.load(rows + i, self.first, i * ROWS, step)
            if i == 0:
                code.load(columns + j, self.second, step, j * WORDS)
            code.multiply(self.unit, i * across + j, rows + i, columns + j)


def _body(loop: Any) -> Any:
    return loop.regions[0].blocks[0].operations


def _extent(loop: Any, name: str) -> int:
    """The iterations of a loop from 0 on."""
    bounds = []
    for bound in ("lowerBoundMap", "upperBoundMap"):
        results = ir.AffineMapAttr(loop.attributes[bound]).value.results
        if len(results) != 1 or not isinstance(results[0], ir.AffineConstantExpr):
            raise _wrong(name, "loops of fixed length")
        bounds.append(results[0].value)
    if bounds[0] != 0:
        raise _wrong(name, "loops from 0 on")
    return int(bounds[1])


def _wrong(name: str, wanted: str) -> UnsupportedError:
    return UnsupportedError(
        f"internal error: loops of the matrix unit '{name}' must be a product of tiles with "
        f"{wanted}; please report this program"
    )
