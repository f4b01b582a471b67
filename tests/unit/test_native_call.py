"""Calls of loaded programs in machine code: they give what the calls in Python give."""

from __future__ import annotations

import copy
import ctypes
import gc
import inspect
import itertools
import os
import pickle
import random
import sys
import threading
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest
from c_programs import Both, CountingArrays, CProgram, weighted
from manifest_rows import row

from polyblocks.errors import ExecutionError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.bound_weights import bind_weights
from polyblocks.runtime.launch import bind
from polyblocks.runtime.native import dispatch, flat_code, native_code, native_workspaces
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.runtime.numpy_arrays import NumpyArrays, _dtype

pytestmark = pytest.mark.cpu


@pytest.fixture(autouse=True, params=["machine code", "generated Python"])
def generated(request, monkeypatch):
    """Both ways to be fast; what is said of machine code here holds for the other too."""
    monkeypatch.setattr(Both, "generated", request.param != "machine code")
    return Both.generated


#: For what only machine code does.
machine_code = pytest.mark.parametrize("generated", ["machine code"], indirect=True)


def add(x: Any, y: Any, out: Any) -> None:
    out[...] = x + y


def adder(**manifest: Any) -> CProgram:
    return CProgram([row("input", "x"), row("input", "y"), row("output", "out")], add, **manifest)


def ones(shape: tuple[int, ...] = (2, 3), dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def both(program: CProgram, *good: Any, **settings: Any) -> Both:
    made = Both(program, CountingArrays(), good, **settings)
    assert type(made.fast) is type(len)
    return made


# --- what machine code takes ---------------------------------------------------------------------


def test_a_call_without_python():
    made = both(adder(), ones(), ones())
    assert made.is_fast(ones(), 2 * ones())
    np.testing.assert_array_equal(made.fast(ones(), 2 * ones()), np.full((2, 3), 3, np.float32))


def test_code_is_made_after_the_second_call_that_works():
    made = Both(adder(), CountingArrays(), None)
    assert not made.is_fast(ones(), ones())
    with pytest.raises(Exception, match="takes 2 arrays"):
        made.fast()
    assert not made.is_fast(ones(), ones())
    assert made.is_fast(ones(), ones())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    program = CProgram(
        [row("input", "x", (3,), dtype), row("output", "out", (3,), dtype)],
        lambda x, out: out.__setitem__(..., x),
    )
    x = np.array([1, 0, 1]).astype(_dtype(dtype))
    made = both(program, x)
    assert made.is_fast(x)
    assert made.outcome("fast", x) == made.outcome("slow", x)


def test_random_layouts_of_inputs_and_results():
    chance = random.Random(20)
    for _ in range(60):
        shape = tuple(chance.choice((0, 1, 1, 2, 3, 5)) for _ in range(chance.randrange(5)))
        dtype = chance.choice(list(DTYPES))
        order = sorted(range(len(shape)), key=lambda _: chance.random())
        strides, step = [0] * len(shape), chance.choice((1, 1, 2))
        for d in order:
            strides[d] = step
            step *= max(shape[d], 1) + chance.choice((0, 0, 1))
        spec = ArraySpec(shape, dtype, tuple(strides))
        rows = [row(role, role, shape, dtype, strides) for role in ("input", "output")]
        made = Both(CProgram(rows, lambda x, out: out.__setitem__(..., x)), CountingArrays(), None)
        kind = _dtype(dtype)
        steps = tuple(s * kind.itemsize for s in strides)
        memory = np.zeros(max(spec.nbytes, 1) + 16, np.uint8)
        x = np.ndarray(shape, kind, memory, strides=steps)
        x[...] = np.arange(x.size).reshape(shape).astype(kind)
        for _ in range(2):
            made.fast(x)
        assert made.is_fast(x), spec
        assert made.outcome("fast", x) == made.outcome("slow", x)
        # The layout as NumPy makes it is taken only where it is the same.
        y = np.array(x, order="C")
        assert made.outcome("fast", y) == made.outcome("slow", y)


def test_strides_of_unit_extents_do_not_matter():
    program = CProgram(
        [row("input", "x", (1, 3)), row("output", "out", (1, 3))],
        lambda x, out: out.__setitem__(..., x),
    )
    x = np.lib.stride_tricks.as_strided(ones((3,)), (1, 3), (400, 4))
    made = both(program, ones((1, 3)))
    assert made.is_fast(x) or Both.generated
    assert made.outcome("fast", x) == made.outcome("slow", x)


# --- what it leaves to Python --------------------------------------------------------------------


class Derived(np.ndarray):
    pass


def misaligned() -> np.ndarray:
    return np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)


