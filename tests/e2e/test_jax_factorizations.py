"""JAX: factorizations, what is computed from them, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

STRICT = {"target": "cpu", "strict_target": True}


def definite(a: Any) -> Any:
    return a @ a.mT + jnp.eye(a.shape[-1])


def of_eigenvalues(a: Any) -> Any:
    values, vectors = jnp.linalg.eigh(a + a.mT)
    return values, (vectors * values[..., None, :]) @ vectors.mT


def of_singular_values(a: Any, full: bool) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=full)
    least = s.shape[-1]
    return s, (u[..., :least] * s[..., None, :]) @ vh[..., :least, :], u.mT @ u, vh @ vh.mT


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda a: jnp.linalg.cholesky(definite(a)),
    "upper cholesky": lambda a: jnp.linalg.cholesky(definite(a), upper=True),
    "lu": jax.lax.linalg.lu,
    "qr": jnp.linalg.qr,
    "complete qr": lambda a: jnp.linalg.qr(a, "complete"),
    "eigh": of_eigenvalues,
    "svd": lambda a: of_singular_values(a, False),
    "full svd": lambda a: of_singular_values(a, True),
    "svd of a wide matrix": lambda a: of_singular_values(a[..., :2, :], True),
    "singular values": lambda a: jnp.linalg.svd(a, compute_uv=False),
    "solve": lambda a: jnp.linalg.solve(a, a.mT),
    "inv": jnp.linalg.inv,
    "slogdet": jnp.linalg.slogdet,
    "triangular": lambda a: jax.lax.linalg.triangular_solve(
        a, a.mT, left_side=False, lower=False, transpose_a=True, unit_diagonal=True
    ),
    "gradient": jax.grad(
        lambda a: jnp.linalg.slogdet(a)[1].sum() + jnp.linalg.cholesky(definite(a)).sum()
    ),
}


#: One of each factorization, and what is solved with one.
EACH = ("cholesky", "lu", "complete qr", "eigh", "svd", "solve", "gradient")
#: What another one of them computes, too.
TWICE = ("upper cholesky", "qr", "full svd", "inv")


@pytest.mark.parametrize(
    "case",
    sweep(
        product([(5, 5), (2, 3, 3)], FUNCTIONS),
        *(((2, 3, 3), name) for name in EACH),
        extended=[
            *(((2, 3, 3), name) for name in FUNCTIONS if name not in (*EACH, *TWICE)),
            ((5, 5), "lu"),
        ],
    ),
    ids=str,
)
def test_compiled_as_lapack_has_it(case: tuple[tuple[int, ...], str]) -> None:
    shape, name = case
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    a += 3 * np.eye(shape[-1], dtype=np.float32)
    found = polyblocks_jit_jax(FUNCTIONS[name], compile_options=STRICT)(a)
    expected = jax.jit(FUNCTIONS[name])(a)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=2e-4)


@pytest.mark.extended
@pytest.mark.large
def test_large_matrices_in_loops_and_branches() -> None:
    a = np.random.default_rng(0).standard_normal((200, 200)).astype(np.float32)
    unit = np.eye(200, dtype=np.float32)

    def function(a: Any) -> Any:
        def step(shift: Any, _: Any) -> Any:
            row = jnp.linalg.cholesky(a + shift * unit)[-1]
            return shift + jnp.abs(row[0]), row

        shift, rows = jax.lax.scan(step, jnp.float32(0.5), length=2)
        twice = jnp.linalg.cholesky(a) + jnp.linalg.cholesky(2 * a)
        return rows, twice, jax.lax.cond(shift > 0, jnp.linalg.cholesky, jnp.negative, 3 * a)

    a = a @ a.T / 200 + unit
    found = polyblocks_jit_jax(function, compile_options=STRICT)(a)
    for x, y in zip(found, jax.jit(function)(a), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "singular values"])
def test_matrices_that_fail_are_nan(name: str) -> None:
    def function(a: Any) -> Any:
        if name == "cholesky":
            return jnp.linalg.cholesky(a)
        return jnp.linalg.eigvalsh(a) if name == "eigh" else FUNCTIONS[name](a)

    a = np.stack([np.eye(3), np.eye(3)]).astype(np.float32)
    if name == "cholesky":
        a[0, 1, 1] = -1
    else:
        a[0] = np.nan
    found = polyblocks_jit_jax(function, compile_options=STRICT)(a)
    np.testing.assert_allclose(found, jax.jit(function)(a), atol=1e-5)
    assert np.isnan(found[0]).any()


def test_values_of_large_matrices() -> None:
    a = np.random.default_rng(1).standard_normal((2, 20, 20)).astype(np.float32)

    def values(a: Any) -> Any:
        return jnp.linalg.eigvalsh(a + a.mT), jnp.linalg.svd(a, compute_uv=False)

    found = polyblocks_jit_jax(values, compile_options=STRICT)(a)
    for x, y in zip(found, jax.jit(values)(a), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.cpu  # Other targets have other limits.
@pytest.mark.parametrize(
    ("function", "rows", "reason"),
    [
        (jnp.linalg.eigh, 513, "more than 512 rows and columns"),
        (jnp.linalg.svd, 513, "more than 512 rows and columns"),
    ],
)
def test_vectors_of_large_matrices_are_left_to_jax(
    function: Callable[[Any], Any], rows: int, reason: str
) -> None:
    compiled = polyblocks_jit_jax(lambda a: tuple(function(a)), compile_options=STRICT)
    with pytest.raises(FallbackError, match=reason):
        compiled(np.eye(rows, dtype=np.float32))


@pytest.mark.parametrize("shape", [(5, 5), (2, 4, 3), (3, 2, 6), (7, 0)], ids=str)
def test_permutations_of_pivots(shape: tuple[int, ...]) -> None:
    """JAX's own programs keep its loop of exchanges."""

    def function(a: Any) -> Any:
        return jax.lax.linalg.lu(a)[1:]

    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = jax.jit(function)
    assert "polyblocks" not in expected.lower(a).as_text()
    for x, y in zip(
        polyblocks_jit_jax(function, compile_options=STRICT)(a), expected(a), strict=True
    ):
        np.testing.assert_array_equal(x, y)


