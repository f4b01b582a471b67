"""TensorFlow: variables are read and assigned where they are, whatever else is done with them."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading

import numpy as np
import pytest
from sweeps import sweep

tf = pytest.importorskip("tensorflow")

from tensorflow.python.eager import context  # noqa: E402
from tensorflow.python.ops.resource_variable_ops import UninitializedVariable  # noqa: E402
from tf_compare import assert_same  # noqa: E402

from polyblocks.errors import ExecutionError  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks_tf.variables import bound, library, spares  # noqa: E402
from polyblocks_tf.variables.layout import Layout, layout  # noqa: E402

# Programs of other targets are run by Python, with operations for the variables.
pytestmark = pytest.mark.cpu

strict = polyblocks_jit_tf(compile_options={"strict_target": True})
random = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


@pytest.fixture
def operations(monkeypatch):
    """How often a compiled function has run an operation to read or assign a variable."""
    counts = {"ReadVariableOp": 0, "AssignVariableOp": 0}

    def counted(name):
        original = getattr(tf.raw_ops, name)

        def call(**arguments):
            counts[name] += 1
            return original(**arguments)

        return call

    for name in counts:
        monkeypatch.setattr(tf.raw_ops, name, counted(name))
    return counts


class Twins:
    """Variables and the same again: a compiled function uses these, a tf.function those."""

    def __init__(self, *initial) -> None:
        self.ours = [tf.Variable(value) for value in initial]
        self.theirs = [tf.Variable(value) for value in initial]

    def both(self, change) -> None:
        change(self.ours)
        change(self.theirs)

    def agree(self) -> None:
        for mine, other in zip(self.ours, self.theirs, strict=True):
            assert_same(mine.read_value(), other.read_value())


def step(variables, x):
    a, b, count = variables
    count.assign_add(1)
    a.assign(a * 0.5 + x)
    b.assign(b + tf.reduce_sum(a))
    a.assign_add(tf.cast(count, tf.float32) * x)
    return a + b


def new_twins() -> Twins:
    return Twins(values(7, 3), np.float32(random.standard_normal()), np.int64(3))


def test_the_layout_of_this_version_is_known():
    assert isinstance(layout(), Layout)


@pytest.mark.extended
def test_no_operation_reads_or_assigns(operations):
    twins = new_twins()
    f = strict(lambda x: step(twins.ours, x))
    g = tf.function(lambda x: step(twins.theirs, x))
    for _ in range(3):  # the first buffers are not TensorFlow's own
        x = values(7, 3)
        assert_same(f(x), g(x))
        twins.agree()
    operations.update(ReadVariableOp=0, AssignVariableOp=0)
    for _ in range(3):
        f(x)
    assert operations == {"ReadVariableOp": 0, "AssignVariableOp": 0}


def test_operations_do_it_where_the_layout_is_unknown(monkeypatch, operations):
    monkeypatch.setattr(bound, "layout", lambda: None)
    twins = new_twins()
    f = strict(lambda x: step(twins.ours, x))
    g = tf.function(lambda x: step(twins.theirs, x))
    for _ in range(3):
        x = values(7, 3)
        assert_same(f(x), g(x))
        twins.agree()
    assert operations == {"ReadVariableOp": 9, "AssignVariableOp": 9}


def test_a_library_without_a_function_has_no_layout():
    with pytest.raises(LookupError, match="TF_NoSuchFunction"):
        library.find_functions({"new_status": ["TF_NewStatus"], "x": ["TF_NoSuchFunction"]})


@pytest.mark.parametrize(
    "dtype",
    sweep(
        ["float64", "float16", "bfloat16", "int8", "uint32", "int64", "bool", "complex64"],
        *("bfloat16", "bool", "complex64"),
        extended=["float64", "float16", "int8", "uint32", "int64"],
    ),
)
def test_every_dtype(dtype):
    def change(v, w):
        v.assign(tf.reverse(v, [0]))
        w.assign(v[2])

    initial = tf.cast(random.integers(0, 2, 5), dtype)
    twins = Twins(initial, initial[0])
    f = strict(lambda: change(*twins.ours))
    g = tf.function(lambda: change(*twins.theirs))
    for _ in range(4):
        f()
        g()
        twins.agree()


def test_tensors_that_were_read_keep_their_values():
    twins = new_twins()
    f = strict(lambda x: step(twins.ours, x))
    g = tf.function(lambda x: step(twins.theirs, x))
    history, views = [], []
    for k in range(8):
        if k != 4:
            history += [(v.read_value(), v.numpy().copy()) for v in twins.ours]
            history += [(tf.Variable(v), v.numpy().copy()) for v in twins.ours]
            views += [(v.numpy(), v.numpy().copy()) for v in twins.ours]
        x = values(7, 3)
        assert_same(f(x), g(x))
        for tensor, contents in history:
            np.testing.assert_array_equal(tensor.numpy(), contents)
        for view, contents in views:
            np.testing.assert_array_equal(view, contents)
        twins.agree()


def test_anybody_assigns_between_calls(tmp_path):
    twins = new_twins()
    f = strict(lambda x: step(twins.ours, x))
    g = tf.function(lambda x: step(twins.theirs, x))

    @tf.function
    def doubled(a, b):
        a.assign(2.0 * a)
        b.assign_sub(1.0)

    saved = [tf.train.Checkpoint(v=twins.ours), tf.train.Checkpoint(v=twins.theirs)]
    paths = [each.write(str(tmp_path / str(k))) for k, each in enumerate(saved)]
    optimizers = {}

    def optimize(variables):
        key = id(variables)
        if key not in optimizers:
            optimizers[key] = tf.keras.optimizers.Adam(0.1)
        optimizers[key].apply_gradients(
            [(tf.ones_like(v), v) for v in variables if v.dtype == tf.float32]
        )

    def restore(variables):
        which = 0 if variables is twins.ours else 1
        saved[which].read(paths[which])

    new = values(7, 3)
    changes = [
        lambda variables: variables[0].assign(new),
        lambda variables: variables[0].assign_add(np.ones((7, 3), np.float32)),
        lambda variables: doubled(*variables[:2]),
        optimize,
        restore,
        lambda variables: variables[2].assign(40),
        lambda variables: variables[0][1].assign(tf.zeros(3)),
    ]
    for _ in range(30):
        twins.both(changes[random.integers(len(changes))])
        x = values(7, 3)
        assert_same(f(x), g(x))
        twins.agree()


def test_sparse_updates():
    twins = Twins(values(6, 2), values(2))

    def change(variables, x):
        table, last = variables
        last.assign(table[1])
        table.assign(table * x)

    f = strict(lambda x: change(twins.ours, x))
    g = tf.function(lambda x: change(twins.theirs, x))
    for k in range(5):
        x = values(6, 2)
        f(x)
        g(x)
        twins.agree()
        if k >= 1:
            rows = tf.IndexedSlices(values(2, 2), [4, 1])
            twins.both(lambda variables, rows=rows: variables[0].scatter_add(rows))
        twins.agree()


def test_arrays_that_variables_were_assigned_are_not_written():
    v = tf.Variable(tf.zeros(5000))
    f = strict(lambda: v.assign_add(tf.ones(5000)))
    arrays = []
    for k in range(6):
        x = np.full(5000, float(k), np.float32)
        arrays.append(x)
        v.assign(tf.convert_to_tensor(x))
        f()
        f()
        np.testing.assert_array_equal(v.numpy(), k + 2)
    for k, x in enumerate(arrays):
        assert (x == k).all()


def test_results_are_no_aliases_of_what_is_assigned():
    v = tf.Variable(tf.zeros(5000))

    @strict
    def f(x):
        v.assign(x + 1.0)
        return x + 1.0, v.read_value()

    found = []
    for k in range(5):
        found.append((k + 1, f(tf.fill([5000], float(k)))))
        v.assign_add(tf.ones(5000))
    for expected, results in found:
        for result in results:
            np.testing.assert_array_equal(result.numpy(), expected)


def test_a_variable_without_a_value():
    # The bridge to XLA refuses it, so TensorFlow runs this function, and raises its own error.
    v = UninitializedVariable(shape=[3], dtype=tf.float32)
    f = polyblocks_jit_tf(lambda x: v * x - 1.5)
    x = values(3)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
        f(x)
    v.assign(x)
    assert_same(f(x), x * v - 1.5)
    # That was no property of the function.
    w = tf.Variable(x)
    assert_same(strict(lambda x: w * x - 1.5)(x), x * w - 1.5)


def test_an_assignment_initializes():
    v = UninitializedVariable(shape=[3], dtype=tf.float32)
    f = polyblocks_jit_tf(lambda x: v.assign(x + 1.25))
    for _ in range(3):
        x = values(3)
        f(x)
        assert_same(v.read_value(), tf.constant(x + 1.25))


def named_variable(name: str) -> tf.Variable:
    """One of the variables that share a value, which none of them owns."""
    v = UninitializedVariable(shape=[3], dtype=tf.float32)
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[3], shared_name=name)
    handle._handle_data = v.handle._handle_data
    v._handle = handle
    return v


def test_a_variable_that_has_a_name_is_used_through_operations(operations):
    v, same = (named_variable("of several handles") for _ in range(2))
    v.assign([1.0, 2.0, 3.0])
    f = strict(lambda x: v.assign(v + x))
    f(tf.ones(3))
    before = operations["AssignVariableOp"]
    f(tf.ones(3))
    assert operations["AssignVariableOp"] == before + 1
    assert_same(same.read_value(), tf.constant([3.0, 4.0, 5.0]))


def test_a_variable_elsewhere_has_no_place():
    class Handle:
        backing_device = "/job:localhost/replica:0/task:0/device:GPU:0"

    assert layout().locate(Handle()) is None


def test_several_functions_share_variables():
    twins = Twins(values(40, 30), values(30))

    def forward(variables, x):
        return tf.matmul(x, variables[0]) + variables[1]

    def train(variables, x):
        weights, bias = variables
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(forward(variables, x)))
        grads = tape.gradient(loss, variables)
        weights.assign_sub(0.1 * grads[0])
        bias.assign_sub(0.1 * grads[1])
        return loss

    ours = [strict(lambda x, f=f: f(twins.ours, x)) for f in (forward, train)]
    theirs = [tf.function(lambda x, f=f: f(twins.theirs, x)) for f in (forward, train)]
    for k in range(12):
        which = (0, 1, 1, 0, 0, 1)[k % 6]
        x = values(5 + k % 2, 40)
        np.testing.assert_allclose(ours[which](x), theirs[which](x), rtol=1e-4, atol=1e-5)
        for mine, other in zip(twins.ours, twins.theirs, strict=True):
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


def test_variables_live_as_long_as_what_was_compiled():
    holder = [tf.Variable(values(100))]
    expected = holder[0].numpy() * 2.0

    @strict
    def f():
        holder[0].assign(holder[0] * 2.0)
        return holder[0].read_value()

    np.testing.assert_array_equal(f(), expected)
    variable = holder.pop()
    del variable
    gc.collect()
    fill = [tf.Variable(values(100)) for _ in range(50)]
    for _ in range(4):
        expected = expected * 2.0
        np.testing.assert_array_equal(f(), expected)
    assert len(fill) == 50


def test_assignments_of_several_threads():
    total, log = tf.Variable(0), tf.Variable(tf.zeros(1000))

    @strict
    def add():
        total.assign_add(1)
        log.assign_add(tf.ones(1000))

    @strict
    def other():
        total.assign_add(3)

    add()
    other()
    broken = []

    def work(function) -> None:
        for _ in range(200):
            function()
            seen = log.numpy()
            if (seen != seen[0]).any():
                broken.append(seen)

    threads = [threading.Thread(target=work, args=(f,)) for f in (add, add, other, add)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.numpy() == 4 + 600 + 600
    np.testing.assert_array_equal(log.numpy(), 601)
    assert not broken


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("moment", ["locked", "exchanging", "exchanged"])
def test_a_child_forked_while_another_thread_exchanges_buffers(moment):
    def halved(x):
        variable.assign(variable * 0.5 + x)
        return variable * 1.0

    variable = tf.Variable(values(7, 3))
    f, x = strict(halved), values(7, 3)
    for _ in range(3):
        f(x)
    place = layout().locate(variable.handle)
    spare = spares._spares[place.tensor]
    expected = variable.numpy()
    words = 4 * ctypes.c_uint64
    ours, others = words.from_address(place.tensor), words.from_address(spare.place.tensor)
    before = list(ours), list(others)
    # As the machine code leaves it for a moment.
    spare.busy.value = 1
    layout().functions.lock(place.mutex)
    if moment != "locked":
        expected = np.ctypeslib.as_array(
            (ctypes.c_float * 21).from_address(layout().functions.data(spare.place.tensor).data)
        ).reshape(7, 3)
        ours[:] = before[1]
    if moment == "exchanged":
        others[:] = before[0]
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        good = True
        for _ in range(4):
            expected = expected * np.float32(0.5) + x
            good &= np.allclose(f(x).numpy(), expected)
            good &= np.allclose(variable.read_value().numpy(), expected)
        os._exit(0 if good else 1)
    ours[:], others[:] = before
    layout().functions.unlock(place.mutex)
    spare.busy.value = 0
    assert os.waitpid(child, 0)[1] == 0


def test_others_assign_while_it_runs():
    v = tf.Variable(tf.zeros(20000))
    f = strict(lambda: tf.reduce_max(v) - tf.reduce_min(v))
    f()
    stop = threading.Event()

    def work() -> None:
        k = 0.0
        while not stop.is_set():
            v.assign(tf.fill([20000], k))
            v.assign_add(tf.ones(20000))
            k += 1.0

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert all(f().numpy() == 0.0 for _ in range(500))
    finally:
        stop.set()
        thread.join()


def test_operations_that_wait_in_a_queue_come_before():
    v = tf.Variable(tf.zeros(3))
    f = strict(lambda x: v * x)
    x = values(3)
    f(x)
    tf.config.experimental.set_synchronous_execution(False)
    try:
        for k in range(20):
            v.assign(tf.fill([3], float(k)))
            assert_same(f(x), tf.constant(x * np.float32(k)))
    finally:
        tf.config.experimental.set_synchronous_execution(True)


@pytest.mark.parametrize("inside", ["py_function", "map"])
def test_a_call_does_not_wait_for_the_operation_that_it_is_part_of(inside):
    v = tf.Variable(tf.fill([3], 2.0))
    f = strict(lambda x: v * x)
    x = tf.constant(values(3))
    data = tf.data.Dataset.from_tensors(x).map(f)
    expected = f(x)  # compiled where its variables can be bound
    for y in data:
        assert_same(y, expected)
    found = []

    def work() -> None:
        with context.execution_mode(context.ASYNC):
            if inside == "map":
                found.extend(y.numpy() for y in data)
            else:
                found.append(tf.py_function(f, [x], tf.float32).numpy())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    np.testing.assert_array_equal(found, [expected])


def test_a_call_after_an_operation_that_failed_in_a_queue_says_so():
    v = tf.Variable(tf.ones(3))
    f = strict(lambda x: v.assign_add(x))
    f(tf.ones(3))
    wrong = tf.raw_ops.CheckNumerics(tensor=tf.ones((2500, 2500)), message="")
    tf.linalg.matmul(wrong, wrong)
    wrong *= np.nan
    x = tf.ones(3)
    with context.execution_mode(context.ASYNC):
        late = tf.linalg.matmul(wrong, wrong)
        value = tf.raw_ops.CheckNumerics(tensor=late, message="never a number")
        tf.raw_ops.AssignVariableOp(resource=v.handle, value=value[0, :3])
        with pytest.raises(tf.errors.InvalidArgumentError, match="never a number"):
            f(x)
        context.context().executor.clear_error()
    assert_same(f(x), tf.fill([3], 3.0))


def test_a_failed_check_assigns_nothing():
    table, last = tf.Variable(values(5)), tf.Variable(0.0)

    @strict
    def f(index):
        last.assign(tf.gather(table, index))
        table.assign(-table)

    f(tf.constant(2))
    before = [v.numpy() for v in (table, last)]
    with pytest.raises(ExecutionError, match="out of range|index"):
        f(tf.constant(7))
    np.testing.assert_array_equal(table.numpy(), before[0])
    assert last.numpy() == before[1]
    f(tf.constant(1))
    np.testing.assert_array_equal(table.numpy(), -before[0])
    assert last.numpy() == before[0][1]


def test_a_value_of_another_shape_is_read_by_operations():
    v = tf.Variable(values(2, 3))
    f = strict(lambda x: v.assign(v * x))
    f(tf.ones((2, 3)))
    # No check of TensorFlow's hinders this operation.
    turned = tf.constant(values(3, 2))
    tf.raw_ops.AssignVariableOp(resource=v.handle, value=turned, validate_shape=False)
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"shape \(3, 2\)"):
        f(tf.ones((2, 3)))
    ones = tf.ones((2, 3))
    tf.raw_ops.AssignVariableOp(resource=v.handle, value=ones, validate_shape=False)
    for _ in range(4):
        f(tf.fill([2, 3], 2.0))
        assert v.read_value().shape == (2, 3)
    assert_same(v.read_value(), tf.fill([2, 3], 16.0))


def test_shapes_of_many_and_of_large_dimensions(operations):
    big = (70000, 1, 3)
    twins = Twins(values(*big), values(1, 2, 1, 3, 1, 2, 1, 2))

    def change(variables, x):
        for v in variables:
            v.assign(v * x)

    f = strict(lambda x: change(twins.ours, x))
    g = tf.function(lambda x: change(twins.theirs, x))
    for k in range(3):
        operations.update(ReadVariableOp=0, AssignVariableOp=0)
        f(tf.constant(float(k + 2)))
        assert not k or not any(operations.values())  # the first call binds them
        g(tf.constant(float(k + 2)))
        twins.agree()


def test_a_value_of_another_size_is_no_memory_for_the_next_one():
    v = tf.Variable(values(3))
    f = strict(lambda x: v.assign(v * x))
    f(tf.ones(3))
    # No check of TensorFlow's hinders this operation.
    tf.raw_ops.AssignVariableOp(resource=v.handle, value=values(5), validate_shape=False)
    with pytest.raises(Exception, match="shape"):
        f(tf.ones(3))
    tf.raw_ops.AssignVariableOp(resource=v.handle, value=tf.range(1.0, 4.0), validate_shape=False)
    for _ in range(4):
        f(tf.fill([3], 2.0))
    assert_same(v.read_value(), tf.constant([16.0, 32.0, 48.0]))
