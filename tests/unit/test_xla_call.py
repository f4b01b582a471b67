"""Programs called by XLA: pointers in the right order, statuses that become errors."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from polyblocks.artifact import Artifact
from polyblocks.errors import InputError
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.native import native_workspaces
from polyblocks.runtime.xla_call import XlaCall, _rows, digest_of

jax = pytest.importorskip("jax")

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)


def row(role, *shape, updates=None):
    return {
        "role": role, "name": role, "dtype": "float32", "shape": list(shape),
        "strides": [1] * len(shape), "updates": updates,
    }  # fmt: skip


class Pretended(Executable):
    """An executable whose entry is a Python function of the arrays' addresses."""

    def __init__(self, function, rows, checks=()):
        def entry(pointers, threads):
            addresses = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_uint64 * len(rows)))[0]
            return function(list(addresses), threads)

        self.entry = PROTOTYPE(entry)
        self.manifest = {"arguments": rows, "checks": list(checks)}

    def close(self):
        pass


_count = 0


def call(made, *arrays, results):
    """Call a handler from JAX."""
    global _count
    _count += 1
    name = f"polyblocks_test_{_count}"
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(made.address)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in results]
    return jax.block_until_ready(jax.ffi.ffi_call(name, shapes)(*arrays))


def floats(address, count):
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def test_pointers_come_in_the_order_of_the_manifest():
    rows = [row("workspace", 64), row("input", 4), row("output", 2), row("status"), row("input", 2)]
    seen = []

    def entry(pointers, threads):
        space, x, result, status, y = pointers
        floats(space, 16)[:] = 7  # may be written
        seen.append((ctypes.c_int64.from_address(status).value, threads))
        floats(result, 2)[:] = floats(x, 4)[:2] * floats(y, 2)
        return 0

    made = XlaCall(Pretended(entry, rows), threads=3, iterations=2)
    x, y = np.arange(4, dtype=np.float32) + 1, np.array([10, 20], np.float32)
    (got,) = call(made, x, y, results=[(2,)])
    np.testing.assert_array_equal(got, [10, 40])
    assert seen == [(0, 3), (0, 3)]


def listing(number, *addresses):
    """A list of addresses; lists with other ones have other numbers."""
    return np.array([number, *addresses], np.uint64).view(np.uint8)


def test_addresses_in_the_first_argument():
    roles = ["input", "status", "input", "input", "output", "input"]
    seen = []

    def entry(pointers, threads):
        seen.append([pointers[0], *pointers[2:4], pointers[5]])
        floats(pointers[4], 1)[:] = floats(pointers[5], 1)
        return 0

    made = XlaCall(Pretended(entry, [row(role, 1) for role in roles]), threads=1, listed=[0, 2, 1])
    lists = listing(1, 1024, 2048, 4096), listing(2, 1032, 2056, 4104), listing(3, 8, 16, 24)
    wanted = [1024, 4096, 2048], [1032, 4104, 2056], [8, 24, 16]
    for k in (0, 0, 1, 1, 0, 2, 2, 1):
        (got,) = call(made, lists[k], np.full(1, 7, np.float32), results=[(1,)])
        assert seen[-1][:3] == wanted[k]
        assert got == 7
    made = XlaCall(Pretended(entry, [row(role, 1) for role in roles]), threads=1, listed=[1, 2])
    for _ in range(2):
        call(made, lists[0], *np.ones((2, 1), np.float32), results=[(1,)])
        assert seen[-1][1:3] == [1024, 2048]


class Buffer(ctypes.Structure):
    _fields_ = (("before", ctypes.c_char * 24), ("data", ctypes.c_void_p))


def call_directly(made, arguments, results):
    """Call a handler on this thread, as XLA does."""
    groups = [[Buffer(b"", array.ctypes.data) for array in group] for group in (arguments, results)]
    places = [(ctypes.c_void_p * 8)(*map(ctypes.addressof, group)) for group in groups]
    frame = (ctypes.c_uint64 * 16)()
    frame[9], frame[14] = map(ctypes.addressof, places)
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(made.address)
    assert handler(ctypes.addressof(frame)) is None


class Summing:
    """``out = x + w + v``: a program that reads where its arguments are after ``inside``.

    The weights are constants, or in lists.
    """

    def __init__(self, kind):
        self.inside = lambda: None
        self.places = []
        rows = [row("input", 1), row("input", 1), row("input", 1), row("output", 1)]
        program = Pretended(lambda *_: 0, rows)
        program.entry = PROTOTYPE(self.run)
        weights = [np.full(1, value, np.float32) for value in (10, 20)]
        more = {"listed": [1, 2]}
        if kind == "constants":
            more = {"constants": dict(enumerate(weights, start=1))}
        self.first = [listing(5, *(w.ctypes.data for w in weights))] * (kind == "lists")
        self.held = weights
        self.made = XlaCall(program, threads=1, **more)

    def run(self, pointers, threads):
        self.places.append(pointers)
        self.inside()
        x, w, v, out = (ctypes.c_uint64 * 4).from_address(pointers)
        floats(out, 1)[:] = floats(x, 1) + floats(w, 1) + floats(v, 1)
        return 0

    def __call__(self, x):
        out = np.zeros(1, np.float32)
        call_directly(self.made, [*self.first, np.full(1, x, np.float32)], [out])
        return out[0]


@pytest.fixture(params=["constants", "lists"])
def summing(request):
    return Summing(request.param)


def test_calls_use_the_same_memory_for_arguments(summing):
    assert [summing(k) for k in range(4)] == [30, 31, 32, 33]
    assert len(set(summing.places)) == 1


