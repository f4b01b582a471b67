"""A traced function as a flat list of operations, and running some of them again in a new trace.

Traced graphs are never edited. Another graph (with an operation replaced, or a part of it alone) is
traced from a function that runs the operations of the first one again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.util import compat

#: Largest captured array, in elements, that is a constant of the graph: where XLA wants a
#: shape or an axis, it takes nothing else.
CONSTANT_ELEMENTS = 1024
#: Bytes from which on a constant of the graph is a captured array instead: so it takes no part in
#: what XLA's bridge computes, and in what identifies the function. Shapes and axes are far smaller.
LARGE_CONSTANT_BYTES = 1 << 20
#: Largest array, in elements, in arithmetic on shapes.
FEW_ELEMENTS = 16

#: Calls of functions that are always inlined.
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")

_LOOPS = ("While", "StatelessWhile")
_CONTROL = frozenset(("While", "If", "Case", *_CALLS))

#: Type of the operation that :mod:`polyblocks_tf.operations.checks` adds; TensorFlow itself has no
#: kernel for it.
CHECK_OPERATION = "XlaOptimizationBarrier"

#: Stateful operations that change nothing.
_READS = frozenset(
    "ReadVariableOp ResourceGather ResourceGatherNd VarIsInitializedOp VariableShape Placeholder "
    "PlaceholderWithDefault".split()
)

#: Collections of a graph that is being traced: those outputs of the one that it is a copy of that
#: are read, and what its own have to go through at the end, since nothing reads it (checks):
#: functions of these outputs that give them.
OUTPUTS = "polyblocks.outputs"
PENDING = "polyblocks.pending"

#: Operations whose only effect is an error.
CHECKS = frozenset(("Assert", "CheckNumerics", "CheckNumericsV2"))

_OF_SHAPES = frozenset(("Shape", "ShapeN", "Size", "Rank"))

#: Type of an operation -> a function of the operation and its inputs that computes its outputs,
#: or None where it cannot.
Substitute = Callable[[Any, list[Any]], Sequence[Any] | None]
Substitutions = Mapping[str, Substitute]


#: A tensor: the number of the inlined call that it is in, and its name there.
Value = tuple[int, str]


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a flat list, with what it reads and gives."""

    op: Any
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    def everything(self) -> Iterator[Any]:
        """The operation, and those of all functions that it names (bodies of loops, branches)."""
        yield self.op
        for inner in _named_graphs(self.op):
            yield from everything(inner)

    @property
    def has_effect(self) -> bool:
        """Whether it has side effects, such as assignments, output or checks."""
        return any(_has_effect(op) for op in self.everything())

    @property
    def runs_once(self) -> bool:
        """Whether it has side effects that a second run would repeat: checks may be."""
        return any(_has_effect(op) and op.type not in CHECKS for op in self.everything())