def readonly() -> np.ndarray:
    x = ones()
    x.flags.writeable = False
    return x


#: Case -> what is passed as ``x``.
OTHERS: dict[str, Any] = {
    "rank": lambda: ones((6,)),
    "shape": lambda: ones((3, 2)),
    "strides": lambda: ones((3, 2)).T,
    "negative strides": lambda: ones()[::-1],
    "zero strides": lambda: np.broadcast_to(np.float32(1), (2, 3)),
    "dtype": lambda: ones(dtype=np.float64),
    "same size": lambda: ones(dtype=np.int32),
    "swapped bytes": lambda: ones(dtype=">f4"),
    "structured": lambda: np.zeros((2, 3), [("a", "f4")]),
    "subclass": lambda: ones().view(Derived),
    "mask": lambda: np.ma.ones((2, 3), np.float32),
    "memmap": lambda: ones().view(np.memmap),
    "scalar": lambda: np.float32(1),
    "list": lambda: [[1.0] * 3] * 2,
    "none": lambda: None,
    "number": lambda: 1.0,
    "misaligned": misaligned,
    "read only": readonly,
    "alignment": lambda: np.zeros(16, np.float32)[1:7].reshape(2, 3),
}


@pytest.mark.parametrize("updated", [False, True])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("case", OTHERS)
def test_other_arrays_get_what_python_says(case, place, updated):
    updates = place if updated else None
    rows = [row("input", "x", alignment=8), row("input", "y", alignment=8), row("output", "out")]
    if updated:
        rows.append(row("output", "z", updates=updates))

    def body(x: Any, y: Any, out: Any, z: Any = None) -> None:
        out[...] = 2 * x + y
        if z is not None:
            z += 1

    made = both(CProgram(rows, body), ones(), ones())
    outcomes = {}
    for which in ("slow", "fast"):
        arrays = [ones(), ones()]
        arrays[place] = OTHERS[case]()
        outcomes[which] = made.outcome(which, *arrays), np.array(arrays[place]).tobytes()
    assert outcomes["fast"] == outcomes["slow"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_number_of_arrays(count):
    made = both(adder(), ones(), ones())
    arrays = [ones()] * count
    assert made.outcome("fast", *arrays) == made.outcome("slow", *arrays)
    assert "takes 2 arrays" in made.outcome("fast", *arrays)[1]


def test_named_arguments():
    made = both(adder(), ones(), ones())
    named = made.outcome("slow", ones(), y=ones())
    assert named[0] is TypeError
    assert "keyword argument 'y'" in named[1]
    assert made.outcome("fast", ones(), y=ones()) == named


def test_long_integers_of_another_name_are_taken_by_python():
    rows = [row("input", "x", dtype="int64"), row("output", "out", dtype="int64")]
    program = CProgram(rows, lambda x, out: out.__setitem__(..., x))
    made = both(program, ones(dtype=np.int64))
    x = ones(dtype=np.longlong)
    assert made.outcome("fast", x) == made.outcome("slow", x)


# --- updates and overlaps ------------------------------------------------------------------------


def updater(count: int, written: tuple[int, ...]) -> CProgram:
    """Adds 1 to some of its arguments, which have 4 elements each."""
    names = [f"x{k}" for k in range(count)]
    rows = [row("input", name, (4,)) for name in names]
    rows += [row("output", names[k], (4,), updates=k) for k in written]

    def body(*arrays: Any) -> None:
        for array in arrays[count:]:
            array += 1

    return CProgram(rows, body, results=[])


def test_updates():
    made = both(updater(2, (1,)), ones((4,)), ones((4,)))
    x, y = ones((4,)), ones((4,))
    assert made.is_fast(x, y)
    assert (x == 1).all()
    assert (y == 2).all()
    assert made.fast(x, y) is None


def test_overlaps_are_found_in_every_order():
    chance = random.Random(3)
    made = {}
    outcomes = set()
    for _ in range(300):
        count = chance.randrange(1, 6)
        written = tuple(k for k in range(count) if chance.random() < 0.4)
        if (count, written) not in made:
            good = [ones((4,)) for _ in range(count)]
            made[count, written] = both(updater(count, written), *good)
        it = made[count, written]
        memory = np.zeros(4 * 7)
        places = [chance.randrange(25) for _ in range(count)]
        found = []
        for which in ("slow", "fast"):
            memory = np.zeros(28, np.float32)
            arrays = [memory[p : p + 4] for p in places]
            found.append((it.outcome(which, *arrays), memory.tobytes()))
        assert found[0] == found[1], (written, places)
        apart = all(
            abs(places[k] - places[j]) >= 4 for k in written for j in range(count) if j != k
        )
        outcomes.add(apart)
        memory = np.zeros(28, np.float32)
        if apart:
            assert it.is_fast(*(memory[p : p + 4] for p in places))
        else:
            assert "shares memory" in found[1][0][1]
    assert outcomes == {True, False}


def test_reading_one_array_twice_is_no_overlap():
    made = both(adder(), ones(), ones())
    x = ones()
    assert made.is_fast(x, x)


# --- results -------------------------------------------------------------------------------------


def test_results_in_any_order_and_inputs_among_them():
    rows = [row("input", "x"), row("input", "y"), row("output", "a"), row("output", "b", (5,))]

    def body(x: Any, y: Any, a: Any, b: Any) -> None:
        a[...], b[...] = x + y, 7

    empty = {"dtype": "int64", "shape": [0, 2]}
    made = both(CProgram(rows, body, results=[3, 1, 2, empty, 3]), ones(), ones())
    x, y = ones(), ones()
    assert made.is_fast(x, y)
    got = made.fast(x, y)
    assert got[1] is y
    assert got[0] is got[4]
    assert got[3].shape == (0, 2)
    assert made.outcome("fast", x, y) == made.outcome("slow", x, y)


def test_large_results_are_on_pooled_memory():
    size = 1 << 18
    program = CProgram(
        [row("input", "x", (size,)), row("output", "out", (size,))],
        lambda x, out: out.__setitem__(..., x),
    )
    x = ones((size,))
    made = both(program, x)
    assert made.is_fast(x)
    address = made.fast(x).ctypes.data
    assert address % buffers.pages.PAGE == 0
    assert made.fast(x).ctypes.data == address  # the last one was given back


def test_an_allocator_that_raises():
    alive = []

    class Raises(CountingArrays):
        armed = False

        def allocation(self, spec: ArraySpec) -> Any:
            def make() -> Any:
                if self.armed and spec.shape == (5,):
                    raise MemoryError("no room for the second one")
                made = np.empty(spec.shape, np.float32).view()
                alive.append(weakref.ref(made))
                return made

            return make, ()

    interface = Raises()
    rows = [row("input", "x"), row("output", "a"), row("output", "b", (5,))]
    made = Both(CProgram(rows), interface, [ones()])
    assert made.is_fast(ones())
    interface.armed = True
    x = ones()
    count = sys.getrefcount(x)
    for _ in range(3):
        with pytest.raises(MemoryError, match="no room for the second one"):
            made.fast(x)
    assert sys.getrefcount(x) == count
    assert not any(each() for each in alive)
    interface.armed = False
    assert made.is_fast(x)


@machine_code
def test_an_allocator_that_makes_something_else_is_not_used():
    class Lists(CountingArrays):
        def allocation(self, spec: ArraySpec) -> Any:
            return list, ((1, 2),)

    made = Both(adder(), Lists(), [ones(), ones()])
    assert not made.is_fast(ones(), ones())
    assert (made.fast(ones(), ones()) == 2).all()


# --- what a program has besides ------------------------------------------------------------------


def test_status_and_workspaces():
    rows = [
        row("input", "x"),
        row("status", "status"),
        row("workspace", "w", (5000,)),
        row("workspace", "v", (64,)),
        row("output", "out"),
    ]
    seen = []

    def body(x: Any, status: Any, w: Any, v: Any, out: Any) -> None:
        seen.append((status[0], w.ctypes.data, v.ctypes.data))
        w[...], v[...], status[0] = 1, 2, 9
        assert (w == 1).all()
        out[...] = x + w[-1] + v[-1]

    made = both(CProgram(rows, body), ones())
    assert made.is_fast(ones())
    idle = native_workspaces.idle_bytes()
    assert (made.fast(ones()) == 4).all()
    assert native_workspaces.idle_bytes() == idle
    status, w, v = seen[-1]
    assert Both.generated or status == 0
    assert (w % buffers.pages.PAGE, v % buffers.pages.PAGE) == (0, 0)
    assert abs(w - v) >= 64
    assert Both.generated or seen[-2][1] == w


def test_poisoned_memory(monkeypatch):
    monkeypatch.setattr(buffers, "POISONED", True)
    found = []

    def body(x: Any, w: Any, out: Any) -> None:
        found.append((bytes(w), out.tobytes()))
        w[...], out[...] = 0, 0

    rows = [row("input", "x"), row("workspace", "w", (5000,)), row("output", "out")]
    made = both(CProgram(rows, body), ones())
    assert made.is_fast(ones())
    assert made.is_fast(ones())
    pattern = bytes([buffers.PATTERN])
    assert found[-1] == (5000 * pattern, 24 * pattern)


def test_without_machine_code_for_workspaces(monkeypatch):
    def none() -> Any:
        raise OSError("this process can have no machine code")

    monkeypatch.setattr(native_workspaces, "pool", none)
    rows = [row("input", "x"), row("workspace", "w", (64,)), row("output", "out")]
    made = both(CProgram(rows, lambda x, w, out: out.__setitem__(..., x)), ones())
    assert not made.is_native
    assert made.is_fast(ones())
    assert (made.fast(ones()) == 1).all()


@machine_code
def test_no_room_for_a_workspace_is_python_s_to_tell():
    rows = [row("input", "x"), row("workspace", "w", (1 << 46,)), row("output", "out")]
    program = CProgram([row("input", "x"), row("workspace", "w", (64,)), row("output", "out")])
    program.manifest["arguments"] = rows
    made = Both(program, CountingArrays(), None)
    call = made.slow.native_call(made.slow)
    assert call is not None
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p
    )
    x = ones()
    given = (ctypes.py_object * 1)(x)
    with pytest.raises(MemoryError, match="no room for"):
        make(call.function)(call.table, ctypes.addressof(given), 1, None)