def test_a_call_inside_of_a_call_has_memory_of_its_own(summing):
    seen = []

    def inside():
        summing.inside = lambda: None
        seen.append(summing(7))

    for _ in range(3):
        summing.inside = inside
        assert summing(1) == 31
        outer, inner = summing.places[-2:]
        assert outer != inner
    assert seen == [37] * 3


def test_threads_that_are_inside_at_once(summing):
    barrier = threading.Barrier(4, timeout=30)
    summing.inside = barrier.wait
    found = {}

    def work(k):
        found[k] = {summing(k) for _ in range(20)}

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert found == {k: {30 + k} for k in range(4)}
    assert len(set(summing.places[:4])) == 4


def test_failed_calls_give_the_memory_back():
    places = []

    def run(pointers, threads):
        places.append(pointers)
        x, _ = (ctypes.c_uint64 * 2).from_address(pointers)
        return int(floats(x, 1)[0])

    program = Pretended(lambda *_: 0, [row("input", 1), row("output", 1)], ["it fails"])
    program.entry = PROTOTYPE(run)
    made = XlaCall(program, threads=1)
    for _ in range(3):
        call(made, np.zeros(1, np.float32), results=[(1,)])
        with pytest.raises(jax.errors.JaxRuntimeError, match="it fails"):
            call(made, np.ones(1, np.float32), results=[(1,)])
    assert len(set(places)) == 1


def test_statuses_are_errors_with_the_text_of_the_check():
    rows, checks = [row("input", 1), row("output", 1)], ["index 7 is out of bounds"]

    def entry(pointers, threads):
        return int(floats(pointers[0], 1)[0])

    made = XlaCall(Pretended(entry, rows, checks), threads=1)
    call(made, np.zeros(1, np.float32), results=[(1,)])
    with pytest.raises(jax.errors.JaxRuntimeError, match="index 7 is out of bounds"):
        call(made, np.ones(1, np.float32), results=[(1,)])
    with pytest.raises(jax.errors.JaxRuntimeError, match="the compiled program reports an error"):
        call(made, np.full(1, 2, np.float32), results=[(1,)])


def test_updates_in_place_are_refused():
    rows = [row("input", 1), row("output", 1, updates=0)]
    with pytest.raises(InputError, match="'output' is updated in place, which XLA does not allow"):
        XlaCall(Pretended(lambda pointers, threads: 0, rows), threads=1)


def test_workspaces_are_given_back_also_after_errors():
    rows = [row("workspace", 5000), row("input", 1), row("workspace", 3), row("output", 1)]
    seen = []

    def entry(pointers, threads):
        seen.append((pointers[0], pointers[2]))
        return int(floats(pointers[1], 1)[0])

    made = XlaCall(Pretended(entry, rows), threads=1)
    for _ in range(3):
        call(made, np.zeros(1, np.float32), results=[(1,)])
        with pytest.raises(jax.errors.JaxRuntimeError, match="reports an error"):
            call(made, np.ones(1, np.float32), results=[(1,)])
    assert len(set(seen)) == 1
    first, second = seen[0]
    assert second == first + 8192
    assert native_workspaces.idle_bytes() >= 12288


def test_no_room_for_the_workspace_is_an_error():
    rows = [row("workspace", 1 << 60), row("output", 1)]
    made = XlaCall(Pretended(lambda pointers, threads: 0, rows), threads=1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no room for the compiled program's work"):
        call(made, results=[(1,)])


def test_the_handler_is_compiled_once_and_cached(monkeypatch):
    from polyblocks.codegen import llvm
    from polyblocks.runtime.native import native_code

    XlaCall(Pretended(lambda pointers, threads: 0, []), threads=1)  # now it is in the cache
    monkeypatch.setattr(native_code, "_objects", {})
    monkeypatch.setattr(llvm, "optimize", lambda *_: pytest.fail("compiled again"))
    XlaCall(Pretended(lambda pointers, threads: 0, []), threads=1)


def test_a_digest_tells_programs_apart():
    one = Artifact({"arguments": [row("input", 1)]}, {"code.o": b"1"})
    same = Artifact({"arguments": [row("input", 1)], "name": "other"}, {"code.o": b"1"})
    code = Artifact({"arguments": [row("input", 1)]}, {"code.o": b"2"})
    arguments = Artifact({"arguments": [row("input", 2)]}, {"code.o": b"1"})
    assert digest_of(one) == digest_of(same)
    assert len({digest_of(a) for a in (one, code, arguments)}) == 3


def test_large_results_are_asked_for_on_huge_pages():
    """Of any alignment, and of any size above."""

    def fill(addresses, threads):
        for address, count in zip(addresses, (1 << 20, (1 << 20) + 12345), strict=True):
            floats(address, count)[:] = np.arange(count)
        return 0

    rows = [row("output", 1 << 20), row("output", (1 << 20) + 12345)]
    program = Pretended(fill, rows)
    made = XlaCall(program, threads=1)
    for _ in range(3):
        small, large = call(made, results=[(1 << 20,), ((1 << 20) + 12345,)])
        assert np.array_equal(small, np.arange(1 << 20, dtype=np.float32))
        assert np.array_equal(large, np.arange((1 << 20) + 12345, dtype=np.float32))
    found, _ = _rows({"arguments": [row("output", 1000), *rows]})
    asked = [r.bytes for r in found]
    assert asked == [0, 4 << 20, (4 << 20) + 4 * 12345]