class Graph:
    """The operations of a traced function, those of called functions in place of the calls.

    Attributes:
        nodes: what outputs or effects need, in an order in which it can run.
        inputs: the placeholders of the function's arguments, then those of what it captured.
        captured: the arrays and resources that belong to the latter.
        values: what each input is called in the nodes.
        results: the (flat) outputs, as they were traced.
        outputs: one value per output.
    """

    def __init__(self, func_graph: Any, captured: Sequence[Any] = ()) -> None:
        self.captured = list(captured)
        self.inputs: list[Any] = list(func_graph.inputs)
        self.values: list[Value] = [(0, tensor.name) for tensor in self.inputs]
        self._scopes = 0
        nodes: list[Node] = []
        known = {name: (scope, name) for scope, name in self.values}
        self._collect(func_graph, 0, known, nodes)
        self.results: list[Any] = list(func_graph.outputs)
        self.outputs: list[Value] = [known[tensor.name] for tensor in func_graph.outputs]
        self.nodes = _alive(nodes, self.outputs)

    @classmethod
    def of(cls, concrete: Any) -> Graph:
        """The graph of a ConcreteFunction."""
        return cls(concrete.graph, concrete.captured_inputs)

    @property
    def is_general(self) -> bool:
        """Whether a function that is called in it was traced for shapes that are partly unknown."""
        return any(not t.shape.is_fully_defined() for node in self.nodes for t in node.op.outputs)

    def _collect(
        self, func_graph: Any, scope: int, known: dict[str, Value], nodes: list[Node]
    ) -> None:
        for op in _in_order(func_graph.get_operations()):
            if op.type == "Placeholder":
                continue
            inputs = tuple(known[tensor.name] for tensor in op.inputs)
            called = called_graph(op, "f") if op.type in _CALLS else None
            if called is None:
                outputs = tuple((scope, tensor.name) for tensor in op.outputs)
                known.update((name, (scope, name)) for _, name in outputs)
                nodes.append(Node(op, inputs, outputs))
                continue
            self._scopes += 1
            inside = {p.name: a for p, a in zip(called.inputs, inputs, strict=True)}
            self._collect(called, self._scopes, inside, nodes)
            # Its gradient may have been taken after this call: that appends outputs.
            for result, returned in zip(op.outputs, called.outputs, strict=False):
                known[result.name] = inside[returned.name]


def _in_order(operations: Sequence[Any]) -> list[Any]:
    """Each operation after what it reads or waits for, otherwise in the order of their creation.

    The gradient of a loop gives the loop further inputs, which are younger than it.
    """
    placed: set[str] = set()
    ordered: list[Any] = []
    for first in operations:
        waiting = [first]
        while waiting:
            op = waiting[-1]
            if op.name in placed:
                waiting.pop()
                continue
            before = [t.op for t in op.inputs] + list(op.control_inputs)
            missing = [other for other in before if other.name not in placed]
            if missing:
                waiting += reversed(missing)
            else:
                placed.add(op.name)
                ordered.append(op)
                waiting.pop()
    return ordered


def _alive(nodes: list[Node], outputs: Sequence[Value]) -> list[Node]:
    wanted = set(outputs)
    kept = []
    for node in reversed(nodes):
        if node.has_effect or not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def _has_effect(op: Any) -> bool:
    # Loops and branches have the effects of the functions that they name, and no others.
    return bool(op.op_def.is_stateful) and op.type not in _READS and op.type not in _CONTROL


def everything(func_graph: Any) -> Iterator[Any]:
    """The operations of a graph and of all functions that they name."""
    for op in func_graph.get_operations():
        yield op
        for inner in _named_graphs(op):
            yield from everything(inner)


def _named_graphs(op: Any) -> Iterator[Any]:
    if op.type == "Const":
        # It has no names, and TensorFlow copies its elements to show them.
        return
    for attribute, value in op.node_def.attr.items():
        if value.func.name:
            inner = called_graph(op, attribute)
            if inner is not None:
                yield inner


def called_graph(op: Any, attribute: str) -> Any:
    """The graph of a function that an operation names; None where it is not known."""
    name = op.get_attr(attribute).name
    graph = op.graph
    while graph is not None:
        function = getattr(graph, "_functions", {}).get(name)
        if function is not None:
            return getattr(function, "graph", None)
        graph = getattr(graph, "outer_graph", None)
    return None


def large_constants(graph: Graph) -> list[Node]:
    """The constants that had better be captured arrays."""
    return [
        node
        for node in graph.nodes
        if node.op.type == "Const"
        and (dtype := node.op.outputs[0].dtype).is_numpy_compatible
        and dtype != tf.string
        and node.op.outputs[0].shape.num_elements() * dtype.size >= LARGE_CONSTANT_BYTES
    ]


