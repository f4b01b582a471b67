"""Views of buffers as index maps: reshapes and slices are accesses, not copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyblocks.affine.expr import Expr
from polyblocks.mlir import ir

#: Operations that give another view of a buffer, or the buffer itself.
VIEWS = {
    "builtin.unrealized_conversion_cast",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.memory_space_cast",
    "memref.reinterpret_cast",
    "memref.reshape",
    "memref.subview",
    "memref.transpose",
    "memref.view",
}

IndexMap = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]


def view_index(op: Any, exprs: Mapping[Any, Expr]) -> IndexMap | None:
    """From an index into the view to the index into what is viewed; None if it is not affine.

    Args:
        op: one of :data:`VIEWS`.
        exprs: what is known of values at which views begin.
    """
    source, result = op.operands[0].type, op.results[0].type
    if not isinstance(source, ir.MemRefType) or not isinstance(result, ir.MemRefType):
        return None
    if not source.has_static_shape or not result.has_static_shape:
        return None
    if op.name == "memref.cast":
        return lambda index: index
    if op.name in ("memref.collapse_shape", "memref.expand_shape"):
        groups = [[int(i) for i in g] for g in ir.ArrayAttr(op.attributes["reassociation"])]
        if op.name == "memref.collapse_shape":
            return _collapse(groups, list(source.shape))
        return _expand(groups, list(result.shape))
    if op.name == "memref.subview":
        return _subview(op, source, result, exprs)
    return None


def _collapse(groups: list[list[int]], shape: list[int]) -> IndexMap:
    def resolve(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        out = [Expr(0)] * len(shape)
        for group, expr in zip(groups, index, strict=True):
            rest = expr
            for dim in reversed(group):
                # The outermost one needs no mod: the index is in bounds.
                out[dim] = rest if dim == group[0] else rest % shape[dim]
                rest = rest // shape[dim]
        return tuple(out)

    if not groups:
        # A buffer of one element as a scalar.
        return lambda index: tuple(Expr(0) for _ in shape)
    return resolve


def _expand(groups: list[list[int]], shape: list[int]) -> IndexMap:
    def resolve(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        out = []
        for group in groups:
            total = Expr(0)
            for dim in group:
                total = total * shape[dim] + index[dim]
            out.append(total)
        return tuple(out)

    return resolve


def _subview(op: Any, source: Any, result: Any, exprs: Mapping[Any, Expr]) -> IndexMap | None:
    given = list(op.operands)[1:]
    if len(given) != ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[1]:
        return None
    if not all(v in exprs for v in given):
        return None
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    values = iter(exprs[v] for v in given)
    offsets = [
        next(values) if o == dynamic else Expr(o)
        for o in ir.DenseI64ArrayAttr(op.attributes["static_offsets"])
    ]
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    strides = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    kept = _kept_dimensions(sizes, list(result.shape))
    if kept is None:
        return None

    def resolve(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        out = list(offsets)
        for expr, dim in zip(index, kept, strict=True):
            out[dim] = out[dim] + expr * strides[dim]
        return tuple(out)

    return resolve


def _kept_dimensions(sizes: list[int], shape: list[int]) -> list[int] | None:
    """The dimensions that a rank-reducing slice keeps; None if ambiguous."""
    if len(sizes) == len(shape):
        return list(range(len(sizes)))
    kept: list[int] = []
    wanted = list(shape)
    for dim, size in enumerate(sizes):
        remaining = len(sizes) - dim
        if wanted and size == wanted[0] and (size != 1 or remaining == len(wanted)):
            kept.append(dim)
            wanted.pop(0)
        elif size != 1:
            return None
    # Dropped dimensions have one element, so it does not matter which of them are dropped.
    return kept if not wanted else None
