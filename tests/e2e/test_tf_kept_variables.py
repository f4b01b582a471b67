"""What depends on variables and captured arrays alone is computed once, until one is assigned."""

from __future__ import annotations

import gc

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import polyblocks  # noqa: E402
from polyblocks.runtime.kept.memory import kept_bytes  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

# Weights are kept by CPUs alone so far.
pytestmark = pytest.mark.cpu


class Net(tf.Module):
    """Two linear layers, whose weights are transposed, and a normalization."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(0)
        self.wide = tf.Variable(random.standard_normal((256, 64), np.float32))
        self.narrow = tf.Variable(random.standard_normal((96, 256), np.float32))
        self.variance = tf.Variable(random.uniform(0.5, 1.5, 96).astype(np.float32))
        self.factor = tf.Variable(1.0)

    def __call__(self, x):
        hidden = tf.nn.relu(tf.matmul(x, self.wide, transpose_b=True))
        y = tf.matmul(hidden, self.narrow, transpose_b=True)
        return self.factor * y * tf.math.rsqrt(self.variance + 1e-5)


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = kept_bytes()
    yield
    gc.collect()
    assert kept_bytes() == before


def rows() -> tf.Tensor:
    return tf.random.normal((37, 64))


def agree(net: Net, compiled, x: tf.Tensor) -> None:
    for _ in range(2):
        np.testing.assert_allclose(compiled(x), net(x), rtol=1e-4, atol=1e-3)


def assigned(net: Net) -> None:
    net.wide.assign(tf.random.normal(net.wide.shape))


def added_to(net: Net) -> None:
    net.wide.assign_add(tf.ones(net.wide.shape))


def assigned_a_part(net: Net) -> None:
    net.wide[3:5].assign(tf.zeros((2, 64)))


def scattered_to(net: Net) -> None:
    net.wide.scatter_nd_update([[1], [2]], tf.ones((2, 64)))


def scattered_sparsely(net: Net) -> None:
    slices = tf.IndexedSlices(tf.ones((1, 64)), tf.constant([7]))
    net.wide.scatter_add(slices)


def a_statistic(net: Net) -> None:
    net.variance.assign(2.0 * net.variance)


def a_scalar(net: Net) -> None:
    net.factor.assign(3.0)


def by_a_graph(net: Net) -> None:
    @tf.function
    def step() -> None:
        net.wide.assign_sub(0.5 * net.wide)

    step()


def by_an_optimizer(net: Net) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(net(rows())))
    gradient = tape.gradient(loss, net.wide)
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.apply_gradients([(tf.clip_by_norm(gradient, 10.0), net.wide)])


def by_a_compiled_function(net: Net) -> None:
    @polyblocks_jit_tf
    def step() -> None:
        net.wide.assign(net.wide * 0.5)

    step()


CHANGES = (
    assigned,
    added_to,
    assigned_a_part,
    scattered_to,
    scattered_sparsely,
    a_statistic,
    a_scalar,
    by_a_graph,
    by_an_optimizer,
    by_a_compiled_function,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_next_call_sees_a_change(change):
    net, x = Net(), rows()
    compiled = polyblocks_jit_tf(net.__call__)
    before_bytes = kept_bytes()
    before = compiled(x)
    agree(net, compiled, x)
    assert kept_bytes() - before_bytes >= 4 * 256 * 64
    change(net)
    agree(net, compiled, x)
    assert not np.allclose(before, compiled(x), atol=1e-3)


def test_what_was_prepared_is_freed_with_the_function():
    net, x = Net(), rows()
    before = kept_bytes()
    compiled = polyblocks_jit_tf(net.__call__)
    agree(net, compiled, x)
    assert kept_bytes() > before
    del compiled, net
    gc.collect()
    assert kept_bytes() == before


def test_each_function_has_its_own():
    first, second, x = Net(), Net(), rows()
    assigned(second)
    compiled_first, compiled_second = (polyblocks_jit_tf(net.__call__) for net in (first, second))
    for _ in range(2):
        agree(first, compiled_first, x)
        agree(second, compiled_second, x)
    added_to(first)
    agree(first, compiled_first, x)
    agree(second, compiled_second, x)


def test_captured_arrays():
    weights = tf.random.normal((256, 64))
    compiled = polyblocks_jit_tf(lambda x: tf.matmul(x, weights, transpose_b=True))
    x, before = rows(), kept_bytes()
    for _ in range(2):
        np.testing.assert_allclose(
            compiled(x), tf.matmul(x, weights, transpose_b=True), rtol=1e-4, atol=1e-3
        )
    assert kept_bytes() > before


def test_a_training_step_keeps_nothing_of_what_it_assigns():
    net, x = Net(), rows()

    @polyblocks_jit_tf
    def step(x):
        y = tf.matmul(x, net.wide, transpose_b=True)
        net.wide.assign(net.wide - 0.001 * tf.matmul(y, x, transpose_a=True))
        return y

    before = kept_bytes()
    for _ in range(3):
        expected = tf.matmul(x, net.wide, transpose_b=True)
        np.testing.assert_allclose(step(x), expected, rtol=1e-4, atol=1e-3)
    assert kept_bytes() == before


def test_a_file_keeps_nothing(tmp_path):
    net, x = Net(), rows()
    artifact = polyblocks.aot(net.__call__, [x], frontend="tf")
    assert all(row["role"] != "kept" for row in artifact.manifest["arguments"])
    artifact.write(tmp_path / "f.zip")
    result = polyblocks.load(tmp_path / "f.zip")(x.numpy())
    np.testing.assert_allclose(result, net(x), rtol=1e-4, atol=1e-3)
