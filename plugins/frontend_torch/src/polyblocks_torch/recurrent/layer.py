"""One layer of a recurrent network in one direction: a loop over time, and its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan_op

from polyblocks_torch.recurrent.cells import Cell, Tensors


def run_layer(
    cell: Cell, x: Tensor, states: Tensors, weights: Sequence[Tensor], *, reverse: bool
) -> tuple[Tensor, Tensors]:
    """All steps of a layer.

    Args:
        cell: what a step does.
        x: [T, B, I].
        states: before the first step.
        weights: as PyTorch orders them, ``weight_ih`` first.
        reverse: whether time runs backward.

    Returns:
        The outputs [T, B, P] in the order of the input, and the states after the last step.
    """
    weight, *others = weights
    added, read = cell.split(others)
    product = torch.nn.functional.linear(x, weight, added)
    if reverse:
        product = product.flip(0)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (product, *states, *read)):
        outputs, *after = _Layer.apply(cell, len(states), product, *states, *read)
    else:
        outputs, *after = _steps(cell, product, states, read, saves=False)[: 1 + len(states)]
    return (outputs.flip(0) if reverse else outputs), tuple(after)


def _scan(
    step: Callable[..., Tensors], carried: Tensors, scanned: Tensors, read: Tensors
) -> Tensors:
    """``step(*carried, *slices, *read)`` for each slice, whose results are new tensors."""
    found: Tensors = tuple(scan_op(step, list(carried), list(scanned), tuple(read)))
    return found


def _steps(cell: Cell, product: Tensor, states: Tensors, read: Tensors, *, saves: bool) -> Tensors:
    """Outputs [T, B, P], the states at the end, and what was saved [T, B, ...] if asked for."""
    count = len(states)

    def step(*values: Tensor) -> Tensors:
        now, x, weights = values[:count], values[count], values[count + 1 :]
        after, saved = cell.step(x, now, weights)
        kept = (after[0], *(saved if saves else ()))
        # The graph of a scan must not return a tensor twice.
        return (*after, *(value.clone() for value in kept))

    found = _scan(step, states, (product,), read)
    return (found[count], *found[:count], *found[count + 1 :])


class _Layer(torch.autograd.Function):
    """Saves what one step backward reads, so that no product is computed again."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, count: int, product: Tensor, *tensors: Tensor) -> Tensors:
        states, read = tensors[:count], tensors[count:]
        outputs, *others = _steps(cell, product, states, read, saves=True)
        after, saved = others[:count], others[count:]
        ctx.cell, ctx.count = cell, count
        ctx.saved_count = len(saved)
        ctx.save_for_backward(outputs, *saved, *states, *read)
        return (outputs, *after)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        cell, count = ctx.cell, ctx.count
        outputs, *others = ctx.saved_tensors
        saved = others[: ctx.saved_count]
        states, read = others[ctx.saved_count :][:count], others[ctx.saved_count + count :]
        # An LSTM's second state is the last of what a step saves.
        sequences = (outputs, saved[-1])[:count]
        before = tuple(
            torch.cat((first.unsqueeze(0), later[:-1]))
            for first, later in zip(states, sequences, strict=True)
        )
        scanned = (grads[0], *saved, *before)

        def step(*values: Tensor) -> Tensors:
            carried, (dy, *now) = values[:count], values[count : count + len(scanned)]
            back, made = cell.step_back(
                (carried[0] + dy, *carried[1:]),
                tuple(now[: len(saved)]),
                tuple(now[len(saved) :]),
                values[count + len(scanned) :],
            )
            return (*back, *(value.clone() for value in made))

        found = _scan(
            step,
            tuple(grad.clone() for grad in grads[1:]),
            tuple(value.flip(0) for value in scanned),
            tuple(read),
        )
        steps = tuple(value.flip(0) for value in found[count:])
        product, weights = cell.collect(steps, tuple(saved), before)
        return (None, None, product, *found[:count], *weights[: len(read)])
