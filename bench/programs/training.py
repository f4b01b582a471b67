"""A step of training of a small encoder: forward, backward, and what the optimizer does."""

from __future__ import annotations

import torch
from torch import nn
from torch.func import functional_call, grad_and_value


class TrainingStep(nn.Module):
    """States and their targets (N, T, hidden) -> the loss and the weights after a step of SGD.

    The weights of the module stay as they are, so that each call does the same.
    """

    def __init__(
        self, layers: int = 4, hidden: int = 256, heads: int = 4, rate: float = 0.01
    ) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            *(hidden, heads, 4 * hidden),
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.rate = rate

    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The mean squared error before the step, and all weights after it."""
        weights = {name: p.detach() for name, p in self.encoder.named_parameters()}

        def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
            return (functional_call(self.encoder, weights, (states,)) - targets).square().mean()

        gradients, value = grad_and_value(loss)(weights)
        return value, *(w - self.rate * gradients[name] for name, w in weights.items())
