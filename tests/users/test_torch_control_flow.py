"""``torch.cond``, ``while_loop`` and ``scan``: compiled whole, forward and backward."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}
leaves = torch.utils._pytree.tree_leaves


def check(function: Any, *arguments: torch.Tensor, gradients: bool = False) -> Any:
    """Compare with eager mode; returns the report."""
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    runs = []
    for call in (compiled, function):
        own = [a.detach().clone().requires_grad_(gradients) for a in arguments]
        results = leaves(call(*own))
        if gradients:
            sum((r * r.detach().cos()).sum() for r in results).backward()
        runs.append((results, [a.grad for a in own]))
    for found, expected in zip(*runs, strict=True):
        torch.testing.assert_close(found, expected)
    report = compiled.polyblocks_report()
    assert report.whole
    return report


def either(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: 2 * x.cos(), (x,))


@pytest.mark.parametrize("gradients", sweep([False, True], True))
def test_cond(gradients):
    x = torch.rand(7, 5)
    for value in (x, -x):
        check(either, value, gradients=gradients)


def test_cond_takes_the_branch_of_each_call():
    compiled = polyblocks_jit_torch(either, compile_options=STRICT)
    x = torch.rand(7, 5)
    torch.testing.assert_close(compiled(x), x.sin())
    torch.testing.assert_close(compiled(-x), 2 * x.cos())
    assert len(compiled.polyblocks_report().variants) == 1
    assert torch.isnan(compiled(torch.full((7, 5), torch.nan))).all()


def test_while_loop_that_counts():
    def power(x):
        return while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, y * 1.5), (torch.tensor(0), x))

    check(power, torch.randn(3, 4))


def test_while_loop_that_looks_at_its_data():
    def newton(a):
        def goes_on(x, a):
            return ((x * x - a).abs() > 1e-5 * a).any()

        return while_loop(goes_on, lambda x, a: (0.5 * (x + a / x), a.clone()), (a.sqrt(), a))[0]

    report = check(newton, torch.tensor([2.0, 9.0, 1e4]))
    assert any("loop" in kernel["name"] for kernel in report.parts[0].kernels)


def recurrence(h, xs, weight):
    def step(h, x):
        h = torch.tanh(h @ weight + x)
        return h, 2 * h

    return scan(step, h, xs, dim=0)


@pytest.mark.parametrize("gradients", sweep([False, True], True))
def test_scan(gradients):
    torch.manual_seed(0)
    h, xs, weight = torch.randn(3, 4), torch.randn(5, 3, 4), torch.randn(4, 4)
    check(recurrence, h, xs, weight, gradients=gradients)


def test_scan_from_the_end():
    def backward(h, xs):
        return scan(lambda h, x: (h + x, h * x), h, xs, dim=0, reverse=True)

    report = check(backward, torch.randn(4), torch.randn(6, 4))
    # Read and written from the end, not copied.
    assert not [k for k in report.parts[0].kernels if "flip" in k["name"]]


@pytest.mark.slow
def test_scan_of_another_dimension_and_trees():
    def sums(start, xs):
        def step(carry, x):
            new = {"a": carry["a"] + x["p"], "b": carry["b"] * x["q"]}
            return new, new["a"] - new["b"]

        return scan(step, {"a": start, "b": start.clone()}, {"p": xs, "q": xs.cos()}, dim=1)

    check(sums, torch.randn(3), torch.randn(3, 5))


@pytest.mark.slow
def test_control_flow_in_control_flow():
    def nested(x):
        def body(i, y):
            y = torch.cond(y.sum() > 0, lambda y: y - 0.3, lambda y: y + 0.7, (y,))
            return i + 1, y

        return while_loop(lambda i, y: i < 6, body, (torch.tensor(0), x))[1]

    check(nested, torch.randn(5))


@pytest.mark.parametrize(
    "dtype",
    [
        torch.int8,
        *(
            pytest.param(dtype, marks=pytest.mark.slow)
            for dtype in (torch.uint8, torch.int64, torch.bool, torch.float16)
        ),
    ],
)
def test_dtypes_of_what_is_carried(dtype):
    x = torch.tensor([3, 100, 0, 7]).to(dtype)

    def turned(x):
        return while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x.roll(1).clone()), (torch.tensor(0), x)
        )[1]

    check(turned, x)


def test_control_flow_that_cannot_be_compiled_falls_back_whole(caplog):
    def factored(x):
        return torch.cond(
            x.sum() > 0,
            lambda x: torch.linalg.ldl_factor_ex(x).LD[:, 0],
            lambda x: x.sum(0),
            (x @ x.mT,),
        )

    compiled = polyblocks_jit_torch(factored)
    x = torch.rand(4, 4)
    with caplog.at_level(logging.WARNING, "polyblocks"):
        torch.testing.assert_close(compiled(x), factored(x))
    (row,) = compiled.polyblocks_report().fallbacks
    assert row.op == "cond"
    assert "test_torch_control_flow.py" in row.location
    assert len(caplog.messages) == 1
