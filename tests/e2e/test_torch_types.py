"""Types, constants and Python numbers are PyTorch's, whatever the importer makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as functional
import type_matrix as matrix
from torch import Tensor, tensor

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("uint8", "int16"),
        ("bool", "int32"),
        ("int8", "uint8"),
        ("float16", "bfloat16"),
        ("int64", "float32"),
        ("uint8", None),
        ("bool", None),
    ],
)
def test_types_are_promoted_as_in_eager_mode(first: str, second: str | None) -> None:
    x_type = getattr(torch, first)
    y_type = getattr(torch, second) if second is not None else None
    given = matrix.arguments(x_type, y_type)
    # Some of them here; the whole matrix is tests/slow/type_matrix.py.
    chosen = [
        case for i, case in enumerate(matrix.cases(x_type, y_type)) if i % 5 == len(first) % 5
    ]
    known = matrix.defined(iter(chosen), given)
    assert len(known) > 10
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
    (lambda x: functional.pad(x.long(), (1, 1), value=2**63 - 1), I32),
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


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_by_pytorch(mode: str) -> None:
    x = torch.randint(0, 255, (1, 3, 9, 9), dtype=torch.uint8)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        y = x ^ 1
        by = [functional.interpolate(y, mode=mode, scale_factor=(2.0, 1.5)) + 1]
        return *by, functional.interpolate(y, mode=mode, size=(7, 5)) * 2

    with pytest.raises(FallbackError, match="resizes bytes with fixed-point weights"):
        polyblocks_jit_torch(compile_options=STRICT)(function)(x)
    torch._dynamo.reset()
    ours = polyblocks_jit_torch(compile_options={"target": "cpu"})(function)(x)
    assert all(map(torch.equal, ours, function(x)))
