"""PyTorch: factorizations, what is computed from them, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from tests.support.factorization_check import (
    LOSSES,
    compiled,
    definite,
    factors_agree,
    gradients_agree,
    orthogonal,
    random,
    residual,
    systems_agree,
)
from tests.support.sweeps import sweep
from torch import Tensor

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

SHAPES = sweep(
    [(1, 1), (3, 3), (7, 3, 3), (2, 3, 17, 17), (37, 37)], (7, 3, 3), (37, 37), extended=[(1, 1)]
)
#: Of matrices that are rotated.
SMALL = sweep([(1, 1), (3, 3), (7, 3, 3), (2, 3, 8, 8)], (2, 3, 8, 8), extended=[(1, 1)])
#: Whole panels of columns and parts of one, with rows or columns behind them.
PANELS = sweep(
    [(64, 64), (2, 70, 70), (65, 130), (100, 67), (128, 128)],
    (2, 70, 70),
    extended=[(65, 130), (100, 67)],
)
DTYPES = [torch.float32, torch.float64]
ONE_DTYPE = sweep(DTYPES, torch.float32, extended=[torch.float64])


def large(shapes: list[Any]) -> list[Any]:
    """Shapes that compute too much for a simulator."""
    return [
        pytest.param(*p.values, marks=[*p.marks, pytest.mark.large])
        for p in (s if hasattr(s, "marks") else pytest.param(s) for s in shapes)
    ]


#: Whole squares and parts of one, of one matrix and of several.
SQUARES = sweep([(192, 192), (231, 231), (2, 200, 200)], (231, 231), extended=[(2, 200, 200)])
#: Of which a factor has other rows than columns.
RECTANGLES = sweep([(9, 5), (4, 6, 19), (3, 70, 7)], (9, 5), extended=[(4, 6, 19), (3, 70, 7)])


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, *large(SQUARES)], ids=str)
def test_cholesky(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    a = definite(*shape, dtype=dtype)
    # What is above the diagonal is not used.
    lower = compiled(torch.linalg.cholesky, a.tril() + random(*shape, dtype=dtype).triu(1))
    assert residual(lower @ lower.mT, a) < 8
    assert not lower.triu(1).any()


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, *RECTANGLES[:2], *large(PANELS)], ids=str)
def test_lu_with_the_pivots_of_lapack(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    a = random(*shape, dtype=dtype)
    factors, pivots = compiled(torch.linalg.lu_factor, a)
    assert torch.equal(pivots, torch.linalg.lu_factor(a).pivots)
    p, lower, upper = torch.lu_unpack(factors, pivots)
    assert residual(p @ lower @ upper, a) < 8
    p, lower, upper = compiled(torch.linalg.lu, a)
    assert residual(p @ lower @ upper, a) < 8


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [*SHAPES, *RECTANGLES], ids=str)
def test_qr_with_the_signs_of_lapack(shape: tuple[int, ...], mode: str) -> None:
    a = random(*shape)
    q, r = compiled(lambda a: torch.linalg.qr(a, mode), a)
    assert residual(q @ r, a) < 20
    assert orthogonal(q) < 20
    torch.testing.assert_close(r, torch.linalg.qr(a, mode).R)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize(
    "shape",
    large(
        sweep(
            [(64, 64), (131, 67), (70, 170), (2, 97, 65)],
            (2, 97, 65),
            extended=[(131, 67), (70, 170)],
        )
    ),
    ids=str,
)
def test_qr_by_panels(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    a = random(*shape, dtype=dtype)
    a[..., 3] = 0
    q, r = compiled(lambda a: torch.linalg.qr(a, "complete"), a)
    eager = torch.linalg.qr(a, "complete")
    assert residual(q @ r, a) < 3 * residual(eager.Q @ eager.R, a)
    assert orthogonal(q) < 3 * orthogonal(eager.Q)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize("shape", SMALL, ids=str)
def test_eigenvalues_of_symmetric_matrices(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    a = random(*shape, dtype=dtype)
    values, vectors = compiled(torch.linalg.eigh, a)
    symmetric = a.tril() + a.tril(-1).mT
    assert residual(vectors * values.unsqueeze(-2) @ vectors.mT, symmetric) < 20
    assert orthogonal(vectors) < 20
    torch.testing.assert_close(values, torch.linalg.eigvalsh(a))


@pytest.mark.each_choice
@pytest.mark.parametrize("full", [False, True], ids=["reduced", "full"])
@pytest.mark.parametrize("shape", [*SMALL, *RECTANGLES], ids=str)
def test_singular_values(shape: tuple[int, ...], full: bool) -> None:
    a = random(*shape)
    u, s, vh = compiled(lambda a: tuple(torch.linalg.svd(a, full_matrices=full)), a)
    least = min(shape[-2:])
    assert residual(u[..., :least] * s.unsqueeze(-2) @ vh[..., :least, :], a) < 20
    assert max(orthogonal(u), orthogonal(vh.mT)) < 20
    torch.testing.assert_close(s, torch.linalg.svdvals(a))


def hard(n: int, dtype: torch.dtype) -> Tensor:
    """Symmetric matrices whose eigenvalues are equal, graded, clustered, tiny or zero."""
    number = torch.arange(n, dtype=torch.float64)
    spectra = torch.stack(
        [
            torch.ones_like(number),
            torch.where(number % 2 == 0, 1.0, -1.0),
            10.0 ** (-12 * number / n),
            torch.where(number < n / 2, 1.0, 1 + 1e-6 * number),
            torch.where(number < n / 2, 1.0, 0.0),
            1e-30 * number,
            torch.zeros_like(number),
        ]
    )
    q = torch.linalg.qr(random(len(spectra), n, n)).Q
    a = q * spectra.unsqueeze(-2) @ q.mT
    return torch.cat([a + a.mT, torch.ones(1, n, n)]).to(dtype)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize(
    ("n", "times"),
    [
        (5, 1),
        *(pytest.param(*case, marks=pytest.mark.extended) for case in ((8, 1), (3, 3))),
        pytest.param(16, 3, marks=pytest.mark.slow),
    ],
)
def test_rotations_converge_for_hard_spectra(n: int, times: int, dtype: torch.dtype) -> None:
    a = hard(n, dtype).repeat(times, 1, 1)
    values, vectors = compiled(torch.linalg.eigh, a)
    assert residual(vectors * values.unsqueeze(-2) @ vectors.mT, a) < 30
    assert orthogonal(vectors) < 30
    u, s, vh = compiled(lambda a: tuple(torch.linalg.svd(a)), a)
    assert residual(u * s.unsqueeze(-2) @ vh, a) < 30
    assert max(orthogonal(u), orthogonal(vh.mT)) < 30


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize(
    "size", sweep([(32, 3), (33, 1), (150, 1)], (32, 3), extended=[(150, 1)]), ids=str
)
def test_eigenvectors_are_as_exact_as_in_eager_mode(
    size: tuple[int, int], dtype: torch.dtype
) -> None:
    n, times = size
    a = hard(n, dtype).repeat(times, 1, 1)

    def errors(function: Any) -> tuple[float, float]:
        values, vectors = function(torch.linalg.eigh, a)
        return residual(vectors * values.unsqueeze(-2) @ vectors.mT, a), orthogonal(vectors)

    eager = errors(lambda function, a: function(a))
    for error, least in zip(errors(compiled), eager, strict=True):
        assert error <= 3 * least + 4


def bidiagonal(n: int) -> Tensor:
    """Lower bidiagonal matrices: random ones, also with zeros, and nothing but ones."""
    above, beside = random(4, n, 1), random(5, n, 1)
    above[2, ::3] = 0
    above[2, -1] = 0
    above[3, 1::2] *= 1e-9
    above, beside = (torch.cat([x, torch.ones(1, n, 1).double()]) for x in (above, beside[:4]))
    above = torch.cat([above, torch.zeros(1, n, 1)])
    beside = torch.cat([beside, torch.ones(1, n, 1)])
    return above * torch.eye(n) + beside * torch.eye(n).roll(1, 0).tril(-1)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "size", sweep([(16, 3), (32, 2), (33, 1), (90, 1)], (16, 3), extended=[(90, 1)]), ids=str
)
def test_singular_vectors_are_as_exact_as_in_eager_mode(
    size: tuple[int, int], dtype: torch.dtype
) -> None:
    n, times = size
    graded = random(2, n, n) * torch.logspace(-7, 7, n).double()
    a = torch.cat([hard(n, torch.float64), bidiagonal(n), graded, graded.mT, graded.flip(-1)])
    a = a.to(dtype).repeat(times, 1, 1)

    def errors(function: Any) -> tuple[float, ...]:
        u, s, vh = function(lambda a: tuple(torch.linalg.svd(a)), a)
        assert bool((s[..., :-1] >= s[..., 1:]).all() and (s >= 0).all())
        return residual(u * s.unsqueeze(-2) @ vh, a), orthogonal(u), orthogonal(vh.mT)

    eager = errors(lambda function, a: function(a))
    for error, least in zip(errors(compiled), eager, strict=True):
        assert error <= 3 * least + 4


#: Of matrices whose values are bisected: fewer than lanes, one block of searches and several.
REDUCED = sweep(
    [(1, 1), (2, 2), (9, 9), (3, 20, 20), (70, 70), (2, 33, 12), (5, 140)],
    (9, 9),
    extended=[(70, 70)],
)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize("shape", REDUCED, ids=str)
def test_values_without_vectors(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    a = random(*shape, dtype=dtype)
    values_close(compiled(torch.linalg.svdvals, a), torch.linalg.svdvals(a.double()))
    if shape[-1] == shape[-2]:
        upper = compiled(lambda a: torch.linalg.eigvalsh(a, UPLO="U"), a)
        values_close(upper, torch.linalg.eigvalsh(a.double(), UPLO="U"))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize("n", sweep([5, 24], 5, extended=[24]))
def test_values_of_hard_spectra(n: int, dtype: torch.dtype) -> None:
    a = hard(n, dtype)
    values_close(compiled(torch.linalg.eigvalsh, a), torch.linalg.eigvalsh(a.double()))
    values_close(compiled(torch.linalg.svdvals, a), torch.linalg.svdvals(a.double()))
    for scale in (1e-30, 1e30):
        small = a * scale
        found = compiled(torch.linalg.eigvalsh, small)
        values_close(found, torch.linalg.eigvalsh(small.double()))


def values_close(found: Tensor, exact: Tensor) -> None:
    """As far apart as rounding lets them be, each in units of the last place of the largest."""
    size = exact.abs().amax(-1, keepdim=True).clamp_min(1e-300)
    error = float(((found.double() - exact).abs() / size).max()) / torch.finfo(found.dtype).eps
    assert error < 4 + found.shape[-1]


@pytest.mark.extended
def test_many_matrices() -> None:
    factors_agree(random(70, 3, 3))
    systems_agree(definite(70, 3, 3), random(70, 3, 2))


def test_one_singular_matrix_of_many() -> None:
    a = definite(40, 3, 3, dtype=torch.float32)
    a[[5, 37]] = 0
    inverse, info = compiled(torch.linalg.inv_ex, a)
    regular = info == 0
    assert torch.equal(regular, torch.linalg.inv_ex(a).info == 0)
    torch.testing.assert_close(inverse[regular], torch.linalg.inv(a[regular]))
    tiny = a[regular] * 1e-38
    x = compiled(torch.linalg.solve, tiny, tiny)
    torch.testing.assert_close(x, torch.eye(3).expand_as(x), rtol=1e-2, atol=1e-2)


SYSTEMS: dict[str, Callable[[Tensor], Any]] = {
    "inv": torch.linalg.inv,
    "solve": lambda a: torch.linalg.solve(a, a.mT + 1),
    "solve vector": lambda a: torch.linalg.solve(a, a[..., 0]),
    "solve right": lambda a: torch.linalg.solve(a, a.mT + 1, left=False),
    "solve transposed": lambda a: torch.linalg.solve(a.mT, a),
    "det": torch.linalg.det,
    "slogdet": lambda a: tuple(torch.linalg.slogdet(a)),
    "matrix_power": lambda a: torch.linalg.matrix_power(a, -2),
    "lu_solve": lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a.mT),
    "lu_solve adjoint": lambda a: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(a), a, left=False, adjoint=True
    ),
    "triangular": lambda a: torch.linalg.solve_triangular(a, a.mT, upper=False),
    "triangular right": lambda a: torch.linalg.solve_triangular(a, a.mT, upper=True, left=False),
    "unit triangular": lambda a: torch.linalg.solve_triangular(
        a / 8, a.mT, upper=True, unitriangular=True
    ),
    "cholesky_solve": lambda a: torch.cholesky_solve(a.mT, a),
    "cholesky_inverse": lambda a: torch.cholesky_inverse(a, upper=True),
    "pinv": torch.linalg.pinv,
    "pinv hermitian": lambda a: torch.linalg.pinv(a @ a.mT, hermitian=True),
    "matrix_rank": torch.linalg.matrix_rank,
    "ormqr": lambda a: torch.ormqr(*torch.geqrf(a), a, transpose=True),
}
#: One of each algorithm.
EACH = ("inv", "slogdet", "lu_solve adjoint", "cholesky_solve")


@pytest.mark.parametrize(
    "case",
    sweep(
        product([(3, 3), (2, 4, 7, 7), (0, 0), (3, 0, 0)], SYSTEMS),
        *(((2, 4, 7, 7), name) for name in EACH),
        ((3, 0, 0), "inv"),
        extended=[
            *(((2, 4, 7, 7), name) for name in SYSTEMS if name not in EACH),
            *product([(3, 0, 0)], ("det", "solve", "pinv")),
        ],
    ),
    ids=str,
)
def test_systems_and_determinants(case: tuple[tuple[int, ...], str]) -> None:
    shape, name = case
    if not shape[-1] and name in ("solve vector", "matrix_rank", "pinv hermitian"):
        shape = (1, 1)
    a = random(*shape) + 3 * torch.eye(shape[-1], dtype=torch.float64)
    found, expected = compiled(SYSTEMS[name], a), SYSTEMS[name](a)
    torch.testing.assert_close(found, expected)


#: Blocks of rows and some that are left, few and many columns, of one and of several matrices.
TRIANGULAR = [
    ((67, 67), 4),
    ((2, 130, 130), 1),
    *(
        pytest.param(*case, marks=pytest.mark.extended)
        for case in (((35, 35), 200), ((20, 9, 9), 9), ((3, 5, 5), 0))
    ),
]


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ONE_DTYPE, ids=str)
@pytest.mark.parametrize(("shape", "columns"), TRIANGULAR, ids=str)
def test_triangular_systems(shape: tuple[int, ...], columns: int, dtype: torch.dtype) -> None:
    n = shape[-1]
    t = random(*shape, dtype=dtype) / n**0.5 + 2 * torch.eye(n, dtype=dtype)
    b = random(*shape[:-1], columns, dtype=dtype)
    solve = torch.linalg.solve_triangular
    for upper, unit, turned in ((False, False, False), (True, True, False), (True, False, True)):

        def function(
            t: Tensor, b: Tensor, u: bool = upper, one: bool = unit, m: bool = turned
        ) -> Tensor:
            return solve(t.mT if m else t, b, upper=u, unitriangular=one)

        exact = function(t.double(), b.double())
        found, eager = compiled(function, t, b), function(t, b)
        assert found.shape == exact.shape
        if columns:
            assert residual(found, exact) < 3 * residual(eager, exact) + 4


@pytest.mark.parametrize(
    "name",
    sweep(LOSSES, "qr", extended=["cholesky", "solve", "lu", "eigvalsh", "svdvals"]),
)
def test_gradients(name: str) -> None:
    gradients_agree(name, random(2, 5, 5) + 3 * torch.eye(5, dtype=torch.float64))


@pytest.mark.simulated
@pytest.mark.each_choice("extended")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (torch.linalg.inv, "linalg.inv: .*the input matrix is singular"),
        (lambda a: torch.linalg.solve(a, a), "linalg.solve: .*the input matrix is singular"),
        (torch.linalg.cholesky, "linalg.cholesky: .*not positive-definite"),
        (torch.linalg.lu_factor, "linalg.lu_factor: .*division by zero"),
    ],
)
def test_singular_matrices_raise_as_in_eager_mode(function: Any, message: str) -> None:
    a = torch.eye(4)
    a[2, 2] = 0
    kind = RuntimeError if function is torch.linalg.lu_factor else torch.linalg.LinAlgError
    with pytest.raises(kind, match=message):
        function(a)
    with pytest.raises(kind, match=message):
        compiled(function, a)


@pytest.mark.parametrize("function", [torch.linalg.eigvalsh, torch.linalg.svdvals])
def test_matrices_with_nan_have_no_eigenvalues(function: Any) -> None:
    a = torch.full((4, 4), torch.nan)
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
        compiled(function, a)


def test_info_says_which_minor_and_which_pivot_failed() -> None:
    a = torch.eye(5).repeat(3, 1, 1)
    a[1, 3, 3] = 0
    for function in (torch.linalg.cholesky_ex, torch.linalg.lu_factor_ex, torch.linalg.inv_ex):
        assert compiled(lambda a, f=function: f(a)[-1], a).tolist() == [0, 4, 0]


@pytest.mark.large
def test_info_of_a_matrix_that_is_factorized_by_squares() -> None:
    a = definite(200, 200)
    a[130, 130] = -1
    for minor in (131, 71):
        assert compiled(lambda a: torch.linalg.cholesky_ex(a).info, a).item() == minor
        a[70, 3] = torch.nan


@pytest.mark.parametrize(
    "function, rows, reason",
    [
        (lambda a: torch.linalg.svd(a).U, 513, "more than 512 rows and columns"),
        *(
            pytest.param(*case, marks=pytest.mark.extended)
            for case in (
                (
                    lambda a: torch.linalg.eigh(a).eigenvectors,
                    513,
                    "more than 512 rows and columns",
                ),
                (lambda a: torch.linalg.qr(a, "r").R, 2049, "more than 2048 rows and columns, for"),
            )
        ),
    ],
)
def test_large_matrices_are_left_to_pytorch(function: Any, rows: int, reason: str) -> None:
    a = random(rows, rows)
    with pytest.raises(FallbackError, match=reason):
        compiled(function, a)
    run = polyblocks_jit_torch(function, compile_options={"target": "cpu"})
    torch.testing.assert_close(run(a), function(a))
    assert any(re.search(reason, str(one)) for one in run.polyblocks_report().fallbacks)


@pytest.mark.parametrize(
    "dtype", sweep([torch.float32, torch.float64], torch.float32, extended=[torch.float64])
)
def test_vectors_of_the_largest_matrices_that_the_guard_lets_pass(dtype: torch.dtype) -> None:
    a, b = random(512, 512).to(dtype), random(16, 16).to(dtype)
    a = a + a.mT

    def products(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(a)
        u, s, vh = torch.linalg.svd(b)
        return (vectors * values) @ vectors.mT, (u * s) @ vh

    error = 2e-4 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(compiled(products, a, b), (a, b), rtol=error, atol=error)
