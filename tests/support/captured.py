"""PyTorch functions as Programs, without a compiler around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks import signature
from polyblocks.program import Program
from polyblocks_torch.importing.importer import import_capture
from polyblocks_torch.recording.canonical import capture_graph


def captured(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> Program:
    """The Program of a function of these inputs, its signature on ``@main``."""
    graph = make_fx(function, tracing_mode="fake")(*inputs)
    values = [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]
    program = import_capture(capture_graph(graph, values, "program"))
    signature.attach(program)
    return program
