"""Conversions between types that rewrites add to a graph."""

from __future__ import annotations

import torch
from torch import fx

aten, prims = torch.ops.aten, torch.ops.prims


def converted(
    operand: fx.Node, dtype: torch.dtype, origin: fx.Node, *, freely: bool = False
) -> fx.Node:
    """A node in another type, at the insertion point of its graph.

    Args:
        operand: with ``meta["val"]``.
        dtype: the type.
        origin: what the conversion is added for; its place in the source is taken.
        freely: whether the rounding of 16-bit numbers may be left out.
    """
    if freely:
        made = operand.graph.call_function(prims.convert_element_type.default, (operand, dtype))
    else:
        made = operand.graph.call_function(aten._to_copy.default, (operand,), {"dtype": dtype})
    made.meta = {k: v for k, v in origin.meta.items() if k == "stack_trace"}
    made.meta["val"] = operand.meta["val"].to(dtype)
    return made
