"""One graph of AOTAutograd -> a function that runs it: whole, in parts, or by the framework."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from polyblocks import driver, events
from polyblocks.artifact import Artifact
from polyblocks.errors import FallbackError
from polyblocks.options import CompileOptions
from polyblocks_torch import fingerprint
from polyblocks_torch.canonical import capture_graph
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.launcher import make_call
from polyblocks_torch.partition import RANDOM, Left, fallback_row, part_capture, steps
from polyblocks_torch.partitioned_call import BoxedCall, make_partitioned_call
from polyblocks_torch.plan import FRONTEND, make_plan
from polyblocks_torch.report import FunctionReport, Variant

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable

logger = logging.getLogger("polyblocks")

#: Programs that are loaded in this process, so that equal graphs share one.
_loaded: weakref.WeakValueDictionary[tuple[bytes, str], Executable] = weakref.WeakValueDictionary()
_load_lock = threading.Lock()


def compile_graph(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    name: str,
    kind: str,
    options: CompileOptions,
    report: FunctionReport,
) -> BoxedCall:
    """Compile one graph.

    Args:
        gm: a graph of ATen ops, as AOTAutograd gives it to a backend's compilers.
        example_inputs: one (fake) value per placeholder.
        name: the user's function.
        kind: ``inference``, ``forward`` or ``backward``; for the report.
        options: the checked options.
        report: receives what happened.

    Returns:
        A function of the list of arguments, which it empties, returning the tuple of outputs.

    Raises:
        FallbackError: with ``strict_target``, when an op cannot be compiled.
        TargetError, PluginError: the target cannot be used.
    """
    begin = time.perf_counter()
    # AOTAutograd calls this under its fake tensor mode, which must not see the constants.
    with _disable_current_modes(), torch.no_grad():
        capture = capture_graph(gm, example_inputs, name)
        arguments = [f"{a.spec.dtype}{list(a.spec.shape)}" for a in capture.arguments]
        variant = Variant(name, kind, arguments=arguments)
        call = _compile(capture, variant, options, report)
    variant.seconds = time.perf_counter() - begin
    report.variants.append(variant)
    return call


def _compile(
    capture: TorchCapture, variant: Variant, options: CompileOptions, report: FunctionReport
) -> BoxedCall:
    if capture.is_trivial:
        return make_call(capture, None, options)
    capture.recover = lambda error: make_plan(capture, error, options)
    artifact, cached = _artifact(capture, options)
    if artifact.manifest["kind"] == "program":
        variant.outcome = "compiled"
        report.compiled(variant, artifact, cached)
        return make_call(capture, _load(capture, artifact, options), options)

    variant.cached = cached
    graph = capture.graph_module.graph
    nodes = list(graph.nodes)
    left = {nodes[row["index"]]: Left(**row) for row in artifact.manifest["plan"]["left"]}
    for node, why in left.items():
        row = fallback_row(node, why)
        if options.strict_target and why.kind != RANDOM:
            raise FallbackError(
                f"{why.reason}; strict_target forbids that PyTorch runs it",
                op=why.op,
                location=row["location"] or None,
            )
        report.left_to_framework(row)
    cuts = [nodes[index] for index in artifact.manifest["plan"]["cuts"]]
    order = steps(graph, set(left), cuts)
    parts = []
    for step in order:
        if step.compiled:
            part = part_capture(capture, step)
            if part.is_trivial:
                parts.append(make_call(part, None, options))
                continue
            program, cached = _artifact(part, options)
            report.compiled(variant, program, cached)
            parts.append(make_call(part, _load(part, program, options), options))
    variant.outcome = "partitioned" if parts else "framework"
    return make_partitioned_call(capture, order, parts)


def _artifact(capture: TorchCapture, options: CompileOptions) -> tuple[Artifact, bool]:
    """The artifact, and whether the cache had it."""
    hits: list[bool] = []

    def watch(event: events.Event) -> None:
        if event.kind in ("cache-hit", "cache-miss"):
            hits.append(event.kind == "cache-hit")

    with events.listening(watch):
        artifact = driver.compile_capture(capture, FRONTEND, options)
    return artifact, all(hits)


def _load(capture: TorchCapture, artifact: Artifact, options: CompileOptions) -> Executable:
    key = (fingerprint.digest(capture), options.cache_key())
    with _load_lock:
        executable = None if options.debug else _loaded.get(key)
        if executable is None:
            executable = driver.load(artifact)
            _loaded[key] = executable
    return executable
