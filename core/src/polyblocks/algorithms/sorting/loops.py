"""Short forms for the loops of sorts on buffers: affine loops and accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.mlir import dialect, ir


def operation(name: str, *operands: Any) -> Any:
    """A binary operation of ``arith`` on integers, by the name of its class."""
    return getattr(dialect("arith"), name)(*operands).result


def as_index(value: Any) -> Any:
    """An integer that is not negative as an index."""
    return dialect("arith").IndexCastUIOp(ir.IndexType.get(), value).result


def loops(extents: Sequence[int], body: Callable[[list[Any]], None], variables: Any = ()) -> None:
    """Loops over the extents, and the body for their variables."""
    if not extents:
        body(list(variables))
        return
    affine = dialect("affine")
    loop = affine.AffineForOp(0, extents[0], 1, [])
    with ir.InsertionPoint(loop.body):
        loops(extents[1:], body, (*variables, loop.induction_variable))
        affine.AffineYieldOp([])


def steps(
    bound: Any,
    variables: Sequence[Any],
    carried: Sequence[Any],
    body: Callable[[Any, list[Any]], list[Any]],
) -> list[Any]:
    """A loop that carries values.

    Args:
        bound: how many iterations: an integer; or affine expressions, whose least value it is.
        variables: the dimensions of these expressions.
        carried: the values before the first iteration.
        body: from a loop's variable and the values to the next values.

    Returns:
        The values after the last iteration.
    """
    affine = dialect("affine")
    operands: list[Any] = []
    if not isinstance(bound, int):
        bound, operands = ir.AffineMap.get(len(variables), 0, bound), list(variables)
    loop = affine.AffineForOp(0, bound, 1, list(carried), upper_bound_operands=operands)
    with ir.InsertionPoint(loop.body):
        values = body(loop.induction_variable, list(loop.inner_iter_args))
        affine.AffineYieldOp(values)
    return list(loop.results)


def load(buffer: Any, variables: Sequence[Any], exprs: Sequence[Any] | None = None) -> Any:
    """An element at affine expressions of variables, by default at the variables."""
    op = ir.Operation.create(
        "affine.load",
        results=[buffer.type.element_type],
        operands=[buffer, *variables],
        attributes={"map": _map(len(variables), exprs)},
    )
    return op.results[0]


def store(
    value: Any, buffer: Any, variables: Sequence[Any], exprs: Sequence[Any] | None = None
) -> None:
    """Write an element at affine expressions of variables, by default at the variables."""
    ir.Operation.create(
        "affine.store",
        operands=[value, buffer, *variables],
        attributes={"map": _map(len(variables), exprs)},
    )


def value_of(variables: Sequence[Any], expr: Any) -> Any:
    """An affine expression of variables as an index."""
    op = ir.Operation.create(
        "affine.apply",
        results=[ir.IndexType.get()],
        operands=list(variables),
        attributes={"map": _map(len(variables), [expr])},
    )
    return op.results[0]


def dims(count: int) -> list[Any]:
    """The first dimensions of an affine map."""
    return [ir.AffineDimExpr.get(i) for i in range(count)]


def _map(count: int, exprs: Sequence[Any] | None) -> Any:
    exprs = dims(count) if exprs is None else list(exprs)
    return ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, exprs))
