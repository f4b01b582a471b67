"""Operations on lists of tensors, which optimizers and gradient clipping use: one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition

aten = torch.ops.aten

_UNARY = (
    "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p "
    "log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_BINARY = "add clamp_max clamp_min div lerp maximum minimum mul pow sub"
#: Names of PyTorch's functions of one tensor, where they depend on the overload.
_NAMES = {
    ("maximum", "Scalar"): "clamp_min",
    ("maximum", "ScalarList"): "clamp_min",
    ("minimum", "Scalar"): "clamp_max",
    ("minimum", "ScalarList"): "clamp_max",
}
_OVERLOADS = ("List", "Scalar", "ScalarList", "Tensor", "ScalarAndTensor")


def _register(op: Any, function: Callable[..., Any]) -> None:
    """Decompose an operation on lists.

    Args:
        op: the overload.
        function: of the tensors and numbers that stand in the same place of each list, and of what
            is no list.
    """
    in_lists = [isinstance(each.type, torch.ListType) for each in op._schema.arguments]

    @decomposition(op)
    def decomposed(*args: Any, **kwargs: Any) -> list[Tensor]:
        given = list(zip(args, in_lists, strict=False))
        count = len(next(value for value, in_list in given if in_list))
        rows = ([v[i] if in_list else v for v, in_list in given] for i in range(count))
        return [function(*row, **kwargs) for row in rows]


def _scaled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def computed(x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Tensor:
        return function(x, a, b, value=value)

    return computed


def _norm(x: Tensor, ord: float = 2, dtype: torch.dtype | None = None) -> Tensor:
    return torch.linalg.vector_norm(x, ord, dtype=dtype)


def _copied(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return aten.copy.default(x, source, non_blocking)


for _name in _UNARY.split():
    _register(getattr(aten, f"_foreach_{_name}").default, getattr(torch, _name))
for _name in _BINARY.split():
    _packet = getattr(aten, f"_foreach_{_name}")
    for _overload in set(_OVERLOADS) & set(_packet.overloads()):
        _function = getattr(torch, _NAMES.get((_name, _overload), _name))
        _register(getattr(_packet, _overload), _function)
for _name in ("addcdiv", "addcmul"):
    for _overload in ("Scalar", "ScalarList"):
        _packet = getattr(aten, f"_foreach_{_name}")
        _register(getattr(_packet, _overload), _scaled(getattr(torch, _name)))
_register(aten._foreach_norm.Scalar, _norm)
_register(aten._foreach_zero.default, torch.zeros_like)
_register(aten._foreach_copy.default, _copied)
