"""Find the nodes of a graph that cannot be compiled, one node at a time, in isolated processes.

Equal nodes (operation, shapes, dtypes, strides, other arguments) are probed once. Many probes share
one process; when that dies, its probes are repeated one by one to learn which one was fatal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from operator import getitem

from torch import fx

from polyblocks.errors import NativeCrashError, PolyBlocksError, UnsupportedError
from polyblocks.isolation import run_isolated
from polyblocks.partition import CRASH, UNSUPPORTED
from polyblocks_torch.canonical import capture_graph
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.partition import extract

#: Probes that share one process.
BATCH = 32

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
            failed[node] = (error.reason, UNSUPPORTED)
            continue
        if capture.is_trivial:
            continue
        groups.setdefault(capture.fingerprint_text(), (capture, []))[1].append(node)
    captures = [capture for capture, _ in groups.values()]
    for start in range(0, len(captures), BATCH):
        batch = captures[start : start + BATCH]
        for capture, outcome in zip(batch, _run_batch(batch, attempt), strict=True):
            if outcome is not None:
                for node in groups[capture.fingerprint_text()][1]:
                    failed[node] = outcome
    return failed


def _single(module: fx.GraphModule, node: fx.Node) -> TorchCapture:
    nodes: tuple[fx.Node, ...] = (node,)
    value = node.meta.get("val")
    needed = [node]
    if isinstance(value, (tuple, list)):
        needed = [user for user in node.users if user.target is getitem]
        nodes += tuple(needed)
    read = [n for n in node.all_input_nodes if n.op != "get_attr"]
    part = extract(module, nodes, read, needed)
    return capture_graph(part, [n.meta.get("val") for n in read], f"probe of {node.target}")


def _run_batch(batch: Sequence[TorchCapture], attempt: Attempt) -> list[tuple[str, str] | None]:
    def job() -> bytes:
        return json.dumps([_outcome(capture, attempt) for capture in batch]).encode()

    try:
        rows = json.loads(run_isolated(job, label="probes"))
    except NativeCrashError as error:
        if len(batch) == 1:
            return [(error.reason, CRASH)]
        return [outcome for capture in batch for outcome in _run_batch([capture], attempt)]
    except UnsupportedError as error:
        return [(error.reason, UNSUPPORTED)] * len(batch)
    return [tuple(row) if row is not None else None for row in rows]  # type: ignore[misc]


def _outcome(capture: TorchCapture, attempt: Attempt) -> tuple[str, str] | None:
    try:
        if capture.problem is not None:
            raise capture.problem
        attempt(capture)
    except UnsupportedError as error:
        return error.reason, UNSUPPORTED
    except PolyBlocksError as error:
        return str(error), UNSUPPORTED
    except Exception as error:
        return f"{type(error).__name__}: {error}", UNSUPPORTED
    return None
