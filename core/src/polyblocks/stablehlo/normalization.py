"""Normalization over a batch, defined by other operations of StableHLO."""

from __future__ import annotations

from math import prod
from typing import Any

from polyblocks.mlir import ir
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import integer
from polyblocks.stablehlo.expand import define
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule


class _Writer:
    """StableHLO text over an array ``t`` and its features ``f``."""

    def __init__(self, lowering: Lowering, op: Any, x: Array) -> None:
        feature = integer(op, "feature_index")
        self.array, self.element = str(op.operands[0].type), x.element.name
        self.features = f"tensor<{x.shape[feature]}x{self.element}>"
        self.feature = feature
        self.others = [d for d in range(x.rank) if d != feature]
        self.count = prod(x.shape[d] for d in self.others)
        self.epsilon = float(ir.FloatAttr(op.attributes["epsilon"]).value)
        self.lines = [self._constant("zero", 0.0, f"tensor<{self.element}>")]

    def _constant(self, name: str, value: float, kind: str) -> str:
        return f"%{name} = stablehlo.constant dense<{value!r}> : {kind}".replace("e-", "E-")

    def constant(self, name: str, value: float) -> None:
        """A number for every feature."""
        self.lines.append(self._constant(name, value, self.features))

    def op(self, name: str, operation: str, *operands: str, whole: bool = False) -> None:
        """An elementwise operation, on features or on the whole array."""
        kind = self.array if whole else self.features
        listed = ", ".join(f"%{o}" for o in operands)
        self.lines.append(f"%{name} = stablehlo.{operation} {listed} : {kind}")

    def spread(self, name: str, operand: str) -> None:
        """A number for every feature as a whole array."""
        self.lines.append(
            f"%{name} = stablehlo.broadcast_in_dim %{operand}, dims = [{self.feature}] : "
            f"({self.features}) -> {self.array}"
        )

    def total(self, name: str, operand: str) -> None:
        """The sum for every feature."""
        self.lines.append(
            f"%{name} = stablehlo.reduce(%{operand} init: %zero) applies stablehlo.add across "
            f"dimensions = {self.others} : ({self.array}, tensor<{self.element}>) -> "
            f"{self.features}"
        )

    def text(self, arguments: str, results: str) -> str:
        """The function; the letters say which are whole arrays (t) and which features (f)."""
        kinds = {"t": self.array, "f": self.features}
        named = [part.split(":") for part in arguments.split()]
        returned = [part.split(":") for part in results.split()]
        head = ", ".join(f"%{name}: {kinds[kind]}" for name, kind in named)
        types = ", ".join(kinds[kind] for _, kind in returned)
        values = ", ".join(f"%{name}" for name, _ in returned)
        body = "\n".join(self.lines)
        return f"func.func @main({head}) -> ({types}) {{\n{body}\nreturn {values} : {types}\n}}"


def _normalize(writer: _Writer) -> None:
    """``y = (x - mean) * rsqrt(variance + epsilon) * scale + offset``."""
    writer.constant("epsilon", writer.epsilon)
    writer.op("shifted", "add", "variance", "epsilon")
    writer.op("inverse", "rsqrt", "shifted")
    writer.op("factor", "multiply", "inverse", "scale")
    writer.spread("factors", "factor")
    writer.spread("offsets", "offset")
    writer.op("scaled", "multiply", "centered", "factors", whole=True)
    writer.op("y", "add", "scaled", "offsets", whole=True)


def _center(writer: _Writer) -> None:
    writer.spread("means", "mean")
    writer.op("centered", "subtract", "x", "means", whole=True)


@rule("stablehlo.batch_norm_inference")
def _inference(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    writer = _Writer(lowering, op, arguments[0])
    _center(writer)
    _normalize(writer)
    text = writer.text("x:t scale:f offset:f mean:f variance:f", "y:t")
    return define(lowering, text, arguments)


@rule("stablehlo.batch_norm_training")
def _training(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    writer = _Writer(lowering, op, arguments[0])
    writer.constant("count", float(writer.count))
    writer.total("sum", "x")
    writer.op("mean", "divide", "sum", "count")
    _center(writer)
    writer.op("squares", "multiply", "centered", "centered", whole=True)
    writer.total("squared", "squares")
    writer.op("variance", "divide", "squared", "count")
    _normalize(writer)
    text = writer.text("x:t scale:f offset:f", "y:t mean:f variance:f")
    return define(lowering, text, arguments)


@rule("stablehlo.batch_norm_grad")
def _gradient(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    """With n = centered / deviation: ``scale / deviation * (g - mean(g) - n * mean(g n))``."""
    writer = _Writer(lowering, op, arguments[0])
    writer.constant("count", float(writer.count))
    writer.constant("epsilon", writer.epsilon)
    _center(writer)
    writer.op("shifted", "add", "variance", "epsilon")
    writer.op("inverse", "rsqrt", "shifted")
    writer.spread("inverses", "inverse")
    writer.op("normal", "multiply", "centered", "inverses", whole=True)
    writer.op("products", "multiply", "g", "normal", whole=True)
    writer.total("d_scale", "products")
    writer.total("d_offset", "g")
    writer.op("mean_product", "divide", "d_scale", "count")
    writer.op("mean_g", "divide", "d_offset", "count")
    writer.spread("mean_products", "mean_product")
    writer.spread("mean_gs", "mean_g")
    writer.op("along", "multiply", "normal", "mean_products", whole=True)
    writer.op("less", "subtract", "g", "mean_gs", whole=True)
    writer.op("rest", "subtract", "less", "along", whole=True)
    writer.op("factor", "multiply", "scale", "inverse")
    writer.spread("factors", "factor")
    writer.op("d_x", "multiply", "factors", "rest", whole=True)
    text = writer.text("x:t scale:f mean:f variance:f g:t", "d_x:t d_scale:f d_offset:f")
    return define(lowering, text, arguments)
