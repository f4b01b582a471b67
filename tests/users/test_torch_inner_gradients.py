"""Gradients that a function takes itself, and gradients of them."""

import copy

import pytest
import torch
from sweeps import sweep
from torch import nn

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


def network(inputs):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def derivatives(net, x):
    """Laplacian of a network, as physics-informed losses have it."""
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    total = 0
    for i in range(x.shape[1]):
        (second,) = torch.autograd.grad(slope[:, i].sum(), x, create_graph=True)
        total = total + second[:, i]
    return total.pow(2).mean()


def forces(net, x):
    distances = (x[:, None] - x[None]).pow(2).sum(-1, keepdim=True) + 1
    energy = net(distances).sum()
    (force,) = torch.autograd.grad(energy, x, create_graph=True)
    return energy + force.pow(2).sum()


def penalty(net, x):
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return ((slope.norm(2, 1) - 1) ** 2).mean()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("loss", "inputs"), [(derivatives, 3), (forces, 1), (penalty, 3)], ids=lambda v: str(v)[:20]
)
def test_loss_of_derivatives(loss, inputs):
    results = []
    for jit in (lambda f: f, polyblocks_jit_torch(compile_options=STRICT)):
        net = network(inputs)
        x = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
        x.data = torch.linspace(0, 1, 15, dtype=torch.float64).reshape(5, 3)
        value = jit(lambda x, net=net: loss(net, x))(x)
        value.backward()
        results.append([value, x.grad, *(p.grad for p in net.parameters())])
    for theirs, ours in zip(*results, strict=True):
        if theirs is None:  # the last bias has no part in a derivative
            assert ours is None or not ours.any()
        else:
            torch.testing.assert_close(ours, theirs)


def field(net, x):
    """Values and slopes at points that begin to need gradients inside."""
    points = x.detach().requires_grad_()
    values = net(points)
    (slope,) = torch.autograd.grad(values.sum(), points, create_graph=True)
    return values, slope


def test_inner_points_that_need_gradients():
    net = network(3)
    other = copy.deepcopy(net)
    x = torch.rand(5, 3, dtype=torch.float64)
    ours = polyblocks_jit_torch(lambda x: field(net, x), compile_options=STRICT)(x)
    theirs = field(other, x)
    torch.testing.assert_close(ours, theirs)
    for values, slope in (ours, theirs):
        (values.sin().sum() + (slope.norm(2, 1) - 1).pow(2).mean()).backward()
    for mine, weight in zip(net.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, weight.grad)


def leaf_as_result(x, w):
    points = x.detach().requires_grad_()
    return (points * w).sum(), points


def leaf_in_a_view(x, w):
    points = x.detach().requires_grad_()
    return (points * w).sum(), points[:2]


def leaf_alone(x, w):
    return (x.detach().requires_grad_() * w.detach()).sum()


@pytest.mark.parametrize(
    "function", sweep([leaf_as_result, leaf_in_a_view, leaf_alone], leaf_as_result, leaf_alone)
)
def test_inner_points_that_are_needed_outside(function):
    """Dynamo ends the graph where they begin to need gradients, and goes on behind it."""
    x, w = torch.rand(5, 3), torch.rand(5, 3, requires_grad=True)
    fast = polyblocks_jit_torch(function)
    outcomes = []
    for call in (fast, function):
        results = call(x, w)
        value, *rest = results if isinstance(results, tuple) else (results,)
        value.backward()
        outcomes.append([value, *rest, *(r.grad for r in rest if r.is_leaf)])
    torch.testing.assert_close(*outcomes)
    assert [r.requires_grad for r in outcomes[0]] == [r.requires_grad for r in outcomes[1]]
    assert not fast.polyblocks_report().whole


def test_inner_points_without_gradients_outside():
    """What needs gradients inside of ``enable_grad`` alone goes on needing them."""
    net = network(3)

    def inner(x):
        with torch.enable_grad():
            return field(net, x)

    with torch.no_grad():
        values, slope = polyblocks_jit_torch(inner)(torch.rand(5, 3, dtype=torch.float64))
    assert values.requires_grad
    assert slope.requires_grad


def test_gradient_with_respect_to_several():
    @polyblocks_jit_torch(compile_options=STRICT)
    def slopes(x, y):
        return torch.autograd.grad((x**3).sum(), (x, y), allow_unused=True)

    x, y = (torch.rand(3, requires_grad=True) for _ in range(2))
    first, second = slopes(x, y)
    torch.testing.assert_close(first, 3 * x.detach() ** 2)
    assert second is None


def slope(x, y):
    return torch.autograd.grad((x * y).sum(), x)[0]


def test_argument_that_is_computed_later(caplog):
    fast = polyblocks_jit_torch(slope)
    x, y = (torch.rand(3, requires_grad=True) for _ in range(2))
    torch.testing.assert_close(fast(x, y), y.detach())
    z = x.exp()
    torch.testing.assert_close(fast(x, z), (z + x * z).detach())
    assert "an argument was computed from other tensors" in caplog.text
    assert not fast.polyblocks_report().whole


def test_argument_that_is_computed_later_strictly():
    from polyblocks.errors import FallbackError

    fast = polyblocks_jit_torch(slope, compile_options=STRICT)
    x, y = (torch.rand(3, requires_grad=True) for _ in range(2))
    fast(x, y)
    with pytest.raises(FallbackError, match="an argument was computed from other tensors"):
        fast(x, x.exp())


def test_backward_gives_gradients_to_all_leaves():
    """Also behind arguments that are computed, which Dynamo would leave out."""

    @polyblocks_jit_torch
    def step(x):
        (x**2).sum().backward()
        return x.detach() + 1

    x = torch.rand(3, requires_grad=True)
    step(x)
    torch.testing.assert_close(x.grad, 2 * x.detach())
    x.grad = None
    step(x * 2)
    torch.testing.assert_close(x.grad, 8 * x.detach())


def updated(a, b):
    a.mul_(2)
    b.add_(a.sum())
    return a * b.sum()


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x, x[1:]),
        lambda x: (x[:3], x),
        lambda x: (x.view(2, 3), x.view(3, 2)[:, :1]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x[:3], x[:3]),
        lambda x: (x[:3].detach(), x[:3]),
    ],
)
def test_views_of_one_tensor_that_are_updated(views, caplog):
    """AOTAutograd fails where it makes them from one tensor again: PyTorch runs the function."""
    results = []
    for function in (updated, polyblocks_jit_torch(updated)):
        leaf = torch.arange(6.0).requires_grad_()
        x = leaf * 1
        result = function(*views(x))
        (result.sum() + x.sum()).backward()
        results.append((result, x, leaf.grad))
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert "AOTAutograd cannot trace it (AssertionError" in caplog.text


def test_views_of_one_tensor_that_are_updated_strictly():
    from polyblocks.errors import FallbackError

    x = torch.arange(6.0).requires_grad_() * 1
    with pytest.raises(FallbackError, match="AOTAutograd cannot trace it"):
        polyblocks_jit_torch(updated, compile_options=STRICT)(x, x[1:])
