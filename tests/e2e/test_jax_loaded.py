"""Loaded programs with JAX arrays: called by XLA, with the errors of the generic way."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import polyblocks
from polyblocks.api import compile_text
from polyblocks.errors import ExecutionError, InputError
from polyblocks.options import CompileOptions
from polyblocks.runtime import buffers

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks_jax.launch.arrays import JaxArrays  # noqa: E402

pytestmark = pytest.mark.cpu
X = np.arange(15, dtype=np.float32).reshape(3, 5)


def compiled(function, *examples):
    return polyblocks.aot(function, [jnp.array(x) for x in examples], frontend="jax")


@pytest.fixture(scope="module")
def sums():
    return compiled(lambda x, y: (x + y, x.sum(), y * 2), X, X + 1)


@pytest.fixture
def generic(monkeypatch):
    """Loads so that nothing is called by XLA."""

    def load(artifact):
        with monkeypatch.context() as patch:
            patch.setattr(JaxArrays, "own_call", lambda self, binding: None)
            return polyblocks.load(artifact, arrays=JaxArrays())

    return load


def called(function, *args, **kwargs):
    """The result's bytes, or the error."""
    try:
        return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(function(*args, **kwargs))]
    except Exception as error:
        return type(error), str(error)


def frames(function, *args) -> int:
    """Calls of Python functions during a call."""
    seen = []
    sys.setprofile(lambda frame, event, value: seen.append(frame) if event == "call" else None)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return len(seen)


def test_a_call_is_dispatched_by_jax_alone(sums):
    f = polyblocks.load(sums)
    x, y = jnp.array(X), jnp.array(X + 1)
    for _ in range(2):
        total, reduced, doubled = f(x, y)
    assert frames(f, x, y) == 0
    for made, want in ((total, X + X + 1), (reduced, X.sum()), (doubled, 2 * (X + 1))):
        assert isinstance(made, jax.Array)
        np.testing.assert_array_equal(made, want)
    assert frames(polyblocks.load(sums, arrays=JaxArrays()), x, y) > 0  # the first call


@pytest.mark.parametrize("why", ["no LLVM", "no room"])
def test_what_xla_cannot_hold_goes_the_generic_way(monkeypatch, why):
    from polyblocks_jax.launch import programs

    def without(*args, **kwargs):
        raise ImportError("llvmlite")

    w = np.random.default_rng(len(why)).random((5, 1000), np.float32)
    artifact = compiled(lambda x: x @ jnp.array(w), X)
    assert any("stored" in row for row in artifact.manifest["arguments"])
    f = polyblocks.load(artifact)
    if why == "no LLVM":
        monkeypatch.setattr(programs, "XlaCall", without)
    else:
        monkeypatch.setattr(programs, "MOST_HELD_BYTES", 0)
    for _ in range(3):
        np.testing.assert_allclose(f(jnp.array(X)), X @ w, rtol=1e-5)
    with pytest.raises(InputError, match="more weights than such programs may together, or llvm"):
        jax.jit(lambda x: f(x))(jnp.array(X))


def test_a_process_that_calls_it_once_compiles_nothing(sums, tmp_path, run_python):
    sums.write(tmp_path / "sums.zip")
    code = f"""
        import sys
        import jax.numpy as jnp
        import polyblocks
        f = polyblocks.load({str(tmp_path / "sums.zip")!r})
        x = jnp.arange(15.0).reshape(3, 5)
        for _ in range(2):
            print(f(x, x)[1], "polyblocks_jax.launch.loaded_call" in sys.modules)
        """
    assert run_python(code, preloaded="jax").stdout == "105.0 False\n105.0 True\n"


BAD = {
    "shape": (X, X[:2]),
    "dtype": (X, X.astype(np.int32)),
    "rank": (X[0], X),
    "count": (X,),
    "more": (X, X, X),
}
MIXED = {
    "numpy of another dtype": lambda: (jnp.array(X), X.astype(np.float64)),
    "a number": lambda: (jnp.array(X), 2.0),
    "a number of numpy": lambda: (jnp.array(X), np.float32(2)),
    "a list": lambda: (jnp.array(X), [1.0]),
    "a masked array": lambda: (jnp.array(X), np.ma.masked_array(X, X > 3)),
    "a key": lambda: (jnp.array(X), jax.random.key(0)),
    "float8": lambda: (jnp.array(X), jnp.array(X, jnp.float8_e5m2)),
    **{name: (lambda args=args: tuple(map(jnp.array, args))) for name, args in BAD.items()},
}


