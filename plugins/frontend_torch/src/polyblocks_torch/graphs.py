"""Graph modules whose Python code is written when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.fx._lazy_graph_module import _LazyGraphModule


def graph_module(root: torch.nn.Module | Mapping[str, Any], graph: fx.Graph) -> fx.GraphModule:
    """``fx.GraphModule(root, graph)`` that writes and compiles its ``forward`` at the first use.

    Here graphs are read and rewritten, hardly ever called, and the code of a graph costs as much
    as all else that is done with it.
    """
    source = root if isinstance(root, torch.nn.Module) else dict(root)
    return _LazyGraphModule(source, graph)
