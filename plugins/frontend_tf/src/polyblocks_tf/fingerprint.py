"""A stable text of a traced function; equal functions give equal texts, whatever their names are.

Operations are numbered in order and functions named by their own digest, so neither the names that
tracing gave nor the user's files and line numbers matter. Nothing here loads MLIR.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.eager import context, record

if TYPE_CHECKING:
    from polyblocks_tf.capture import Captured, TfCapture

#: Attributes that say nothing on what is computed.
_IDLE = (
    "_output_shapes",
    "_user_specified_name",
    "_class",
    "_xla_compile_id",
    "_num_original_outputs",
)


def describe(capture: TfCapture) -> str:
    """The text of a capture: arguments, operations, results, versions."""
    graph = capture.concrete.graph
    lines = [f"tensorflow {tf.__version__}{' keeps' if capture.keeps else ''}"]
    with record.stop_recording():  # a ForwardAccumulator outside sees every operation
        lines += [_argument(argument) for argument in capture.arguments]
    definition = graph.as_graph_def(add_shapes=False)
    functions = {f.signature.name: f for f in definition.library.function}
    digests: dict[str, str] = {}
    numbers = {tensor.op.name: f"argument{i}" for i, tensor in enumerate(graph.inputs)}
    lines += _nodes(definition.node, numbers, functions, digests)
    lines += [f"return {_operand(tensor.name, numbers)}" for tensor in graph.outputs]
    return "\n".join(lines)


def _argument(argument: Captured) -> str:
    text = f"argument {argument.kind} {argument.spec}"
    known = argument.kind == "variable" and argument.spec is not None
    # The bridge refuses a variable without a value. It does not when the variable has one.
    if known and not tf.raw_ops.VarIsInitializedOp(resource=argument.held):
        text += " without a value"
    # Nor does it translate what another process holds.
    return text if _is_here(argument.held) else f"{text} of another process"


def _is_here(held: Any) -> bool:
    """Whether this process holds it, and not one that TensorFlow is connected to."""
    device = getattr(held, "backing_device", None)
    return device is None or device.startswith(f"{context.context().host_address_space()}/")


def digest(capture: TfCapture) -> bytes:
    """SHA-256 of the text."""
    return hashlib.sha256(capture.fingerprint_text().encode()).digest()


def _nodes(
    nodes: Any, numbers: dict[str, str], functions: dict[str, Any], digests: dict[str, str]
) -> list[str]:
    """One line per node. Nodes of functions may stand in any order, so numbers come first."""
    for node in nodes:
        numbers.setdefault(node.name, f"%{len(numbers)}")
    lines = []
    for node in nodes:
        inputs = ", ".join(_operand(name, numbers) for name in node.input)
        attributes = ", ".join(
            f"{name}={_attribute(value, functions, digests)}"
            for name, value in sorted(node.attr.items())
            if name not in _IDLE
        )
        lines.append(f"{numbers[node.name]} = {node.op}({inputs}; {attributes}) {node.device}")
    return lines


def _operand(name: str, numbers: dict[str, str]) -> str:
    control = name.startswith("^")
    base, _, output = name.lstrip("^").partition(":")
    return f"{'^' if control else ''}{numbers.get(base, base)}:{output or 0}"


def _attribute(value: Any, functions: dict[str, Any], digests: dict[str, str]) -> str:
    names = [f.name for f in (value.func, *value.list.func) if f.name]
    if names:
        return "functions " + " ".join(_function(name, functions, digests) for name in names)
    if value.HasField("tensor") and value.tensor.tensor_content:
        content = hashlib.sha256(value.tensor.tensor_content).hexdigest()
        shape = [d.size for d in value.tensor.tensor_shape.dim]
        return f"tensor {value.tensor.dtype} {shape} {content}"
    return hashlib.sha256(value.SerializeToString(deterministic=True)).hexdigest()


def _function(name: str, functions: dict[str, Any], digests: dict[str, str]) -> str:
    if name not in digests:
        definition = functions.get(name)
        if definition is None:
            return name
        digests[name] = ""  # a function that calls itself
        numbers = {a.name: f"argument{i}" for i, a in enumerate(definition.signature.input_arg)}
        lines = _nodes(definition.node_def, numbers, functions, digests)
        lines += [
            f"return {_operand(definition.ret[a.name], numbers)}"
            for a in definition.signature.output_arg
        ]
        digests[name] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return digests[name]
