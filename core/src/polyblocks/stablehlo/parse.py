"""Reading StableHLO: MLIR text, MLIR bytecode, or a portable artifact."""

from __future__ import annotations

from typing import Any

from polyblocks import mlir

#: Operations on how arrays are spread over devices say nothing on what is computed. They may stand
#: in the module in generic form, since no dialect for them is registered.
_PLACEMENT = ("sdy.",)


def parse(data: str | bytes, context: Any = None) -> Any:
    """Parse a StableHLO module.

    Args:
        data: MLIR text, MLIR bytecode, or a portable artifact (VHLO bytecode). Text with operations
            of dialects that describe sharding must hold these in generic form.
        context: the context to parse into; default: a new one.

    Returns:
        The module; operations that only say where arrays lie are gone.

    Raises:
        ValueError: it has another form; the message holds MLIR's diagnostics.
    """
    context = context or mlir.make_context(every_dialect=False)
    mlir.register_stablehlo(context)
    if isinstance(data, bytes) and _is_portable(data):
        module = mlir.parse_portable(data, context)
    else:
        # For this parse alone: later on, an unknown operation is an error.
        before = context.allow_unregistered_dialects
        context.allow_unregistered_dialects = True
        try:
            module = mlir.parse(data, context)
        finally:
            context.allow_unregistered_dialects = before
    _drop_placement(module)
    return module


def _is_portable(data: bytes) -> bool:
    """Portable artifacts are bytecode whose producer calls itself StableHLO."""
    return data.startswith(b"ML\xefR") and data[4:40].lstrip(b"\x00\x01\x0d").startswith(
        b"StableHLO"
    )


def _drop_placement(module: Any) -> None:
    """Erase the operations that only describe where arrays lie."""
    found: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name.startswith(_PLACEMENT):
            found.append(op)
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for op in found:
        if len(op.results) == len(op.operands) and not len(op.regions):
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.erase()
