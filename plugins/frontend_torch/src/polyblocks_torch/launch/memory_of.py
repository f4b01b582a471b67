"""Whether a tensor has memory: those of ``_efficientzerotensor`` and of freed storages have none.

``data_ptr()`` of such a tensor is 0, but that of a view is the view's offset in bytes.
"""

from __future__ import annotations

import torch

#: Storages are smaller, and what systems map for them mostly lies above.
_BEYOND_OFFSETS = 1 << 40
#: Bytes of the largest element.
LARGEST_ELEMENT = 16


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether there is anything at the address of a tensor that has elements."""
    return tensor.data_ptr() != tensor.storage_offset() * tensor.element_size()


def memory_expression(address: str, tensor: str) -> str:
    """An expression that is false for a tensor without memory, and true for nearly all others.

    Args:
        address: an expression for its ``data_ptr()``.
        tensor: its name.
    """
    offset = f"{LARGEST_ELEMENT} * {tensor}.storage_offset()"
    return f"({address} > {_BEYOND_OFFSETS} or {address} > {offset})"
