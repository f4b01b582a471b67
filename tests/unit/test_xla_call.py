"""Programs called by XLA: pointers in the right order, statuses that become errors."""

from __future__ import annotations

import ctypes

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


def test_addresses_in_the_first_argument():
    roles = ["input", "status", "input", "input", "output", "input"]
    seen = []

    def entry(pointers, threads):
        seen.append([pointers[0], *pointers[2:4], pointers[5]])
        floats(pointers[4], 1)[:] = floats(pointers[5], 1)
        return 0

    made = XlaCall(Pretended(entry, [row(role, 1) for role in roles]), threads=1, listed=[0, 2, 1])
    addresses = np.array([1024, 2048, 4096], np.uint64).view(np.uint8)
    (got,) = call(made, addresses, np.full(1, 7, np.float32), results=[(1,)])
    assert seen[0][:3] == [1024, 4096, 2048]
    assert got == 7
    for _ in range(2):
        made = XlaCall(Pretended(entry, [row(role, 1) for role in roles]), threads=1, listed=[1, 2])
        call(made, addresses, *np.ones((2, 1), np.float32), results=[(1,)])
        assert seen[-1][1:3] == [1024, 2048]


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
