"""Samples of ``jax.lax.linalg``: factorizations of matrices, and systems that are solved by them.

Vectors that are known up to a sign are compared by what they make of the matrix.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from samples import Entry, Sample, array

REAL = ("float32", "float64")
EVERY = (*REAL, "complex64", "complex128")
#: One matrix, several, of one number, many small ones, none, and none of numbers.
SQUARE = ((5, 5), (2, 3, 17, 17), (1, 1), (37, 3, 3), (0, 4, 4), (2, 0, 0), (70, 70))
RECTANGLES = (*SQUARE, (9, 5), (2, 4, 11), (3, 40, 2), (4, 0), (0, 4))


def of_matrices(
    name: str,
    *cases: tuple[str, Callable[..., Any]],
    shapes: Sequence[tuple[int, ...]] = SQUARE,
    make: Callable[[tuple[int, ...], str], Any] = array,
    dtypes: Sequence[str] = EVERY,
) -> Entry:
    """A primitive that takes an array of matrices."""

    def samples() -> Iterator[Sample]:
        for label, function in cases:
            for dtype in dtypes:
                for shape in shapes if dtype in REAL else shapes[:2]:
                    text = f"{label} {dtype}{list(shape)}".strip()
                    yield Sample(text, function, (make(shape, dtype),))

    return Entry(name, samples)


def definite(shape: tuple[int, ...], dtype: str) -> Any:
    """Positive definite matrices."""
    a = array(shape, dtype)
    unit = 3 * shape[-1] * np.eye(shape[-1])
    return (a @ np.swapaxes(a, -1, -2).conj() + unit).astype(dtype)


def regular(shape: tuple[int, ...], dtype: str) -> Any:
    """Matrices whose diagonal is large."""
    return (array(shape, dtype) + 9 * np.eye(*shape[-2:])).astype(dtype)


def indefinite(shape: tuple[int, ...], dtype: str) -> Any:
    """Symmetric matrices with eigenvalues of both signs."""
    a = array(shape, dtype)
    return (a + np.swapaxes(a, -1, -2).conj()).astype(dtype)


def failing(shape: tuple[int, ...], dtype: str) -> Any:
    """The first matrix has a pivot of zero, and the last one a negative one."""
    a = definite(shape, dtype)
    a[0, 1], a[0, :, 1], a[-1, 2, 2] = 0, 0, -1
    return a


def _with_failing(entry: Entry) -> Entry:
    """Matrices that are not positive definite, too."""

    def samples() -> Iterator[Sample]:
        yield from entry.samples()
        for dtype in REAL:
            yield Sample(f"failing {dtype}", lax.linalg.cholesky, (failing((3, 4, 4), dtype),))

    return Entry(entry.name, samples)


def _eigh(a: Any, lower: bool = True) -> Any:
    vectors, values = lax.linalg.eigh(a, lower=lower)
    turned = jnp.swapaxes(vectors, -1, -2).conj()
    return values, (vectors * values[..., None, :]) @ turned, turned @ vectors


def _svd(a: Any, full: bool) -> Any:
    u, s, vh = lax.linalg.svd(a, full_matrices=full)
    least = s.shape[-1]
    made = (u[..., :least] * s[..., None, :]) @ vh[..., :least, :]
    return s, made, jnp.swapaxes(u, -1, -2).conj() @ u, vh @ jnp.swapaxes(vh, -1, -2).conj()


def _solved(a: Any, **options: bool) -> Any:
    b = jnp.swapaxes(a, -1, -2)[..., : 1 + a.shape[-1] // 2, :] + 1
    b = b if not options.get("left_side") else jnp.swapaxes(b, -1, -2)
    return lax.linalg.triangular_solve(a, b, **options)


def _reflected(a: Any) -> Any:
    packed, factors = lax.linalg.hessenberg(a)
    return packed, factors, lax.linalg.householder_product(packed[..., 1:, :-1], factors)


def _tridiagonal_systems() -> Iterator[Sample]:
    for dtype in REAL:
        for shape in ((5,), (2, 9), (1,)):
            low, high = (array(shape, dtype, seed=seed) for seed in (1, 2))
            low[..., 0] = high[..., -1] = 0
            right = array((*shape, 3), dtype)
            middle = array(shape, dtype, low=8, high=9)
            text = f"{dtype}{list(shape)}"
            yield Sample(text, lax.linalg.tridiagonal_solve, (low, middle, high, right))


def _updates() -> Iterator[Sample]:
    for dtype in REAL:
        r = np.linalg.cholesky(definite((6, 6), dtype)).T.astype(dtype)
        yield Sample(dtype, lax.linalg.cholesky_update, (r, array((6,), dtype)))


def _products() -> Iterator[Sample]:
    for dtype in REAL:
        for shape in ((5, 3), (2, 7, 7)):
            c = indefinite((*shape[:-1], shape[-2]), dtype)
            function = functools.partial(lax.linalg.symmetric_product, alpha=2.0, beta=0.5)
            yield Sample(f"{dtype}{list(shape)}", function, (array(shape, dtype), c))


def _reflections() -> Iterator[Sample]:
    for dtype in REAL:
        for shape in ((5, 3), (2, 7, 7)):
            a, factors = (
                array(shape, dtype, low=-0.4, high=0.4),
                array(shape[:-2] + shape[-1:], dtype),
            )
            yield Sample(
                f"product {dtype}{list(shape)}", lax.linalg.householder_product, (a, factors)
            )


def _rotated() -> Iterator[Sample]:
    for dtype in REAL:
        a, factors = array((5, 3), dtype, low=-0.4, high=0.4), array((3,), dtype)
        c = array((5, 4), dtype)
        for left in (True, False):
            for transpose in (False, True):
                yield Sample(
                    f"{dtype} {'left' if left else 'right'}{' transposed' * transpose}",
                    functools.partial(lax.linalg.ormqr, left=left, transpose=transpose),
                    (a, factors, c if left else c.T.copy()),
                )


def _permutations() -> Iterator[Sample]:
    for shape, rows in (((4,), 4), ((2, 3), 7), ((3, 5, 1), 2), ((2, 0), 3)):
        pivots = np.minimum(np.arange(shape[-1]) + array(shape, "int32") % 3, rows - 1)
        yield Sample(
            f"{list(shape)} of {rows}",
            lambda p, rows=rows: lax.linalg.lu_pivots_to_permutation(p, rows),
            (pivots.astype(np.int32),),
            same=True,
        )


_SIDES = [
    {"left_side": left, "lower": lower, "transpose_a": turned, "unit_diagonal": unit}
    for left, lower, turned, unit in (
        (True, True, False, False),
        (False, True, True, False),
        (True, False, True, True),
        (False, False, False, False),
    )
]

ENTRIES = [
    _with_failing(of_matrices("cholesky", ("", lax.linalg.cholesky), make=definite)),
    Entry("cholesky_update", _updates),
    of_matrices(
        "eig", ("values", lambda a: jnp.sort(jnp.abs(lax.linalg.eig(a)[0]))), shapes=((5, 5),)
    ),
    of_matrices(
        "eigh",
        ("", _eigh),
        ("upper", functools.partial(_eigh, lower=False)),
        ("values", jnp.linalg.eigvalsh),
        make=indefinite,
    ),
    of_matrices("hessenberg", ("", _reflected), shapes=((5, 5),), dtypes=REAL),
    Entry("householder_product", _reflections),
    of_matrices("lu", ("", lax.linalg.lu), shapes=RECTANGLES),
    Entry("lu_pivots_to_permutation", _permutations),
    Entry("ormqr", _rotated),
    of_matrices(
        "qr",
        ("", functools.partial(lax.linalg.qr, full_matrices=False)),
        ("complete", functools.partial(lax.linalg.qr, full_matrices=True)),
        shapes=RECTANGLES,
    ),
    of_matrices("schur", ("", lambda a: lax.linalg.schur(a)[0]), shapes=((5, 5),), dtypes=REAL),
    of_matrices(
        "svd",
        ("", functools.partial(_svd, full=False)),
        ("full", functools.partial(_svd, full=True)),
        ("values", lambda a: lax.linalg.svd(a, compute_uv=False)),
        shapes=RECTANGLES,
    ),
    Entry("symmetric_product", _products),
    of_matrices(
        "triangular_solve",
        *(
            (" ".join(n for n, on in s.items() if on), functools.partial(_solved, **s))
            for s in _SIDES
        ),
        make=regular,
    ),
    of_matrices(
        "tridiagonal",
        ("", lambda a: lax.linalg.tridiagonal(a)[1:3]),
        shapes=((5, 5),),
        make=indefinite,
        dtypes=REAL,
    ),
    Entry("tridiagonal_solve", _tridiagonal_systems),
]
