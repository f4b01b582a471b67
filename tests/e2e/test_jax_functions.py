"""Functions compiled by the JAX decorator: arguments and results of all kinds, against JAX."""

from __future__ import annotations

import copy
import pickle
import sys
import types
import warnings

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.errors import InputError, OptionError, TargetError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import (  # noqa: E402
    polyblocks_jit_jax,
    polymage_jit_jax,
)
from polyblocks_jax.launch import programs  # noqa: E402

STRICT = {"strict_target": True}


def check(f, *args, rtol=2e-6, **kwargs):
    """Compile strictly, compare with JAX; the compiled function."""
    compiled = polyblocks_jit_jax(f, compile_options=STRICT)
    got, want = compiled(*args, **kwargs), jax.jit(f)(*args, **kwargs)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)
    return compiled


def _this_module():
    module = types.ModuleType(__name__)
    module.named = named
    return module


X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def test_all_ways_to_decorate():
    @polyblocks_jit_jax
    def plain(x):
        return x * 2

    @polyblocks_jit_jax()
    def parentheses(x):
        return x * 2

    @polyblocks_jit_jax(compile_options={"target": "cpu"})
    def options(x):
        return x * 2

    @polyblocks_jit_jax({"target": "cpu"})
    def dictionary(x):
        return x * 2

    def original(x):
        return x * 2

    at_call = polyblocks_jit_jax(compile_options={"num_threads": 1})(original)
    direct = polyblocks_jit_jax(original, compile_options={"num_threads": 1})
    for f in (plain, parentheses, options, dictionary, at_call, direct):
        np.testing.assert_array_equal(f(X), X * 2)
        assert f.polyblocks_report().whole
    assert plain.__name__ == "plain"
    assert direct.polyblocks_original is original


def test_numpy_and_jax_arrays_in_jax_arrays_out():
    f = polyblocks_jit_jax(lambda x, y: x @ y.T + 1)
    for x in (X, jnp.asarray(X)):
        got = f(x, X)
        assert isinstance(got, jax.Array)
        np.testing.assert_allclose(got, X @ X.T + 1, rtol=1e-5)
    assert len(f.polyblocks_report().variants) == 1


def test_trees_in_and_out():
    def f(params, *rest, scale, extra=None):
        y = params["w"] * rest[0]["x"] + params["b"]
        return {"y": [y, (rest[1] - scale,)], "none": None, "same": params["b"], "extra": extra}

    params = {"w": X, "b": X[0]}
    check(f, params, {"x": X, "n": None}, X[1], scale=X[2])
    check(f, params, {"x": X, "n": None}, X[1], scale=2.0, extra=(1, True, X))


def test_results_that_are_arguments_or_constants():
    check(lambda x, y: (x, 3.0, y, x, jnp.ones(3), x + 1, x + 1), X, 1)
    check(lambda x: x, X)
    check(lambda: jnp.arange(4) * 2)
    check(lambda x: (), X)
    trivial = check(lambda x: (x, None, 2), X)
    assert [v.outcome for v in trivial.polyblocks_report().variants] == ["trivial"]


def test_python_scalars_are_weakly_typed_arguments():
    f = check(lambda x, a: x * a + a, jnp.ones(3, jnp.bfloat16), 2.0)
    assert f(jnp.ones(3, jnp.bfloat16), 5.0).dtype == jnp.bfloat16
    assert len(f.polyblocks_report().variants) == 1
    check(lambda a, b: (a + 1, b, a * b), 3, 2.5)
    check(lambda a, b: a & b, True, False)


def test_a_variant_per_shape_dtype_and_weak_type():
    f = polyblocks_jit_jax(lambda x: x + x)
    for x in (X, X, X[:2], X.astype(np.int32), 2.0, jnp.float32(2.0), X):
        np.testing.assert_array_equal(f(x), x + x)
    assert len(f.polyblocks_report().variants) == 5


