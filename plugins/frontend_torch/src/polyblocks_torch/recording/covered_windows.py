"""Updates of windows keep the elements that are in none.

Functionalization takes an update of ``x.unfold(d, size, step)`` back to ``x`` as a sum of windows,
so that elements that no window holds become 0. Windows of a view that they cover do not.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, fx


def windows_covered(gm: fx.GraphModule) -> None:
    """Let the windows of Dynamo's graph be taken of the elements that they hold; in place."""
    for module in gm.modules():
        if isinstance(module, fx.GraphModule):
            uncovered = [node for node in module.graph.nodes if _leaves_elements(node)]
            for node in uncovered:
                node.op, node.target = "call_function", unfold
            if uncovered:
                module.recompile()


def _leaves_elements(node: fx.Node) -> bool:
    if node.op != "call_method" or node.target != "unfold" or node.kwargs or len(node.args) != 4:
        return False
    source, *numbers = node.args
    value = source.meta.get("example_value") if isinstance(source, fx.Node) else None
    if not isinstance(value, Tensor) or not value.dim():
        return False
    if not all(isinstance(n, int) for n in numbers):
        return False
    dim, size, step = (n for n in numbers if isinstance(n, int))
    extent = int(value.shape[dim])
    return 0 < size <= extent and step > 0 and (step > size or (extent - size) % step != 0)


def unfold(x: Tensor, dim: int, size: int, step: int) -> Any:
    """``x.unfold(dim, size, step)`` of the elements that windows hold."""
    extent = x.shape[dim]
    count = (extent - size) // step + 1
    if step <= size:
        return x.narrow(dim, 0, (count - 1) * step + size).unfold(dim, size, step)
    if count * step <= extent:
        return x.narrow(dim, 0, count * step).unfold(dim, step, step).narrow(-1, 0, size)
    # Updates of this are not traced, and no wrong ones.
    dim %= x.dim()
    strides = [*x.stride(), x.stride(dim)]
    strides[dim] *= step
    return x.as_strided([*x.shape[:dim], count, *x.shape[dim + 1 :], size], strides)
