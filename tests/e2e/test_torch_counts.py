"""torch.bincount: with minlength and strict_target a result of that size, else Python's."""

from __future__ import annotations

import pytest
import torch

from polyblocks.errors import ExecutionError, FallbackError
from polyblocks_torch import polyblocks_jit_torch

STRICT = {"strict_target": True}
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
WEIGHTS = [None, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32]


def check(function, *arguments):
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    torch.testing.assert_close(
        compiled(*arguments), function(*arguments), rtol=0, atol=0, equal_nan=True
    )
    assert compiled.polyblocks_report().whole


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_types_of_values(dtype):
    check(lambda x: torch.bincount(x, minlength=7) * 2, torch.randint(0, 7, (101,)).to(dtype))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", WEIGHTS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 101])
def test_weights(dtype, size):
    weights = None if dtype is None else (torch.rand(size) * 9).to(dtype)
    if dtype is not None and dtype.is_floating_point and size > 1:
        weights[0], weights[1] = float("nan"), float("inf")
    check(lambda x, w: torch.bincount(x, w, 8), torch.randint(0, 7, (size,)), weights)


def test_method_of_a_view():
    check(lambda x: x[::3].bincount(minlength=9), torch.randint(0, 7, (101,)))


def test_weights_get_no_gradient():
    x = torch.randint(0, 5, (13,))

    def f(w):
        return torch.bincount(x, w, 5) * w.sum()

    ours, theirs = (torch.rand(13, generator=torch.manual_seed(1)).requires_grad_() for _ in "12")
    polyblocks_jit_torch(f, compile_options=STRICT)(ours).sum().backward()
    (torch.bincount(x, theirs.detach(), 5) * theirs.sum()).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_values_that_the_result_does_not_hold():
    compiled = polyblocks_jit_torch(
        lambda x: torch.bincount(x, minlength=4), compile_options=STRICT
    )
    assert compiled(torch.tensor([3, 0])).tolist() == [1, 0, 0, 1]
    with pytest.raises(ExecutionError, match=r"expected values below minlength=4.* larger minlen"):
        compiled(torch.tensor([4, 0]))
    with pytest.raises(ExecutionError, match="non-negative integral inputs"):
        compiled(torch.tensor([-1, 0]))


def test_without_minlength_its_size_depends_on_data():
    def f(x):
        return torch.bincount(x) * 2

    line = f.__code__.co_firstlineno + 1
    x = torch.tensor([5, 2])
    with pytest.raises(FallbackError, match=rf"pass minlength.*strict_target .*counts.py:{line}"):
        polyblocks_jit_torch(f, compile_options=STRICT)(x)


def test_fallback_names_the_operation_and_the_line():
    def f(x):
        return torch.bincount(x, minlength=2) * 2

    compiled = polyblocks_jit_torch(f)
    assert compiled(torch.tensor([3, 1])).tolist() == [0, 2, 0, 2]
    (row,) = compiled.polyblocks_report().graph_breaks
    assert "aten.bincount.default" in row.reason
    assert row.location == f"{__file__}:{f.__code__.co_firstlineno + 1}"