@pytest.mark.parametrize("name", MIXED)
def test_errors_are_those_of_the_generic_way(sums, generic, name):
    f, x = polyblocks.load(sums), jnp.array(X)
    bad = MIXED[name]()
    want = called(generic(sums), *bad)
    assert want[0] is InputError, want
    assert called(f, *bad) == want
    f(x, x), f(x, x), f(x, x)
    assert called(f, *bad) == called(f, *bad) == want
    np.testing.assert_array_equal(f(x, x)[0], X + X)


def test_names_of_arguments_are_no_parameters(sums):
    f, x = polyblocks.load(sums), jnp.array(X)
    f(x, x), f(x, x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        f(x, y=x)


def test_numpy_arrays_beside_those_of_jax(sums):
    f, x = polyblocks.load(sums), jnp.array(X)
    for args in ((x, X), (x, X), (x, x), (x, X.copy())):
        total = f(*args)[0]
        assert isinstance(total, jax.Array)
        np.testing.assert_array_equal(total, X + X)
    assert isinstance(f(X, X)[0], np.ndarray)


def test_weak_types_are_their_dtypes(sums):
    f, x = polyblocks.load(compiled(lambda x: x * 2, np.float32(3))), jnp.float32(4)
    weak = jnp.asarray(3.0)
    assert weak.weak_type
    for given, want in ((weak, 6), (x, 8), (weak, 6)):
        made = f(given)
        assert (made, made.dtype, made.weak_type) == (want, "float32", False)


def test_dtypes_of_64_bits(generic):
    with jax.enable_x64(True):
        wide = compiled(lambda x: x + 0.5, X.astype(np.float64))
        f, x = polyblocks.load(wide), jnp.array(X, jnp.float64)
        narrow = compiled(lambda x, y: x.astype("float32") + y, X.astype(np.float64), X)
        both = polyblocks.load(narrow, arrays=JaxArrays())
        for _ in range(3):
            made = f(x)
        assert made.dtype == "float64"
        np.testing.assert_array_equal(made, X + 0.5)
    with jax.enable_x64(False):
        with pytest.raises(InputError, match="JAX makes no float64 now; jax.config.update"):
            f(x)
        assert called(f, x) == called(generic(wide), x)
        with pytest.raises(InputError, match="JAX makes float32.* of 'x', expected float64"):
            jax.jit(lambda y: both(X.astype(np.float64), y))(jnp.array(X))


def test_inside_of_transformations(sums):
    f, x = polyblocks.load(sums), jnp.array(X)
    inside = jax.jit(lambda x, y: f(x * 2, y)[0] - 1)
    np.testing.assert_array_equal(inside(x, x), 3 * X - 1)
    np.testing.assert_array_equal(jax.jit(lambda x: f(x, X)[0])(x), X + X)
    many = jnp.stack([x, x + 1])
    np.testing.assert_array_equal(jax.vmap(f, (0, None))(many, x)[0], many + x)
    looped = jax.lax.scan(lambda c, _: (f(c, x)[0], f(c, x)[1]), x, length=3)
    np.testing.assert_array_equal(looped[0], 4 * X)
    with jax.disable_jit():
        np.testing.assert_array_equal(f(x, x)[0], X + X)
    with pytest.raises(InputError, match="is loaded from a file, which has no gradients"):
        jax.grad(lambda x: f(x, x)[1])(x)
    with pytest.raises(
        InputError, match=r"argument 2 \('y'\) of .*: expected float32\[3, 5\], got"
    ):
        jax.jit(f)(x, x[0])


def test_arrays_that_are_given_up(sums):
    f, x = polyblocks.load(sums), jnp.array(X)
    f(x, x), f(x, x)
    gone = jnp.array(X)
    gone.delete()
    with pytest.raises(InputError, match=r"argument 2 \('y'\) of .*: it has been deleted, or was"):
        f(x, gone)
    given = jnp.array(X)
    inside = jax.jit(lambda x: f(x, x)[0], donate_argnums=0)
    np.testing.assert_array_equal(inside(given), X + X)


def test_keys_are_what_they_are_made_of():
    def draw(key):
        return jax.random.uniform(key, (4,))

    f = polyblocks.load(polyblocks.aot(draw, [jax.random.key(0)], frontend="jax"))
    for seed in (1, 2, 3):
        np.testing.assert_allclose(f(jax.random.key(seed)), draw(jax.random.key(seed)), rtol=1e-6)


def test_weights_that_the_file_holds():
    rng = np.random.default_rng(1)
    w, b = rng.random((64, 96), np.float32), rng.random(96, np.float32)

    def layer(x):
        return jnp.tanh(x @ jnp.array(w) + jnp.array(b)), jnp.zeros((0, 3))

    x = rng.random((32, 64), np.float32)
    artifact = polyblocks.aot(layer, [jnp.array(x)], frontend="jax")
    assert any("stored" in row for row in artifact.manifest["arguments"])
    for f in (polyblocks.load(artifact), polyblocks.load(artifact, num_threads=1, num_iters=2)):
        for scale in (1, 2, 3):
            made, empty = f(jnp.array(x * scale))
            np.testing.assert_allclose(made, np.tanh(scale * x @ w + b), rtol=1e-5, atol=1e-5)
            assert empty.shape == (0, 3)


GATHER = """
func.func @main(%x: tensor<8xf32>, %i: tensor<1xi32>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : index
  %last = arith.constant 8 : i32
  %n = tensor.extract %i[%c0] : tensor<1xi32>
  %ok = arith.cmpi ult, %n, %last : i32
  cf.assert %ok, "the index is out of range"
  %k = arith.index_cast %n : i32 to index
  %v = tensor.extract %x[%k] : tensor<8xf32>
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}
"""


def test_failed_checks_are_errors_of_the_call():
    f = polyblocks.load(compile_text(GATHER, CompileOptions()))
    x = jnp.arange(8.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, jnp.array([5], jnp.int32)), [5])
        with pytest.raises(ExecutionError, match="the index is out of range"):
            f(x, jnp.array([9], jnp.int32))


