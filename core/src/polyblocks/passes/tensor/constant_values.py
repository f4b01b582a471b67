"""Tensors that depend on constants alone, and their elements.

What is an operator of a framework is not asked: a ``linalg.generic`` is evaluated as what it says,
for all iterations of its parallel loops at once and one iteration of its reductions after the
other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from polyblocks.affine.operation_cost import operation_cost
from polyblocks.passes.tensor.scalar_values import DTYPES, NAMES, Unknown, Values, compute

#: Iterations of reductions, which are evaluated one by one; a sum of more would also be rounded
#: more often than the generated code's, which adds up in several parts.
MOST_ITERATIONS = 1024

_VIEWS = frozenset(
    "tensor.expand_shape tensor.collapse_shape tensor.extract_slice tensor.cast".split()
)
_MOVES = frozenset((*_VIEWS, "tensor.concat", "tensor.from_elements"))


def is_evaluated(op: Any, known: set[Any]) -> bool:
    """Whether an operation's results follow from values that are known.

    Args:
        op: of ``@main``, not in a loop of it.
        known: values that depend on constants alone.
    """
    if op.name == "arith.constant":
        return _element(op.results[0].type) in DTYPES
    if op.name == "tensor.empty":
        return not len(op.operands)
    if op.name in _MOVES:
        # Offsets and sizes that are no constants are operands.
        alone = op.name not in _VIEWS or len(op.operands) == 1
        return alone and all(operand in known for operand in op.operands)
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    if not all(operand in known for operand in op.operands):
        return False
    inside = set(op.regions[0].blocks[0].arguments)
    for inner in _body(op):
        if inner.name not in NAMES and inner.name not in ("linalg.index", "arith.constant"):
            return False
        if not all(operand in known or operand in inside for operand in inner.operands):
            return False
        if any(_element(result.type) not in DTYPES for result in inner.results):
            return False
        inside.update(inner.results)
    return bool(_element(op.results[0].type) in DTYPES)


def work(op: Any) -> int:
    """Scalar operations that computing an operation's result takes; moving it is none."""
    if op.name != "linalg.generic":
        return 0
    return prod(_extents(op)) * sum(operation_cost(inner.name) for inner in _body(op))


def counts(op: Any) -> bool:
    """Whether an operation makes numbers of its loops' variables."""
    return op.name == "linalg.generic" and any(i.name == "linalg.index" for i in _body(op))


class Evaluator:
    """The elements of values, each computed once."""

    def __init__(self) -> None:
        self._values: dict[Any, Values] = {}

    def value(self, value: Any) -> Values:
        """The elements of a value that is known (see :func:`is_evaluated`).

        Raises:
            Unknown: they are not computed here.
        """
        if value not in self._values:
            self._values[value] = self._evaluate(value.owner)
        return self._values[value]

    def _evaluate(self, op: Any) -> Values:
        if op.name == "arith.constant":
            return _constant(op)
        shape = tuple(op.results[0].type.shape)
        if op.name == "tensor.empty":
            return np.zeros(shape, DTYPES[_element(op.results[0].type)])
        given = [self.value(operand) for operand in op.operands]
        if op.name == "tensor.extract_slice":
            names = ("static_offsets", "static_sizes", "static_strides")
            lists = (op.attributes[name] for name in names)
            window = tuple(
                slice(at, at + (size - 1) * step + 1, step)
                for at, size, step in zip(*lists, strict=True)
            )
            return given[0][window].reshape(shape)
        if op.name in _VIEWS:
            return given[0].reshape(shape)
        if op.name == "tensor.concat":
            return np.concatenate(given, axis=op.attributes["dim"].value)
        if op.name == "tensor.from_elements":
            return np.stack(given).reshape(shape)
        return _generic(op, given, self)


