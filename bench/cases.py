"""Cases: a function, its inputs, and its result in float64. Sizes are in the names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from bench.measure import blur_reference
from bench.peers import Function

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """One row of the results.

    Attributes:
        name: operation and size.
        function: what every peer compiles.
        inputs: makes the arguments, the same ones at each call.
        reference: the expected result, from the arguments in float64; default: ``function``.
        tolerance: largest error allowed, measured as :func:`bench.measure.max_error` does.
    """

    name: str
    function: Function
    inputs: Callable[[], Inputs]
    reference: Callable[..., torch.Tensor] | None = None
    tolerance: float = 1e-5

    def expected(self, inputs: Inputs) -> torch.Tensor:
        """The result in float64."""
        return (self.reference or self.function)(*(x.double() for x in inputs))


def uniform(*shapes: tuple[int, ...]) -> Callable[[], Inputs]:
    """Inputs of float32 numbers from 0 to 1."""
    return lambda: tuple(torch.rand(shape, generator=_generator()) for shape in shapes)


def normal(*shapes: tuple[int, ...]) -> Callable[[], Inputs]:
    """Inputs of normally distributed float32 numbers."""
    return lambda: tuple(torch.randn(shape, generator=_generator()) for shape in shapes)


def blur(height: int, width: int) -> Function:
    """The demo's function."""

    def blur_x_blur_y(img: torch.Tensor) -> torch.Tensor:
        kernel = torch.tensor([0.0625, 0.25, 0.375, 0.25, 0.0625], device=img.device).float()
        img_reshaped = img.view(3, 1, height, width)
        blurx = torch.nn.functional.conv2d(img_reshaped, kernel.view(1, 1, 1, 5))
        blury = torch.nn.functional.conv2d(blurx, kernel.view(1, 1, 5, 1))
        return blury.view(3, height - 4, width - 4)

    return blur_x_blur_y


def elementwise_chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """tanh(xy + 1) sigmoid(y) - exp(-x^2)."""
    return torch.tanh(x * y + 1) * torch.sigmoid(y) - torch.exp(-x * x)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of the rows."""
    return torch.softmax(x, dim=-1)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Layer normalization of the rows."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)


def total(x: torch.Tensor) -> torch.Tensor:
    """Sum of all elements."""
    return x.sum()


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Next to nothing: what remains is the cost of a call."""
    return x + y


CASES: tuple[Case, ...] = (
    Case("blur_x_blur_y 3x2048x2048", blur(2048, 2048), uniform((3, 2048, 2048)), blur_reference),
    Case("elementwise chain 16M", elementwise_chain, normal((1 << 24,), (1 << 24,))),
    Case("layer_norm 4096x1024", layer_norm, normal((4096, 1024), (1024,), (1024,))),
    Case("softmax 4096x1024", softmax, normal((4096, 1024))),
    # Summing in another order moves the last bits of a float32.
    Case("sum 16M", total, uniform((1 << 24,)), tolerance=1e-4),
    Case("add 16 (cost of a call)", add, uniform((16,), (16,))),
)


def floor_bytes(inputs: Inputs, result: Any) -> int:
    """Bytes that nobody can avoid moving: every argument and the result once."""
    return sum(x.nbytes for x in inputs) + result.numel() * inputs[0].element_size()


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
