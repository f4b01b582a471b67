"""Random operations draw from PyTorch's generator: the same numbers as in eager mode."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.dropout(x * 2, 0.3) + 1,
        lambda x: F.dropout2d(x.view(2, 4, 4, 4) + 1, 0.5),
        lambda x: x + torch.rand(8, 16),
        lambda x: x + torch.randn_like(x) * torch.rand_like(x + 1),
        lambda x: torch.bernoulli(x) + 1,
        lambda x: x[torch.randperm(8)] * 2,
        lambda x: torch.multinomial(x, 3) + 1,
        lambda x: x + torch.randint(0, 9, (16,)),
        lambda x: x + torch.normal(x, 2.0),
    ],
    ids=[
        "dropout",
        "dropout2d",
        "rand",
        "like",
        "bernoulli",
        "randperm",
        "multinomial",
        "randint",
        "normal",
    ],
)
def test_draws_are_eagers(check, function):
    report = check(function, torch.rand(8, 16))
    assert report.random_draws
    assert not report.fallbacks


@pytest.mark.parametrize(
    "make",
    [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0].expand(4, 6), lambda x: x.view(6, 2, 2)],
)
def test_draws_of_strided_tensors(check, make):
    x = make(torch.rand(4, 6))
    check(lambda x: (F.dropout(x, 0.5), torch.rand_like(x), torch.empty_like(x).bernoulli_(0.4)), x)


def test_two_draws_keep_their_order(check):
    check(lambda x: (torch.rand(4) + x, torch.randn(4) * x.exp(), torch.rand(4)), torch.rand(4))


def test_the_state_of_the_generator_moves_on():
    from polyblocks_torch import polyblocks_jit_torch

    compiled = polyblocks_jit_torch(lambda x: F.dropout(x, 0.5))
    x = torch.ones(64)
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(F.dropout(x, 0.5), first)
    assert torch.equal(F.dropout(x, 0.5), second)


def test_dropout_in_training_splits_off_only_the_draw():
    from polyblocks_torch import polyblocks_jit_torch

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.25), torch.nn.ReLU())
    compiled = polyblocks_jit_torch(model, compile_options={"strict_target": True})
    x = torch.rand(4, 8)
    torch.manual_seed(1)
    expected = model(x)
    expected.sum().backward()
    gradient = model[0].weight.grad.clone()
    model.zero_grad()
    torch.manual_seed(1)
    actual = compiled(x)
    actual.sum().backward()
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(model[0].weight.grad, gradient)
    report = compiled.polyblocks_report()
    assert [row["op"] for row in report.random_draws] == ["aten.bernoulli.p"]
    forward = report.variants[0]
    assert (forward.kind, forward.parts) == ("forward", 1)
