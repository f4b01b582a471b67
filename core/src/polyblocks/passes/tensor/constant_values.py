"""Tensors that depend on constants alone, and their elements.

Framework operators are not distinguished: a ``linalg.generic`` is evaluated from its body,
for all iterations of its parallel loops at once and one iteration of its reductions after the
other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
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
_COMPARISONS = ("arith.cmpf", "arith.cmpi")
_MOVES = frozenset((*_VIEWS, "tensor.concat", "tensor.from_elements"))


@dataclass
class _Generic:
    """The maps, loops and body of a ``linalg.generic``.

    Attributes:
        arguments: of its block.
        body: its operations before the yield, with their names.
        maps: of its operands.
        dims: of each map the loop that a result is, or -1, per result.
        reduced: whether a loop is a reduction.
    """

    arguments: list[Any]
    body: list[tuple[Any, str]]
    maps: list[Any]
    dims: list[list[int]]
    reduced: list[bool]


class Evaluator:
    """The elements of values that depend on constants alone.

    Every operation is read once, and every value computed once: to ask MLIR takes longer than most
    of what is done with the answers.
    """

    def __init__(self) -> None:
        self._known: set[Any] = set()
        self._values: dict[Any, Values] = {}
        self._generics: dict[Any, _Generic] = {}
        self._elements: dict[Any, str] = {}
        self._maps: dict[Any, tuple[list[Any], list[list[int]]]] = {}
        self._loops: dict[Any, list[bool]] = {}
        self._work: dict[Any, int] = {}
        self._grids: dict[tuple[int, ...], list[Values]] = {}

    def learns(self, op: Any) -> bool:
        """Whether an operation's results follow from values that are known; they are, from then on.

        Args:
            op: of ``@main``, not in a loop of it, behind those whose results it reads.
        """
        if not self._is_evaluated(op):
            return False
        self._known.update(op.results)
        return True

    def work(self, op: Any) -> int:
        """Scalar operations of computing an operation's result; 0 for moves.

        Raises:
            Unknown: the extents of its loops are.
        """
        if op.name != "linalg.generic":
            return 0
        if op not in self._work:
            cost = sum(operation_cost(name) for _, name in self._generic(op).body)
            self._work[op] = prod(self._extents(op)) * cost
        return self._work[op]

    def names(self, op: Any) -> list[str]:
        """Of the scalar operations of a ``linalg.generic``; none for any other operation."""
        return [name for _, name in self._generic(op).body] if op.name == "linalg.generic" else []

    def value(self, value: Any) -> Values:
        """The elements of a value that is known.

        Raises:
            Unknown: they are not computed here.
        """
        if value not in self._values:
            self._values[value] = self._evaluate(value.owner)
        return self._values[value]

    def _is_evaluated(self, op: Any) -> bool:
        name, known = op.name, self._known
        if name == "arith.constant":
            return self._element(op.results[0].type) in DTYPES
        if name == "tensor.empty":
            return not len(op.operands)
        if name in _MOVES:
            # Offsets and sizes that are no constants are operands.
            alone = name not in _VIEWS or len(op.operands) == 1
            return alone and all(operand in known for operand in op.operands)
        if name != "linalg.generic" or len(op.results) != 1:
            return False
        if not all(operand in known for operand in op.operands):
            return False
        generic = self._generic(op)
        inside = set(generic.arguments)
        for inner, what in generic.body:
            if what not in NAMES and what not in ("linalg.index", "arith.constant"):
                return False
            if not all(operand in known or operand in inside for operand in inner.operands):
                return False
            if any(self._element(result.type) not in DTYPES for result in inner.results):
                return False
            inside.update(inner.results)
        return self._element(op.results[0].type) in DTYPES

    def _evaluate(self, op: Any) -> Values:
        name = op.name
        if name == "arith.constant":
            return self._constant(op)
        shape = tuple(op.results[0].type.shape)
        if name == "tensor.empty":
            return np.zeros(shape, DTYPES[self._element(op.results[0].type)])
        given = [self.value(operand) for operand in op.operands]
        if name == "tensor.extract_slice":
            names = ("static_offsets", "static_sizes", "static_strides")
            lists = (op.attributes[name] for name in names)
            window = tuple(
                slice(at, at + (size - 1) * step + 1, step)
                for at, size, step in zip(*lists, strict=True)
            )
            return given[0][window].reshape(shape)
        if name in _VIEWS:
            return given[0].reshape(shape)
        if name == "tensor.concat":
            return np.concatenate(given, axis=op.attributes["dim"].value)
        if name == "tensor.from_elements":
            return np.stack(given).reshape(shape)
        return self._result(op, given)

    def _result(self, op: Any, given: Sequence[Values]) -> Values:
        """The result of a ``linalg.generic``."""
        generic, extents = self._generic(op), self._extents(op)
        steps = [
            range(e) if reduced else (None,)
            for e, reduced in zip(extents, generic.reduced, strict=True)
        ]
        if prod(len(step) for step in steps) > MOST_ITERATIONS:
            raise Unknown("long reductions")
        # One element for each iteration of the parallel loops.
        loops = tuple(
            1 if reduced else e for e, reduced in zip(extents, generic.reduced, strict=True)
        )
        axes = self._grid(loops)
        out = _index(generic.dims[-1], generic.reduced, axes)
        result = _spread(given[-1][out], loops)
        (yielded,) = op.regions[0].blocks[0].operations[len(generic.body)].operands
        for step in itertools.product(*steps):
            grid = [
                axis if at is None else np.asarray(at) for axis, at in zip(axes, step, strict=True)
            ]
            values = {
                argument: _read(array, amap, grid)
                for argument, array, amap in zip(
                    generic.arguments, given[:-1], generic.maps, strict=False
                )
            }
            values[generic.arguments[len(given) - 1]] = result
            for inner, name in generic.body:
                values[inner.results[0]] = self._scalar(inner, name, values, grid)
            found = values[yielded] if yielded in values else self.value(yielded)
            result = _spread(found, loops)
        made = np.empty_like(given[-1])
        # A single element has no position to be put to.
        made[out] = result if out else result.reshape(())
        return made

    def _scalar(
        self, op: Any, name: str, values: dict[Any, Values], grid: Sequence[Values]
    ) -> Values:
        if name == "linalg.index":
            return grid[op.attributes["dim"].value].astype(np.int64)
        if name == "arith.constant":
            return self._constant(op)
        operands = [values[o] if o in values else self.value(o) for o in op.operands]
        predicate = op.attributes["predicate"].value if name in _COMPARISONS else 0
        return compute(name, operands, self._element(op.results[0].type), predicate)

    def _extents(self, op: Any) -> list[int]:
        """Of the loops of a ``linalg.generic``.

        Raises:
            Unknown: no operand tells the one of some loop.
        """
        generic = self._generic(op)
        found: dict[int, int] = {}
        for operand, dims in zip(op.operands, generic.dims, strict=True):
            for extent, dim in zip(operand.type.shape if dims else (), dims, strict=True):
                if dim >= 0:
                    found[dim] = extent
        if len(found) != len(generic.reduced):
            raise Unknown("loops of unknown extents")
        return [found[d] for d in range(len(found))]

    def _generic(self, op: Any) -> _Generic:
        found = self._generics.get(op)
        if found is None:
            from polyblocks.mlir import ir

            block = op.regions[0].blocks[0]
            inner = [each.operation for each in block.operations]
            indexing, kinds = op.attributes["indexing_maps"], op.attributes["iterator_types"]
            if indexing not in self._maps:
                maps = [attribute.value for attribute in indexing]
                self._maps[indexing] = (
                    maps,
                    [
                        [
                            e.position if isinstance(e, ir.AffineDimExpr) else -1
                            for e in amap.results
                        ]
                        for amap in maps
                    ],
                )
            if kinds not in self._loops:
                self._loops[kinds] = ["reduction" in str(kind) for kind in kinds]
            body = [(each, each.name) for each in inner[:-1]]
            found = _Generic(list(block.arguments), body, *self._maps[indexing], self._loops[kinds])
            self._generics[op] = found
        return found

    def _grid(self, loops: tuple[int, ...]) -> list[Values]:
        """The variable of each loop, as an array that broadcasts against the others."""
        if loops not in self._grids:
            grid = np.ogrid[tuple(slice(e) for e in loops)] if loops else ()
            self._grids[loops] = [np.asarray(axis) for axis in grid]
        return self._grids[loops]

    def _constant(self, op: Any) -> Values:
        from polyblocks.mlir import ir

        attribute = op.attributes["value"]
        dtype = DTYPES[self._element(op.results[0].type)]
        if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
            return np.asarray(attribute.value, dtype)
        if not isinstance(attribute, ir.DenseElementsAttr):
            raise Unknown("constants whose elements are elsewhere")
        try:
            return np.asarray(np.array(attribute), dtype).reshape(tuple(op.results[0].type.shape))
        except (ValueError, TypeError):
            # Element types that the bindings do not read.
            raise Unknown("kinds of constants") from None

    def _element(self, type_: Any) -> str:
        found = self._elements.get(type_)
        if found is None:
            found = self._elements[type_] = str(getattr(type_, "element_type", type_))
        return found


def _spread(array: Values, shape: tuple[int, ...]) -> Values:
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _read(array: Values, amap: Any, grid: Sequence[Values]) -> Values:
    return array[tuple(_position(expr, grid) for expr in amap.results)]


def _index(
    dims: Sequence[int], reduced: Sequence[bool], axes: Sequence[Values]
) -> tuple[Values, ...]:
    """Where the results of all iterations of the parallel loops are.

    Args:
        dims: the loop that each index of the result is, or -1.
        reduced: whether a loop is a reduction.
        axes: the variables of the loops; of a reduction, zero.
    """
    if sorted(dims) != [d for d, is_reduced in enumerate(reduced) if not is_reduced]:
        raise Unknown("results that are not one for each iteration")
    return tuple(axes[d] for d in dims)


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
