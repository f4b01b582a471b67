"""Recurrent layers while Dynamo looks at a frame: their results' shapes, without their steps.

Dynamo runs every operation on tensors without data. PyTorch's Python implementations of recurrent
layers take all steps there: 20 s for a thousand. How a result looks needs none, and what is
compiled is made in :mod:`polyblocks_torch.recurrent.rewrite`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)

_thread = threading.local()


@contextlib.contextmanager
def shapes_alone(wanted: bool) -> Iterator[None]:
    """Whether this thread's recurrent layers give shapes alone, in the block."""
    if wanted:
        _install()
    before = getattr(_thread, "shapes_alone", False)
    _thread.shapes_alone = wanted
    try:
        yield
    finally:
        _thread.shapes_alone = before


@functools.cache
def _install() -> None:
    """Ask :func:`shapes_alone` in the implementations; they stay what they are everywhere else."""
    aten = torch.ops.aten
    for op in (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input):
        for key in _KEYS:
            if key in op.py_kernels:
                op.py_kernels[key] = _asking(op.py_kernels[key])
        op._dispatch_cache.clear()


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def implementation(*args: Any, **kwargs: Any) -> Any:
        wanted = getattr(_thread, "shapes_alone", False)
        return _shapes(*args, **kwargs) if wanted else original(*args, **kwargs)

    return implementation


def _shapes(
    x: Tensor,
    states: Tensor | Sequence[Tensor],
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    states = [states] if isinstance(states, Tensor) else list(states)
    length, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    size = states[0].shape[-1] * (2 if bidirectional else 1)
    # A gradient flows from all of them.
    anything = sum((t.sum() for t in (x, *states, *weights)), x.new_zeros(()))
    output = anything.expand(length, batch, size).clone()
    finals = [anything.expand(state.shape).clone() for state in states]
    return (output.transpose(0, 1) if batch_first else output, *finals)
