"""Elements of a module's constants."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.element import printed
from polyblocks.affine.model import Buffer
from polyblocks.mlir import ir

#: Larger constants are left in memory.
MAX_CONSTANT = 4096


def global_elements(module: Any, op: Any, buffer: Buffer) -> list[Any] | None:
    """Attributes of the elements of a small constant, in row-major order.

    One stands for all where they are equal, however many there are.

    Args:
        module: that has the constant.
        op: a ``memref.get_global``.
        buffer: its result.
    """
    if any(e < 0 for e in buffer.shape):
        return None
    symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    for other in module.body.operations:
        o = other.operation
        if o.name == "memref.global" and o.attributes["sym_name"].value == symbol:
            if "constant" not in o.attributes or "initial_value" not in o.attributes:
                return None
            return _elements_of(o.attributes["initial_value"], buffer)
    return None


def _elements_of(attribute: Any, buffer: Buffer) -> list[Any] | None:
    text = printed(buffer.element)
    element = buffer.element
    if not isinstance(attribute, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)):
        return None
    if attribute.is_splat and buffer.numel:
        return [attribute.get_splat_value()]
    # The bindings cannot read the elements of 16-bit floats one by one.
    if text in ("f16", "bf16") or buffer.numel > MAX_CONSTANT:
        return None
    values = [attribute[i] for i in range(buffer.numel)]
    if text in ("f32", "f64"):
        return [ir.FloatAttr.get(element, float(v)) for v in values]
    if text.startswith("i"):
        return [ir.IntegerAttr.get(element, int(v)) for v in values]
    return None
