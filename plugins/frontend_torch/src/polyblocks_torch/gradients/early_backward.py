"""Backward graphs are compiled beside their forward graphs, before a gradient is asked for.

AOTAutograd has both graphs at once, and asks for the code of the backward one when it first runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from polyblocks import driver
from polyblocks.options import CompileOptions
from polyblocks_torch.gradients.absent_gradients import without_tangents
from polyblocks_torch.gradients.checkpoints import partition
from polyblocks_torch.partitioning.plan import FRONTEND
from polyblocks_torch.recording.canonical import capture_graph

Compiler = Callable[[fx.GraphModule, Sequence[Any]], Any]


class EarlyBackward:
    """Starts to compile the backward graph of a function.

    Args:
        name: the user's function.
        options: the checked options.
    """

    def __init__(self, name: str, options: CompileOptions) -> None:
        self._name = name
        self._options = options
        self._graph: fx.GraphModule | None = None

    def partition(self, joint: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        """As :func:`polyblocks_torch.gradients.checkpoints.partition`."""
        forward, self._graph = partition(joint, *args, **kwargs)
        return forward, self._graph

    def forward_compiler(self, compile_: Compiler) -> Compiler:
        """A compiler of forward graphs that starts to compile the backward one first."""

        def compiler(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
            graph, self._graph = self._graph, None
            if graph is not None and driver.loads_really():
                # Its errors are raised when it is asked for.
                with contextlib.suppress(Exception):
                    self._start(graph)
            return compile_(gm, example_inputs)

        return compiler

    def _start(self, graph: fx.GraphModule) -> None:
        inputs = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
        copy = without_tangents(graph, frozenset())
        if copy is None or any(isinstance(value, torch.SymInt) for value in inputs):
            return
        with _disable_current_modes(), torch.no_grad():
            capture = capture_graph(copy, inputs, self._name, ())
            if not capture.is_trivial:
                driver.compile_soon(capture, FRONTEND, self._options)
