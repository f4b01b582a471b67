"""Types, constants and Python numbers are PyTorch's, whatever the importer makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as functional
import type_matrix as matrix
from sweeps import sweep
from torch import Tensor, tensor

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}


@pytest.mark.parametrize("every", sweep([15, 40], 40))
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("uint8", "int16"),
        ("float16", "bfloat16"),
        ("bool", None),
        *(
            pytest.param(*types, marks=pytest.mark.extended)
            for types in (("bool", "int32"), ("int8", "uint8"), ("int64", "float32"))
        ),
        pytest.param("uint8", None, marks=pytest.mark.extended),
    ],
)
def test_types_are_promoted_as_in_eager_mode(first: str, second: str | None, every: int) -> None:
    x_type = getattr(torch, first)
    y_type = getattr(torch, second) if second is not None else None
    given = matrix.arguments(x_type, y_type)
    # Some of them here; the whole matrix is tests/slow/type_matrix.py.
    chosen = [
        case for i, case in enumerate(matrix.cases(x_type, y_type)) if i % every == len(first)
    ]
    known = matrix.defined(iter(chosen), given)
    assert len(known) > 45 // every
    function = polyblocks_jit_torch(compile_options={"target": "cpu"})(
        matrix.program([case for case, _ in known])
    )
    ours = function(*(x.clone() for x in given))
    wrong = {
        case.name: found
        for (case, eager), mine in zip(known, ours, strict=True)
        if (found := matrix.difference(mine, eager)) is not None
    }
    assert not wrong


X, I32 = torch.tensor([0.25, -1.5, 700.0]), torch.tensor([1, -5, 7], dtype=torch.int32)
U8, I8 = torch.tensor([200, 3], dtype=torch.uint8), torch.tensor([-128, 3], dtype=torch.int8)
B = torch.tensor([True, False])

#: Each computes something of a constant or a number that importers fold or retype.
CONSTANTS: list[tuple[Callable[..., Any], Tensor]] = [
    (lambda x: x + tensor([0.5, 0.25, 2.0]) * -1, X),
    (lambda x: torch.add(x, tensor([1, 2, 3]), alpha=-2), X),
    (lambda x: (x + tensor([-3]) // 2, x + tensor([-3]) % 2), X),
    (lambda x: x + tensor([-5], dtype=torch.int32) // 3, I32),
    (lambda x: x + torch.sign(tensor(-0.75)), X),
    (lambda x: x + torch.sign(tensor([-0.75, float("nan"), 0.0])), X),
    (lambda x: x & (tensor([False, True]) == True), B),  # noqa: E712
    (lambda x: (x + True, x > -1, x * 2), B),
    (lambda x: x & (tensor([float("nan"), 1.0]) == tensor([float("nan"), 1.0])), B),
    (lambda x: x + tensor([1.0039, 3.14159, 7.7], dtype=torch.bfloat16), X),
    (lambda x: x.bfloat16() + tensor(3.14159).bfloat16() * tensor(1.7).bfloat16(), X),
    (lambda x: torch.round(x.half(), decimals=2), X),
    (lambda x: (x << 32, x >> 33, x << -1, x >> -1), I32),
    (lambda x: (x << 8, x >> 9, x << 7), U8),
    (lambda x: functional.pad(x.long(), (1, 1), value=-(2**63)), I32),
    (lambda x: x.long() + torch.full((3,), float("nan")).to(torch.int64), I32),
    (lambda x: (x < 300, x == 255, x + 300, x > -1.5), I8),
    (lambda x: (x > -1, x < tensor([200, 255], dtype=torch.uint8), 5 - x), U8),
    (lambda x: torch.cat([x, tensor([0.5])]), U8),
    (lambda x: torch.stack([x, tensor([1, 2])]), U8),
    (lambda x: x + 2**40, I32),
    (lambda x: torch.where(x > 0, x, tensor([1, 2, 3])), X),
    (lambda x: (x.any(), x.all(0), x.sum(), x.amax(), x.sort()[0], x.argmax()), U8),
    (lambda x: (x.sum(dtype=torch.bool), x.prod(dtype=torch.bool)), I32),
    (lambda x: functional.max_pool2d(x.reshape(1, 1, 2), (1, 2)), U8),
    (lambda x: x.kthvalue(2)[0], U8),
    (lambda x: (x.sum(dtype=torch.complex64), x.mean(0, dtype=torch.complex128)), X),
    (lambda x: torch.slice_scatter(x * 1j, x[:2], 0, 1, 3), X),
]


def test_constants_and_numbers_are_those_of_eager_mode() -> None:
    arguments = [x.clone() for _, x in CONSTANTS]

    def function(*xs: Tensor) -> list[Any]:
        return [f(x) for (f, _), x in zip(CONSTANTS, xs, strict=True)]

    ours = polyblocks_jit_torch(compile_options=STRICT)(function)(*arguments)
    for number, (mine, eager) in enumerate(zip(ours, function(*arguments), strict=True)):
        assert matrix.difference(mine, eager) is None, f"case {number}"


def test_booleans_are_not_subtracted() -> None:
    function = polyblocks_jit_torch(compile_options={"target": "cpu"})(lambda x, b: x - b)
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor"):
        function(torch.tensor([1, 2]), torch.tensor([True, False]))


def test_integers_of_more_than_64_bits_are_refused() -> None:
    function = polyblocks_jit_torch(compile_options=STRICT)(lambda x, n: x + n)
    for n in (3, 4, 5):
        assert torch.equal(function(X, n), X + n)
    with pytest.raises(OverflowError, match="passed as int64, which does not hold 2361183241434"):
        function(X, 2**71)
    assert torch.equal(function(X, 6), X + 6)


def test_what_the_program_converts_is_rounded_before() -> None:
    """2.0001 and 20.001 are no halves, so products with them are computed in float32."""
    x = torch.tensor([1.0, 100.0, 0.3, 60000.0])
    programs: list[Callable[..., Any]] = [
        lambda x: (x.half() * 2.0001).float() * 3,
        lambda x: (x.half() * 20.001).double(),
        lambda x: (x.half() * 20.001) + x,
        lambda x: (x.half() * 20.001).reshape(2, 2).float(),
        lambda x: (x.half() * 2.0001).bfloat16(),
        lambda x: (x.half() * 2**20).int(),
        lambda x: (x.half() * 2**20).long(),
        lambda x: (x.bfloat16() * 1.001).float(),
    ]
    for position, program in enumerate(programs):
        expected = program(x)
        ours = polyblocks_jit_torch(compile_options=STRICT)(program)(x)
        assert ours.dtype == expected.dtype
        assert torch.equal(ours, expected), position


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize(
    "function",
    [
        *(torch.atan2, torch.maximum, torch.div),
        *(
            pytest.param(function, marks=pytest.mark.extended)
            for function in (
                *(torch.xlogy, torch.hypot, torch.copysign, torch.fmod, torch.sub),
                lambda x, y: torch.addcmul(x, y, y, value=2),
            )
        ),
    ],
    ids=lambda f: f.__name__,
)
def test_integers_that_halves_do_not_hold_are_infinite(function: Any, dtype: torch.dtype) -> None:
    x = torch.tensor([-torch.inf, 1.0, 2.0, -3.5], dtype=torch.float16)
    y = torch.tensor([2**62, 5, 2**30, 2**14 - 1]).clamp(max=torch.iinfo(dtype).max).to(dtype)
    for operands in ((x, y), (y, x)):
        if function is torch.addcmul and operands[0] is y:
            continue
        ours = polyblocks_jit_torch(compile_options=STRICT)(function)(*operands)
        torch.testing.assert_close(ours, function(*operands), equal_nan=True)


Z = torch.tensor([0j, 1j, 2.0, 3 + 1j, 0.0])
R = torch.tensor([0.0, 1.0, 2.0, 3.0, 1.0])


#: Programs of complex and of real numbers.
BESIDE: list[Callable[..., Any]] = [
    lambda z, r: z.bool(),
    lambda z, r: (z + z).to(torch.bool),
    lambda z, r: (z == r, r != z, z == r.double(), z == 1j, z != 2, z == True),  # noqa: E712
    lambda z, r: torch.zeros(2, 5, dtype=torch.bool).copy_(z),
    lambda z, r: torch.zeros(2, 5, dtype=torch.float64).copy_(z),
    lambda z, r: [
        torch.zeros_like(z, dtype=torch.float32) + r,
        torch.ones_like(z, dtype=torch.int64) + r,
        torch.full_like(z, True, dtype=torch.bool) & (z == 0),
        torch.full_like(r, 2 - 1j, dtype=torch.complex64) * r,
    ],
    lambda z, r: [z.sum(dtype=torch.float32), z.sum(0, dtype=torch.int64)],
    lambda z, r: [z.cumsum(0, dtype=torch.float64), z.mean(0, dtype=torch.float64)],
    lambda z, r: [
        torch.add(z, r, alpha=2 - 1j),
        torch.sub(r, z, alpha=1j),
        torch.rsub(z, z + 1, alpha=0.5 + 1j),
    ],
    lambda z, r: [
        torch.ldexp(z.to(torch.complex128), torch.tensor([1, 2, 200, -200, 127])),
        torch.ldexp(r.double(), torch.tensor(1.3, dtype=torch.float16)),
    ],
]


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_complex_numbers_beside_others() -> None:
    def all_of_them(z: Tensor, r: Tensor) -> list[Any]:
        return [program(z, r) for program in BESIDE]

    ours = polyblocks_jit_torch(compile_options=STRICT)(all_of_them)(Z, R)
    torch.testing.assert_close(ours, all_of_them(Z, R))


@pytest.mark.filterwarnings("ignore:BComplex32 support is experimental")
@pytest.mark.parametrize(
    "function",
    [
        lambda z, r: (r.bfloat16() * 100.5) * z[3],
        lambda z, r: z[3] / (r.bfloat16() * 0.5 + 1),
    ],
    ids=["product", "quotient"],
)
def test_complex_numbers_beside_bfloat16(function: Callable[..., Tensor]) -> None:
    """In newer releases of PyTorch they give bcomplex32, which its own kernels refuse as well."""
    strict = polyblocks_jit_torch(compile_options=STRICT)(function)
    if torch.result_type(Z[3], R.bfloat16()) == torch.complex64:
        torch.testing.assert_close(strict(Z, R), function(Z, R))
        return
    with pytest.raises(FallbackError, match="a tensor of dtype bcomplex32; strict_target"):
        strict(Z, R)
    for call in (function, polyblocks_jit_torch(function)):
        with pytest.raises(NotImplementedError, match="not implemented for 'BComplex32'"):
            call(Z, R)


def test_exponents_of_complex_numbers_in_bfloat16() -> None:
    """For which newer releases of PyTorch have no kernel."""
    exponents = torch.tensor([0.3, 1.3, 2.0, -1.7, 0.0], dtype=torch.bfloat16)
    ours = polyblocks_jit_torch(compile_options=STRICT)(torch.ldexp)
    torch.testing.assert_close(ours(Z, exponents), torch.ldexp(Z, exponents.float()))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("largest", [torch.amax, torch.amin], ids=["amax", "amin"])
def test_gradients_find_the_maximum_again(largest: Any, dtype: torch.dtype) -> None:
    """Where the backward graph computes the operand anew, from what the forward graph stored."""

    def function(x: Tensor) -> tuple[Tensor, ...]:
        inner = torch.log1p(x)
        outer = torch.sin(inner)
        return largest(outer, 0), inner, torch.linalg.vector_norm(outer, dim=0)

    generator = torch.Generator().manual_seed(0)
    x = torch.rand(33, 17, generator=generator).to(dtype)
    ours, eager = (x.clone().requires_grad_() for _ in range(2))
    for call, operand in (
        (polyblocks_jit_torch(compile_options=STRICT)(function), ours),
        (function, eager),
    ):
        torch.stack([result.float().sum() for result in call(operand)]).sum().backward()
    assert ours.grad is not None
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(ours.grad, eager.grad, rtol=4 * unit, atol=4 * unit)


def test_complex_numbers_that_are_not_finite() -> None:
    parts = torch.tensor([0.0, -0.0, 1.0, -2.5, torch.inf, -torch.inf, torch.nan])
    z = torch.complex(*torch.meshgrid(parts, parts, indexing="ij"))

    def program(z: Tensor) -> list[Tensor]:
        """A magnitude is infinite where a part is, whatever the other one is."""
        return [z.abs(), z.isnan(), z.isinf(), z.isfinite(), z.bool(), z == z, z.angle()]

    ours = polyblocks_jit_torch(compile_options=STRICT)(program)(z)
    torch.testing.assert_close(ours, program(z), equal_nan=True)


def test_a_complex_exponential_that_overflows() -> None:
    z = torch.complex(torch.tensor([255.0, 1.0, 255.0]), torch.tensor([0.0, -0.0, 1.0]))
    ours = polyblocks_jit_torch(compile_options=STRICT)(torch.exp)(z)
    expected = torch.tensor([complex(torch.inf, 0), complex(torch.e, -0.0)])
    torch.testing.assert_close(ours[:2], expected)
    assert ours[2].isinf()
