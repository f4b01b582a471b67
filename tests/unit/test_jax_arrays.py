"""The ArrayInterface of JAX."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from c_programs import CProgram
from manifest_rows import row

from polyblocks.errors import InputError
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.bound_weights import bind_weights
from polyblocks.runtime.launch import bind

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax.experimental.layout import Format, Layout  # noqa: E402

from polyblocks_jax.launch.arrays import JaxArrays  # noqa: E402

ARRAYS = JaxArrays()


def test_arrays_are_described():
    x = jnp.ones((2, 3), jnp.bfloat16)
    assert ARRAYS.is_array(x)
    assert ARRAYS.is_array(np.ones(2))
    assert not ARRAYS.is_array(2.0)
    assert ARRAYS.describe(x) == ArraySpec.contiguous((2, 3), "bfloat16")
    assert ARRAYS.describe(np.ones((4, 3), np.float32).T) == ArraySpec((3, 4), "float32", (1, 3))
    assert ARRAYS.device(x) == ARRAYS.device(np.ones(1)) == HOST
    assert not ARRAYS.is_writable(x)
    assert ARRAYS.is_writable(np.ones(2))
    assert ARRAYS.transfer(x, HOST).devices() == {jax.devices("cpu")[0]}
    y = np.ones(2)
    assert ARRAYS.transfer(y, HOST) is y
    assert ARRAYS.pointer(y) == y.ctypes.data


def laid_out(array, *order):
    sharding = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    return jax.device_put(array, Format(Layout(order), sharding))


def test_layouts_of_their_own():
    x = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4)
    assert ARRAYS.describe(laid_out(x, 0, 1, 2)) == ArraySpec.contiguous((2, 3, 4), "float32")
    y = laid_out(x, 2, 0, 1)
    assert ARRAYS.describe(y) == ArraySpec((2, 3, 4), "float32", (3, 1, 6))
    memory = (ctypes.c_float * 24).from_address(ARRAYS.pointer(y))
    np.testing.assert_array_equal(list(memory), np.asarray(x).transpose(2, 0, 1).ravel())
    tiled = SimpleNamespace(
        shape=(2, 3),
        dtype=x.dtype,
        format=SimpleNamespace(layout=Layout((0, 1), tiling=((8, 128),))),
    )
    with pytest.raises(InputError, match="lies in tiles .*, expected rows; copy it to a row-major"):
        ARRAYS.describe(tiled)


@pytest.mark.parametrize("weights", [False, True])
def test_loaded_programs_and_layouts(weights):
    def add(x, w, out):
        out[...] = x + w

    names = {"weight_names": [["w"]]} if weights else {}
    rows = [row("input", "x"), row("input", "w"), row("output", "out")]
    program = CProgram(rows, add, **names)
    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    other = laid_out(x, 1, 0)
    message = r"expected contiguous elements, got strides \[1, 2\]; copy it to that layout"
    if weights:
        with pytest.raises(InputError, match=f"weight 'w' of f: {message}"):
            bind_weights(program.manifest, {}, [other], lambda array: ARRAYS)
        return
    call = bind(program, ARRAYS)
    for _ in range(3):
        with pytest.raises(InputError, match=f"argument 2 .'w'. of f: {message}"):
            call(x, other)
        np.testing.assert_array_equal(call(x, x), 2 * x)


def test_new_arrays_can_be_written_by_a_program():
    made = ARRAYS.empty(ArraySpec.contiguous((3,), "float32"), HOST)
    memory = (ctypes.c_float * 3).from_address(ARRAYS.pointer(made))
    memory[:] = (1, 2, 3)
    np.testing.assert_array_equal(np.asarray(made), [1, 2, 3])


def test_what_cannot_be_is_named():
    with pytest.raises(InputError, match="an array of dtype float8_e5m2; use .astype"):
        ARRAYS.describe(jnp.ones(2, jnp.float8_e5m2))
    with pytest.raises(InputError, match="JAX makes no float64 now; jax.config.update"):
        ARRAYS.empty(ArraySpec.contiguous((3,), "float64"), HOST)
    with pytest.raises(InputError, match=r"row-major arrays only, not strides \[1, 2\]"):
        ARRAYS.empty(ArraySpec((2, 2), "float32", (1, 2)), HOST)
    for function, message in (
        (ARRAYS.empty, r"makes arrays on the host, not on \(2, 0\)"),
        (ARRAYS.transfer, r"JAX sees no device \(2, 0\)"),
    ):
        with pytest.raises(InputError, match=message):
            function(ArraySpec.contiguous((3,), "float32"), Device(2, 0))


def test_an_artifact_is_loaded_with_jax_arrays():
    import polyblocks
    from polyblocks import driver
    from polyblocks.options import CompileOptions
    from polyblocks_jax.capture import capture_jaxpr

    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(5))
    capture = capture_jaxpr(closed, "f")
    artifact = driver.compile_capture(capture, "jax", CompileOptions())
    f = polyblocks.load(artifact, arrays=ARRAYS)
    np.testing.assert_allclose(f(jnp.arange(5.0)), np.sin(np.arange(5.0)) * 2, rtol=1e-6)
