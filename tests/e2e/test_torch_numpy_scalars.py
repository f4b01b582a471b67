"""Scalars of NumPy beside tensors are the numbers that eager PyTorch takes them for."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

SCALARS = [
    *(np.float64(2.5), np.float16(2.5), np.int64(3), np.True_),
    *(pytest.param(scalar, marks=pytest.mark.slow) for scalar in (np.float32(2.5), np.int32(3))),
]
OPERATORS = [
    operator.add, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.ge, operator.eq,
]  # fmt: skip


def both_ways(x, n):
    made = [f(x, n) for f in OPERATORS]
    if x.dtype != torch.bool:
        made += [f(n, x) for f in OPERATORS]
    return made


def assert_same(ours, eager):
    for a, b in zip(ours, eager, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3 if b.dtype == torch.float16 else 1e-6, atol=1e-6)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool, torch.float16], ids=str)
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_arithmetic_and_comparisons(dtype, scalar):
    function = both_ways
    if dtype == torch.bool:
        # There is no modulus, quotient or power of booleans, but beside a number.
        function = lambda x, n: [x + n, n + x, x * n, x / n, x < n, n == x]  # noqa: E731
    x = torch.tensor([1, 2, 3]).to(dtype)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    assert_same(ours(x, scalar), function(x, scalar))


def test_tensors_without_dimensions():
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(both_ways)
    # Numbers that widen the tensor's type, and that do not.
    for dtype, scalar in (
        (torch.int32, np.float64(2.5)),
        (torch.int32, np.int64(3)),
        (torch.float16, np.float64(2.5)),
    ):
        x = torch.tensor(2, dtype=dtype)
        assert_same(ours(x, scalar), both_ways(x, scalar))


SCALE = np.float64(0.5)
ROWS = np.array([0.5, 1.5])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [x * SCALE, x * 2 * SCALE, SCALE - x],
        lambda x: [x * np.sqrt(2.0), x / np.sqrt(np.float64(x.shape[-1]))],
        lambda x: [x * ROWS[1], x + ROWS.sum(), x * (ROWS[0] * ROWS[1])],
        lambda x: [x.mul(SCALE), torch.add(x, SCALE), torch.clamp(x, min=SCALE)],
        lambda x: [torch.where(x > 1, x, SCALE), torch.where(x > 1, SCALE, x), x.pow(SCALE)],
        lambda x: [x & np.int64(3), x << np.int32(2), x.masked_fill(x > 1, np.int64(7))],
        lambda x: [torch.from_numpy(ROWS) * x, x * torch.as_tensor(ROWS)],
    ],
)
def test_where_they_come_from(function):
    x = torch.tensor([1, 4], dtype=torch.int32)
    ours = polyblocks_jit_torch(function)
    assert_same(ours(x), function(x))


def test_an_array_without_dimensions_is_no_number():
    function = lambda x, n: [x * n]  # noqa: E731
    x = torch.tensor([1, 2, 3])
    ours = polyblocks_jit_torch(function)(x, np.array(2.5))
    assert_same(ours, function(x, np.array(2.5)))


def test_another_value_is_no_other_variant():
    ours = polyblocks_jit_torch(lambda x, n: x * n)
    x = torch.tensor([1, 2, 3])
    for value in (2.5, 3.5, 4.5):
        torch.testing.assert_close(ours(x, np.float64(value)), x * np.float64(value))
    assert len(ours.polyblocks_report().variants) == 1


def test_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    ours = polyblocks_jit_torch(lambda x, n: (x * n).pow(np.int64(2)).sum())
    ours(x, np.float64(1.5)).backward()
    torch.testing.assert_close(x.grad, 2 * 1.5**2 * x.detach())


@pytest.mark.each_choice
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("scalar", [np.complex64(1 + 2j), np.complex128(1 + 2j)], ids=repr)
@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64],
        torch.float32,
        torch.int64,
        torch.complex64,
    ),
    ids=str,
)
def test_complex_scalars(dtype, scalar):
    def function(x, n):
        return [
            x * n,
            n + x,
            torch.div(x, n),
            x * (n * 2) - n.real,
            x + n.conjugate(),
            x * scalar,
            x * abs(n),
        ]

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    for x in (torch.tensor([1, 0, 2]).to(dtype), torch.tensor(1).to(dtype)):
        assert_same(ours(x, scalar), function(x, scalar))


def test_what_is_discarded_of_a_complex_scalar_is_said():
    ours = polyblocks_jit_torch(lambda x, n: x * n)
    with pytest.warns(np.exceptions.ComplexWarning, match=r"real part.*pass a Python complex"):
        ours(torch.ones(2), np.complex64(1 + 2j))


def test_what_is_computed_of_a_number_has_its_type():
    def function(x, n):
        return [(x * n).exp() + n, ((x * n) + n).sum() * n]

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    for x in (torch.tensor([1, 2]), torch.tensor(2)):
        assert_same(ours(x, np.float64(2.5)), function(x, np.float64(2.5)))
