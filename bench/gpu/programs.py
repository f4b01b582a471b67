"""The functions of the cases, in PyTorch: those of the CPU's tables, and what only this has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d, scaled_dot_product_attention

from bench.engines import written_in
from bench.gpu.attention import WINDOW
from bench.programs import in_torch


def copy(x: Tensor) -> Tensor:
    """The same numbers in new memory: what the bandwidth is measured with."""
    return x.clone()


def column_sums(x: Tensor) -> Tensor:
    """The sum of each column."""
    return x.sum(0)


def product(a: Tensor, b: Tensor) -> Tensor:
    """A product of matrices."""
    return a @ b


def product_of_rows(a: Tensor, b: Tensor) -> Tensor:
    """The product of each row of one matrix with each row of the other, as in a linear layer."""
    return a @ b.T


def integer_product_of_rows(a: Tensor, b: Tensor) -> Tensor:
    """The same of bytes, in whole numbers of 32 bits."""
    return torch._int_mm(a, b.T) if a.dtype == torch.int8 else a @ b.T


def convolution(x: Tensor, w: Tensor, stride: int = 1) -> Tensor:
    """A convolution of images whose channels are last, with half a window of zeros around them."""
    images, windows = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
    padding = w.shape[1] // 2
    return conv2d(images, windows, stride=stride, padding=padding).permute(0, 2, 3, 1)


def convolution_of_every_second(x: Tensor, w: Tensor) -> Tensor:
    """The same with windows at every second pixel."""
    return convolution(x, w, 2)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each row of queries meets all keys."""
    return scaled_dot_product_attention(q, k, v)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each row of queries meets the keys up to its own number."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def windowed_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each row of queries meets the key of its number and those just before."""
    rows = torch.arange(q.shape[-2], device=q.device)[:, None]
    columns = torch.arange(k.shape[-2], device=k.device)
    seen = (rows >= columns) & (rows - columns < WINDOW)
    return scaled_dot_product_attention(q, k, v, attn_mask=seen)


def attention_gradients(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Gradients of half the sum of squares of the result."""
    with torch.enable_grad():
        needed = [x.detach().requires_grad_() for x in (q, k, v)]
        out = scaled_dot_product_attention(*needed)
        return torch.autograd.grad(out, needed, out.detach())


def decode(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A row of queries meets a cache; heads of queries may share one of keys."""
    return scaled_dot_product_attention(q, k, v, enable_gqa=True)


def function_of(program: str) -> Callable[..., Any]:
    """A case's function by its name."""
    if "." in program:
        return written_in("in_torch", program)
    function: Callable[..., Any] = globals().get(program) or getattr(in_torch, program)
    return function
