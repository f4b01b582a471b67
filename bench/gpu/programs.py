"""The functions of the cases, in PyTorch: those of the CPU's tables, and what only this has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bench.engines import written_in
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


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each row of queries meets all keys."""
    return scaled_dot_product_attention(q, k, v)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each row of queries meets the keys up to its own number."""
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def decode(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A row of queries meets a cache; heads of queries may share one of keys."""
    return scaled_dot_product_attention(q, k, v, enable_gqa=True)


def function_of(program: str) -> Callable[..., Any]:
    """A case's function by its name."""
    if "." in program:
        return written_in("in_torch", program)
    function: Callable[..., Any] = globals().get(program) or getattr(in_torch, program)
    return function
