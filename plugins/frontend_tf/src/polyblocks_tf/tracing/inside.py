"""A compiled function that is called while another one is traced.

If that is compiled, too, this one is a part of it. In functions of ``tf.data`` it runs compiled, in
an operation that calls Python. Any other function is TensorFlow's: it may be differentiated,
exported, or compiled by XLA, which no such operation could be, so TensorFlow runs this one as a
part of it, and that is said.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from polyblocks.errors import FallbackError
from polyblocks_tf.location import call_location
from polyblocks_tf.models.layer import infers_shapes
from polyblocks_tf.specs import DTYPE_NAMES

if TYPE_CHECKING:
    from polyblocks_tf.function import CompiledFunction
    from polyblocks_tf.tracing.structure import Arguments

#: Prefix of the names of graphs of ``tf.data``: ``Dataset_map_f``.
_DATA = "Dataset_"

_state = threading.local()


@contextlib.contextmanager
def tracing(name: str) -> Iterator[None]:
    """Make traces inside of the block a part of the compiled function ``name``."""
    outer = getattr(_state, "name", None)
    _state.name = name
    try:
        yield
    finally:
        _state.name = outer


def call(function: CompiledFunction, arguments: Arguments) -> Any:
    """Call a compiled function with symbolic arguments, or with others inside a graph.

    Raises:
        FallbackError: with ``strict_target``, where TensorFlow has to run it.
    """
    report = function.polyblocks_report()
    caller = getattr(_state, "name", None)
    if caller is not None:
        report.part_of(caller)
    elif infers_shapes():
        pass  # what Keras traces to learn shapes is not run
    elif _is_of_data(tf.compat.v1.get_default_graph()):
        result = _in_data(function, arguments)
        if result is not None:
            return result[0]
        _say(function, "call in tf.data", "it takes or gives more than arrays of numbers")
    else:
        _say(
            function,
            "call in a tf.function",
            "the function that calls it is not compiled; compile that one instead",
        )
    return function.trace_inline(*arguments.rebuild(arguments.leaves))


def _say(function: CompiledFunction, how: str, reason: str) -> None:
    strict = function.polyblocks_options.strict_target
    try:
        function.polyblocks_report().not_compiled(how, reason, call_location(), strict=strict)
    except FallbackError as error:
        # AutoGraph would make an error of its own of it.
        vars(error)["ag_pass_through"] = True
        raise


def _is_of_data(graph: Any) -> bool:
    if control_flow_util.GraphOrParentsInXlaContext(graph):
        return False
    while graph is not None:
        if str(getattr(graph, "name", "")).startswith(_DATA):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def _in_data(function: CompiledFunction, arguments: Arguments) -> tuple[Any] | None:
    """The result of an operation that runs the compiled function.

    None where it takes or gives what is no array of numbers.
    """
    leaves = [tf.convert_to_tensor(leaf) for leaf in arguments.leaves]
    if any(leaf.dtype not in DTYPE_NAMES for leaf in leaves):
        return None
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves]
    with tf.init_scope():
        concrete = function.trace(arguments, specs)
    structure = concrete.structured_outputs
    flat = tf.nest.flatten(structure, expand_composites=True)
    outputs = [part for part in flat if part is not None]
    if not outputs or any(part.dtype not in DTYPE_NAMES for part in outputs):
        return None
    # Handles order the operation among what reads and assigns the same variables.
    handles = [held for held in concrete.captured_inputs if held.dtype == tf.resource]

    def run(*tensors: Any) -> Sequence[Any]:
        args, kwargs = arguments.rebuild(tensors[: len(leaves)])
        # As it was traced: with masks of Keras beside the results.
        found = tf.nest.flatten(function._slowly(tuple(args), kwargs), expand_composites=True)
        return [part for part in found if part is not None]

    results = tf.py_function(run, [*leaves, *handles], [part.dtype for part in outputs])
    for result, part in zip(results, outputs, strict=True):
        result.set_shape(part.shape)
    rest = iter(results)
    packed = [None if part is None else next(rest) for part in flat]
    return (tf.nest.pack_sequence_as(structure, packed, expand_composites=True),)
