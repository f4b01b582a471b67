"""Replacing ops of the torch dialect by ops on builtin tensors, before torch-mlir's pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Lowering:
    """How an op becomes others on builtin tensors.

    Attributes:
        replace: replaces one op by them.
        applies: whether it is for an op; asked before any is replaced.
    """

    replace: Callable[[Any], None]
    applies: Callable[[Any], bool] = lambda op: True


def lower_ops(module: Any, lowerings: Mapping[str, Lowering]) -> None:
    """Replace ops of a module of the torch dialect, in place.

    Args:
        module: of ops of the dialect, also inside loops and branches.
        lowerings: by ``aten.op`` or ``aten.op.overload``, as torch-mlir spells it.
    """
    wanted = {f"torch.{name}": lowering for name, lowering in lowerings.items()}
    found: list[tuple[Any, Lowering]] = []
    on = mlir.ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        name = op.name
        if name == "torch.operator":
            name = op.attributes["name"].value
        lowering = wanted.get(name)
        if lowering is not None and lowering.applies(op):
            found.append((op, lowering))
        return on

    module.operation.walk(visit)
    for op, lowering in found:
        lowering.replace(op)


def find_ops(module: Any, names: frozenset[str]) -> list[Any]:
    """The operations of a module that have one of some names, in order."""
    found: list[Any] = []
    on = mlir.ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        if op.name in names:
            found.append(op)
        return on

    module.operation.walk(visit)
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
