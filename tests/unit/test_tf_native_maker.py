"""Small eager tensors that machine code makes: TensorFlow's own in all that is done with them."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from polyblocks.program import ArraySpec  # noqa: E402
from polyblocks.runtime import buffers  # noqa: E402
from polyblocks_tf.launch import native_maker  # noqa: E402
from polyblocks_tf.launch.arrays import POOLED_BYTES, TfArrays, _small  # noqa: E402
from polyblocks_tf.specs import TF_DTYPES  # noqa: E402

pytestmark = pytest.mark.cpu


@pytest.fixture(autouse=True)
def unpoisoned(monkeypatch):
    monkeypatch.setattr(buffers, "POISONED", False)


def made(*shape: int, dtype: str = "float32", value: Any = 3) -> Any:
    """A tensor with a value, as a program writes it."""
    function, arguments = TfArrays().allocation(ArraySpec.contiguous(shape, dtype))
    assert type(function) is type(len)  # machine code
    tensor = function(*arguments)
    if dtype == "float32" and tensor.shape.num_elements():
        address = TfArrays().pointer(tensor)
        count = tensor.shape.num_elements()
        (ctypes.c_float * count).from_address(address)[:] = [float(value)] * count
    return tensor


@pytest.mark.each_choice
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 4), (1, 2, 3, 1, 5, 1, 2)])
@pytest.mark.parametrize("dtype", TF_DTYPES)
def test_every_dtype_and_shape(dtype, shape):
    tensor, other = made(*shape, dtype=dtype), tf.zeros(shape, TF_DTYPES[dtype])
    assert type(tensor) is type(other)
    assert (tensor.dtype, tensor.shape, tensor.device) == (other.dtype, other.shape, other.device)
    assert tensor.backing_device == other.backing_device
    assert tensor.numpy().shape == shape
    assert not tensor.is_packed


def scoped_gradient(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


def assigned(x: Any) -> Any:
    v = tf.Variable(tf.zeros_like(x))
    v.assign(x)
    v.assign_add(x)
    return v.read_value()


USES = {
    "operation": lambda x: tf.sqrt(x * x) + 1,
    "function": lambda x: tf.function(lambda y: y * 2 + 1)(x),
    "xla": lambda x: tf.function(lambda y: y * 2 + 1, jit_compile=True)(x),
    "constant of a function": lambda x: tf.function(lambda: x * 2)(),
    "gradient": scoped_gradient,
    "variable": assigned,
    "copy": lambda x: tf.identity(x.cpu()),
    "dlpack": lambda x: tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x)),
    "data set": lambda x: next(iter(tf.data.Dataset.from_tensors(x).map(lambda y: y + 1))),
    "python function": lambda x: tf.py_function(lambda y: y + 1, [x], tf.float32),
    "loop": lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), [0, x])[1],
    "slice": lambda x: x[1:, ::2],
    "text": lambda x: repr(x),
    "stack": lambda x: tf.stack([x, x]),
    "hash": lambda x: x.ref() in {x.ref()},
}


@pytest.mark.parametrize("use", USES)
def test_uses(use):
    other = tf.fill((2, 3), 3.0)
    got, want = (USES[use](x) for x in (made(2, 3), other))
    if isinstance(want, tf.Tensor):
        np.testing.assert_array_equal(got, want)
        assert (got.dtype, got.device) == (want.dtype, want.device)
    else:
        assert got == want


def test_no_operation_writes_into_it():
    x = made(2, 3)
    for _ in range(3):
        tf.raw_ops.Add(x=x, y=x)
        tf.raw_ops.Relu(features=x)
        tf.nest.map_structure(tf.negative, [x, x])
    v = tf.Variable(x)
    v.assign_add(tf.ones((2, 3)))
    np.testing.assert_array_equal(x, np.full((2, 3), 3))


def test_each_has_memory_of_its_own_that_goes_with_it():
    tensors = [made(2, 3, value=k) for k in range(50)]
    for k, each in enumerate(tensors):
        assert (each.numpy() == k).all()
    gone = weakref.ref(tensors[0])
    view = np.from_dlpack(tensors[0])
    del tensors, each
    gc.collect()
    assert gone() is None
    assert (view == 0).all()  # it holds the memory, not the tensor
    spec = ArraySpec.contiguous((1000,), "float32")
    function, _ = TfArrays().allocation(spec)
    for _ in range(2000):
        function()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50_000):
        function()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, "KiB, of 200,000 that were made"
    assert sys.getrefcount(function()) == sys.getrefcount(tf.zeros(3))


def test_threads():
    function, _ = TfArrays().allocation(ArraySpec.contiguous((7,), "float32"))
    found = []

    def work() -> None:
        found.append(all(function().shape == (7,) for _ in range(2000)))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert found == [True] * 4


def test_what_tensorflow_does_not_make_python_makes():
    """Or says why not."""
    huge = ArraySpec.contiguous((1 << 61,), "int8")

    def slow() -> Any:
        raise MemoryError("too much")

    make = native_maker.maker(huge, slow)
    with pytest.raises(MemoryError, match="too much"):
        make()
    assert made(2).shape == (2,)


def test_where_python_makes_them(monkeypatch):
    small = ArraySpec.contiguous((3,), "float32")
    for spec in (
        ArraySpec((2, 2), "float32", (1, 2)),
        ArraySpec.contiguous((POOLED_BYTES,), "int8"),
    ):
        assert TfArrays().allocation(spec)[0].__name__ == "empty"
    monkeypatch.setattr(native_maker, "_functions", lambda: None)
    assert TfArrays().allocation(small) == (_small, ((3,), np.float32))
    monkeypatch.setattr(buffers, "POISONED", True)
    assert TfArrays().allocation(small)[0].__name__ == "empty"


@pytest.mark.parametrize("lacking", ["EagerTensorFromHandle", "native_code"])
def test_a_tensorflow_without_a_function(lacking, monkeypatch):
    if lacking == "native_code":
        monkeypatch.setattr(native_maker.native_code, "place", lambda *_: None)
    else:
        monkeypatch.setitem(native_maker._FUNCTIONS, "from_handle", ("_Z4noneb",))
    assert native_maker._functions.__wrapped__() is None


def test_code_is_made_while_a_function_is_traced(run_python, tmp_path):
    import polyblocks

    artifact = polyblocks.aot(lambda x: x * 2, [tf.ones(5)], frontend="tf")
    artifact.write(tmp_path / "double.zip")
    code = f"""
        import polyblocks
        import tensorflow as tf
        f = polyblocks.load({str(tmp_path / "double.zip")!r})
        x = tf.constant([1.0, 2, 3, 4, 5])
        y = []
        @tf.function
        def traced(z):
            with tf.init_scope():
                y.extend(f(x) for _ in range(2))
            y.extend(f(x) for _ in range(3))
            return z + y[-1]
        print(traced(x).numpy().tolist(), all((each == 2 * x).numpy().all() for each in y))
        print(f.__self__.count)
        """
    assert run_python(code, preloaded="tf").stdout == "[3.0, 6.0, 9.0, 12.0, 15.0] True\n1\n"