def test_stored_inputs():
    contents = np.arange(6, dtype=np.float32).tobytes()
    rows = [row("input", "x"), row("input", "w", stored="w"), row("output", "out")]
    made = Both(CProgram(rows, add), CountingArrays(), [ones()], blobs={"w": contents})
    assert made.is_fast(ones())
    np.testing.assert_array_equal(made.fast(ones()).ravel(), np.arange(6) + 1)


def kept_program(stored: bool) -> CProgram:
    """Doubles its weight once and adds it."""
    rows = [
        row("input", "x"),
        row("input", "w", stored="w") if stored else row("input", "w"),
        row("kept", "kept", (24,)),
        row("output", "out"),
    ]

    def body(x: Any, w: Any, kept: Any, out: Any) -> None:
        out[...] = x + kept.view(np.float32).reshape(2, 3)

    def prepare(w: Any, kept: Any) -> None:
        kept[...] = (2 * w).view(np.uint8).ravel()
        program.prepared += 1  # type: ignore[attr-defined]

    program = CProgram(rows, body)
    program.prepared = 0  # type: ignore[attr-defined]
    program.preparation = CProgram(
        [row("input", "w"), row("kept", "kept", (24,))], prepare, sources=[1, 2]
    )
    return program


def test_prepared_weights_are_prepared_once():
    contents = np.arange(6, dtype=np.float32).tobytes()
    program = kept_program(True)
    made = Both(program, CountingArrays(), [ones()], blobs={"w": contents})
    assert made.is_fast(ones())
    np.testing.assert_array_equal(made.fast(ones()).ravel(), 2 * np.arange(6) + 1)
    assert program.prepared == 1  # type: ignore[attr-defined]


