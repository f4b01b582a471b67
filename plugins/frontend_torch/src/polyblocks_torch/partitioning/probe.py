"""Find the nodes of a graph that cannot be compiled, one node at a time, in isolated processes.

Equal nodes (operation, shapes, dtypes, strides, other arguments) are probed once,
by :func:`polyblocks.frontends.partition.run_probes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem

from torch import fx

from polyblocks.errors import UnsupportedError
from polyblocks.frontends.partition import run_probes, why
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.partitioning.partition import extract
from polyblocks_torch.recording.canonical import capture_graph

#: Raises when the capture cannot be compiled; runs in an isolated process.
Attempt = Callable[[TorchCapture], object]


def probe_nodes(
    module: fx.GraphModule, nodes: Sequence[fx.Node], attempt: Attempt
) -> dict[fx.Node, tuple[str, str]]:
    """The nodes that fail by themselves, each with (reason, kind)."""
    groups: dict[str, tuple[TorchCapture, list[fx.Node]]] = {}
    failed: dict[fx.Node, tuple[str, str]] = {}
    for node in nodes:
        try:
            capture = _single(module, node)
        except UnsupportedError as error:
            failed[node] = why(error)
            continue
        if capture.is_trivial:
            continue
        groups.setdefault(capture.fingerprint_text(), (capture, []))[1].append(node)
    captures = [capture for capture, _ in groups.values()]

    def try_(capture: TorchCapture) -> None:
        if capture.problem is not None:
            raise capture.problem
        attempt(capture)

    for capture, outcome in zip(captures, run_probes(captures, try_), strict=True):
        if outcome is not None:
            for node in groups[capture.fingerprint_text()][1]:
                failed[node] = outcome
    return failed


def _single(module: fx.GraphModule, node: fx.Node) -> TorchCapture:
    nodes: tuple[fx.Node, ...] = (node,)
    value = node.meta.get("val")
    needed = [node]
    if isinstance(value, (tuple, list)):
        elements = _elements(node)
        needed = [n for n in elements if not isinstance(n.meta.get("val"), (tuple, list))]
        nodes += tuple(elements)
    elif value is None:
        needed = []
    read = [n for n in node.all_input_nodes if n.op != "get_attr"]
    part = extract(module, nodes, read, needed)
    return capture_graph(part, [n.meta.get("val") for n in read], f"probe of {node.target}")


def _elements(node: fx.Node) -> list[fx.Node]:
    """The nodes that take elements out of what a node gives, and out of these."""
    mine = [user for user in node.users if user.target is getitem]
    return mine + [inner for element in mine for inner in _elements(element)]
