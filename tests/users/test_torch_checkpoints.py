"""``torch.utils.checkpoint``: attention and dropout that the backward graph runs again."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


class Attention(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.dropout = dropout

    def inner(self, x):
        q, k, v = (y.view(2, 5, 2, 4).transpose(1, 2) for y in self.project(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        return x + mixed.transpose(1, 2).reshape(2, 5, 8)

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False).sin()


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def inner(self, x):
        return F.dropout(torch.tanh(self.layer(x)), 0.5)

    def forward(self, x):
        return checkpoint(self.inner, F.dropout(x, 0.2), use_reentrant=False).sin()


@pytest.mark.parametrize(
    ("make", "draws"),
    [
        pytest.param(Attention, 0, marks=pytest.mark.slow),
        pytest.param(lambda: Attention(0.3), 2, marks=pytest.mark.slow),
        (Dropping, 3),
    ],
    ids=["attention", "attention_that_drops", "dropout"],
)
def test_checkpoint(make, draws):
    torch.manual_seed(0)
    module = make()
    fast = polyblocks_jit_torch(module, compile_options=STRICT)
    results = []
    for called in (module, fast):
        module.zero_grad()
        torch.manual_seed(1)
        x = torch.rand(2, 5, 8).requires_grad_()
        result = called(x)
        result.sum().backward()
        grads = [p.grad.clone() for p in module.parameters()]
        # The generator is where eager mode leaves it.
        results.append([result, x.grad, *grads, torch.rand(3)])
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    report = fast.polyblocks_report()
    assert report.whole
    assert len(report.random_draws) == draws
