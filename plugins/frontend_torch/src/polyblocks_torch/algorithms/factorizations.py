"""Ops that are algorithms of the core, and their lowering to calls of these.

A call is replaced by its loops behind torch-mlir's pipelines, which know no loops on buffers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks.algorithms import expand
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    builtin_type,
    from_builtin,
    tensor_type,
    to_builtin,
)

_library = torch.library.Library("polyblocks", "FRAGMENT")


def define(name: str, signature: str, shapes: Callable[..., Any]) -> Any:
    """Define an op that has no code but in compiled programs."""
    _library.define(f"{name}{signature}")
    _library.impl(name, shapes, "Meta")
    return getattr(torch.ops.polyblocks, name).default


def _whole(a: Tensor, *shape: int) -> Tensor:
    """Whole numbers of a batch of matrices."""
    return a.new_empty([*a.shape[:-2], *shape], dtype=torch.int32)


def _real(a: Tensor, *shape: int) -> Tensor:
    return a.new_empty([*a.shape[:-2], *shape])


def _rank(a: Tensor) -> int:
    return min(a.shape[-2:])


#: ``a``, [..., n, n], to its lower triangular factor and the number of the first minor that is not
#: positive, [...] of int32; only the lower part of ``a`` is used.
cholesky = define(
    "cholesky", "(Tensor a) -> (Tensor, Tensor)", lambda a: (a.new_empty(a.shape), _whole(a))
)
#: ``a``, [..., m, n], to L and U in one, pivots as LAPACK has them, [..., min(m, n)] of int32, and
#: the number of the first pivot of zero, [...] of int32.
lu = define(
    "lu",
    "(Tensor a) -> (Tensor, Tensor, Tensor)",
    lambda a: (a.new_empty(a.shape), _whole(a, _rank(a)), _whole(a)),
)
#: ``a``, [..., n, n], and ``b``, [..., n, m], with the same batch, to the solution of ``a x = b``
#: and what ``lu`` gives for ``a``.
solve = define(
    "solve",
    "(Tensor a, Tensor b) -> (Tensor, Tensor, Tensor, Tensor)",
    lambda a, b: (b.new_empty(b.shape), a.new_empty(a.shape), _whole(a, _rank(a)), _whole(a)),
)
#: ``a``, [..., n, n], to its inverse and the number of the first pivot of zero, [...] of int32.
invert = define(
    "invert", "(Tensor a) -> (Tensor, Tensor)", lambda a: (a.new_empty(a.shape), _whole(a))
)
#: Pivots, [..., k], to the row that comes to each of ``rows`` places, and the place of each row,
#: [..., rows] of int32.
permutation = define(
    "permutation",
    "(Tensor pivots, int rows) -> (Tensor, Tensor)",
    lambda pivots, rows: tuple(pivots.new_empty([*pivots.shape[:-1], rows]) for _ in range(2)),
)
#: ``a``, [..., m, n], to R with the vectors of reflections below, and their factors,
#: [..., min(m, n)].
householder = define(
    "householder",
    "(Tensor a) -> (Tensor, Tensor)",
    lambda a: (a.new_empty(a.shape), _real(a, _rank(a))),
)
#: Vectors of reflections, [..., m, n], and their factors, [..., k], to the first columns of their
#: product, [..., m, columns].
reflections = define(
    "reflections",
    "(Tensor vectors, Tensor factors, int columns) -> Tensor",
    lambda vectors, factors, columns: _real(vectors, vectors.shape[-2], columns),
)
#: ``a``, [..., n, n], its lower part alone, to eigenvalues in ascending order, [..., n],
#: and their vectors as rows, [..., n, n].
symmetric_eigen = define(
    "symmetric_eigen",
    "(Tensor a) -> (Tensor, Tensor)",
    lambda a: (_real(a, a.shape[-1]), a.new_empty(a.shape)),
)
#: The same without the vectors.
symmetric_values = define(
    "symmetric_values", "(Tensor a) -> Tensor", lambda a: _real(a, a.shape[-1])
)
#: ``a``, [..., n, m], n <= m, to its singular values in descending order, [..., n].
singular_values = define("singular_values", "(Tensor a) -> Tensor", lambda a: _real(a, a.shape[-2]))
#: ``a``, [..., n, m], n <= m, to its singular values in descending order, [..., n], its left
#: vectors as rows, [..., n, n], and the first right ones, [..., rows, m].
singular_vectors = define(
    "singular_vectors",
    "(Tensor a, int rows) -> (Tensor, Tensor, Tensor)",
    lambda a, rows: (
        _real(a, a.shape[-2]),
        _real(a, a.shape[-2], a.shape[-2]),
        _real(a, rows, a.shape[-1]),
    ),
)
_SOLVERS = {
    (upper, unit): define(
        f"solve_{'upper' if upper else 'lower'}{'_unit' if unit else ''}",
        "(Tensor t, Tensor b) -> Tensor",
        lambda t, b: b.new_empty(b.shape),
    )
    for upper in (False, True)
    for unit in (False, True)
}


def solve_triangular(t: Tensor, b: Tensor, *, upper: bool, unit: bool) -> Tensor:
    """X with T X = B.

    Args:
        t: [..., n, n]; its upper or its lower part is used.
        b: [..., n, m], with the same batch.
        upper: which part.
        unit: whether the diagonal is of ones, whatever it holds.
    """
    result: Tensor = _SOLVERS[upper, unit](t, b)
    return result


def _replace(name: str, op: Any) -> None:
    ir = mlir.ir
    with ir.InsertionPoint(op), op.location:
        kinds = [tensor_type(result.type) for result in op.results]
        tensors = [v for v in op.operands if builtin_type(v.type) is not None]
        results = expand.call(name, [to_builtin(v) for v in tensors], kinds)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(from_builtin(new, old.type))
    op.erase()


#: Op name -> its lowering.
CALLS = {
    f"polyblocks.{name}": Lowering(functools.partial(_replace, name)) for name in expand.ALGORITHMS
}
