"""One traced function -> a function that runs it: compiled, in parts, or by TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.errors import InputError
from polyblocks.frontends import programs
from polyblocks.frontends.function_report import FunctionReport, Variant
from polyblocks.frontends.partition import (
    Plan,
    check_may_stay,
    fallback_row,
    is_without_framework,
    order,
)
from polyblocks.frontends.planner import make_plan
from polyblocks.isolation.frames import with_large_frame
from polyblocks.options import CompileOptions
from polyblocks.runtime.source import Source
from polyblocks_tf import fingerprint
from polyblocks_tf.capture import TfCapture
from polyblocks_tf.launch.device_call import Finish, wherever_tensors_are
from polyblocks_tf.launch.launcher import make_bound_call, make_call
from polyblocks_tf.operations.substitutions import substitutions_for
from polyblocks_tf.partitioning.partition import TfOperations
from polyblocks_tf.partitioning.partitioned_call import make_partitioned_call
from polyblocks_tf.tracing.graph import Graph, holds, large_constants, trace_again
from polyblocks_tf.tracing.structure import returned

#: The name under which the driver finds this frontend.
FRONTEND = "tf"


@with_large_frame
def compile_function(
    concrete: Any,
    *,
    name: str,
    arrays: Sequence[bool],
    options: CompileOptions,
    report: FunctionReport,
    kind: str = "inference",
) -> Callable[..., Any]:
    """Compile a traced function of static shapes.

    Args:
        concrete: a ConcreteFunction of flat arguments.
        name: the user's function, for reports.
        arrays: for each argument, whether it comes as a NumPy array.
        options: the checked options.
        report: receives what happened.
        kind: ``inference``, ``forward`` or ``backward``; for the report.

    Returns:
        A function of the arguments that returns what the traced function does.

    Raises:
        FallbackError: with ``strict_target``, when an operation cannot be compiled.
        TargetError, PluginError: the target cannot be used.
    """
    begin = time.perf_counter()
    original = TfCapture.of(concrete, name)
    arguments = [f"{a.spec.dtype}{list(a.spec.shape)}" for a in original.arguments if a.spec]
    variant = Variant(name, kind, arguments=arguments)
    flat = _prepared(original)
    structure = concrete.structured_outputs
    call = _compile(flat, structure, arrays, variant, options, report)
    variant.seconds = time.perf_counter() - begin
    report.add_variant(variant)
    return call


def _prepared(capture: TfCapture) -> TfCapture:
    """The function with what the bridge does not know, or not so, in other operations."""
    graph = Graph.of(capture.concrete)
    constants = any(argument.kind == "array" for argument in capture.arguments)
    constants = constants or graph.is_general or bool(large_constants(graph))
    substitutions = substitutions_for(graph)
    if not constants and not holds(capture.concrete.graph, substitutions):
        return capture
    return TfCapture.of(trace_again(graph, substitutions), capture.name, capture.where)


def _compile(
    capture: TfCapture,
    structure: Any,
    arrays: Sequence[bool],
    variant: Variant,
    options: CompileOptions,
    report: FunctionReport,
) -> Callable[..., Any]:
    if capture.is_trivial:
        return lambda *tensors: capture.concrete(*tensors)
    operations = TfOperations(capture, options)
    capture.recover = lambda error: make_plan(operations, error)
    artifact, cached = programs.obtain(capture, FRONTEND, options)
    if artifact.manifest["kind"] == "program":
        if is_without_framework() and artifact.manifest["report"].get("assigned"):
            raise InputError(
                f"{capture.name} assigns variables, and a program that is compiled ahead of time "
                "has none; return the new values instead"
            )
        variant.outcome = "compiled"
        report.compiled(variant, artifact, cached)
        executable = programs.load(fingerprint.digest(capture), artifact, options)
        return _runner(
            capture,
            executable,
            options,
            arrays,
            lambda source, names: returned(source, structure, names),
            report,
        )

    variant.cached = cached
    plan = Plan.of(artifact)
    for left in plan.left:
        row = fallback_row(operations, left)
        check_may_stay(left, row["location"], options, "TensorFlow")
        report.left_to_framework(row)
    steps = order(operations, {left.index for left in plan.left}, plan.cuts)
    parts: list[Callable[..., Any]] = []
    for step in steps:
        if step.compiled:
            part = operations.part(step.nodes)
            program, cached = programs.obtain_part(part, FRONTEND, options)
            report.compiled(variant, program, cached)
            executable = programs.load(fingerprint.digest(part), program, options)
            tensors = [False] * operations.argument_count(part)
            parts.append(_runner(part, executable, options, tensors, _as_tuple, report))
    variant.outcome = "partitioned" if parts else "framework"
    return make_partitioned_call(operations, steps, parts, structure, arrays)


def _runner(
    capture: TfCapture,
    executable: Any,
    options: CompileOptions,
    arrays: Sequence[bool],
    finish: Finish,
    report: FunctionReport,
) -> Callable[..., Any]:
    call = _built(make_call(capture, executable, options, arrays), finish, capture.name)
    bound = make_bound_call(capture, executable, options, arrays, call)
    if bound is not None:
        call = _built(bound, finish, capture.name)
    if not executable.takes_device_arrays:
        return call
    return wherever_tensors_are(capture, executable, options, len(arrays), finish, call, report)


def _built(made: tuple[Source, list[str]], finish: Finish, name: str) -> Callable[..., Any]:
    source, names = made
    source.add(f"return {finish(source, names)}")
    return source.build(name)


def _as_tuple(source: Source, names: list[str]) -> str:
    del source
    return f"({''.join(f'{n}, ' for n in names)})"