def multiplied(a: Any, factors: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    """What JAX 0.8 lacks a primitive for."""
    unit = jnp.eye(a.shape[-2], dtype=a.dtype)
    padded = jnp.concatenate([a, unit[..., a.shape[-1] :]], -1)
    zeros = jnp.zeros(a.shape[-2] - a.shape[-1], a.dtype)
    q = jax.lax.linalg.householder_product(padded, jnp.concatenate([factors, zeros]))
    q = q.T if transpose else q
    return q @ c if left else c @ q


@pytest.mark.parametrize("left", [True, False])
def test_products_with_reflections(left: bool) -> None:
    function = getattr(jax.lax.linalg, "ormqr", multiplied)

    def products(a: Any, factors: Any, c: Any) -> Any:
        return [function(a, factors, c, left=left, transpose=t) for t in (False, True)]

    random = np.random.default_rng(0)
    a, factors = random.standard_normal((5, 3)) / 4, random.standard_normal(3)
    c = random.standard_normal((5, 4) if left else (4, 5))
    arguments = [x.astype(np.float32) for x in (a, factors, c)]
    found = polyblocks_jit_jax(products, compile_options=STRICT)(*arguments)
    for x, y in zip(found, jax.jit(products)(*arguments), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    nothing = [arguments[0][:, :0], arguments[1][:0], arguments[2]]
    for x in polyblocks_jit_jax(products, compile_options=STRICT)(*nothing):
        np.testing.assert_array_equal(x, arguments[2])
    written = [
        multiplied(*arguments, left=left, transpose=transpose) for transpose in (False, True)
    ]
    for x, y in zip(found, written, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
