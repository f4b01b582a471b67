"""Eager tensors that are read in machine code: taken or left exactly as Python does."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from c_programs import Both, CProgram  # noqa: E402
from manifest_rows import row  # noqa: E402

from polyblocks.runtime.arrays import HOST  # noqa: E402
from polyblocks.runtime.launch import bind  # noqa: E402
from polyblocks_tf.launch import native_reader  # noqa: E402
from polyblocks_tf.launch.arrays import POOLED_BYTES, TfArrays  # noqa: E402
from polyblocks_tf.launch.threads import thread_setting  # noqa: E402
from polyblocks_tf.specs import TF_DTYPES  # noqa: E402

pytestmark = pytest.mark.cpu


class Counting(TfArrays):
    described = 0

    def describe(self, array: Any) -> Any:
        self.described += 1
        return super().describe(array)


class Outcomes(Both):
    def outcome(self, which: str, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """The contents of the results, or the class and the text of what is raised."""
        try:
            found = getattr(self, which)(*arrays, **named)
        except Exception as error:
            return type(error), str(error)
        assert type(found) is type(tf.zeros(1))
        assert found.device.endswith("CPU:0")
        return found.dtype, found.shape, found.numpy().tobytes()


def copy(x: Any, out: Any) -> None:
    out[...] = x


def copier(dtype: str = "float32", **more: Any) -> CProgram:
    rows = [row("input", "x", dtype=dtype, **more), row("output", "out", dtype=dtype, **more)]
    return CProgram(rows, copy)


def both(program: CProgram, *good: Any, **settings: Any) -> Outcomes:
    return Outcomes(program, Counting(), good, **settings)


def ones(*shape: int) -> Any:
    return tf.ones(shape or (2, 3))


def test_this_tensorflow_has_a_reader():
    assert native_reader.reader() is not None


@pytest.mark.parametrize("dtype", TF_DTYPES)
def test_every_dtype(dtype):
    x = tf.cast([[1, 0, 1], [0, 1, 1]], TF_DTYPES[dtype])
    made = both(copier(dtype), x)
    assert made.is_fast(x)
    assert made.outcome("fast", x) == made.outcome("slow", x)
    assert made.outcome("fast", x)[2] == x.numpy().tobytes()


def test_random_shapes():
    chance = random.Random(5)
    for _ in range(40):
        shape = tuple(chance.choice((0, 1, 1, 2, 3, 5)) for _ in range(chance.randrange(7)))
        x = tf.constant(np.random.default_rng(1).standard_normal(shape, np.float32))
        made = both(copier(shape=shape), x)
        assert made.is_fast(x)
        assert made.outcome("fast", x) == made.outcome("slow", x)
        assert made.outcome("fast", x)[2] == x.numpy().tobytes()


@pytest.mark.parametrize("count", [POOLED_BYTES // 4 - 1, POOLED_BYTES // 4])
def test_results_are_their_own_tensors(count):
    x = tf.range(float(count))
    made = both(copier(shape=(count,)), x)
    found = [made.fast(x + float(k)) for k in range(5)]
    gc.collect()
    for k, result in enumerate(found):
        np.testing.assert_array_equal(result, x + float(k))


def test_values_of_variables_slices_and_arrays():
    made = both(copier(), ones())
    v = tf.Variable(ones())
    whole = tf.range(18.0)
    for x in (
        v.read_value(),
        tf.reshape(whole, (6, 3))[2:4],
        tf.transpose(tf.reshape(whole[:6], (3, 2))),
        tf.convert_to_tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
        tf.experimental.dlpack.from_dlpack(np.ones((2, 3), np.float32).__dlpack__()),
    ):
        assert made.is_fast(x)
        np.testing.assert_array_equal(made.fast(x), x)


OTHERS: dict[str, Any] = {
    "rank": lambda: ones(6),
    "shape": lambda: ones(3, 2),
    "dtype": lambda: tf.cast(ones(), tf.float64),
    "same size": lambda: tf.cast(ones(), tf.int32),
    "text": lambda: tf.constant([["a"] * 3] * 2),
    "resource": lambda: tf.Variable(ones()).handle,
    "variable": lambda: tf.Variable(ones()),
    "ragged": lambda: tf.ragged.constant([[1.0, 2.0], [3.0]]),
    "sparse": lambda: tf.sparse.from_dense(ones()),
    "symbolic": lambda: tf.keras.Input((3,)),
    "numpy": lambda: np.ones((2, 3), np.float32),
    "list": lambda: [[1.0] * 3] * 2,
    "none": lambda: None,
    "number": lambda: 1.0,
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_arrays_get_what_python_says(case):
    made = both(copier(), ones())
    x = OTHERS[case]()
    assert made.outcome("fast", x) == made.outcome("slow", x)


def test_many_dimensions():
    shape = (1,) * 20 + (3,)
    x = tf.ones(shape)
    made = both(copier(shape=shape), x)
    assert made.outcome("fast", x) == made.outcome("slow", x)


def test_tensors_that_wait_to_be_computed():
    made = both(copier(shape=(300, 300)), tf.ones((300, 300)))
    tf.config.experimental.set_synchronous_execution(False)
    try:
        for _ in range(5):
            x = tf.linalg.matmul(tf.ones((300, 300)), tf.ones((300, 300)))
            assert (made.fast(x).numpy() == 300).all()
    finally:
        tf.config.experimental.set_synchronous_execution(True)


def test_no_tensor_is_waited_for_with_the_lock_of_python():
    size = 1500
    big = tf.ones((size, size))
    copied, small = both(copier(shape=(size, size)), big), both(copier(), ones())
    tf.linalg.matmul(big, big)
    tf.config.experimental.set_synchronous_execution(False)
    try:
        # Machine code would be waiting for this one.
        assert not copied.is_fast(tf.linalg.matmul(big, big))
        # An operation that needs the lock.
        x = tf.py_function(lambda x: x + 1.0, [ones()], tf.float32)
        np.testing.assert_array_equal(small.fast(x), np.full((2, 3), 2.0))
    finally:
        tf.config.experimental.set_synchronous_execution(True)
    assert small.is_fast(x)


def test_threads_are_those_of_tensorflow():
    program = copier()
    made = both(program, ones())
    made.fast(ones())
    made.slow(ones())
    assert program.thread_counts[-1] == program.thread_counts[-2]
    assert TfArrays().num_threads() == thread_setting()
    few = copier()
    both(few, ones(), num_threads=1).fast(ones())
    assert few.thread_counts[-1] == 1


def test_nothing_is_leaked():
    made = both(copier(), ones())
    x = ones()
    before = sys.getrefcount(x)
    for _ in range(1000):
        made.fast(x)
    assert sys.getrefcount(x) == before


def test_devices_need_python(monkeypatch):
    class Gpu:
        device_type = "GPU"

    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [Gpu()])
    assert native_reader.reader.__wrapped__() is None


def test_functions_that_say_something_else_are_not_used(monkeypatch):
    monkeypatch.setattr(native_reader, "_agrees", lambda *_: False)
    assert native_reader.reader.__wrapped__() is None
    interface = TfArrays()
    monkeypatch.setattr(native_reader, "reader", lambda: None)
    assert interface.native_reader() is None
    call = bind(copier(), interface)
    np.testing.assert_array_equal(call(ones()), ones())


def test_small_results_are_made_alike():
    interface = TfArrays()
    spec = interface.describe(ones())
    make, arguments = interface.allocation(spec)
    made, other = make(*arguments), interface.empty(spec, HOST)
    assert interface.describe(made) == interface.describe(other)
    assert interface.device(made) == interface.device(other) == HOST
