"""Replace single ops by generated code; what the ``expand-*`` passes of this folder share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyblocks.codegen.builder import Builder, Scale, Table, Val
from polyblocks.mlir import ir

#: Takes the op and its operands; returns one value per result, or None to leave the op alone.
Expansion = Callable[[Builder, Any, Sequence[Val]], "Sequence[Val] | None"]


def expand_ops(
    module: Any,
    expansions: Mapping[str, Expansion],
    *,
    fma: bool = False,
    ldexp: bool = False,
    scale: Scale | None = None,
    table: Table | None = None,
) -> int:
    """Replace ops by name, in place, on scalars and vectors.

    Args:
        module: an MLIR module.
        expansions: op name -> how to build its replacement, called with the insertion point
            before the op. The created ops carry no fastmath flags.
        fma: whether the expansions may use fused multiply-add.
        ldexp: whether they may use LLVM's ldexp.
        scale: what they may use in its place.
        table: how they may look numbers up.

    Returns:
        How many ops were replaced.
    """
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name in expansions:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    # Constants of one block are shared; the block is kept so that its hash stays its own.
    caches: dict[int, tuple[Any, dict[tuple[object, ...], Any]]] = {}
    count = 0
    with module.context:
        for op in found:
            block = op.block
            _, cache = caches.setdefault(hash(block), (block, {}))
            with op.location, ir.InsertionPoint(op):
                builder = _builder(op, block, cache, fma, ldexp, scale, table)
                operands = [Val(builder, v, element(v.type)) for v in op.operands]
                results = expansions[op.name](builder, op, operands)
            if results is None:
                continue
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new.value)
            op.erase()
            count += 1
    return count


def _builder(
    op: Any,
    block: Any,
    cache: dict[tuple[object, ...], Any],
    fma: bool,
    ldexp: bool,
    scale: Scale | None,
    table: Table | None,
) -> Builder:
    type_ = op.results[0].type
    if not isinstance(type_, ir.VectorType):
        return Builder(None, None, block, cache, fma, ldexp, scale, table)
    scalable = tuple(type_.scalable_dims) if type_.scalable else None
    return Builder(tuple(type_.shape), scalable, block, cache, fma, ldexp, scale, table)


def element(type_: Any) -> str:
    """Name of the element type of a scalar or vector type, e.g. ``f32``."""
    return str(type_.element_type if isinstance(type_, ir.VectorType) else type_)
