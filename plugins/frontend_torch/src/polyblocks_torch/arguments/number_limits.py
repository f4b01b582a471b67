"""Numbers that eager mode refuses: an integer type does not hold them, or has no such power.

PyTorch's rules for traced programs do not look at them. Here they become checks that never hold.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from polyblocks_torch.compat import DROPS_FAR_LIMITS, REFUSES_TWO_TO_63
from polyblocks_torch.importing.checks import overflow_message

aten = torch.ops.aten

#: Overloads -> the positions of numbers that are converted to the type of the result.
_CONVERTED: dict[Any, tuple[int, ...]] = {
    aten.clamp.default: (1, 2),
    aten.clamp_max.default: (1,),
    aten.clamp_min.default: (1,),
    aten.constant_pad_nd.default: (2,),
    aten.fill.Scalar: (1,),
    aten.full.default: (1,),
    aten.full_like.default: (1,),
    aten.hardtanh.default: (1, 2),
    aten.index_fill.int_Scalar: (3,),
    aten.masked_fill.Scalar: (2,),
    aten.new_full.default: (2,),
    aten.pow.Tensor_Scalar: (1,),
    aten.scalar_tensor.default: (0,),
    aten.scatter.value: (3,),
    aten.threshold.default: (1, 2),
}
#: Overloads whose numbers may lie beyond the type of the result.
_CLAMPS = (
    aten.clamp.default,
    aten.clamp_max.default,
    aten.clamp_min.default,
    aten.hardtanh.default,
)
#: Those of numbers with names.
_NAMED = {aten.add.Tensor: "alpha", aten.sub.Tensor: "alpha", aten.addcmul.default: "value"}


def refused_number(node: fx.Node) -> str | None:
    """Eager mode's error for a number among the arguments of an operation, or None."""
    result = node.meta.get("val")
    target: Any = node.target
    if not isinstance(result, torch.Tensor) or target not in _CONVERTED | _NAMED:
        return None
    dtype = result.dtype
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return None
    places = _CONVERTED.get(target, ())
    numbers = [node.args[place] for place in places if place < len(node.args)]
    numbers.append(node.kwargs.get(_NAMED.get(target, ""), 0))
    known = [n for n in numbers if isinstance(n, (int, float)) and not isinstance(n, bool)]
    if target is aten.pow.Tensor_Scalar and any(n < 0 for n in known):
        return "Integers to negative integer powers are not allowed."
    if target in _CLAMPS and DROPS_FAR_LIMITS:
        # Integers that are limits on the wrong side are refused where they are traced.
        known, dtype = [n for n in known if isinstance(n, float)], torch.int64
    limits = torch.iinfo(dtype)
    for number in known:
        # A negative integer wraps around in a type without a sign.
        least = -limits.max if isinstance(number, int) and limits.min == 0 else limits.min
        # Compared with numbers of 64 bits, 2.0**63 is as large as the largest integer.
        most = limits.max if REFUSES_TWO_TO_63 else type(number)(limits.max)
        if not least <= number <= most:
            return overflow_message(dtype)
    return None
