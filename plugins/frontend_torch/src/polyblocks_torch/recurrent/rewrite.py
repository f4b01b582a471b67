"""``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` in Dynamo's graph -> loops over time.

PyTorch itself would unroll them: a graph of a thousand steps has tens of thousands of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from polyblocks_torch.recurrent.cells import Cell, Gru, Lstm, Rnn, Tensors
from polyblocks_torch.recurrent.layer import run_layer


def as_loops(gm: fx.GraphModule) -> None:
    """Let the recurrent layers of Dynamo's graph run as loops; in place.

    Packed sequences, and layers under autocast, stay as they are.
    """
    if torch._C._is_any_autocast_enabled():
        return
    for node in gm.graph.nodes:
        loop = _LOOPS.get(node.target) if node.op == "call_function" else None
        # The other overload, for packed sequences, has the states in the third place.
        if loop is not None and len(node.args) == 9 and isinstance(node.args[3], bool):
            node.target = loop
    gm.recompile()


def _run(
    cell: Cell,
    x: Tensor,
    states: Tensors,
    weights: Sequence[Tensor],
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Tensors:
    """All layers; the output, and each state [layers * directions, B, size]."""
    directions = 2 if bidirectional else 1
    each = len(weights) // (num_layers * directions)
    if batch_first:
        x = x.transpose(0, 1)
    after: list[Tensors] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            output, last = run_layer(
                cell,
                x,
                tuple(state[number] for state in states),
                weights[number * each : (number + 1) * each],
                reverse=direction == 1,
            )
            outputs.append(output)
            after.append(last)
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and train and layer < num_layers - 1:
            x = torch.dropout(x, dropout, train)
    if batch_first:
        x = x.transpose(0, 1)
    return (x, *(torch.stack(list(column)) for column in zip(*after, strict=True)))


def _lstm(
    x: Tensor, states: Tensors, weights: Sequence[Tensor], has_biases: bool, *options: Any
) -> Tensors:
    projected = states[0].shape[-1] != states[1].shape[-1]
    return _run(Lstm(projected=projected), x, tuple(states), weights, *options)


def _gru(
    x: Tensor, state: Tensor, weights: Sequence[Tensor], has_biases: bool, *options: Any
) -> Tensors:
    return _run(Gru(), x, (state,), weights, *options)


def _rnn_tanh(
    x: Tensor, state: Tensor, weights: Sequence[Tensor], has_biases: bool, *options: Any
) -> Tensors:
    return _run(Rnn(relu=False), x, (state,), weights, *options)


def _rnn_relu(
    x: Tensor, state: Tensor, weights: Sequence[Tensor], has_biases: bool, *options: Any
) -> Tensors:
    return _run(Rnn(relu=True), x, (state,), weights, *options)


_LOOPS: dict[Any, Callable[..., Tensors]] = {
    torch.lstm: _lstm,
    torch.gru: _gru,
    torch.rnn_tanh: _rnn_tanh,
    torch.rnn_relu: _rnn_relu,
}

#: Functions that hold loops over time.
RECURRENT = frozenset(_LOOPS.values())