def test_devices_and_sharded_arrays(sums, tmp_path, run_python):
    sums.write(tmp_path / "sums.zip")
    code = f"""
        import os
        os.environ["XLA_FLAGS"] += " --xla_force_host_platform_device_count=4"
        import jax, jax.numpy as jnp, numpy as np
        import polyblocks
        f = polyblocks.load({str(tmp_path / "sums.zip")!r})
        x = jnp.arange(15.0).reshape(3, 5)
        there = jax.device_put(x, jax.devices()[2])
        for _ in range(3):
            print(f(there, there)[0].devices() == there.devices(), f(x, x)[1])
        mesh = jax.make_mesh((3,), ("i",), devices=jax.devices()[:3])
        spread = jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))
        for run in (f, jax.jit(lambda x, y: f(x, y))):
            try:
                run(spread, spread)
            except Exception as error:
                print(type(error).__name__, error)
        local = polyblocks.load(polyblocks.aot(jnp.sin, [jnp.ones((1, 5))], frontend="jax"))
        mapped = jax.shard_map(local, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))
        print(np.allclose(jax.jit(mapped)(spread), np.sin(x)))
        """
    lines = run_python(code, preloaded="jax").stdout.splitlines()
    assert lines[:3] == ["True 105.0"] * 3
    assert lines[3].startswith("BufferError __dlpack__ only supported for unsharded arrays")
    assert "its arrays lie on 3 devices; expected all on one device" in lines[4]
    assert lines[5] == "True"