def fold(graph: Graph) -> dict[Value, np.ndarray]:
    """Values of arithmetic on shapes: numbers that constants and static shapes alone determine.

    XLA wants shapes and axes as constants. It finds such values itself, but not when a part of the
    function is all that it sees, and substitutions ask for them, too.
    """
    known: set[Value] = set()
    wanted: list[Value] = []
    nodes: list[Node] = []
    for node in graph.nodes:
        op = node.op
        outputs = op.outputs
        if op.type == "Const":
            if outputs[0].shape.num_elements() <= CONSTANT_ELEMENTS:
                known.update(node.outputs)
                nodes.append(node)
            continue
        if op.op_def.is_stateful or any(v.func.name for v in op.node_def.attr.values()):
            continue
        if op.type == CHECK_OPERATION:
            continue
        of_shape = op.type in _OF_SHAPES and all(t.shape.is_fully_defined() for t in op.inputs)
        if not of_shape and not (node.inputs and known.issuperset(node.inputs)):
            continue
        if all(_is_small_number(t) for t in outputs):
            known.update(node.outputs)
            wanted += node.outputs
            nodes.append(node)
    if not wanted:
        return {}

    def run() -> list[Any]:
        values: dict[Value, Any] = {}
        for node in nodes:
            if node.op.type in _OF_SHAPES:
                for value, tensor in zip(node.inputs, node.op.inputs, strict=True):
                    if value not in values:
                        values[value] = tf.zeros(tensor.shape, tensor.dtype)
            replay([node], values, {})
        return [values[value] for value in wanted]

    # Numbers are wanted even where a function is being traced.
    with tf.init_scope(), tf.device("CPU"):
        results = tf.function(
            tf.autograph.experimental.do_not_convert(run), autograph=False
        ).get_concrete_function()()
        return {value: np.array(r.numpy()) for value, r in zip(wanted, results, strict=True)}


def _is_small_number(tensor: Any) -> bool:
    """Integers as many as shapes and indices have; of others, a few that lead to such."""
    elements = tensor.shape.num_elements()
    if elements is None:
        return False
    if tensor.dtype.is_integer or tensor.dtype.is_bool:
        return bool(elements <= CONSTANT_ELEMENTS)
    return bool(tensor.dtype.is_floating and elements <= FEW_ELEMENTS)


def replay(
    nodes: Sequence[Node],
    values: dict[Value, Any],
    substitutions: Substitutions,
    read: Container[Value] = (),
) -> None:
    """Run operations again in the graph that is being traced.

    Args:
        nodes: which, in order.
        values: for each value that they read from elsewhere what stands for it; what they
            compute is added.
        substitutions: what to run in place of certain operations; one that gives None leaves its
            operation as it is.
        read: values that are sure to be read.
    """
    current = tf.compat.v1.get_default_graph()
    for node in nodes:
        if all(value in values for value in node.outputs) and node.outputs:
            continue  # known already
        inputs = [values[value] for value in node.inputs]
        substitute = _substitute(node.op, substitutions)
        outputs = None
        if substitute is not None:
            with tf.name_scope(f"{node.op.name}/"):
                outputs = substitute(node.op, inputs)
        if outputs is None:
            live = [i for i, value in enumerate(node.outputs) if value in read]
            outputs = _copy(current, node.op, inputs, substitutions, live).outputs
        for value, old, new in zip(node.outputs, node.op.outputs, outputs, strict=True):
            if old.shape.rank is not None:
                new.set_shape(old.shape)
            values[value] = new


def _copy(
    current: Any, op: Any, inputs: list[Any], substitutions: Substitutions, live: list[int]
) -> Any:
    attributes = {name: value for name, value in op.node_def.attr.items() if name != "_class"}
    fixed = _fixed(op, inputs) if op.type in _LOOPS else {}
    for name, value in attributes.items():
        for function in (value.func, *value.list.func):
            if function.name:
                _bring(current, op.graph, function.name)
        if value.func.name and substitutions:
            inner = called_graph(op, name)
            if inner is not None and holds(inner, substitutions):
                results = _read_of(name, live)
                value.func.name = _rewritten(current, inner, substitutions, results, fixed)
    if op.type in _LOOPS and not all(t.shape.is_fully_defined() for t in op.outputs):
        _specialize(current, op, inputs, attributes, substitutions, live, fixed)
    return _created(current, op, inputs, attributes)


