"""One graph of AOTAutograd -> a function that runs it: whole, in parts, or by the framework."""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from polyblocks.frontends import programs
from polyblocks.frontends.partition import check_may_stay
from polyblocks.options import CompileOptions
from polyblocks_torch import fingerprint
from polyblocks_torch.capture import TorchCapture
from polyblocks_torch.launch.launcher import make_call
from polyblocks_torch.partitioning.partition import (
    FallbackOp,
    boundary,
    fallback_row,
    op_name,
    part_capture,
    steps,
)
from polyblocks_torch.partitioning.partitioned_call import BoxedCall, make_partitioned_call
from polyblocks_torch.partitioning.plan import FRONTEND, make_plan
from polyblocks_torch.recording.canonical import capture_graph
from polyblocks_torch.report import FunctionReport, Variant

logger = logging.getLogger("polyblocks")


def compile_graph(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    name: str,
    kind: str,
    options: CompileOptions,
    report: FunctionReport,
    weights: tuple[bool, ...] = (),
    guarded: bool = True,
) -> BoxedCall:
    """Compile one graph.

    Args:
        gm: a graph of ATen ops, as AOTAutograd gives it to a backend's compilers.
        example_inputs: one (fake) value per placeholder.
        name: the user's function.
        kind: ``inference``, ``forward`` or ``backward``; for the report.
        options: the checked options.
        report: receives what happened.
        weights: which arguments are frozen weights; none if AOTAutograd has merged some.
        guarded: whether arguments look, at each call, as the example inputs do.

    Returns:
        A function of the list of arguments, which it empties, returning the tuple of outputs.

    Raises:
        FallbackError: with ``strict_target``, when an op cannot be compiled.
        TargetError, PluginError: the target cannot be used.
    """
    begin = time.perf_counter()
    # AOTAutograd calls this under its fake tensor mode, which must not see the constants.
    with _disable_current_modes(), torch.no_grad():
        capture = capture_graph(gm, example_inputs, name, weights)
        arguments = [f"{a.spec.dtype}{list(a.spec.shape)}" for a in capture.arguments]
        variant = Variant(name, kind, arguments=arguments)
        call = _compile(capture, variant, options, report, guarded)
    variant.seconds = time.perf_counter() - begin
    report.add_variant(variant)
    return call


def _compile(
    capture: TorchCapture,
    variant: Variant,
    options: CompileOptions,
    report: FunctionReport,
    guarded: bool,
) -> BoxedCall:
    if capture.is_trivial:
        return make_call(capture, None, options)
    capture.recover = lambda error: make_plan(capture, error, options)
    artifact, cached = programs.obtain(capture, FRONTEND, options)
    if artifact.manifest["kind"] == "program":
        variant.outcome = "compiled"
        report.compiled(variant, artifact, cached)
        unguarded = {} if guarded else dict.fromkeys(range(capture.input_count), "")
        executable = programs.load(fingerprint.digest(capture), artifact, options)
        return make_call(capture, executable, options, unguarded)

    variant.cached = cached
    graph = capture.graph_module.graph
    nodes = list(graph.nodes)
    left = {nodes[row["index"]]: FallbackOp(**row) for row in artifact.manifest["plan"]["left"]}
    for node, why in left.items():
        row = fallback_row(node, why)
        check_may_stay(why, row["location"], options, "PyTorch")
        report.left_to_framework(row)
    cuts = [nodes[index] for index in artifact.manifest["plan"]["cuts"]]
    order = steps(graph, set(left), cuts)
    #: Values that nothing guards, and which operations give them.
    origins = {node: _maker(node) for step in order if not step.compiled for node in step.nodes}
    if not guarded:
        origins |= {node: "" for node in nodes if node.op == "placeholder"}
    parts = []
    for step in order:
        if step.compiled:
            part = part_capture(capture, step)
            read, _ = boundary(step, graph)
            unguarded = {i: origins[node] for i, node in enumerate(read) if node in origins}
            if part.is_trivial:
                parts.append(make_call(part, None, options))
                continue
            program, cached = programs.obtain_part(part, FRONTEND, options)
            report.compiled(variant, program, cached)
            executable = programs.load(fingerprint.digest(part), program, options)
            parts.append(make_call(part, executable, options, unguarded))
    variant.outcome = "partitioned" if parts else "framework"
    return make_partitioned_call(capture, order, parts)


def _maker(node: fx.Node) -> str:
    """The operation that gives a value; for an element of a tuple, what gives the tuple."""
    while node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return op_name(node)
