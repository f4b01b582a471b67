"""What a program asserts of its data is checked by the compiled program, which raises as eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from asserting import asserted, asserted_of_a_factor
from torch import Tensor

import polyblocks
from polyblocks.errors import ExecutionError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"target": "cpu", "strict_target": True}


def asserted_by_function(x: Tensor) -> Tensor:
    torch._assert(x.sum() < 3, "too large")
    return x + 1


def asserted_later(x: Tensor) -> Tensor:
    torch._assert_async(x.sum() < 3, "too large")
    return x + 1


def asserted_without_a_message(x: Tensor) -> Tensor:
    torch._assert_async(x.sum() - 5)
    return x + 1


def checked(x: Tensor) -> Tensor:
    torch._check(x.sum().item() < 3, lambda: "too large")
    return x + 1


def checked_everywhere(x: Tensor) -> Tensor:
    torch._check_tensor_all(x < 1, lambda: "too large")
    return x + 1


def checked_with_a_type(x: Tensor) -> Tensor:
    torch._check_tensor_all_with(ValueError, x < 1, lambda: "too large")
    return x + 1


def checked_and_returned(x: Tensor) -> Tensor:
    torch._assert_async((x < 1).all(), "too large")
    return x


CHECKS: dict[Callable[[Tensor], Tensor], str] = {
    asserted: "too large",
    asserted_by_function: "too large",
    asserted_later: "too large",
    asserted_without_a_message: "Expected Tensor with single nonzero value, but got zero",
    checked: "too large",
    checked_everywhere: "too large",
    checked_with_a_type: "too large",
    checked_and_returned: "too large",
}


@pytest.mark.each_choice
@pytest.mark.parametrize("function", CHECKS)
@pytest.mark.parametrize("gradient", [False, True])
def test_a_check_of_the_program(function: Callable[[Tensor], Tensor], gradient: bool) -> None:
    ours = polyblocks_jit_torch(compile_options=STRICT)(function)
    right, wrong = torch.full((5,), 0.25), torch.ones(5)
    for x in (right, wrong):
        x.requires_grad_(gradient)
    assert torch.equal(ours(right), function(right))
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as eager:
        function(wrong)
    with pytest.raises(eager.type, match=CHECKS[function]) as found:
        ours(wrong)
    assert isinstance(found.value, ExecutionError)
    assert str(found.value) == str(eager.value)


@pytest.mark.simulated
def test_a_check_ends_no_graph() -> None:
    for function in (asserted_by_function, checked_everywhere):
        ours = polyblocks_jit_torch(function)
        ours(torch.zeros(5))
        assert ours.polyblocks_report().whole
        with pytest.raises(ExecutionError, match="too large"):
            ours(torch.ones(5))


@pytest.mark.simulated
def test_the_first_check_that_fails_is_raised() -> None:
    @polyblocks_jit_torch(compile_options=STRICT)
    def ours(x: Tensor, i: Tensor) -> Tensor:
        torch._assert_async((x < 9).all(), "first")
        torch._assert_async((x < 5).all(), "second")
        return x[i]

    x, i = torch.arange(4.0), torch.tensor([1])
    assert torch.equal(ours(x, i), x[i])
    with pytest.raises(ExecutionError, match="first"):
        ours(x + 9, i)
    with pytest.raises(ExecutionError, match="second"):
        ours(x + 4, i)
    with pytest.raises(IndexError, match="index out of range"):
        ours(x, i + 5)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex64]
)
def test_what_is_asserted_of_any_type(dtype: torch.dtype) -> None:
    @polyblocks_jit_torch(compile_options=STRICT)
    def ours(x: Tensor) -> Tensor:
        torch._assert_async(x, "no zero")
        return x.clone()

    for shape in ((), (1,), (1, 1)):
        x = torch.ones(shape, dtype=dtype)
        assert torch.equal(ours(x), x)
        with pytest.raises(ExecutionError, match="no zero"):
            ours(torch.zeros(shape, dtype=dtype))


def test_numbers_of_the_program_are_computed_with() -> None:
    def function(x: Tensor, n: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        k, s, t = (n * 1).item(), x.sum().item(), (b & True).item()
        torch._check(k >= -3)
        torch._check(k != 7, lambda: "seven")
        torch._check((k * 2 + 1) % 5 != 2, lambda: "a remainder of two")
        torch._check(s < 1e6, lambda: "a large sum")
        torch._check(t, lambda: "not true")
        return x + k, x * s, (x * k).to(torch.int32) - k, torch.where(x > s, x, k)

    ours = polyblocks_jit_torch(compile_options=STRICT)(function)
    x, b = torch.tensor([0.5, -2.0, 3.0]), torch.tensor(True)
    for n in (torch.tensor(4), torch.tensor(-3), torch.tensor(2**31 - 1)):
        for mine, eager in zip(ours(x, n, b), function(x, n, b), strict=True):
            assert mine.dtype == eager.dtype
            assert torch.equal(mine, eager)
    wrong = {
        "seven": (x, torch.tensor(7), b),
        "a remainder of two": (x, torch.tensor(8), b),
        "a large sum": (x * 1e7, torch.tensor(4), b),
        "not true": (x, torch.tensor(4), ~b),
        "Runtime assertion failed for expression": (x, torch.tensor(-4), b),
        "value cannot be converted to type int without overflow": (x, torch.tensor(2**40 + 1), b),
    }
    for message, arguments in wrong.items():
        with pytest.raises(ExecutionError, match=message):
            ours(*arguments)


def test_checks_in_branches_and_parts() -> None:
    @polyblocks_jit_torch
    def branch(x: Tensor) -> Tensor:
        def negative(x: Tensor) -> Tensor:
            torch._assert_async((x > -5).all(), "too small")
            return -x

        return torch.cond(x.sum() < 0, negative, lambda x: x * 2, (x,))

    x = torch.arange(3.0)
    assert torch.equal(branch(x), x * 2)
    assert torch.equal(branch(x - 4), 4 - x)
    with pytest.raises(RuntimeError, match="too small"):
        branch(x - 9)

    parts = polyblocks_jit_torch(asserted_of_a_factor)
    assert torch.allclose(parts(torch.zeros(3, 3)), torch.zeros(3, 3))
    with pytest.raises(AssertionError, match="too large"):
        parts(torch.eye(3) * 9)


def test_a_check_of_a_file() -> None:
    function: Any = polyblocks.load(polyblocks.aot(checked_with_a_type, [torch.zeros(5)]))
    assert torch.equal(function(torch.zeros(5)), torch.ones(5))
    with pytest.raises(ExecutionError, match="ValueError: too large"):
        function(torch.ones(5))
