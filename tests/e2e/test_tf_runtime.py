"""TensorFlow: memory, threads, warm starts, overhead, what a process loads."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tf_compare import assert_same, floats  # noqa: E402

import polyblocks  # noqa: E402
from polyblocks import events  # noqa: E402
from polyblocks.errors import InputError  # noqa: E402
from polyblocks.program import ArraySpec  # noqa: E402
from polyblocks.runtime import buffers  # noqa: E402
from polyblocks.runtime.arrays import HOST, Device  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_tf.launch.arrays import TfArrays  # noqa: E402

WARM = """
import json, sys, time
import numpy as np
import tensorflow as tf
from polyblocks import events
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

seen = []
w = tf.Variable(tf.ones((4, 4)))

@polyblocks_jit_tf(compile_options={"strict_target": True})
def f(x):
    w.assign_add(x @ w)
    return {"y": tf.nn.softmax(x @ w), "z": tf.zeros((0, 3))}

exports = []
from tensorflow.python.eager import context
proper = context.Context.get_compiler_ir
context.Context.get_compiler_ir = lambda *a, **k: exports.append(1) or proper(*a, **k)
with events.listening(lambda event: seen.append(event.kind)):
    result = f(np.arange(16, dtype=np.float32).reshape(4, 4) / 16)
