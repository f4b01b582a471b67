"""lower-units: what matrix units multiply, in the instructions that a target's plugin brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

from polyblocks.affine.ops import INTRINSIC
from polyblocks.attributes import MULTIPLY
from polyblocks.codegen.units.tile_products import TileProduct
from polyblocks.codegen.walk import nested
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.target import DOT_PREFIX, TargetDescription

T = TypeVar("T")


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


class DotEmitter(Protocol):
    """Instructions of one of a target's units of vectors."""

    def emit(self, target: TargetDescription, operands: Sequence[Any]) -> Any:
        """Write one dot product at the insertion point.

        Args:
            target: the chip.
            operands: accumulator, first and second word: scalars, or vectors of any length.

        Returns:
            The new accumulator.
        """


@dataclass(frozen=True)
class LowerUnitsPass:
    """Let multiplications be the instructions of the target's matrix units.

    A target puts this pass into its S4.

    Before::

        "polyblocks.multiply"(%a, %b, %c, %i) {unit = "mytiles", shape = array<i64: 16, 16, 8>,
          accumulator = affine_map<(d0)[s0, s1] -> (d0 * 16 + s0, s1)>, a = ..., b = ...}

        %r = llvm.call_intrinsic "llvm.polyblocks.dot.mydot"(%s, %x, %y) : ...

    After: whatever the emitters of the units ``mytiles`` and ``mydot`` write.

    Attributes:
        tiles: name of a unit of tiles -> makes the emitter of a module's products.
        dots: name of a unit of vectors -> its emitter.
    """

    name: ClassVar[str] = "lower-units"

    tiles: Mapping[str, Callable[[], TileEmitter]] = field(default_factory=dict)
    dots: Mapping[str, DotEmitter] = field(default_factory=dict)

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do.

        Raises:
            UnsupportedError: there is no emitter for a unit, or it refuses.
        """
        found = list(nested(module.operation))
        products = [op for op in found if op.name == MULTIPLY]
        dots = [(op, name) for op in found if (name := _unit_of(op))]
        with module.context, ir.Location.unknown():
            self._lower_tiles(module, [TileProduct.of(op) for op in products], context)
            for op, name in dots:
                emitter = _known(self.dots, name, context)
                with op.location, ir.InsertionPoint(op):
                    new = emitter.emit(context.target, list(op.operands))
                op.results[0].replace_all_uses_with(new)
                op.erase()
        return bool(products or dots)

    def _lower_tiles(self, module: Any, products: Sequence[TileProduct], context: Any) -> None:
        makers = [_known(self.tiles, product.unit, context) for product in products]
        emitters = {make: make() for make in dict.fromkeys(makers)}
        for make, emitter in emitters.items():
            emitter.begin(
                module, [p for p, other in zip(products, makers, strict=True) if other is make]
            )
        for product, make in zip(products, makers, strict=True):
            with product.op.location, ir.InsertionPoint(product.op):
                emitters[make].emit(product)
            product.op.erase()


def _unit_of(op: Any) -> str:
    """The unit of vectors that an intrinsic stands for; empty for any other operation."""
    if op.name != INTRINSIC:
        return ""
    name = str(op.attributes["intrin"].value)
    return name.removeprefix(DOT_PREFIX) if name.startswith(DOT_PREFIX) else ""


def _known(emitters: Mapping[str, T], name: str, context: Any) -> T:
    """The emitter of a unit.

    Raises:
        UnsupportedError: the target brings no such emitter.
    """
    if name not in emitters:
        raise UnsupportedError(
            f"the target '{context.target.name}' describes the matrix unit '{name}' and brings no "
            f"instructions of it; expected one of: {', '.join(emitters) or 'none'}"
        )
    return emitters[name]
