"""TensorFlow: compiled functions with replicas of ``tf.distribute`` and variables elsewhere."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402

pytestmark = pytest.mark.cpu

# Devices can be divided only before TensorFlow is used.
TWO_REPLICAS = """
import tensorflow as tf
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    own = tf.Variable(
        tf.zeros(3),
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
    shared = tf.Variable(tf.fill([3], 10.0))

def step(x):
    own.assign_add(x)
    return own * shared

def update(x):
    shared.assign_add(x)
    return own + shared

def numbers(context):
    return tf.fill([3], float(context.replica_id_in_sync_group + 1))

def outcomes(step, update):
    own.assign(tf.zeros(3))
    shared.assign(tf.fill([3], 10.0))
    found = []
    for _ in range(3):
        given = strategy.experimental_distribute_values_from_function(numbers)
        results = strategy.experimental_local_results(strategy.run(step, args=(given,)))
        found += [t.numpy().tolist() for t in (*results, update(tf.ones(3)))]
        found += [each.numpy().tolist() for each in (*own.values, *shared.values)]
    return found

compiled = polyblocks_jit_tf(compile_options={"strict_target": True})
expected = outcomes(step, update)
assert expected[:3] == [[10.0] * 3, [20.0] * 3, [14.0] * 3], expected
assert outcomes(compiled(step), compiled(update)) == expected
assert outcomes(tf.function(polyblocks_jit_tf(step)), compiled(update)) == expected
"""


ANOTHER_PROCESS = """
import socket
import tensorflow as tf
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

with socket.socket() as free:
    free.bind(("localhost", 0))
    address = f"localhost:{free.getsockname()[1]}"
server = tf.distribute.Server({"worker": [address]}, job_name="worker", task_index=0)
tf.config.experimental_connect_to_host(address, job_name="worker")
with tf.device("/job:worker/task:0/device:CPU:0"):
    there = tf.Variable([1.0, 2.0])
here = tf.Variable([1.0, 2.0])

def compiled(v, number):
    return polyblocks_jit_tf(lambda x: v * x - number)

x = tf.constant([3.0, -4.0])
# What is cached for one of them is nothing for the other, whichever comes first.
for variable, number in ((here, 0.5), (there, 0.5), (there, 0.25), (here, 0.25)):
    f = compiled(variable, number)
    for _ in range(2):
        assert f(x).numpy().tolist() == [3.0 - number, -8.0 - number]
    left = [row.op for row in f.polyblocks_report().fallbacks]
    assert left == (["ReadVariableOp"] if variable is there else []), left
"""


@pytest.mark.extended
def test_a_variable_of_another_process_is_none_of_this_one(run_python, tmp_path):
    done = run_python(ANOTHER_PROCESS, preloaded="tf", POLYBLOCKS_CACHE_DIR=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.extended
def test_each_replica_has_its_own_variables(run_python):
    done = run_python(TWO_REPLICAS, preloaded="tf")
    assert done.returncode == 0, done.stderr


def test_a_replica_is_no_strategy_and_no_call_outside():
    @polyblocks_jit_tf
    def f(x):
        if not tf.distribute.has_strategy():
            return x * 2.0
        return x * 3.0 if tf.distribute.get_replica_context() else x * 5.0

    x = tf.constant([1.0, -2.0])
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    for _ in range(2):
        assert f(x).numpy().tolist() == [2.0, -4.0]
        assert strategy.run(f, (x,)).numpy().tolist() == [3.0, -6.0]
        with strategy.scope():
            assert f(x).numpy().tolist() == [5.0, -10.0]
