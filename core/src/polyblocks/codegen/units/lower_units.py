"""lower-units: what matrix units multiply, in the instructions that a target's plugin brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from polyblocks.attributes import MULTIPLY
from polyblocks.codegen.units.tile_products import TileProduct
from polyblocks.codegen.walk import nested
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir


class TileEmitter(Protocol):
    """Instructions of a target's units that multiply tiles. One object serves one module."""

    def begin(self, module: Any, products: Sequence[TileProduct]) -> None:
        """Write what a module's products share: before them all are emitted.

        Args:
            module: the MLIR module; may get globals.
            products: those of the emitter's units, in their order.
        """

    def emit(self, product: TileProduct) -> None:
        """Write one product at the insertion point; its operation is erased afterwards.

        Raises:
            UnsupportedError: the unit cannot.
        """


@dataclass(frozen=True)
class LowerUnitsPass:
    """Let products of tiles be the instructions of the target's matrix units.

    A target puts this pass into its S4.

    Before::

        "polyblocks.multiply"(%a, %b, %c, %i) {unit = "mytiles", shape = array<i64: 16, 16, 8>,
          accumulator = affine_map<(d0)[s0, s1] -> (d0 * 16 + s0, s1)>, a = ..., b = ...}

    After: whatever the emitter of the unit ``mytiles`` writes.

    Attributes:
        tiles: makes the emitter of a module's products of tiles; by name of the unit.
    """

    name: ClassVar[str] = "lower-units"

    tiles: Mapping[str, Any]

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do.

        Raises:
            UnsupportedError: there is no emitter for a unit, or it refuses.
        """
        found = [op for op in nested(module.operation) if op.name == MULTIPLY]
        if not found:
            return False
        with module.context, ir.Location.unknown():
            products = [TileProduct.of(op) for op in found]
            emitters: dict[Any, TileEmitter] = {}
            for product in products:
                if product.unit not in self.tiles:
                    raise UnsupportedError(
                        f"the target '{context.target.name}' describes the matrix unit "
                        f"'{product.unit}' and brings no instructions of it; expected one of: "
                        f"{', '.join(self.tiles) or 'none'}"
                    )
                make = self.tiles[product.unit]
                if make not in emitters:
                    emitters[make] = make()
                    own = [p for p in products if self.tiles.get(p.unit) is make]
                    emitters[make].begin(module, own)
            for product in products:
                with product.op.location, ir.InsertionPoint(product.op):
                    emitters[self.tiles[product.unit]].emit(product)
                product.op.erase()
        return True
