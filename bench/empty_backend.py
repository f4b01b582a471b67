"""A backend of ``torch.compile`` that runs nothing: what first calls are held against.

A backend that runs the graph would put times of eager kernels, which change from call to call, into
the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd


def captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function through Dynamo and AOTAutograd; its results are memory that nobody writes."""
    return torch.compile(function, backend=aot_autograd(fw_compiler=_compiled), dynamic=False)


def _compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    (returned,) = next(n for n in graph.graph.nodes if n.op == "output").args
    known = [node.meta["val"] if isinstance(node, torch.fx.Node) else node for node in returned]

    def results(*_: Any) -> list[Any]:
        return [
            torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
            if isinstance(x, torch.Tensor)
            else x
            for x in known
        ]

    return make_boxed_func(results)  # type: ignore[no-any-return]
