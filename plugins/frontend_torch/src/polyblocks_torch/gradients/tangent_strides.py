"""Gradients that come in are laid out so that each element has its own place.

AOTAutograd expects them with the strides of the results, and copies others into memory with such
strides. Of a result that overlaps itself, as ``x.unfold(0, 4, 1).diagonal_scatter(s)`` does,
PyTorch takes only repeated elements (stride 0) into account: others would be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch._functorch._aot_autograd.schemas import MemoryFormatMeta
from torch._prims_common import suggest_memory_format

from polyblocks_torch.arguments.overlaps import strides_overlap

_active: ContextVar[bool] = ContextVar("polyblocks_tangent_strides", default=False)

_theirs = MemoryFormatMeta.from_tensor


@contextmanager
def tangents_apart() -> Iterator[None]:
    """Graphs that AOTAutograd captures inside are treated as said above."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def _from_tensor(t: torch.Tensor, *args: Any, **kwargs: Any) -> MemoryFormatMeta | None:
    plain = _active.get() and t.layout == torch.strided and not t._has_symbolic_sizes_strides
    if plain and strides_overlap(t.shape, t.stride()):
        return MemoryFormatMeta(memory_format=suggest_memory_format(t))
    return _theirs(t, *args, **kwargs)


MemoryFormatMeta.from_tensor = staticmethod(_from_tensor)  # type: ignore[method-assign]