def test_static_arguments():
    def f(x, n, mode="mul"):
        for _ in range(n):
            x = x * 2 if mode == "mul" else x + 1
        return x

    g = polyblocks_jit_jax(f, compile_options={"static_argnums": (1, 2)})
    np.testing.assert_array_equal(g(X, 3), X * 8)
    np.testing.assert_array_equal(g(X, 2, "add"), X + 2)
    np.testing.assert_array_equal(g(X, 2, mode="add"), X + 2)
    with pytest.raises(TypeError, match="unsupported operand"):
        polyblocks_jit_jax(lambda x, mode: x @ mode, compile_options={"static_argnums": 1})(
            X, mode="text"
        )
    np.testing.assert_array_equal(g(X, 3), X * 8)
    assert len(g.polyblocks_report().variants) == 3
    with pytest.raises(InputError, match="argument 1 is static, so it must be hashable.*list"):
        g(X, [3])


def test_a_large_constant_that_is_copied_is_named(monkeypatch):
    monkeypatch.setattr(programs, "MOST_HELD_BYTES", 0)
    weights = np.ones((600, 600), np.float32)

    def f(x):
        return x + weights  # the line in the message

    g = polyblocks_jit_jax(f)
    line = f.__code__.co_firstlineno + 1
    with pytest.warns(
        UserWarning, match=rf"f captures float32\[600,600\] \(used at .*_functions.py:{line}\)"
    ):
        got = g(np.ones((1, 600), np.float32))
    np.testing.assert_array_equal(got, np.full((600, 600), 2.0))


def test_a_large_constant_is_read_where_it_is():
    weights = np.ones((600, 600), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g = polyblocks_jit_jax(lambda x: x @ weights)
        x = np.ones((2, 600), np.float32)
        np.testing.assert_array_equal(g(x), np.full((2, 600), 600.0))
        lowered = jax.jit(lambda x: x + g(x)).lower(x)
        assert "600x600" not in lowered.as_text()


def test_small_captured_constants_are_part_of_the_program():
    small, middle = np.arange(4, dtype=np.float32), np.arange(20_000, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(lambda x: x + small, X)
        check(lambda x: middle[:4] * x + middle.sum(), X)


def test_methods_and_callable_objects():
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        @polyblocks_jit_jax(compile_options={"static_argnums": 0})
        def scale(self, x):
            return x * self.factor

        def __call__(self, x):
            return x - self.factor

    np.testing.assert_array_equal(Scaler(3).scale(X), X * 3)
    np.testing.assert_array_equal(polyblocks_jit_jax(Scaler(3))(X), X - 3)


def test_donated_arguments_are_accepted():
    f = polyblocks_jit_jax(lambda x, y: x * 2 + y, donate_argnums=0)
    x = jnp.asarray(X)
    np.testing.assert_array_equal(f(x, X), X * 3)
    assert x.is_deleted()
    g = polyblocks_jit_jax(lambda x, y: x * 2 + y, donate_argnames="x")
    x = jnp.asarray(X)
    np.testing.assert_array_equal(g(x, X), X * 3)
    outer = jax.jit(polyblocks_jit_jax(lambda x: x + 1), donate_argnums=0)
    np.testing.assert_array_equal(outer(jnp.asarray(X)), X + 1)


def test_random_keys():
    def f(key, x):
        a, b = jax.random.split(key)
        return jax.random.normal(a, x.shape) + x, b, jax.random.bits(b, (5,))

    g = polyblocks_jit_jax(f, compile_options=STRICT)
    for got, want in zip(g(jax.random.key(3), X), jax.jit(f)(jax.random.key(3), X), strict=True):
        if jax.dtypes.issubdtype(want.dtype, jax.dtypes.prng_key):
            got, want = jax.random.key_data(got), jax.random.key_data(want)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    check(lambda k: jax.random.uniform(k, (7,)), jax.random.PRNGKey(1))


@pytest.mark.extended
@pytest.mark.parametrize("x64", sweep([False, True], True))
@pytest.mark.parametrize("seed", sweep([0, -1, 2**31 - 1], -1))
@pytest.mark.parametrize("make", sweep(["PRNGKey", "key"], "key"))
def test_keys_made_inside(make, seed, x64):
    make = getattr(jax.random, make)

    def f(x, s):
        key, other = make(seed), make(s)
        drawn = jax.random.uniform(key, x.shape) + jax.random.normal(other, x.shape)
        keys = [key, *jax.random.split(key), jax.random.fold_in(other, 3)]
        if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
            keys = [jax.random.key_data(k) for k in keys]
        return x + drawn, keys

    with jax.enable_x64(x64):
        check(f, X, 5)
        check(lambda: f(X, 5)[1])


@pytest.mark.parametrize(
    "dtype",
    sweep(
        "float32 float16 bfloat16 int8 int16 int32 uint8 uint16 uint32 bool complex64".split(),
        *"bfloat16 int8 bool complex64".split(),
        extended="float16 int32 uint16".split(),
    ),
)
def test_dtypes(dtype):
    x = jnp.asarray(np.arange(-3, 9).reshape(3, 4)).astype(dtype)
    op = (lambda a, b: a ^ b) if dtype == "bool" else (lambda a, b: a * b + a)
    check(lambda a, b: (op(a, b), a == b, jnp.where(a == b, a, b)), x, x[::-1], rtol=1e-2)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        "float64 int64 uint64 complex128".split(),
        *("uint64", "complex128"),
        extended=["float64"],
    ),
)
def test_x64_dtypes(dtype):
    with jax.enable_x64(True):
        x = jnp.asarray(np.arange(12).reshape(3, 4)).astype(dtype)
        assert x.dtype == dtype
        check(lambda a, b: (a * b + a, a.sum()), x, x[::-1], rtol=1e-14)


