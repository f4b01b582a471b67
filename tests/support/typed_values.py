"""Arguments of random typed programs, and what such programs may call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
COMPLEX = ("complex64", "complex128")

#: How the elements of an argument lie in memory.
LAYOUTS = (
    "contiguous", "transposed", "every second", "inner part", "not aligned", "expanded",
    "overlapping", "conjugated", "negated",
)  # fmt: skip


def argument(
    seed: int, dtype: str, shape: tuple[int, ...], layout: str = "contiguous", special: bool = False
) -> Tensor:
    """An argument of a program.

    Args:
        seed: of its elements.
        dtype: their type.
        shape: of the argument.
        layout: one of LAYOUTS; where it is impossible, contiguous.
        special: whether it holds NaN, infinities and -0.0, or the limits of an integer type.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)

    def elements(*extents: int) -> Tensor:
        return _elements(generator, kind, extents, special)

    if not shape:
        x = elements()
        return x.conj() if layout == "conjugated" and kind.is_complex else x
    *outer, last = shape
    if layout == "transposed":
        return elements(*reversed(shape)).permute(*reversed(range(len(shape))))
    if layout == "every second":
        return elements(*outer, 2 * last)[..., ::2]
    if layout == "inner part":
        return elements(*(n + 2 for n in shape))[tuple(slice(1, n + 1) for n in shape)]
    if layout == "not aligned":
        count = torch.Size(shape).numel()
        return elements(count + 1)[1:].view(shape)
    if layout == "expanded":
        return elements(1, *shape[1:]).expand(shape)
    if layout == "overlapping":
        row = elements(sum(shape))
        return row.as_strided(shape, [1] * len(shape))
    if layout == "conjugated" and kind.is_complex:
        return elements(*shape).conj()
    if layout == "negated" and kind.is_floating_point and dtype in ("float32", "float64"):
        pair = torch.complex(elements(*shape), elements(*shape))
        return pair.conj().imag
    return elements(*shape)


def _elements(
    generator: torch.Generator, kind: torch.dtype, shape: tuple[int, ...], special: bool
) -> Tensor:
    if kind == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if kind.is_complex or kind.is_floating_point:
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        if kind.is_complex:
            x = torch.complex(x, torch.randn(shape, generator=generator, dtype=torch.float64))
        x = x.to(kind)
        odd = [float("nan"), float("inf"), -float("inf"), -0.0, 0.0]
    else:
        limits = torch.iinfo(kind)
        low = 0 if limits.min == 0 else -9
        high = 256 if kind == torch.uint8 else 10
        x = torch.randint(low, high, shape, generator=generator).to(kind)
        odd = [limits.min, limits.max, limits.max - 1, limits.min + 1, 0]
    if special and x.numel():
        flat = x.view(-1)
        for value in odd:
            flat[int(torch.randint(0, len(flat), (), generator=generator))] = value
    return x


def matrix(x: Tensor) -> Tensor:
    """All but the last dimension as one."""
    return x.reshape(-1, x.shape[-1])


def rows(x: Tensor) -> Tensor:
    """As one image of one dimension, of which all but the last dimension are the channels."""
    return x.reshape(1, -1, x.shape[-1])


def kernel(x: Tensor, extent: int) -> Tensor:
    """Weights for ``rows(x)``."""
    channels = rows(x).shape[1]
    weights = (torch.arange(channels * channels * extent) % 7 - 3) * 0.25
    return weights.reshape(channels, channels, extent).to(x.dtype)


def square(x: Tensor) -> Tensor:
    """A matrix with an inverse."""
    return torch.tanh(x.flatten()[:9].reshape(3, 3).to(torch.float32)) + 4 * torch.eye(3)


@torch.library.custom_op("random_programs::opaque", mutates_args=())
def opaque(x: Tensor) -> Tensor:
    """A copy that PyTorch makes."""
    return x.clone(memory_format=torch.contiguous_format)


@torch.library.custom_op("random_programs::opaque_transposed", mutates_args=())
def opaque_transposed(x: Tensor) -> Tensor:
    """A copy whose first dimension is innermost."""
    return x.movedim(0, -1).clone(memory_format=torch.contiguous_format).movedim(-1, 0)


@opaque.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@opaque_transposed.register_fake
def _(x: Tensor) -> Tensor:
    return x.movedim(0, -1).new_empty(x.movedim(0, -1).shape).movedim(-1, 0)


def _pass(context: Any, gradient: Tensor) -> Tensor:
    return gradient.clone()


opaque.register_autograd(_pass)
opaque_transposed.register_autograd(_pass)

#: What the text of a program may name.
NAMESPACE = {
    "torch": torch,
    "F": torch.nn.functional,
    "argument": argument,
    "matrix": matrix,
    "rows": rows,
    "kernel": kernel,
    "square": square,
    "opaque": opaque,
    "opaque_transposed": opaque_transposed,
}
