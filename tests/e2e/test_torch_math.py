"""Elementary functions through the whole compiler against eager PyTorch, with special values."""

from __future__ import annotations

import pytest
from tests.support.sweeps import sweep

torch = pytest.importorskip("torch")
F = torch.nn.functional

INF, NAN = float("inf"), float("nan")

UNARY = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "rsqrt", "sqrt", "sigmoid",
]  # fmt: skip


def _values(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    special = [0.0, info.tiny, info.eps, 0.5, 1.0, 2.0, 3.5, 10.0, 88.0, 1e4, info.max, INF, NAN]
    special += [-x for x in special]
    return torch.cat([torch.tensor(special, dtype=dtype), torch.randn(500).to(dtype) * 3])


def _all_of_them(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(getattr(torch, name)(x) for name in UNARY)


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [
        (torch.float32, 1e-6),
        pytest.param(torch.float64, 2e-15, marks=pytest.mark.extended),
        pytest.param(torch.float16, 2e-3, marks=pytest.mark.extended),
        (torch.bfloat16, 1.6e-2),
    ],
)
def test_functions_of_one_argument(dtype: torch.dtype, rtol: float) -> None:
    from polyblocks_torch import polyblocks_jit_torch

    x = _values(dtype)
    compiled = polyblocks_jit_torch(_all_of_them)
    ours, eager = compiled(x), _all_of_them(x)
    assert not compiled.polyblocks_report().fallbacks
    for name, a, b in zip(UNARY, ours, eager, strict=True):
        # PyTorch's own erf of the smallest normal bfloat16 is 0.
        atol = 2 * torch.finfo(dtype).tiny
        torch.testing.assert_close(
            a, b, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text, n=name: f"{n}: {text}"
        )
        zero = (b == 0) & (a == 0)
        assert torch.equal(torch.signbit(a[zero]), torch.signbit(b[zero])), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floored_quotients_of_any_size(dtype: torch.dtype) -> None:
    """Next to integers, too large to have a fraction, of infinities, zeros and NaN."""
    from polyblocks_torch import polyblocks_jit_torch

    y = torch.randn(3, 4001, dtype=dtype)
    whole = 2 ** (torch.rand(4001) * (30 if dtype == torch.float32 else 58))
    x = y * whole.round().to(dtype)
    x[1] = torch.nextafter(x[1], torch.full_like(x[1], INF))
    x[2] = torch.nextafter(x[2], torch.full_like(x[2], -INF))
    limits = torch.finfo(dtype)
    special = [0.0, -0.0, INF, -INF, NAN, 1.0, -3.0, limits.max, limits.tiny]
    a, b = torch.meshgrid(*[torch.tensor(special, dtype=dtype)] * 2, indexing="ij")
    x, y = torch.cat([x.flatten(), a.flatten()]), torch.cat([y.flatten(), b.flatten()])
    found, expected = polyblocks_jit_torch(torch.floor_divide)(x, y), torch.floor_divide(x, y)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal((1 / found).nan_to_num(), (1 / expected).nan_to_num())


def test_huge_angles(check) -> None:
    x = torch.tensor([1e6, 1.1e6, 1e10, 1e22, 3e38, -1e30, 16367173 * 2.0**72])
    check(lambda x: (torch.sin(x), torch.cos(x), torch.tan(x)), x)
    check(lambda x: (torch.sin(x), torch.cos(x)), x.double() ** 6)


def test_powers_with_constant_exponents(check) -> None:
    exponents = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 1.7, 5)
    check(lambda x: [x**exponent for exponent in exponents], _values(torch.float32))


def test_powers_of_tensors(check) -> None:
    x = _values(torch.float32)[:60]
    y = torch.cat([x[:26], torch.arange(-17.0, 17.0)])
    check(lambda x, y: (x[:, None] ** y[None, :], torch.atan2(x[:, None], y[None, :])), x, y)


def test_powers_of_integers(check) -> None:
    x = torch.arange(-20, 20)
    check(lambda x: (x**0, x**1, x**2, x**3, x**11, x**0.5, x**2.0), x)
    check(lambda x: x**3, x.to(torch.int8))
    check(lambda x: (x**2, x**0.5), x > 0)


def test_built_from_them(check) -> None:
    x = torch.randn(300) * 4
    check(lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x)), x)
    check(lambda x: (F.softplus(x), F.elu(x), F.logsigmoid(x), torch.logaddexp(x, -x)), x)
    check(lambda x: (F.softmax(x, 0), F.log_softmax(x, 0), torch.logsumexp(x, 0)), x)


POLYNOMIALS = [
    *(f"{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he"),
    *("laguerre_polynomial_l", "legendre_polynomial_p"),
]


@pytest.mark.parametrize(
    "name",
    sweep(
        POLYNOMIALS,
        "hermite_polynomial_h",
        extended=["chebyshev_polynomial_u", "legendre_polynomial_p"],
    ),
)
def test_polynomials_of_any_degree(check, name: str) -> None:
    function = getattr(torch.special, name)
    x = torch.cat([torch.tensor([0.0, 1.0, -1.0, 2.0, INF], dtype=torch.float64)] * 2)
    x[5:] = torch.rand(5, dtype=torch.float64) * 3 - 1.5
    n = torch.tensor([[-1.0], [0.0], [1.0], [2.0], [5.7], [9.0], [20.0]], dtype=torch.float64)
    check(lambda x, n: (function(x, n), function(x[0], n), function(x, 3)), x, n)
    check(lambda n: function(0.5, n), torch.tensor([130.0, 600.0], dtype=torch.float64))
    check(lambda x, n: function(x, n), x[:0], n)
    # What is no number is taken no further.
    check(lambda x: function(x, 2**31 - 1), torch.tensor([-2.0, -INF]))


def test_numbers_before_tensors(check) -> None:
    def divided(x):
        return [torch.div(n, x, rounding_mode=m) for n in (7, -7, 300) for m in ("floor", "trunc")]

    for dtype in (torch.int64, torch.uint8, torch.float32):
        check(divided, torch.tensor([1, 2, 3, 250]).to(dtype))
    check(divided, torch.tensor(-3))

    def logarithms(x):
        log1p = torch.special.xlog1py
        return torch.xlogy(2.5, x), torch.xlogy(0, x), torch.xlogy(x, 2), log1p(2, x), log1p(x, 2.5)

    check(logarithms, torch.tensor([0.0, 1.0, 2.5, INF, NAN]))
    check(logarithms, torch.tensor([0, 1, 2]))