def test_weights_that_are_passed_are_prepared_by_python_at_each_call():
    made = both(kept_program(False), ones(), ones())
    assert not made.is_fast(ones(), ones())
    assert (made.fast(ones(), 3 * ones()) == 7).all()


def test_an_entry_that_is_no_c_function_stays_with_python():
    program = adder()
    inner = program.entry
    program.entry = lambda packed, count: inner(packed, count)
    made = both(program, ones(), ones())
    assert not made.is_native
    assert made.is_fast(ones(), ones())


def test_failed_checks():
    status = [0]
    rows = [row("input", "x"), row("workspace", "w", (64,)), row("output", "out")]
    program = CProgram(rows, lambda *_: status[0], checks=["the first fails", "the second fails"])
    made = both(program, ones())
    assert made.is_fast(ones())
    idle = native_workspaces.idle_bytes()
    for code in (1, 2, 3, -1):
        status[0] = code
        assert made.outcome("fast", ones()) == made.outcome("slow", ones())
    with pytest.raises(ExecutionError, match="f: the program returned status -1"):
        made.fast(ones())
    assert native_workspaces.idle_bytes() == idle
    assert made.interface.described == 6  # of the first calls and of the slow ones


def test_iterations_end_at_a_failure():
    seen = []

    def body(x: Any, out: Any) -> int:
        seen.append(1)
        return len(seen) % 5 == 0

    program = CProgram([row("input", "x"), row("output", "out")], body, checks=["it fails"])
    made = both(program, ones(), num_iters=2)
    assert len(seen) == 4
    with pytest.raises(ExecutionError, match="it fails"):
        made.fast(ones())
    assert len(seen) == 5
    made.fast(ones())
    assert len(seen) == 7


