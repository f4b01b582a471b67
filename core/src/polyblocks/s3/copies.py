"""verify-s3's rules on copies, and on what waits for them."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.buffers.copies import (
    ASYNCHRONOUS,
    BULK,
    KINDS,
    PACK,
    RESULTS,
    SCOPES,
    USES,
    from_to,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.affine_maps import expr_of
from polyblocks.mlir import ir
from polyblocks.s3.violation import violation

#: Assumed values of a variable of a loop around.
_ANY = 1 << 31
#: Kinds that are handed over: panels are filled by loops.
_KINDS = {kind: spaces for kind, spaces in KINDS.items() if kind != PACK}


def check(op: Any) -> None:
    """A copy of a box.

    Raises:
        ValueError: there is no such copy, or the box has no room in the buffer.
    """
    given = op.attributes
    kind = given["kind"].value
    spaces = tuple(map(_space, list(op.operands)[:2]))
    if kind not in _KINDS:
        raise violation(op, f"its kind is one of {', '.join(_KINDS)}")
    if spaces not in _KINDS[kind]:
        raise violation(op, f"one of kind '{kind}' is {' or '.join(map(from_to, _KINDS[kind]))}")
    if kind in (ASYNCHRONOUS, BULK) and "conversions" in given:
        raise violation(op, f"one of kind '{kind}' converts nothing")
    shape = list(ir.DenseI64ArrayAttr(given["shape"]))
    count = len(op.operands) - 2
    for name, memref in zip(("from", "to"), op.operands, strict=False):
        amap = ir.AffineMapAttr(given[name]).value
        extents = list(ir.MemRefType(memref.type).shape)
        takes = amap.n_dims, amap.n_symbols, len(amap.results)
        if takes != (count, len(shape), len(extents)):
            raise violation(
                op,
                f"the map '{name}' takes the indices, and a symbol for each dimension of the box, "
                "to a place in its memref",
            )
        around, own = ([Expr.of(Var(n)) for n in each] for each in ([_ANY] * count, shape))
        for result, extent in zip(amap.results, extents, strict=True):
            low, high = expr_of(result, around, own).range()
            if low >= extent or high < 0:
                raise violation(op, f"the box of '{name}' lies inside of its memref")


def is_of_places(op: Any) -> bool:
    """Whether a wait is for places to be free, as they are at the beginning."""
    return "of" in op.attributes and op.attributes["of"].value in (RESULTS, USES)


def check_wait(op: Any, grouped: bool) -> None:
    """A wait for groups of copies; ``grouped``: one was formed before.

    Raises:
        ValueError: there is nothing to wait for, or it waits for fewer than no groups.
    """
    if ir.IntegerAttr(op.attributes["pending"]).value < 0:
        raise violation(op, "0 groups or more may be on their way")
    if not grouped:
        raise violation(op, "a group of copies was formed before it in its nest")


def check_barrier(op: Any) -> None:
    """A barrier.

    Raises:
        ValueError: there is no such scope.
    """
    if op.attributes["scope"].value not in SCOPES:
        raise violation(op, f"its scope is one of {', '.join(SCOPES)}")


def _space(memref: Any) -> str:
    space = ir.MemRefType(memref.type).memory_space
    return "" if space is None else str(ir.StringAttr(space).value)
