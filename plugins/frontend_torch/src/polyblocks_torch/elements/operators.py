"""``x[k]`` with an integer tensor ``k`` without dimensions, as operations on tensors.

PyTorch's ``__getitem__`` takes the number out of ``k`` and makes a view from it, which nothing
that traces can follow. Here the element is gathered, and stored by an update at an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: dtypes of tensors that are places; uint8 is a mask.
PLACES = (torch.int8, torch.int16, torch.int32, torch.int64)


def element(x: Tensor, key: Any) -> Tensor:
    """``x[key]`` as a copy.

    Args:
        x: any.
        key: integers, slices, ``None``, ``...`` and tensors of integers without dimensions.
    """
    part, places = _part(x, key)
    left = [dim for dim in range(part.dim()) if dim not in places]
    # Dimensions stay in the order in which they lie in memory, as in a view.
    order = sorted(left, key=part.stride().__getitem__, reverse=True)
    first = part.permute([*places, *order])
    made: Tensor = aten.index.Tensor(first, list(places.values())).squeeze(0)
    return made.permute([order.index(dim) for dim in left])


def store_element(x: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``, see :func:`element`."""
    part, places = _part(x, key)
    left = [dim for dim in range(part.dim()) if dim not in places]
    if isinstance(value, Tensor):
        value = value.to(device=x.device, dtype=x.dtype)
        while value.dim() > len(left) and value.shape[0] == 1:
            value = value.squeeze(0)
        value = value.expand([part.shape[dim] for dim in left]).unsqueeze(0)
    else:
        value = torch.full((), value, dtype=x.dtype, device=x.device)
    first = part.permute([*places, *left])
    aten.index_put_.default(first, list(places.values()), value)


def _part(x: Tensor, key: Any) -> tuple[Tensor, dict[int, Tensor]]:
    """The view that a key makes without its tensors, and the place along some of its dimensions."""
    keys: Sequence[Any] = key if isinstance(key, (tuple, list)) else (key,)
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    static: list[Any] = []
    places: dict[int, Tensor] = {}
    dim = 0
    for k in keys:
        if isinstance(k, Tensor):
            places[dim] = k.to(torch.int64).reshape(1)
        static.append(slice(None) if isinstance(k, Tensor) else k)
        if k is Ellipsis:
            dim += x.dim() - taken
        elif not isinstance(k, int):
            dim += 1
    if all(k == slice(None) for k in static):
        return x, places
    return x[tuple(static)], places
