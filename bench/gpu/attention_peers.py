"""Other ways to compute attention: backends of PyTorch's operation, and ``flex_attention``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from bench.gpu.attention import WINDOW

Call = Callable[..., Any]

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
FLEX = "flex_attention"
PEERS = (*BACKENDS, FLEX)


def by_backend(function: Call, backend: SDPBackend) -> Call:
    """A function whose attention is computed by one backend; calls raise where it cannot."""

    def call(*arguments: Any) -> Any:
        with sdpa_kernel(backend):
            return function(*arguments)

    return call


def by_flex(function: Call) -> Call:
    """The same by ``flex_attention``, compiled by Inductor; its mask of blocks is made once."""
    mask = MASKS.get(function.__name__)
    compiled = torch.compile(flex_attention, dynamic=False)
    masks: dict[tuple[int, int], Any] = {}

    def call(q: Tensor, k: Tensor, v: Tensor) -> Any:
        at = q.shape[-2], k.shape[-2]
        if mask is not None and at not in masks:
            masks[at] = create_block_mask(mask, None, None, *at, device=q.device)
        grouped = k.shape[1] < q.shape[1]
        return compiled(q, k, v, block_mask=masks.get(at), enable_gqa=grouped)

    return call


def _up_to_the_row(batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return row >= column


def _in_the_window(batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return (row >= column) & (row - column < WINDOW)


#: By function which scores there are, where these are not all.
MASKS = {"causal_attention": _up_to_the_row, "windowed_attention": _in_the_window}


def ways(function: Call) -> dict[str, Callable[[], Call]]:
    """By peer what gives the function to call."""

    def of(backend: SDPBackend) -> Callable[[], Call]:
        return lambda: by_backend(function, backend)

    return {name: of(b) for name, b in BACKENDS.items()} | {FLEX: lambda: by_flex(function)}
