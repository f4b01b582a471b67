"""Replacing ops of the torch dialect by ops on builtin tensors, before torch-mlir's pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from polyblocks import mlir

_VTENSOR = re.compile(r"!torch\.vtensor<\[([\d,]*)\],(.+)>")


def load_conversion_dialect(context: Any) -> None:
    """Load the dialect ``torch_c``, which has no Python binding: a pass that depends on it does."""
    ir = mlir.ir
    with context, ir.Location.unknown():
        empty = ir.Module.create()
        loader = mlir.passmanager.PassManager.parse(
            "builtin.module(torch-func-backend-type-conversion)"
        )
        loader.run(empty.operation)


def op_name(op: Any) -> str:
    """``aten.op`` or ``aten.op.overload``, as torch-mlir spells it."""
    name: str = op.operation.name
    if name == "torch.operator":
        name = str(op.operation.attributes["name"]).strip('"')
    return name.removeprefix("torch.")


def find_ops(module: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """The ops of a module that are to be replaced by others on builtin tensors, in order.

    If there are any, the casts between both kinds of tensors can be made from then on.
    """
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if wanted(op):
            found.append(op)
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        load_conversion_dialect(module.context)
    return found


def builtin_type(kind: Any) -> Any | None:
    """The builtin tensor type of a ``!torch.vtensor``; None for another type."""
    match = _VTENSOR.fullmatch(str(kind))
    if match is None:
        return None
    extents = "".join(f"{extent}x" for extent in match.group(1).split(",") if extent)
    element = re.sub(r"\b[su]i(\d+)\b", r"i\1", match.group(2))
    return mlir.ir.Type.parse(f"tensor<{extents}{element}>", context=kind.context)


def tensor_type(kind: Any) -> Any:
    """The builtin tensor type of what is a ``!torch.vtensor``."""
    found = builtin_type(kind)
    assert found is not None, f"{kind} is no tensor with a shape"
    return found


def to_builtin(value: Any) -> Any:
    """A ``!torch.vtensor`` as a builtin tensor, at the current insertion point."""
    cast = mlir.ir.Operation.create(
        "torch_c.to_builtin_tensor", results=[builtin_type(value.type)], operands=[value]
    )
    return cast.result


def from_builtin(value: Any, kind: Any) -> Any:
    """A builtin tensor as the ``!torch.vtensor`` type ``kind``, at the current insertion point."""
    cast = mlir.ir.Operation.create("torch_c.from_builtin_tensor", results=[kind], operands=[value])
    return cast.result