def test_a_forked_child_calls_it(sums, tmp_path, run_python):
    sums.write(tmp_path / "sums.zip")
    code = f"""
        import os, warnings
        import jax.numpy as jnp, numpy as np
        import polyblocks
        warnings.simplefilter("ignore")
        f = polyblocks.load({str(tmp_path / "sums.zip")!r})
        x = jnp.arange(15.0).reshape(3, 5)
        f(x, x), f(x, x)
        if (child := os.fork()) == 0:
            y = np.asarray(f(x, x)[0])
            os._exit(0 if (y == 2 * np.asarray(x)).all() else 1)
        print(os.waitpid(child, 0)[1])
        """
    assert run_python(code, preloaded="jax").stdout == "0\n"


@pytest.fixture(scope="module")
def layer():
    """A file that takes its weights, and they."""
    rng = np.random.default_rng(3)
    weights = [jnp.array(rng.random(shape, np.float32)) for shape in ((5, 4), (4,), (4,))]

    def function(x):
        w, b, s = weights
        return jnp.tanh(x @ w + b) * s

    artifact = polyblocks.aot(function, [jnp.array(X)], frontend="jax", weights="arguments")
    return artifact, weights, function


def test_bound_weights_are_passed_by_xla(layer, generic):
    artifact, weights, function = layer
    f = polyblocks.load(artifact, weights=weights)
    for scale in (1, 2, 3, 4):
        made = f(jnp.array(scale * X))
        assert isinstance(made, jax.Array)
        np.testing.assert_allclose(made, function(scale * X), rtol=1e-5)
    # A few frames of Python, however many weights.
    assert frames(f, jnp.array(X)) <= 3
    inside = jax.jit(lambda x: f(x) * 2)
    np.testing.assert_allclose(inside(jnp.array(X)), 2 * function(X), rtol=1e-5)
    with jax.disable_jit():
        np.testing.assert_allclose(f(jnp.array(X)), function(X), rtol=1e-5)
    with pytest.raises(InputError, match=r"argument 1 \('x'\) of .*: expected float32\[3, 5\]"):
        f(jnp.array(X[:2]))
    with pytest.raises(InputError, match=r"takes 1 array, got 2"):
        f(jnp.array(X), jnp.array(X))
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        f(x=jnp.array(X))


def test_bound_weights_of_numpy_may_change(layer):
    artifact, weights, function = layer
    mine = [np.array(w) for w in weights]
    f, x = polyblocks.load(artifact, weights=mine), jnp.array(X)
    for _ in range(3):
        np.testing.assert_allclose(f(x), function(X), rtol=1e-5)
    mine[2] *= 0
    np.testing.assert_array_equal(f(x), 0 * X[:, :4])


def test_bound_weights_that_are_given_up(layer):
    artifact, weights, function = layer
    mine = [w + 0 for w in weights]
    f, x = polyblocks.load(artifact, weights=mine), jnp.array(X)
    f(x), f(x), f(x)
    mine[1].delete()
    for given in (x, X, x):
        np.testing.assert_allclose(f(given), function(X), rtol=1e-5)
    with pytest.raises(InputError, match="weight '.*' of .*: it has been deleted, or was donated"):
        polyblocks.load(artifact, weights=mine)


def test_arrays_of_numpy_with_bound_weights_of_jax(layer, monkeypatch):
    """Machine code reads the arrays; the weights are values that nothing looks at again."""
    monkeypatch.setattr(buffers, "POISONED", False)  # which Python does
    artifact, weights, function = layer
    mine = [w + 0 for w in weights]
    f = polyblocks.load(artifact, weights=mine)
    for scale in (1, 2, 3, 4):
        made = f(scale * X)
        assert isinstance(made, np.ndarray)
        np.testing.assert_allclose(made, function(scale * X), rtol=1e-5)
    assert frames(f, X) == 0
    for each in mine:
        each.delete()
    junk = [jnp.full(w.shape, -1.0) for w in weights for _ in range(20)]
    np.testing.assert_allclose(f(X), function(X), rtol=1e-5)
    assert frames(f, X) == 0
    del junk
    with pytest.raises(InputError, match=r"argument 1 \('x'\) of .*: expected float32\[3, 5\]"):
        f(X[:2])
