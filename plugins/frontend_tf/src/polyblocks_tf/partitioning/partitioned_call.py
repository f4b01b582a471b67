"""A partitioned function as one Python function: compiled parts and TensorFlow's operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from polyblocks.frontends.partition import Step
from polyblocks.runtime.source import Source
from polyblocks_tf.launch.launcher import no_value
from polyblocks_tf.operations.checks import WITHOUT_CHECKS
from polyblocks_tf.partitioning.partition import TfOperations
from polyblocks_tf.tracing.graph import Value
from polyblocks_tf.tracing.structure import returned


def make_partitioned_call(
    operations: TfOperations,
    steps: Sequence[Step],
    parts: Sequence[Callable[..., Any]],
    structure: Any,
    arrays: Sequence[bool],
) -> Callable[..., Any]:
    """The function that runs the steps of a partitioned function.

    Args:
        operations: the whole function.
        steps: its steps in order.
        parts: the compiled steps as functions of the tensors that they read, in order.
        structure: what the traced function returned.
        arrays: for each argument, whether it comes as a NumPy array.

    Returns:
        A function of the arguments that returns what the traced function does.
    """
    graph = operations.graph
    source = Source(", ".join(f"a{i}" for i in range(len(arrays))))
    names: dict[Value, str] = {}
    for index, value in enumerate(graph.values[: len(arrays)]):
        names[value] = f"a{index}"
        if arrays[index]:
            convert = source.name("convert", tf.convert_to_tensor)
            source.add(f"a{index} = {convert}(a{index})")
    for value, held in operations.held.items():
        names[value] = source.name("held", held)
    for value, array in operations.constants.items():
        names[value] = source.name("constant", tf.constant(array))
    rest = iter(parts)
    alive = _last_uses(operations, steps)
    for number, step in enumerate(steps):
        read, given = operations.boundary(step.nodes, compiled=step.compiled)
        for value in given:
            names[value] = f"v{len(names)}"
        function = next(rest) if step.compiled else _alone(operations, step)
        targets = "".join(f"{names[value]}, " for value in given)
        call = f"{source.name('step', function)}({', '.join(names[value] for value in read)})"
        source.add(f"{targets}= {call}" if targets else call)
        dead = [names[value] for value in alive.get(number, ())]
        if dead:
            source.add(f"del {', '.join(dead)}")
    results = [names[value] for value in graph.outputs]
    source.add(f"return {returned(source, structure, results)}")
    return source.build(operations.name)


def _alone(operations: TfOperations, step: Step) -> Callable[..., Any]:
    """A step that TensorFlow runs, as a function of tensors that returns a list of them."""
    concrete = operations.function(step.nodes, compiled=False, substitutions=WITHOUT_CHECKS)
    if not any(op.type == "ReadVariableOp" for op in concrete.graph.get_operations()):
        return lambda *tensors: concrete(*tensors)
    names = [tensor.op.name for tensor in concrete.outputs]
    shapes = [tensor.shape for tensor in concrete.outputs]

    def run(*tensors: Any) -> Any:
        results = concrete(*tensors)
        for result, name, shape in zip(results, names, shapes, strict=True):
            if not shape.is_compatible_with(result.shape):  # compiled code relies on it
                raise no_value(name, result.shape)
        return results

    return run


def _last_uses(operations: TfOperations, steps: Sequence[Step]) -> dict[int, list[Value]]:
    """Step -> values without a reader after it."""
    kept = set(operations.graph.outputs)
    last: dict[Value, int] = {}
    for number, step in enumerate(steps):
        read, given = operations.boundary(step.nodes, compiled=step.compiled)
        for value in (*read, *given):
            last[value] = number
    arguments = set(operations.graph.values)
    found: dict[int, list[Value]] = {}
    for value, number in last.items():
        if value not in kept and value not in arguments:
            found.setdefault(number, []).append(value)
    return found
