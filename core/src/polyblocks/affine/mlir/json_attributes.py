"""JSON values as MLIR attributes, and back."""

from __future__ import annotations

from typing import Any

from polyblocks.mlir import ir


def to_attribute(value: Any) -> Any:
    """JSON values (no null) as an MLIR attribute; needs a current context.

    Raises:
        TypeError: a value of another kind.
    """
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, list):
        return ir.ArrayAttr.get([to_attribute(v) for v in value])
    if isinstance(value, dict):
        return ir.DictAttr.get({key: to_attribute(v) for key, v in value.items()})
    raise TypeError(
        f"an attribute holds dictionaries, lists, strings, numbers and booleans, not a "
        f"{type(value).__name__}; convert it before"
    )


def from_attribute(attribute: Any) -> Any:
    """The inverse of :func:`to_attribute`."""
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [from_attribute(a) for a in attribute]
    return {a.name: from_attribute(a.attr) for a in attribute}


def read_json(module: Any, name: str, default: Any) -> Any:
    """A module's attribute as JSON values; ``default`` if it has none of this name."""
    attributes = module.operation.attributes
    return from_attribute(attributes[name]) if name in attributes else default


def write_json(module: Any, name: str, value: Any) -> None:
    """JSON values as an attribute of a module."""
    with module.context:
        module.operation.attributes[name] = to_attribute(value)
