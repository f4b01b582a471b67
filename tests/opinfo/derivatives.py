"""Gradients of one sample of one OpInfo entry, and gradients of its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

Function = Callable[..., Any]


class NoGradientError(Exception):
    """No result depends on an operand in a way that has a gradient."""


def gradients(call: Function, needed: Sequence[bool], process: Function) -> Function:
    """The function of the same tensors that gives the gradients of one.

    Args:
        call: the function.
        needed: which of its tensors need a gradient.
        process: takes the results, and gives those that have gradients (an entry may have some
            that are unique up to a phase alone).

    Returns:
        A function that gives a list: one gradient for each tensor that needs one, None where
        nothing depends on it. The gradients of its results are numbers of either sign.

    Raises:
        NoGradientError: by the function that is returned; there is nothing to compare.
    """

    def run(*tensors: torch.Tensor) -> list[torch.Tensor | None]:
        with torch.enable_grad():
            given = [
                tensor.detach().requires_grad_() if need else tensor
                for tensor, need in zip(tensors, needed, strict=True)
            ]
            results = differentiable(process(call(*given)))
            if not results:
                raise NoGradientError
            wanted = [tensor for tensor, need in zip(given, needed, strict=True) if need]
            weights = [weight(result, i) for i, result in enumerate(results)]
            return list(torch.autograd.grad(results, wanted, weights, allow_unused=True))

    return run


def second_gradients(call: Function, needed: Sequence[bool], process: Function) -> Function:
    """The same for the gradients of what :func:`gradients` gives."""

    def run(*tensors: torch.Tensor) -> list[torch.Tensor | None]:
        with torch.enable_grad():
            given = [
                tensor.detach().requires_grad_() if need else tensor
                for tensor, need in zip(tensors, needed, strict=True)
            ]
            wanted = [tensor for tensor, need in zip(given, needed, strict=True) if need]
            results = differentiable(process(call(*given)))
            if not results:
                raise NoGradientError
            weights = [weight(result, i) for i, result in enumerate(results)]
            first = differentiable(
                torch.autograd.grad(results, wanted, weights, allow_unused=True, create_graph=True)
            )
            if not first:
                raise NoGradientError
            weights = [weight(result, i + 7) for i, result in enumerate(first)]
            return list(torch.autograd.grad(first, wanted, weights, allow_unused=True))

    return run


def traced(function: Function, tensors: Sequence[torch.Tensor]) -> Function:
    """A function that takes gradients as a graph without any."""
    return make_fx(function, tracing_mode="fake")(*tensors)


def differentiable(results: Any) -> list[torch.Tensor]:
    """Those results that have gradients."""
    return [
        value
        for value in pytree.tree_leaves(results)
        if isinstance(value, torch.Tensor) and value.requires_grad
    ]


def weight(result: torch.Tensor, number: int) -> torch.Tensor:
    """The gradient of a result: numbers of either sign, without rounding in every dtype."""
    real = result.dtype.to_real() if result.is_complex() else result.dtype
    steps = torch.arange(result.numel(), dtype=torch.float64)
    wave = ((torch.cos(steps * math.sqrt(2) + number) + 0.25) * 64).round() / 64
    wave = wave.to(real).reshape(result.shape)
    return torch.complex(wave, 0.5 - wave) if result.is_complex() else wave
