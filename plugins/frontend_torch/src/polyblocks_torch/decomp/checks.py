"""Checks of data in the forms that PyTorch has of them."""

from __future__ import annotations

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.checks import CHECK, require

aten = torch.ops.aten


@decomposition(aten._assert_async.msg)
def assert_async_with_message(holds: Tensor, message: str) -> None:
    """Of one boolean; PyTorch takes one element of any type and shape."""
    if holds.dtype == torch.bool and not holds.dim():
        return NotImplemented
    require((holds != 0).reshape(()), message)


@decomposition(aten._functional_assert_async.msg)
def functional_assert_async(holds: Tensor, message: str, token: Tensor) -> Tensor:
    CHECK(holds, message)
    return token.clone()


@decomposition(aten._is_all_true.default)
def is_all_true(x: Tensor) -> Tensor:
    return x.all()


@decomposition(aten._is_any_true.default)
def is_any_true(x: Tensor) -> Tensor:
    return x.any()