# --- bound weights -------------------------------------------------------------------------------


def product(x: Any, w: Any, v: Any, out: Any, updated: Any = None) -> None:
    out[...] = x * w + v
    if updated is not None:
        updated += 1


def with_weights(program: CProgram, weights: Any, good: Any) -> Both:
    reader = CountingArrays()
    held = bind_weights(program.manifest, {}, weights, lambda array: reader)
    return Both(program, CountingArrays(), good, weights=held)


def test_bound_weights():
    w, v = 2 * ones(), 3 * ones()
    made = with_weights(weighted(product), [w, v], [ones()])
    assert made.is_fast(ones())
    assert (made.fast(5 * ones()) == 13).all()
    v += 1
    assert (made.fast(5 * ones()) == 14).all()
    for arrays in ((), (ones(), ones()), (ones((3, 2)),)):
        assert made.outcome("fast", *arrays) == made.outcome("slow", *arrays)


def test_bound_weights_among_the_results():
    w, v = 2 * ones(), 3 * ones()
    made = with_weights(weighted(product, results=[1, 3, 0, 2]), [w, v], [ones()])
    x = ones()
    assert made.is_fast(x)
    got = made.fast(x)
    assert got[0] is w
    assert got[2] is x
    assert got[3] is v
    counts = [sys.getrefcount(each) for each in (w, v, x)]
    for _ in range(100):
        made.fast(x)
    assert counts == [sys.getrefcount(each) for each in (w, v, x)]


def test_updated_weights():
    w, v = 2 * ones(), 3 * ones()
    made = with_weights(weighted(product, updated=True), [w, v], [ones()])
    w[...] = 2
    assert made.is_fast(ones())
    assert (w == 3).all()
    # What is updated may not be passed as well.
    assert made.outcome("fast", w) == made.outcome("slow", w)
    assert "shares memory with" in made.outcome("fast", w)[1]
    assert made.is_fast(v)
    w.flags.writeable = False
    assert made.outcome("fast", ones()) == made.outcome("slow", ones())
    assert "weight 'w' of f" in made.outcome("fast", ones())[1]