def _fixed(op: Any, inputs: list[Any]) -> dict[int, np.ndarray]:
    """Small numbers that a loop is given as constants and that each trip hands on as they are."""
    body = called_graph(op, "body")
    if body is None:
        return {}
    found = {}
    for i, (taken, given, tensor) in enumerate(
        zip(body.inputs, body.outputs, inputs, strict=False)
    ):
        while given.op.type == "Identity":
            given = given.op.inputs[0]
        if given is taken and _is_small_number(tensor):
            value = tf.get_static_value(tensor)
            if value is not None:
                found[i] = np.asarray(value)
    return found


def _read_of(function: str, live: list[int]) -> list[int]:
    """The outputs that are read of a function that an operation names, given the operation's."""
    if function == "cond":
        return [0] if live else []
    return live if function in ("then_branch", "else_branch", "body") else []


def repeat(op: Any, inputs: list[Any]) -> list[Any]:
    """The outputs of the same operation on other tensors, in the graph that is being traced."""
    attributes = {name: value for name, value in op.node_def.attr.items() if name != "_class"}
    return list(_created(tf.compat.v1.get_default_graph(), op, inputs, attributes).outputs)


def _created(current: Any, op: Any, inputs: list[Any], attributes: dict[str, Any]) -> Any:
    return current._create_op_internal(
        op.type,
        inputs,
        [tensor.dtype for tensor in op.outputs],
        name=op.name,
        attrs=attributes,
        op_def=op.op_def,
    )


def _specialize(
    current: Any,
    op: Any,
    inputs: list[Any],
    attributes: dict[str, Any],
    substitutions: Substitutions,
    live: list[int],
    fixed: Mapping[int, np.ndarray],
) -> None:
    """Make a loop that was traced for partly unknown shapes one of the shapes that come here.

    Left as it is where its body gives values of other shapes than it takes.
    """
    specs = [tf.TensorSpec(t.shape, t.dtype) for t in inputs]
    body, condition = (called_graph(op, name) for name in ("body", "cond"))
    if body is None or condition is None:
        return
    made, test = (
        trace_again(Graph(function), substitutions, specs, _read_of(name, live), fixed)
        for name, function in (("body", body), ("cond", condition))
    )
    if any(old.shape != new.shape for old, new in zip(specs, made.outputs, strict=True)):
        return
    for name, function in (("body", made), ("cond", test)):
        function.add_to_graph(current)
        attributes[name].func.name = str(compat.as_str(function.name))
    attributes["output_shapes"].list.ClearField("shape")
    attributes["output_shapes"].list.shape.extend(spec.shape.as_proto() for spec in specs)


def _bring(current: Any, graph: Any, name: str) -> None:
    """Make a function known to the graph that is being traced."""
    while graph is not None:
        function = getattr(graph, "_functions", {}).get(name)
        if function is not None:
            current._add_function_recursive(function)
            return
        graph = getattr(graph, "outer_graph", None)


def only_if(acts: Callable[[Any], bool]) -> Callable[[Substitute], Substitute]:
    """Mark a substitution that leaves an operation as it is, as a quick look at that tells.

    Without one a traced function need not be traced again.
    """

    def mark(substitute: Substitute) -> Substitute:
        substitute.acts = acts  # type: ignore[attr-defined]
        return substitute

    return mark


def is_constant(tensor: Any) -> bool:
    """Whether an input of an operation is a constant of the graph."""
    return bool(tensor.op.type == "Const")


def _substitute(op: Any, substitutions: Substitutions) -> Substitute | None:
    found = substitutions.get(op.type)
    if found is None:
        return None
    acts = getattr(found, "acts", None)
    return found if acts is None or acts(op) else None


