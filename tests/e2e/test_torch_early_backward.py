"""Backward graphs are compiled beside their forward graphs, and asked for as if they were not."""

from __future__ import annotations

import pytest
import torch

from polyblocks import events
from polyblocks.cache.cache import default_cache
from polyblocks.isolation import speculation
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]


@pytest.fixture
def taken(monkeypatch):
    """Whether results that were asked for had been started; two cores, an empty cache."""
    found = []
    take = speculation.take

    def noted(key: str) -> bytes | None:
        result = take(key)
        found.append(result is not None)
        return result

    monkeypatch.setattr(speculation, "take", noted)
    monkeypatch.setattr(speculation, "is_worthwhile", lambda: True)
    default_cache().clear()
    return found


def gradient(function, x):
    x = x.detach().requires_grad_()
    result = function(x)
    (found,) = torch.autograd.grad(result, x, torch.ones_like(result))
    return found


def test_the_backward_graph_is_compiled_beside_the_forward_graph(taken):
    def function(x):
        return x.sin() * x.cumsum(0) + x[:1]

    x = torch.rand(7, 5)
    seen = []
    with events.listening(seen.append):
        found = gradient(polyblocks_jit_torch(compile_options={"strict_target": True})(function), x)
    torch.testing.assert_close(found, gradient(function, x))
    assert taken == [False, True]
    assert [e.kind for e in seen if e.kind.startswith(("compile", "cache"))] == [
        "cache-miss",
        "compile-begin",
        "compile-end",
    ] * 2


def test_nothing_is_started_for_what_the_cache_has(taken):
    def function(x):
        return x.cos() * x.cumsum(0)

    x = torch.rand(7, 5)
    for _ in range(2):
        torch._dynamo.reset()
        gradient(polyblocks_jit_torch()(function), x)
    assert taken == [False, True]
    assert not speculation._jobs


def test_a_function_without_gradients_starts_nothing(taken):
    polyblocks_jit_torch()(lambda x: x.sin().cumsum(0))(torch.rand(7, 5))
    assert taken == [False]
    assert not speculation._jobs


def test_operations_that_pytorch_runs_are_the_same(taken):
    def function(x):
        return torch.linalg.eigvals(x).abs() * x.sum()

    x = torch.rand(4, 4) + torch.diag(torch.arange(4.0) * 3)
    found = gradient(polyblocks_jit_torch()(function), x)
    torch.testing.assert_close(found, gradient(function, x))
