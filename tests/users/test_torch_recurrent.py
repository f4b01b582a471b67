"""``nn.LSTM``, ``nn.GRU`` and ``nn.RNN``: loops over time, forward and backward, against eager."""

from __future__ import annotations

import contextlib
import copy
import logging
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import nn

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def leaves(value: Any) -> list[torch.Tensor]:
    return torch.utils._pytree.tree_leaves(value)


def check(layer: nn.Module, x: torch.Tensor, *, gradients: bool) -> Any:
    """Compare outputs, their strides and, if asked for, all gradients; returns the report."""
    other = copy.deepcopy(layer)
    compiled = polyblocks_jit_torch(other, compile_options=STRICT)
    y = x.detach().clone().requires_grad_(gradients)
    x = x.requires_grad_(gradients)
    with contextlib.nullcontext() if gradients else torch.no_grad():
        torch.manual_seed(1)
        expected = leaves(layer(x))
        torch.manual_seed(1)
        found = leaves(compiled(y))
    for a, b in zip(found, expected, strict=True):
        close(a, b)
        assert a.stride() == b.stride()
    if gradients:
        weights = [torch.randn_like(value) for value in expected]
        torch.autograd.backward(expected, weights)
        torch.autograd.backward(found, weights)
        close(y.grad, x.grad)
        for (name, a), b in zip(layer.named_parameters(), other.parameters(), strict=True):
            assert b.grad is not None, name
            close(b.grad, a.grad)
    report = compiled.polyblocks_report()
    assert report.whole
    return report


SLOW = pytest.mark.slow


@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize(
    "kind, options",
    [
        (nn.LSTM, {}),
        pytest.param(nn.GRU, {}, marks=SLOW),
        pytest.param(nn.RNN, {}, marks=SLOW),
        pytest.param(nn.RNN, {"nonlinearity": "relu", "batch_first": True}, marks=SLOW),
        pytest.param(nn.LSTM, {"num_layers": 2, "bidirectional": True}, marks=SLOW),
        pytest.param(nn.LSTM, {"proj_size": 4, "num_layers": 2, "batch_first": True}, marks=SLOW),
        pytest.param(nn.LSTM, {"bias": False, "num_layers": 2, "dropout": 0.4}, marks=SLOW),
        pytest.param(nn.GRU, {"bias": False, "bidirectional": True}, marks=SLOW),
        pytest.param(nn.GRU, {"num_layers": 3, "dropout": 0.2}, marks=SLOW),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(value) or "plain",
)
def test_recurrent_layers(kind, options, gradients):
    torch.manual_seed(0)
    check(kind(5, 6, **options), torch.randn(7, 3, 5), gradients=gradients)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1, 5), (1, 3, 5), (7, 1, 5), (7, 5), (13, 17, 5)])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_odd_sizes_of_recurrent_layers(kind, shape):
    torch.manual_seed(0)
    check(kind(5, 11), torch.randn(shape), gradients=True)


@pytest.mark.slow
def test_double_precision_of_lstm():
    torch.manual_seed(0)
    layer = nn.LSTM(5, 6, dtype=torch.float64)
    check(layer, torch.randn(7, 3, 5, dtype=torch.float64), gradients=True)


@pytest.mark.parametrize("steps", sweep([200, 1000], 200))
def test_many_steps_of_lstm_are_one_loop(steps):
    """Neither PyTorch nor this compiler unrolls them: there are as many kernels as for seven."""
    torch.manual_seed(0)
    layer = nn.LSTM(4, 5)
    x = torch.randn(steps, 2, 4)
    with torch.no_grad():
        many = check(layer, x, gradients=False)
    (variant,) = many.variants
    assert variant.kernels < 10


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, words: torch.Tensor, states: Any = None) -> tuple[torch.Tensor, Any]:
        outputs, states = self.lstm(self.embed(words), states)
        return self.head(torch.relu(outputs)), states


@pytest.mark.slow
def test_lstm_inside_a_model_trains_as_in_eager_mode():
    torch.manual_seed(0)
    model = Tagger()
    other = copy.deepcopy(model)
    compiled = polyblocks_jit_torch(other, compile_options=STRICT)
    words, tags = torch.randint(11, (4, 9)), torch.randint(3, (4, 9))
    losses = []
    for net, call in ((model, model), (other, compiled)):
        optimizer = torch.optim.SGD(net.parameters(), 0.5)
        losses.append([])
        for _ in range(5):
            optimizer.zero_grad()
            scores, _ = call(words)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    close(torch.tensor(losses[1]), torch.tensor(losses[0]))
    assert losses[0][-1] < losses[0][0]
    assert compiled.polyblocks_report().whole


@pytest.mark.slow
def test_states_of_lstm_go_from_call_to_call():
    torch.manual_seed(0)
    model = Tagger().eval()
    compiled = polyblocks_jit_torch(copy.deepcopy(model), compile_options=STRICT)
    words = torch.randint(11, (2, 6))
    with torch.no_grad():
        whole, _ = model(words)
        states = (torch.zeros(1, 2, 5), torch.zeros(1, 2, 5))
        for t in range(6):
            scores, states = compiled(words[:, t : t + 1], states)
            close(scores[:, 0], whole[:, t])


@pytest.mark.slow
def test_packed_sequences_are_right_and_said(caplog):
    torch.manual_seed(0)
    layer = nn.LSTM(5, 6)
    x = torch.randn(7, 3, 5)

    @polyblocks_jit_torch
    def packed(x):
        lengths = torch.tensor([7, 5, 3])
        sequence = nn.utils.rnn.pack_padded_sequence(x, lengths)
        return nn.utils.rnn.pad_packed_sequence(layer(sequence)[0])[0]

    with torch.no_grad(), caplog.at_level(logging.WARNING, "polyblocks"):
        found = packed(x)
    lengths = torch.tensor([7, 5, 3])
    with torch.no_grad():
        sequence = nn.utils.rnn.pack_padded_sequence(x, lengths)
        expected = nn.utils.rnn.pad_packed_sequence(layer(sequence)[0])[0]
    close(found, expected)
    assert not packed.polyblocks_report().whole
    assert caplog.messages