def test_weights_of_other_classes_need_python():
    w, v = 2 * ones(), (3 * ones()).view(Derived)
    made = with_weights(weighted(product), [w, v], [ones()])
    assert not made.is_native
    assert (made.fast(ones()) == 5).all()


# --- classes of arrays ---------------------------------------------------------------------------


def test_classes_of_arrays_are_forgotten():
    class Own(np.ndarray):
        """A class of the caller's."""

    def choose(*arrays: Any) -> Any:
        chosen.append(type(arrays[0]).__name__)
        return lambda *_: len(chosen)

    chosen: list[str] = []
    call = dispatched(lambda *_: None, choose)
    x = ones().view(Own)
    assert [call(x) for _ in range(4)] == [1] * 4
    gone = weakref.ref(Own)
    del x, Own
    gc.collect()
    assert gone() is None
    assert call(ones()) == 2
    assert chosen == ["Own", "ndarray"]


@machine_code
@pytest.mark.parametrize("error", [MemoryError("no room"), OSError(1, "forbidden")])
def test_processes_without_room_for_machine_code(error, monkeypatch):
    def refuse(nbytes: int) -> None:
        raise error

    monkeypatch.setattr(native_code, "_placed", {})
    monkeypatch.setattr(flat_code.pages, "map_pages", refuse)
    made = Both(adder(), CountingArrays(), None)
    assert type(made.fast) is not type(len)
    for _ in range(4):
        np.testing.assert_array_equal(made.fast(ones(), ones()), 2 * ones())


# --- threads -------------------------------------------------------------------------------------


@machine_code
def test_number_of_threads(monkeypatch):
    program = adder()
    made = both(program, ones(), ones(), num_threads=3)
    assert made.is_fast(ones(), ones())
    assert program.thread_counts[-1] == 3
    made = both(program, ones(), ones())
    assert made.is_fast(ones(), ones())
    assert program.thread_counts[-1] == threads.resolve()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads.forget()
    try:
        assert not made.is_fast(ones(), ones())  # what is not known yet, Python finds out
        assert made.is_fast(ones(), ones())
        assert program.thread_counts[-2:] == [1, 1]
    finally:
        threads.forget()


def test_several_threads_are_inside_at_once():
    barrier = threading.Barrier(4, timeout=30)
    places: set[int] = set()

    def body(x: Any, w: Any, out: Any) -> None:
        barrier.wait()  # reached only while all others are inside too
        places.add(w.ctypes.data)
        w[0] = x[0, 0]
        barrier.wait()
        out[...] = w[0]

    rows = [row("input", "x"), row("workspace", "w", (64,)), row("output", "out")]
    program = CProgram(rows, lambda *_: 0)
    made = both(program, ones())
    program.body = body
    results: dict[int, Any] = {}

    def work(k: int) -> None:
        results[k] = made.fast(k * ones())

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(places) == 4
    assert [results[k][0, 0] for k in range(4)] == [0, 1, 2, 3]


def test_calls_inside_of_calls():
    depth = []

    def body(x: Any, out: Any) -> None:
        depth.append(1)
        out[...] = x
        if x[0, 0] > 0:
            out += made.fast(np.array(x) - 1)

    made = both(CProgram([row("input", "x"), row("output", "out")], body), 0 * ones())
    assert (made.fast(3 * ones()) == 6).all()
    assert len(depth) == 2 + 4


def test_threads_calling_and_updating():
    program = updater(6, (0, 3))
    made = both(program, *[ones((4,)) for _ in range(6)])
    errors = []

    def work() -> None:
        arrays = [np.zeros(4, np.float32) for _ in range(6)]
        for k in range(200):
            mine = arrays if k % 2 else arrays[::-1]
            if made.fast(*mine) is not None:
                errors.append(k)
        if sum(each[0] for each in arrays) != 400:
            errors.append([each[0] for each in arrays])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert errors == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_children_call_it():
    rows = [row("input", "x"), row("workspace", "w", (64,)), row("output", "out")]
    made = both(CProgram(rows, lambda x, w, out: out.__setitem__(..., x)), ones())
    child = os.fork()
    if child == 0:
        good = (made.fast(ones()) == 1).all() and (made.fast(ones()) == 1).all()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert made.is_fast(ones())