def test_denormals_are_zeros_wherever_xla_takes_them_for_zeros():
    # XLA's threads do; a zero by its bits would let 0 / 0 through.
    x = np.array([1e-40, -1e-40, 0.0, -0.0, 8.0, np.inf, np.nan], np.float32)
    roots = np.asarray(polyblocks_jit_jax(jax.numpy.cbrt, compile_options=STRICT)(x))
    np.testing.assert_allclose(roots, [0, 0, 0, 0, 2, np.inf, np.nan], rtol=1e-6, atol=1e-13)


def test_x64_mode_is_part_of_the_variant():
    f = polyblocks_jit_jax(lambda x: x + jnp.arange(3).astype(float))
    assert f(np.ones(3)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert f(np.ones(3)).dtype == jnp.float64
    assert f(np.ones(3)).dtype == jnp.float32


def test_empty_arrays_and_no_arguments():
    check(lambda x: (x * 2, x.sum(), jnp.zeros((0, 3)), x.shape[0]), np.ones((0, 4), np.float32))
    check(lambda: (jnp.ones(3) * 2, jnp.zeros(0)))


def test_wrong_types_are_named():
    f = polyblocks_jit_jax(lambda x, **k: x)
    with pytest.raises(InputError, match="argument 0 is a value of type str; expected arrays"):
        f("text")
    with pytest.raises(InputError, match=r"argument 'k'\['a'\]\[1\] is a value of type object"):
        f(X, k={"a": [1, object()]})
    with pytest.raises(InputError, match="argument 0 is an array of dtype object"):
        f(np.array([None]))
    with pytest.raises(InputError, match="takes a function, not int"):
        polyblocks_jit_jax(3)
    with pytest.raises(InputError, match="not the class dict; compile one of its methods"):
        polyblocks_jit_jax(dict)
    with pytest.raises(InputError, match="pass the options once"):
        polyblocks_jit_jax({"target": "cpu"}, compile_options={})


def test_errors_of_the_function_itself_pass_through():
    f = polyblocks_jit_jax(lambda x, y: x @ y)
    with pytest.raises(TypeError, match="dot_general requires contracting dimensions"):
        f(X, X)

    @polyblocks_jit_jax
    def branches(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError, match="traced array"):
        branches(X)


def test_errors_of_jax_name_the_function_and_its_arguments():
    def branches(n, x, **more):
        return x if sum(jnp.sum(value) for value in jax.tree.leaves(more)) > n else -x

    f = polyblocks_jit_jax(branches, compile_options={"static_argnums": 0})
    #: Keyword arguments -> the name of one of them.
    named = [
        ({"y": X}, "y"),
        ({"y": {"w": X}}, "y_w"),
        ({"y": {"w": X}, "y_w": X}, "y_w_1"),
        ({"class": X}, "arg1"),
        ({"0": X}, "arg1"),
    ]
    for kwargs, name in named:
        with pytest.raises(
            jax.errors.TracerBoolConversionError, match=rf"branches at (.|\n)*argument.* {name}\b"
        ):
            f(3, X, **kwargs)
    with pytest.raises(TypeError, match=r"function <lambda> at .*test_jax_functions\.py"):
        polyblocks_jit_jax(lambda x: "text")(X)


@pytest.mark.cpu
def test_wrong_options_are_named():
    with pytest.raises(OptionError, match="did you mean 'target'"):
        polyblocks_jit_jax(compile_options={"targte": "cpu"})
    with pytest.raises(TargetError, match="nosuch"):
        polyblocks_jit_jax(compile_options={"target": "nosuch"})
    with pytest.raises(OptionError, match="execution_backend must be one of std, xla, polyblocks"):
        polymage_jit_jax(execution_backend="inductor")
    with pytest.raises(OptionError, match="not both"):
        polymage_jit_jax(lambda x: x, compile_options={}, runtime_args={})


@pytest.mark.parametrize("backend", ["std", "xla", "polyblocks"])
def test_choice_of_who_executes(backend):
    options = {"target": "cpu", "static_argnums": (1,)}

    def f(x, n):
        return x * n

    for g in (
        polymage_jit_jax(f, execution_backend=backend, runtime_args=options),
        polymage_jit_jax(execution_backend=backend, compile_options=options)(f),
    ):
        np.testing.assert_array_equal(g(X, 3), X * 3)
    if backend == "std":
        assert g is f


def test_disabled_jit_runs_the_function_itself():
    seen = []
    f = polyblocks_jit_jax(lambda x: (seen.append(x), x + 1)[1])
    with jax.disable_jit():
        np.testing.assert_array_equal(f(jnp.asarray(X)), X + 1)
    assert isinstance(seen[0], jax.Array)
    assert not isinstance(seen[0], jax.core.Tracer)


@polyblocks_jit_jax
def named(x):
    return x * 2


def test_functions_are_pickled_and_copied_by_name(monkeypatch):
    # The module is not imported by its name here.
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this_module())
    assert pickle.loads(pickle.dumps(named)) is named
    assert copy.deepcopy(named) is named


def test_debug_writes_dumps(tmp_path):
    f = polyblocks_jit_jax(lambda x: x * 2.5, compile_options={"debug": str(tmp_path)})
    for _ in range(2):
        np.testing.assert_array_equal(f(X), X * 2.5)
    assert any("S2-affine" in path.name for path in tmp_path.rglob("*.mlir"))


def test_num_iters_runs_it_again_with_the_same_result():
    f = polyblocks_jit_jax(lambda x: x * 2, compile_options={"num_iters": 3})
    np.testing.assert_array_equal(f(X), X * 2)


def test_polyblocks_compile_takes_the_frontend_by_name():
    import polyblocks

    f = polyblocks.compile(lambda x: x + 1, frontend="jax")
    np.testing.assert_array_equal(f(X), X + 1)