def _generic(op: Any, given: Sequence[Values], outer: Evaluator) -> Values:
    """The result of a ``linalg.generic``."""
    extents = _extents(op)
    kinds = ["reduction" in str(kind) for kind in op.attributes["iterator_types"]]
    steps = [range(e) if reduced else (None,) for e, reduced in zip(extents, kinds, strict=True)]
    if prod(len(step) for step in steps) > MOST_ITERATIONS:
        raise Unknown("long reductions")
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    block = op.regions[0].blocks[0]
    out = _index(maps[-1], extents, kinds)
    # One element for each iteration of the parallel loops.
    loops = tuple(1 if reduced else e for e, reduced in zip(extents, kinds, strict=True))
    result = np.broadcast_to(given[-1][out], loops)
    for step in itertools.product(*steps):
        grid = (
            [
                np.asarray(axis if at is None else at)
                for axis, at in zip(np.ogrid[tuple(slice(e) for e in loops)], step, strict=True)
            ]
            if extents
            else []
        )
        values = {
            argument: _read(array, amap, grid)
            for argument, array, amap in zip(block.arguments, given[:-1], maps, strict=False)
        }
        values[block.arguments[len(given) - 1]] = result
        for inner in _body(op):
            values[inner.results[0]] = _scalar(inner, values, grid, outer)
        (yielded,) = block.operations[len(block.operations) - 1].operands
        found = values[yielded] if yielded in values else outer.value(yielded)
        result = np.broadcast_to(found, loops)
    made = np.empty_like(given[-1])
    # A single element has no position to be put to.
    made[out] = result if out else result.reshape(())
    return made


def _scalar(op: Any, values: dict[Any, Values], grid: Sequence[Values], outer: Evaluator) -> Values:
    if op.name == "linalg.index":
        return grid[op.attributes["dim"].value].astype(np.int64)
    if op.name == "arith.constant":
        return _constant(op)
    operands = [values[o] if o in values else outer.value(o) for o in op.operands]
    predicate = op.attributes["predicate"].value if "predicate" in op.attributes else 0
    return compute(op.name, operands, _element(op.results[0].type), predicate)


def _read(array: Values, amap: Any, grid: Sequence[Values]) -> Values:
    return array[tuple(_position(expr, grid) for expr in amap.results)]


def _index(amap: Any, extents: Sequence[int], reduced: Sequence[bool]) -> tuple[Values, ...]:
    """Where the results of all iterations of the parallel loops are."""
    from polyblocks.mlir import ir

    dims = [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in amap.results]
    parallel = [d for d, is_reduced in enumerate(reduced) if not is_reduced]
    if sorted(dims) != parallel:
        raise Unknown("results that are not one for each iteration")
    shape = tuple(1 if r else e for e, r in zip(extents, reduced, strict=True))
    grid = np.ogrid[tuple(slice(e) for e in shape)] if extents else []
    return tuple(np.asarray(grid[d]) for d in dims)


def _position(expr: Any, grid: Sequence[Values]) -> Values:
    """An affine expression of the loops."""
    from polyblocks.mlir import ir

    if isinstance(expr, ir.AffineDimExpr):
        return grid[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return np.asarray(expr.value)
    if isinstance(expr, ir.AffineAddExpr):
        return np.asarray(_position(expr.lhs, grid) + _position(expr.rhs, grid))
    if isinstance(expr, ir.AffineMulExpr):
        return np.asarray(_position(expr.lhs, grid) * _position(expr.rhs, grid))
    raise Unknown("quotients of loops")


def _extents(op: Any) -> list[int]:
    """Of the loops of a ``linalg.generic``.

    Raises:
        Unknown: no operand tells the one of some loop.
    """
    from polyblocks.mlir import ir

    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    found: dict[int, int] = {}
    for operand, amap in zip(op.operands, maps, strict=True):
        for axis, expr in enumerate(amap.results):
            if isinstance(expr, ir.AffineDimExpr):
                found[expr.position] = operand.type.shape[axis]
    if len(found) != maps[0].n_dims:
        raise Unknown("loops of unknown extents")
    return [found[d] for d in range(maps[0].n_dims)]


def _body(op: Any) -> Iterator[Any]:
    """The operations of a ``linalg.generic`` before its yield."""
    for inner in list(op.regions[0].blocks[0].operations)[:-1]:
        yield inner.operation


def _constant(op: Any) -> Values:
    from polyblocks.mlir import ir

    attribute = op.attributes["value"]
    dtype = DTYPES[_element(op.results[0].type)]
    if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
        return np.asarray(attribute.value, dtype)
    if not isinstance(attribute, ir.DenseElementsAttr):
        raise Unknown("constants whose elements are elsewhere")
    try:
        return np.asarray(np.array(attribute), dtype).reshape(tuple(op.results[0].type.shape))
    except (ValueError, TypeError):
        # Element types that the bindings do not read.
        raise Unknown("kinds of constants") from None


def _element(type_: Any) -> str:
    return str(getattr(type_, "element_type", type_))
