"""Gradients of the gradients of a compiled function, taken outside of it: an error, never zeros."""

import pytest
import torch

from polyblocks.errors import ExecutionError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: The first saves its argument for its gradient, the second its result, the third nothing.
FUNCTIONS = {"sin": torch.sin, "exp": torch.exp, "square of a part": lambda x: x[:2] * 3}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("unused", [False, True])
def test_gradient_of_a_gradient(name, unused):
    x = torch.rand(4, requires_grad=True)
    fast = polyblocks_jit_torch(lambda x: FUNCTIONS[name](x).sum())
    (slope,) = torch.autograd.grad(fast(x), x, create_graph=True)
    with pytest.raises(ExecutionError, match="cannot be taken outside of it; expected"):
        torch.autograd.grad(slope.sum(), x, allow_unused=unused)


@pytest.mark.parametrize("needs", [False, True])
def test_hessian(needs):
    x = torch.rand(4, requires_grad=needs)
    fast = polyblocks_jit_torch(lambda x: x.exp().sum())
    with pytest.raises(ExecutionError, match="cannot be taken outside of it; expected"):
        torch.autograd.functional.hessian(fast, x)


def test_penalty_beside_the_loss():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    fast = polyblocks_jit_torch(net)
    x = torch.rand(5, 3, requires_grad=True)
    value = fast(x).sum()
    (slope,) = torch.autograd.grad(value, x, create_graph=True)
    with pytest.raises(ExecutionError, match="cannot be taken outside of it; expected"):
        (value + slope.square().sum()).backward()


def test_first_gradients_are_kept():
    x = torch.rand(4, requires_grad=True)
    fast = polyblocks_jit_torch(lambda x: x.exp().sum())
    (slope,) = torch.autograd.grad(fast(x), x, create_graph=True)
    torch.testing.assert_close(slope, x.exp())
    assert slope.requires_grad