print(json.dumps({
    "seen": seen,
    "exports": len(exports),
    "mlir": "torch_mlir" in sys.modules,
    "torch": "torch" in sys.modules,
    "y": result["y"].numpy().tolist(),
    "z": list(result["z"].shape),
    "w": w.numpy().tolist(),
}))
"""


@pytest.mark.slow
@pytest.mark.cpu
def test_a_warm_start_compiles_nothing_and_loads_no_mlir(tmp_path):
    environment = {**os.environ, "POLYBLOCKS_CACHE_DIR": str(tmp_path)}
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", WARM], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    cold, warm = runs
    assert "cache-miss" in cold["seen"]
    assert cold["exports"] == 1
    assert warm["seen"] == ["cache-hit"]
    assert warm["exports"] == 0
    assert not warm["mlir"]
    assert not warm["torch"]
    for key in ("y", "w", "z"):
        assert cold[key] == warm[key]


def test_equal_functions_share_a_program_whatever_they_are_called():
    def first(alpha):
        return tf.tanh(alpha) * 3.25

    def second(beta):
        gamma = tf.tanh(beta, name="another")
        return gamma * 3.25

    seen = []
    x = floats(37)
    with events.listening(lambda event: seen.append(event.kind)):
        polyblocks_jit_tf(first)(x)
        count = seen.count("cache-miss")
        polyblocks_jit_tf(second)(x)
        polyblocks_jit_tf(lambda x: tf.tanh(x) * 3.5)(x)
    assert count == 1
    assert seen.count("cache-miss") == 2


def test_many_threads_one_compilation():
    begun = []
    barrier = threading.Barrier(32)

    @polyblocks_jit_tf
    def f(x):
        begun.append(1)
        return tf.nn.relu(x * 1.375) + x

    x = floats(100, 33)
    expected = tf.nn.relu(x * 1.375) + x
    results = []

    def work():
        barrier.wait()
        results.append(f(x))

    threads = [threading.Thread(target=work) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1
    assert len(f.polyblocks_report().variants) == 1
    assert len(results) == 32
    for result in results:
        assert_same(result, expected)


@pytest.mark.large
def test_calls_from_many_threads_do_not_disturb_each_other():
    f = polyblocks_jit_tf(lambda x, y: tf.reduce_sum(x * y, 1) + tf.reduce_sum(x, 1))
    inputs = [(floats(64, 300, seed=i), floats(64, 300, seed=50 + i)) for i in range(8)]
    expected = [tf.reduce_sum(x * y, 1) + tf.reduce_sum(x, 1) for x, y in inputs]
    f(*inputs[0])
    failures = []

    def work(i):
        for _ in range(50):
            if not np.allclose(f(*inputs[i]), expected[i], atol=1e-3):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("shape", "calls"), [pytest.param((16,), 100_000, marks=pytest.mark.slow), ((100, 100), 5_000)]
)
def test_many_calls_keep_no_memory(run_python, shape, calls):
    # In a process of its own: what other tests leave behind comes and goes at any time.
    code = f"""
        import gc, os
        import tensorflow as tf
        from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        v = tf.Variable(tf.zeros({shape}))

        @polyblocks_jit_tf
        def f(x):
            v.assign_add(x)
            return x * 2, v + 1

        x = tf.ones({shape})
        for _ in range({max(calls // 5, 5_000)}):
            f(x)
        before = resident()
        for _ in range({calls}):
            f(x)
        print(resident() - before)
        """
    assert int(run_python(code, preloaded="tf").stdout) < 1 << 20


def test_results_come_from_the_pool_and_go_back():
    f = polyblocks_jit_tf(lambda x: x + 1)
    x = floats(1 << 20)
    f(x)
    buffers.outputs.trim()
    kept = f(x)
    assert buffers.outputs.idle_bytes == 0
    address = kept._numpy().__array_interface__["data"][0]
    assert address % 64 == 0
    view = kept.numpy()
    del kept
    gc.collect()
    assert buffers.outputs.idle_bytes >= x.shape[0] * 4
    assert f(x)._numpy().__array_interface__["data"][0] == address
    assert_same(tf.constant(view), x + 1)


def test_a_result_outlives_the_function():
    f = polyblocks_jit_tf(lambda x: x * 2)
    x = floats(100_000)
    result = f(x)
    view = result._numpy()
    del f
    gc.collect()
    assert_same(result, x * 2)
    del result
    gc.collect()
    assert view[0] == x[0].numpy() * 2


@pytest.mark.cpu
def test_large_inputs_are_not_copied(run_python):
    code = """
        import resource
        import numpy as np, tensorflow as tf
        from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10  # MiB

        f = polyblocks_jit_tf(lambda x: x[:16] * 2)
        x = tf.ones(1 << 26)
        f(x[:40])
        before = peak()
        f(x)
        print(peak() - before)
        """
    assert int(run_python(code, preloaded="tf").stdout) < 200  # MiB, of which the input has 256


@pytest.mark.parametrize("count", sweep([10, 40], 10))
def test_every_shape_is_a_variant(count):
    @polyblocks_jit_tf
    def f(x):
        return x * 2 + 1

    for _ in range(2):
        for n in range(count):
            x = floats(n + 2)
            assert_same(f(x), x * 2 + 1)
    variants = f.polyblocks_report().variants
    assert [v.arguments for v in variants] == [[f"float32[{n + 2}]"] for n in range(count)]
    assert {v.outcome for v in variants} == {"compiled"}


def test_num_iters():
    v = tf.Variable(0.0)

    @polyblocks_jit_tf(compile_options={"num_iters": 3})
    def f(x):
        return x + v

    assert f(tf.constant(1.0)).numpy() == 1


def test_explain():
    x = floats(64, 64)
    report = polyblocks.explain(lambda x: tf.nn.softmax(x), x, frontend="tf")
    assert len(report.parts) == 1
    assert not report.fallbacks
    with polyblocks.explain() as watched:
        polyblocks_jit_tf(lambda x: tf.nn.softmax(x * 1.125))(x)
    assert len(watched.parts) == 1


class TestArrays:
    arrays = TfArrays()

    def test_describe_and_pointer(self):
        x = floats(3, 4)
        assert self.arrays.is_array(x)
        assert not self.arrays.is_array([1.0])
        assert self.arrays.describe(x) == ArraySpec.contiguous((3, 4), "float32")
        assert self.arrays.pointer(x) == x._numpy().__array_interface__["data"][0]
        assert self.arrays.device(x) == HOST
        assert not self.arrays.is_writable(x)

    def test_arrays_of_numpy(self):
        """They are arguments of compiled functions, too."""
        x = floats(3, 4).numpy().copy()
        assert self.arrays.is_array(x)
        assert self.arrays.describe(x.T) == ArraySpec((4, 3), "float32", (1, 4))
        assert self.arrays.pointer(x) == x.ctypes.data
        assert self.arrays.device(x) == HOST
        assert self.arrays.is_writable(x)
        assert self.arrays.transfer(x, HOST) is x
        self.arrays.make_ready(x, 0)

    def test_scalars_have_an_address(self):
        for x in (tf.constant(3.0), tf.constant(True), tf.constant(2, tf.bfloat16)):
            size = x.dtype.size
            held = ctypes.string_at(self.arrays.pointer(x), size)
            assert held == x.numpy().tobytes()
            assert self.arrays.pointer(x) == self.arrays.pointer(x)

    def test_empty_and_transfer(self):
        made = self.arrays.empty(ArraySpec.contiguous((5, 2), "int16"), HOST)
        assert made.shape == (5, 2)
        assert made.dtype == tf.int16
        assert_same(self.arrays.transfer(floats(2), HOST), floats(2))
        scalar = self.arrays.empty(ArraySpec.contiguous((), "float32"), HOST)
        assert scalar.shape == ()

    def test_errors(self):
        with pytest.raises(InputError, match="unsupported dtype string: expected one of"):
            self.arrays.describe(tf.constant("a"))
        with pytest.raises(InputError, match=r"strides \(1, 2\) are not"):
            self.arrays.empty(ArraySpec((2, 2), "float32", (1, 2)), HOST)
        with pytest.raises(InputError, match="on the host, not on device"):
            self.arrays.empty(ArraySpec.contiguous((2,), "float32"), Device(2, 0))
