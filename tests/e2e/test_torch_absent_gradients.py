"""Results without a gradient take no part in a backward graph, as in eager mode."""

from __future__ import annotations

import pytest
import torch
from sweeps import sweep
from torch._dynamo import compiled_autograd

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def several(x):
    spread, middle = torch.var_mean(x[:1])
    product = x.sqrt().reshape(1, -1) @ torch.ones(x.shape[0], 2)
    return x.sqrt(), x * 2, x.log().sum(), spread, middle, product


@pytest.mark.parametrize(
    "used",
    sweep(
        [(1,), (0,), (1, 4), (1, 2), (3, 5), (0, 1, 2, 3, 4, 5)], (1, 4), extended=[(1,), (3, 5)]
    ),
    ids=str,
)
def test_gradients_of_some_results(used):
    call = polyblocks_jit_torch(compile_options={"strict_target": True})(several)
    for _ in range(2):
        gradients = []
        for function in (call, several):
            x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
            results = function(x)
            torch.stack([results[i].sum() for i in used]).sum().backward(retain_graph=True)
            torch.stack([results[i].sum() for i in used[:1]]).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients, equal_nan=True)


def test_a_result_that_only_code_behind_a_graph_break_looks_at():
    seen = []

    def function(x):
        norm = torch.linalg.vector_norm(x * 0)
        doubled = x * 2
        seen.append(norm.item())
        return doubled

    x = torch.ones(3, requires_grad=True)
    polyblocks_jit_torch()(function)(x).sum().backward()
    assert seen == [0.0]
    assert torch.equal(x.grad, torch.full((3,), 2.0))


def test_two_graphs_of_which_one_knows_all_its_gradients():
    first = polyblocks_jit_torch()(lambda x: (x.sqrt(), x * 2))
    second = polyblocks_jit_torch()(lambda x: (x.sqrt(), x * 3))

    def gradient(one, other):
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        _, doubled = one(x)
        root, tripled = other(doubled + 1)
        (root + tripled).sum().backward()
        return x.grad

    eager = gradient(lambda x: (x.sqrt(), x * 2), lambda x: (x.sqrt(), x * 3))
    torch.testing.assert_close(gradient(first, second), eager)


def gradients_of(function, used, argument_used):
    """The gradient of what is used: some results, and the argument as it is afterwards."""
    x = torch.tensor([0.0, 1.0, 4.0, 0.0, 2.0], requires_grad=True)
    whole = x * 1
    results = function(whole[1:4])
    terms = [results[i].sum() for i in used] + [(whole * whole).sum()] * argument_used
    (gradient,) = torch.autograd.grad(torch.stack(terms).sum(), x)
    return gradient


def updated_behind(x):
    root = x.sqrt()
    x.add_(root * 0 + 1)
    return root, x * 2


def gives_its_argument(x):
    root, doubled = x.sqrt(), x * 2
    x.mul_(2)
    return root, doubled, x[1:], x.view(-1)


def gives_views_of_one_result(x):
    root = x.sqrt()
    x.mul_(2)
    return root.view(-1), root[1:], x * 1


@pytest.mark.parametrize(
    "function",
    sweep(
        [updated_behind, gives_its_argument, gives_views_of_one_result],
        updated_behind,
        extended=[gives_its_argument, gives_views_of_one_result],
    ),
)
def test_gradients_beside_an_argument_that_is_updated(function):
    call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    count = len(function(torch.ones(3)))
    for used in [(i,) for i in range(count)] + [(), (0, 1)]:
        for argument_used in (False, True):
            if used or argument_used:
                torch.testing.assert_close(
                    gradients_of(call, used, argument_used),
                    gradients_of(function, used, argument_used),
                    equal_nan=True,
                )


def test_a_tensor_that_code_behind_a_graph_break_updates_and_drops():
    def function(x, y):
        turned = x.cos()
        torch._dynamo.graph_break()
        turned[1:].mul_(2)
        return (y * 3).exp()

    x = torch.tensor([torch.inf, 1.0], requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    polyblocks_jit_torch()(function)(x, y).sum().backward()
    assert x.grad is None or torch.equal(x.grad, torch.zeros(2))


def test_a_tensor_that_a_gradient_needs_and_is_updated():
    def function(x):
        logarithm, tripled = x.log(), x * 3
        x[1:].mul_(2)
        return logarithm, tripled

    call = polyblocks_jit_torch()(function)
    x = torch.ones(3, requires_grad=True)
    _, tripled = call(x * 1)
    tripled.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 3.0))
    assert "updated in place after it was used" in str(call.polyblocks_report())
    logarithm, _ = call(x * 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logarithm.sum().backward()


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return a * 2 + (b + 1) * 3


class Ones(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, a):
        return torch.ones_like(a)


def affine(x):
    return *Affine.apply(x), x.sqrt()


def ones(x):
    return Ones.apply(x), x * 2


@pytest.mark.parametrize("function", [affine, ones])
def test_functions_of_the_user_whose_gradients_are_not_linear(function):
    """They are called where one of their gradients is there, with zeros for the others."""
    call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    for i in range(len(function(torch.ones(1)))):
        found = []
        for run in (call, function):
            x = torch.tensor([0.0, 4.0], requires_grad=True)
            run(x)[i].sum().backward()
            found.append(x.grad)
        assert torch.equal(*found)


def test_as_many_sets_of_absent_gradients_as_are_met():
    def function(x):
        return x * 2, *(x.sqrt() * i for i in range(1, 5))

    call = polyblocks_jit_torch()(function)
    for bits in range(1, 32, 2):
        found = []
        for run in (call, function):
            x = torch.tensor([0.0, 4.0], requires_grad=True)
            results = run(x)
            sum(results[i].sum() for i in range(5) if bits >> i & 1).backward()
            found.append(x.grad)
        torch.testing.assert_close(*found, equal_nan=True)


def test_an_absent_gradient_beside_a_number_that_changes():
    call = polyblocks_jit_torch()(lambda x, n: (x.sqrt() * n, x * n))
    for n in (2, 3, 4):
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        call(x, n)[1].sum().backward()
        assert torch.equal(x.grad, torch.full((2,), float(n)))


def test_compiled_autograd_traces_a_backward_graph_whole():
    call = polyblocks_jit_torch()(lambda x: (x * x, x * 2))
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    with compiled_autograd._enable(lambda graph: torch.compile(graph, backend="eager")):
        call(x)[1].sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 2.0))