# --- memory --------------------------------------------------------------------------------------


def test_references_are_kept_in_balance():
    rows = [row("input", "x"), row("input", "y"), row("output", "a"), row("output", "b")]
    status = [0]
    program = CProgram(rows, checks=["no"], results=[2, 1, 3])
    # Without a body, which makes arrays in each call.
    program.entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(
        lambda *_: status[0]
    )
    made = both(program, ones(), ones())
    x, y, bad = ones(), ones(), ones((4,))
    watched = (x, y, bad, None, made.fast, np.ndarray, np.dtype("float32"))
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for k in range(10_000):
        result = made.fast(x, y)
        if k % 50 == 0:
            for arrays in ((x, bad), (x,), (x, None)):
                with pytest.raises(Exception, match="f"):
                    made.fast(*arrays)
            status[0] = 1
            with pytest.raises(ExecutionError, match="f: no"):
                made.fast(x, y)
            status[0] = 0
    expected = (ones(), y, ones())
    assert [sys.getrefcount(each) for each in result] == [
        sys.getrefcount(each) for each in expected
    ]
    del expected, result, arrays
    gc.collect()
    after = [sys.getrefcount(each) for each in watched]
    assert all(abs(a - b) < 50 for a, b in zip(before, after, strict=True)), (before, after)
    assert before[:3] == after[:3]


def test_a_function_that_is_dropped_frees_its_program_at_once():
    contents = np.zeros(6, np.float32).tobytes()
    rows = [row("input", "x"), row("input", "w", stored="w"), row("output", "out")]
    program = CProgram(rows, add)
    made = Both(program, CountingArrays(), [ones()], blobs={"w": contents})
    gone = weakref.ref(made.interface)
    function = made.fast
    del program, made
    assert (function(ones()) == 1).all()  # it alone keeps all that it needs
    again = weakref.ref(function)
    gc.collect()
    gc.disable()
    try:
        del function
        assert again() is None
        assert gone() is None
    finally:
        gc.enable()


class Untracked:
    """What the collector does not know dies in the midst of a collection; it then writes memory."""

    __slots__ = ()
    #: Of the class: an instance with a slot would be known.
    written: ClassVar[list[Any]] = []

    def __del__(self) -> None:
        self.written.extend((ctypes.c_uint8 * 32)(*[0xFF] * 32) for _ in range(3000))


@machine_code
def test_what_python_reads_when_it_frees_a_function_is_not_freed_before():
    function = dispatched(add, lambda *arrays: add)
    gone = weakref.ref(function)
    place = ctypes.c_void_p.from_address(id(function) + 16).value
    assert place
    definition = ctypes.string_at(place, 32)
    Untracked.written.clear()
    # The collector clears the list before the function, which is freed last of what is in it.
    function.__self__.kept[:0] = [[function], Untracked()]  # type: ignore[attr-defined]
    del function
    gc.collect()
    assert gone() is None
    assert Untracked.written
    assert ctypes.string_at(place, 32) == definition


# --- the function as an object -------------------------------------------------------------------


def test_the_function_says_what_it_is():
    made = both(adder(target="cpu"), ones(), ones())
    fast, slow = made.fast, made.slow
    assert fast.__name__ == slow.__name__ == "f"
    assert fast.__qualname__ == "LoadedProgram.f"
    assert fast.__module__ == slow.__module__
    assert fast.__doc__ == slow.__doc__ == "f(x, y), compiled for cpu."
    assert list(inspect.signature(fast).parameters) == list(inspect.signature(slow).parameters)
    assert weakref.ref(fast)() is fast
    assert copy.deepcopy(fast) is fast
    with pytest.raises(TypeError, match="cannot be pickled; load its file"):
        pickle.dumps(fast)