def holds(func_graph: Any, substitutions: Substitutions) -> bool:
    """Whether a graph, or one that it names, has an operation that one of these stands for."""
    return any(_substitute(op, substitutions) is not None for op in everything(func_graph))


def _rewritten(
    current: Any,
    func_graph: Any,
    substitutions: Substitutions,
    live: list[int],
    fixed: Mapping[int, np.ndarray],
) -> str:
    """The name of a copy of a function (the body of a loop or branch) with substitutions."""
    made = trace_again(Graph(func_graph), substitutions, live=live, fixed=fixed)
    made.add_to_graph(current)
    return str(compat.as_str(made.name))


def trace_again(
    graph: Graph,
    substitutions: Substitutions,
    specs: Sequence[Any] | None = None,
    live: Sequence[int] | None = None,
    fixed: Mapping[int, np.ndarray] | None = None,
) -> Any:
    """A copy of a traced function: flat, with substitutions, and constants as they are best held.

    Small captured arrays are constants, large constants captured arrays.

    Args:
        graph: the function.
        substitutions: see :func:`replay`.
        specs: of its arguments, where other shapes are known than those that it was traced for.
        live: the outputs that are read; by default all.
        fixed: what certain arguments are for sure; those that are outputs as well stay arguments.

    Returns:
        A ConcreteFunction of the same arguments that returns the list of flat outputs.
    """
    count = len(graph.inputs) - len(graph.captured)
    folded = fold(graph)
    # Bodies of loops and branches, copied while a function is traced, capture no arrays.
    large = large_constants(graph) if tf.executing_eagerly() else []
    live = range(len(graph.outputs)) if live is None else live
    read = {value for node in graph.nodes for value in node.inputs}
    read.update(graph.outputs[i] for i in live)
    lifted = {node.outputs[0]: tf.constant(_elements(node.op.get_attr("value"))) for node in large}

    def run(*tensors: Any) -> list[Any]:
        current = tf.compat.v1.get_default_graph()
        for i in live:
            current.add_to_collection(OUTPUTS, graph.results[i])
        held = [constant_or_captured(array) for array in graph.captured]
        values = dict(zip(graph.values, (*tensors, *held), strict=True))
        values.update((value, tf.constant(array)) for value, array in folded.items())
        values.update(lifted)
        given = {graph.values[i]: tensors[i] for i in fixed or {}}
        values.update((graph.values[i], tf.constant(array)) for i, array in (fixed or {}).items())
        replay(graph.nodes, values, substitutions, read)
        outputs = [given.get(value, values[value]) for value in graph.outputs]
        for passed in current.get_collection(PENDING):
            for i, tensor in zip(live, passed([outputs[i] for i in live]), strict=True):
                outputs[i] = tensor
        return outputs

    return traced(run, graph.inputs[:count] if specs is None else specs)


def _elements(proto: Any) -> np.ndarray:
    """The elements of a TensorProto; as they lie in it, if it holds their memory."""
    dtype = tf.as_dtype(proto.dtype).as_numpy_dtype
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    flat = np.frombuffer(proto.tensor_content, dtype)
    return flat.reshape(shape) if flat.size else np.asarray(tf.make_ndarray(proto))


def constant_or_captured(held: Any) -> Any:
    """A small array as a constant of the graph that is being traced; anything else as it is."""
    if held.dtype in (tf.resource, tf.variant) or held.shape.num_elements() is None:
        return held
    if held.shape.num_elements() > CONSTANT_ELEMENTS or held.dtype == tf.string:
        return held
    return tf.constant(np.array(held.numpy()), dtype=held.dtype)


def traced(function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """Trace a function of as many arguments, of the same shapes and dtypes as the tensors."""
    specs = [
        t if isinstance(t, tf.TensorSpec) else tf.TensorSpec(t.shape, t.dtype, name=t.op.name)
        for t in tensors
    ]
    wrapped = tf.autograph.experimental.do_not_convert(function)
    return tf.function(wrapped, autograph=False).get_concrete_function(*specs)
