"""Traced functions as flat lists, run again; what identifies them; where they come from."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from polyblocks.errors import UnsupportedError  # noqa: E402
from polyblocks_tf.capture import TfCapture  # noqa: E402
from polyblocks_tf.export import export, refusal  # noqa: E402
from polyblocks_tf.fingerprint import digest  # noqa: E402
from polyblocks_tf.location import Locations  # noqa: E402
from polyblocks_tf.operations import rules  # noqa: E402
from polyblocks_tf.tracing.graph import Graph, fold, holds, trace_again  # noqa: E402

SPEC = tf.TensorSpec((3, 4), tf.float32)


def traced(function, *specs):
    return tf.function(function).get_concrete_function(*(specs or (SPEC,)))


def types(graph):
    return [node.op.type for node in graph.nodes]


def test_called_functions_are_inlined_each_time():
    inner = tf.function(lambda x, y: (x * y, x - y))

    def outer(x):
        a, b = inner(x, x)
        c, _ = inner(b, a)
        return a + c

    concrete = traced(outer)
    graph = Graph.of(concrete)
    assert types(graph).count("Mul") == 2
    assert "PartitionedCall" not in types(graph)
    x = tf.ones((3, 4)) * 3
    assert tf.reduce_all(trace_again(graph, {})(x)[0] == outer(x))


def test_what_nobody_needs_is_left_out_and_effects_stay():
    v = tf.Variable(0.0)

    def f(x):
        tf.sin(x)
        v.assign_add(1.0)
        return x + 1

    graph = Graph.of(traced(f))
    assert "Sin" not in types(graph)
    assert "AssignAddVariableOp" in types(graph)
    assert [node.op.type for node in graph.nodes if node.has_effect] == ["AssignAddVariableOp"]


def test_operations_come_after_what_they_read():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]
        return tape.gradient(y, x)

    graph = Graph.of(traced(f))
    known = set(graph.values)
    for node in graph.nodes:
        assert known.issuperset(node.inputs)
        known.update(node.outputs)
    x = tf.ones((3, 4)) * 2
    assert tf.reduce_all(trace_again(graph, {})(x)[0] == 4 * x**3)


def test_arithmetic_on_static_shapes_is_folded():
    def f(x):
        half = tf.shape(x)[1] // 2
        return tf.reshape(x, [-1, half]), tf.cast(half, tf.float32) + x

    graph = Graph.of(traced(f))
    values = sorted(int(v) for v in fold(graph).values() if v.shape == ())
    assert 2 in values
    # Of other numbers only a few: what leads back to shapes, and not the data.
    assert all(v.size <= 16 for v in fold(graph).values() if v.dtype.kind not in "ib")
    assert "Shape" not in [op.type for op in trace_again(graph, {}).graph.get_operations()]


def test_substitutions_reach_the_bodies_of_loops():
    def f(x):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tf.cosh(y)), [0, x])[1]

    concrete = traced(f)
    substitutions = {"Cosh": lambda op, inputs: [inputs[0] + 5]}
    assert holds(concrete.graph, substitutions)
    made = trace_again(Graph.of(concrete), substitutions)
    assert not holds(made.graph, substitutions)
    assert tf.reduce_all(made(tf.zeros((3, 4)))[0] == 10)


def test_constants_that_loops_hand_on_are_constants_inside():
    def f(x):
        fixed, changing = tf.constant(5), tf.constant(7)

        def trip(i, y, held, other):
            return i + 1, tf.cosh(y) + tf.cast(held // other, y.dtype), held, other + 1

        return tf.while_loop(lambda i, y, held, other: i < 2, trip, [0, x, fixed, changing])[1:]

    found = []

    def division(op, inputs):
        del op
        found.append([tf.get_static_value(t) for t in inputs])
        return None

    made = trace_again(Graph.of(traced(f)), {"FloorDiv": division})
    assert found == [[5, None]]  # what changes from trip to trip is no constant
    _, fixed, changing = made(tf.zeros((3, 4)))
    assert (int(fixed), int(changing)) == (5, 9)


def test_small_captured_arrays_become_constants():
    small, large = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.ones((40, 100, 4))
    concrete = traced(lambda x: x * small + tf.reduce_sum(large))
    made = trace_again(Graph.of(concrete), {})
    assert len(concrete.captured_inputs) == 2
    assert [t.shape.rank for t in made.captured_inputs] == [3]


class TestFingerprint:
    @staticmethod
    def of(function, *specs):
        return digest(TfCapture.of(traced(function, *specs), "f"))

    def test_names_do_not_matter(self):
        assert self.of(lambda x: tf.tanh(x) + 1) == self.of(lambda y: tf.tanh(y, name="a") + 1)

    def test_operations_constants_shapes_and_dtypes_do(self):
        prints = [
            self.of(lambda x: x + 1),
            self.of(lambda x: x + 2),
            self.of(lambda x: x - 1),
            self.of(lambda x: x + 1, tf.TensorSpec((3, 5), tf.float32)),
            self.of(lambda x: x + 1, tf.TensorSpec((3, 4), tf.float64)),
            self.of(lambda x: (x + 1, x)),
        ]
        assert len(set(prints)) == len(prints)

    def test_bodies_of_loops_do_whatever_they_are_called(self):
        def loop(step):
            return lambda x: tf.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, y * step), [0, x]
            )

        assert self.of(loop(2.0)) == self.of(loop(2.0))
        assert self.of(loop(2.0)) != self.of(loop(3.0))


def test_locations_know_names_with_more_around_them():
    def f(x):
        return tf.sin(x, name="mine")

    where = Locations(traced(f).graph)
    line = f"{__file__}:{f.__code__.co_firstlineno + 1}"
    for name in ("mine", "caller/mine", "caller/mine/Floor"):
        assert where.find(name) == ("Sin", line)
    assert where.find("other") == ("", "")
    assert f"Sin {line}" in where.listed()


def test_rules():
    def refused(function):
        nodes = Graph.of(traced(function)).nodes
        return [r for node in nodes for op in node.everything() if (r := rules.refused(op))]

    assert refused(lambda x: x + tf.random.uniform((4,)))
    assert refused(lambda x: tf.debugging.check_numerics(x, "x"))
    assert refused(lambda x: x + tf.random.stateless_gamma((4,), [1, 2], 2.0))
    assert not refused(lambda x: tf.nn.softmax(x))


def test_what_the_bridge_refuses_is_told_with_operation_and_line():
    def f(x):
        return tf.strings.as_string(x)

    concrete = traced(f)
    with pytest.raises(UnsupportedError, match="AsString: XLA's bridge: XLA has no translation"):
        export(concrete, Locations(concrete.graph), "f")
    error = refusal("Input 1 to node `y` with op Reshape must be ...", Locations(concrete.graph))
    assert error.op is None
    assert "must be" in error.reason