# --- where there is no machine code --------------------------------------------------------------


def test_without_machine_code_it_is_generated_python(monkeypatch):
    monkeypatch.setattr(native_code, "_placed", {})
    monkeypatch.setattr(native_code, "_object", _not_installed)
    made = Both(adder(), CountingArrays(), [ones(), ones()])
    assert type(made.fast) is type(lambda: 0)
    assert made.is_fast(ones(), ones())
    assert (made.fast(ones(), ones()) == 2).all()


def _plain_dtype(name: str, real: Any = np.dtype) -> Any:
    if name == "bfloat16":  # also where something has taught it to NumPy
        raise TypeError(name)
    return real(name)


def _not_installed(text: str) -> bytes:
    raise ImportError("No module named 'llvmlite'")


@pytest.mark.parametrize("what", ["_sound", "types"])
def test_arrays_and_pythons_that_are_not_known(monkeypatch, what):
    if what == "types":
        monkeypatch.setattr(dispatch, "_MAX_TARGETS", 0)
    else:
        monkeypatch.setattr(dispatch, "is_sound", lambda table: False)
    made = Both(adder(), CountingArrays(), [ones(), ones()])
    assert what == "_sound" or not made.is_native
    assert made.is_fast(ones(), ones())
    assert (made.fast(ones(), ones()) == 2).all()


def test_an_interface_without_a_reader_stays_with_python():
    class Unread(CountingArrays):
        def native_reader(self) -> None:  # type: ignore[override]
            return None

    made = Both(adder(), Unread(), [ones(), ones()])
    assert not made.is_native


def test_the_first_array_chooses_the_code():
    program = adder()
    numpy, derived = CountingArrays(), CountingArrays()
    calls = {np.ndarray: bind(program, numpy), Derived: bind(program, derived)}
    call = dispatched(calls[np.ndarray], lambda x, y: calls[type(x)])
    for x in itertools.islice(itertools.cycle((ones(), ones().view(Derived))), 6):
        call(x, ones())
    assert numpy.described == 4
    assert derived.described == 6


# --- machine code without relocations ------------------------------------------------------------


def test_code_of_other_formats_is_linked_by_llvm(monkeypatch):
    def other(data: bytes) -> None:
        raise ValueError("it is no ELF object")

    monkeypatch.setattr(flat_code, "flat_code", other)
    monkeypatch.setattr(native_code, "_placed", {})
    placed = native_code.place("define i32 @seven() { ret i32 7 }", "seven")
    assert placed is not None
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(placed["seven"])() == 7
    made = both(adder(), ones(), ones())
    assert made.is_native or Both.generated
    assert (made.fast(ones(), ones()) == 2).all()


def compiled(body: str) -> bytes:
    return native_code._compile(body)


def test_flat_code_runs():
    text = "define i32 @seven() { ret i32 7 }\ndefine i32 @eight() { ret i32 8 }"
    placed = flat_code.place(flat_code.flat_code(compiled(text)))
    called = [ctypes.CFUNCTYPE(ctypes.c_int32)(placed[name])() for name in ("seven", "eight")]
    assert called == [7, 8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("declare i32 @other()\ndefine i32 @f() {\n%r = call i32 @other()\nret i32 %r }", "reloc"),
        ("@x = global i32 5\ndefine i32 @f(i32 %a) { ret i32 %a }", "has data"),
        ("@x = global i32 5", "0 sections with code"),
    ],
)
def test_code_that_needs_more_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        flat_code.flat_code(compiled(text))


def test_what_is_no_object_is_refused():
    with pytest.raises(ValueError, match="no 64-bit little-endian ELF object"):
        flat_code.flat_code(b"MZ")


def test_numpy_reader_has_every_dtype():
    dtype = NumpyArrays().native_reader().dtype
    assert len({dtype(name) for name in DTYPES} - {None}) == len(DTYPES)


def test_numpy_reader_without_a_package_for_a_dtype(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(np, "dtype", _plain_dtype)
    assert NumpyArrays().native_reader().dtype("bfloat16") is None
