"""Cells of recurrent layers: one step forward, and one step of the derivative backward.

Formulas and order of the gates are those of :class:`torch.nn.LSTM`, :class:`torch.nn.GRU` and
:class:`torch.nn.RNN`. The input was multiplied by its weights before, for all times at
once. T: times, B: batch, H: hidden size, P: size of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]


class Cell(Protocol):
    """A cell without state of its own."""

    def split(self, weights: Sequence[Tensor]) -> tuple[Tensor | None, Tensors]:
        """The bias of the input's product, and the weights that every step reads.

        Args:
            weights: of one layer and direction, as PyTorch orders them, without those of the input:
                ``weight_hh``, then ``bias_ih``, ``bias_hh``, then ``weight_hr``, as far as it has
                them.
        """

    def step(self, x: Tensor, states: Tensors, weights: Tensors) -> tuple[Tensors, Tensors]:
        """The states after a step, the output first, and the values that the derivative reads.

        Args:
            x: [B, gates * H].
            states: [B, P], and [B, H] of an LSTM.
            weights: what :meth:`split` gives.
        """

    def step_back(
        self, grads: Tensors, saved: Tensors, before: Tensors, weights: Tensors
    ) -> tuple[Tensors, Tensors]:
        """Derivatives with respect to the states before a step, and what :meth:`collect` reads.

        Args:
            grads: with respect to the states after it.
            saved: what :meth:`step` gave besides the states.
            before: the states before it.
            weights: what :meth:`split` gives.
        """

    def collect(self, steps: Tensors, saved: Tensors, before: Tensors) -> tuple[Tensor, Tensors]:
        """Derivatives with respect to the input's product [T, B, gates * H], and to the weights.

        Args:
            steps: what :meth:`step_back` gave, [T, B, ...] each.
            saved: what :meth:`step` gave, likewise.
            before: the states before each step, likewise.
        """


def _over_time(grads: Tensor, values: Tensor) -> Tensor:
    """The sum of outer products over time and batch, ``grads^T values``."""
    return grads.flatten(0, 1).t() @ values.flatten(0, 1)


class Rnn:
    """``h = tanh(x + W h)``, or ``relu``."""

    states: ClassVar[int] = 1

    def __init__(self, *, relu: bool) -> None:
        self._relu = relu

    def split(self, weights: Sequence[Tensor]) -> tuple[Tensor | None, Tensors]:
        weight, *biases = weights
        return (biases[0] + biases[1] if biases else None), (weight,)

    def step(self, x: Tensor, states: Tensors, weights: Tensors) -> tuple[Tensors, Tensors]:
        total = x + states[0] @ weights[0].t()
        h = torch.relu(total) if self._relu else torch.tanh(total)
        return (h,), (h,)

    def step_back(
        self, grads: Tensors, saved: Tensors, before: Tensors, weights: Tensors
    ) -> tuple[Tensors, Tensors]:
        (h,) = saved
        total = grads[0] * (h > 0) if self._relu else grads[0] * (1 - h * h)
        return (total @ weights[0],), (total,)

    def collect(self, steps: Tensors, saved: Tensors, before: Tensors) -> tuple[Tensor, Tensors]:
        return steps[0], (_over_time(steps[0], before[0]),)


class Lstm:
    """``c = f c + i g``, ``h = o tanh(c)``, and a projection of ``h`` where it has a weight."""

    states: ClassVar[int] = 2

    def __init__(self, *, projected: bool) -> None:
        self._projected = projected

    def split(self, weights: Sequence[Tensor]) -> tuple[Tensor | None, Tensors]:
        weight, *others = weights
        projection = (others.pop(),) if self._projected else ()
        return (others[0] + others[1] if others else None), (weight, *projection)

    def step(self, x: Tensor, states: Tensors, weights: Tensors) -> tuple[Tensors, Tensors]:
        h, c = states
        i, f, g, o = (x + h @ weights[0].t()).chunk(4, 1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        c = f * c + i * g
        h = o * torch.tanh(c)
        if self._projected:
            h = h @ weights[1].t()
        return (h, c), (i, f, g, o, c)

    def step_back(
        self, grads: Tensors, saved: Tensors, before: Tensors, weights: Tensors
    ) -> tuple[Tensors, Tensors]:
        i, f, g, o, c = saved
        dy, dc = grads
        dh = dy @ weights[1] if self._projected else dy
        t = torch.tanh(c)
        dc = dc + dh * o * (1 - t * t)
        gates = (
            dc * g * i * (1 - i),
            dc * before[1] * f * (1 - f),
            dc * i * (1 - g * g),
            dh * t * o * (1 - o),
        )
        total = torch.cat(gates, 1)
        return (total @ weights[0], dc * f), (total, dy) if self._projected else (total,)

    def collect(self, steps: Tensors, saved: Tensors, before: Tensors) -> tuple[Tensor, Tensors]:
        weights: Tensors = (_over_time(steps[0], before[0]),)
        if self._projected:
            _, _, _, o, c = saved
            weights += (_over_time(steps[1], o * torch.tanh(c)),)
        return steps[0], weights


class Gru:
    """``h = z h + (1 - z) tanh(x_n + r (W_n h + b_n))``."""

    states: ClassVar[int] = 1

    def split(self, weights: Sequence[Tensor]) -> tuple[Tensor | None, Tensors]:
        # The second bias is multiplied by a gate, so it cannot be added to the first one.
        weight, *biases = weights
        return (biases[0] if biases else None), (weight, *biases[1:])

    def step(self, x: Tensor, states: Tensors, weights: Tensors) -> tuple[Tensors, Tensors]:
        (h,) = states
        product = h @ weights[0].t()
        if len(weights) > 1:
            product = product + weights[1]
        (xr, xz, xn), (hr, hz, hn) = x.chunk(3, 1), product.chunk(3, 1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return ((h - n) * z + n,), (r, z, n, hn)

    def step_back(
        self, grads: Tensors, saved: Tensors, before: Tensors, weights: Tensors
    ) -> tuple[Tensors, Tensors]:
        r, z, n, hn = saved
        (dh,), (h,) = grads, before
        dn = dh * (1 - z) * (1 - n * n)
        dr = dn * hn * r * (1 - r)
        dz = dh * (h - n) * z * (1 - z)
        product = torch.cat((dr, dz, dn * r), 1)
        return (dh * z + product @ weights[0],), (product, dn)

    def collect(self, steps: Tensors, saved: Tensors, before: Tensors) -> tuple[Tensor, Tensors]:
        product, dn = steps
        x = torch.cat((product[..., : -dn.shape[-1]], dn), -1)
        return x, (_over_time(product, before[0]), product.sum((0, 1)))
