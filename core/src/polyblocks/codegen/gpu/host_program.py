"""Evaluates what is left of ``@main`` when everything that computes is in kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.mlir.source import of_text
from polyblocks.codegen.memory import VIEWS
from polyblocks.errors import UnsupportedError

#: Launches of one call of a program; a loop that needs more belongs on the device.
MOST_LAUNCHES = 20_000


@dataclass(frozen=True)
class Address:
    """A place in memory that the caller provides.

    Attributes:
        kind: ``argument``, ``workspace``, or ``constant`` for a ``memref.global``.
        number: of the argument; 0 for others.
        offset: bytes behind the beginning.
        name: of the ``memref.global``.
    """

    kind: str
    number: int = 0
    offset: int = 0
    name: str = ""


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.remui": lambda a, b: a % b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": min,
    "arith.maxui": max,
}
_CASTS = frozenset({"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui"})


class HostProgram:
    """Runs ``@main`` with addresses for its arguments and numbers for everything else.

    Args:
        main: the ``func.func``.
        arguments: what its arguments are.
        launch: called with every ``gpu.launch_func`` in the order of execution; it may ask
            :meth:`value` for its operands.
    """

    def __init__(
        self, main: Any, arguments: Mapping[Any, Address], launch: Callable[[Any], None]
    ) -> None:
        self._block = main.regions[0].blocks[0]
        self._values: dict[Any, Any] = dict(arguments)
        self._launch = launch
        self._launches = 0

    def run(self) -> None:
        """Execute the function.

        Raises:
            UnsupportedError: it does something that only running it would tell; names the op.
        """
        self._run_block(self._block)

    def value(self, value: Any) -> int | float | Address:
        """The constant or address of an SSA value."""
        found: int | float | Address = self._values[value]
        return found

    def _run_block(self, block: Any) -> list[Any]:
        """Execute a block; returns what its terminator hands on."""
        for op in block.operations:
            op = op.operation
            if op.name in ("func.return", "scf.yield", "affine.yield"):
                return [self._values[v] for v in op.operands]
            self._run(op)
        return []

    def _run(self, op: Any) -> None:
        from polyblocks.mlir import ir

        name = op.name
        if name == "gpu.launch_func":
            self._launches += 1
            if self._launches > MOST_LAUNCHES:
                raise unsupported(op, f"a program of more than {MOST_LAUNCHES} launches")
            self._launch(op)
        elif name == "arith.constant":
            self._values[op.results[0]] = _number(op.attributes["value"])
        elif name in _INTEGER:
            a, b = (self._values[v] for v in op.operands)
            self._values[op.results[0]] = _INTEGER[name](a, b)
        elif name in _CASTS:
            self._values[op.results[0]] = self._values[op.operands[0]]
        elif name == "affine.apply":
            map_ = ir.AffineMapAttr(op.attributes["map"]).value
            (self._values[op.results[0]],) = self._apply(map_, op.operands)
        elif name == "memref.get_global":
            symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value
            self._values[op.results[0]] = Address("constant", name=symbol)
        elif name in VIEWS:
            self._values[op.results[0]] = self._view(op)
        elif name in ("scf.for", "affine.for"):
            self._loop(op)
        elif name == "scf.if":
            self._branch(op)
        elif name == "gpu.wait":
            pass  # launches of one stream are in order
        else:
            raise unsupported(op, f"{name} outside of kernels")

    def _view(self, op: Any) -> Address:
        """The address of a view. Offsets in a memref's type are added by who uses the memref."""
        from polyblocks.mlir import ir

        source = self._values[op.operands[0]]
        if op.name == "memref.view":
            shift = self._values[op.operands[1]]
            return Address(source.kind, source.number, source.offset + shift, source.name)
        offset = ir.MemRefType(op.results[0].type).get_strides_and_offset()[1]
        if offset == ir.ShapedType.get_dynamic_stride_or_offset():
            raise unsupported(op, "a view of a kernel's argument whose beginning is not a constant")
        return Address(source.kind, source.number, source.offset, source.name)

    def _apply(self, map_: Any, operands: Any) -> list[int]:
        values = [self._values[v] for v in operands]
        dims, symbols = values[: map_.n_dims], values[map_.n_dims :]
        return [_evaluate(e, dims, symbols) for e in map_.results]

    def _loop(self, op: Any) -> None:
        from polyblocks.mlir import ir

        if op.name == "scf.for":
            low, high, step = (self._values[v] for v in list(op.operands)[:3])
            carried = [self._values[v] for v in list(op.operands)[3:]]
        else:
            lower = ir.AffineMapAttr(op.attributes["lowerBoundMap"]).value
            upper = ir.AffineMapAttr(op.attributes["upperBoundMap"]).value
            operands = list(op.operands)
            first, second = lower.n_inputs, lower.n_inputs + upper.n_inputs
            low = max(self._apply(lower, operands[:first]))
            high = min(self._apply(upper, operands[first:second]))
            step = ir.IntegerAttr(op.attributes["step"]).value
            carried = [self._values[v] for v in operands[second:]]
        block = op.regions[0].blocks[0]
        arguments = list(block.arguments)
        for i in range(low, high, step):
            for argument, value in zip(arguments, [i, *carried], strict=True):
                self._values[argument] = value
            carried = self._run_block(block)
        for result, value in zip(op.results, carried, strict=True):
            self._values[result] = value

    def _branch(self, op: Any) -> None:
        taken = op.regions[0 if self._values[op.operands[0]] else 1]
        blocks = list(taken.blocks)
        handed = self._run_block(blocks[0]) if blocks else []
        for result, value in zip(op.results, handed, strict=True):
            self._values[result] = value


def unsupported(op: Any, what: str, kernel: str | None = None) -> UnsupportedError:
    """An error that names the framework's op, its source line and the kernel, as far as known."""
    named = of_text(str(op.location))
    source, location = named[0] if named else (None, None)
    where = f" in kernel '{kernel}'" if kernel else ""
    return UnsupportedError(
        f"{what}{where} is not supported on this target", op=source, location=location or None
    )


def _number(attribute: Any) -> int | float:
    from polyblocks.mlir import ir

    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
        number: int | float = attribute.value
        return number
    raise ValueError(f"{attribute} is no number that a kernel could be given")


def _evaluate(expr: Any, dims: list[int], symbols: list[int]) -> int:
    from polyblocks.mlir import ir

    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    a = _evaluate(expr.lhs, dims, symbols)
    b = _evaluate(expr.rhs, dims, symbols)
    if isinstance(expr, ir.AffineAddExpr):
        return a + b
    if isinstance(expr, ir.AffineMulExpr):
        return a * b
    if isinstance(expr, ir.AffineModExpr):
        return a % b
    return -(-a // b) if isinstance(expr, ir.AffineCeilDivExpr) else a // b
