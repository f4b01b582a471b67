"""Results without a gradient take no part in a backward graph, as in eager mode."""

from __future__ import annotations

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def several(x):
    spread, middle = torch.var_mean(x[:1])
    product = x.sqrt().reshape(1, -1) @ torch.ones(x.shape[0], 2)
    return x.sqrt(), x * 2, x.log().sum(), spread, middle, product


@pytest.mark.parametrize("used", [(1,), (0,), (1, 4), (1, 2), (3, 5), (0, 1, 2, 3, 4, 5)], ids=str)
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
