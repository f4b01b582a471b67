"""Arguments that are constants of what is compiled, by number and by name."""

from __future__ import annotations

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.errors import InputError, OptionError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import (  # noqa: E402
    polyblocks_jit_jax,
    polymage_jit_jax,
)

X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)


def power(x, n, *, mode="sum"):
    for _ in range(n):
        x = x * x
    return x.sum(0) if mode == "sum" else x.max(0)


def test_static_argnames():
    f = polyblocks_jit_jax(power, compile_options={"static_argnames": ("n", "mode")})
    for n, mode in ((1, "sum"), (2, "max")):
        want = power(X, n, mode=mode)
        np.testing.assert_allclose(f(X, n, mode=mode), want, rtol=1e-6)
        np.testing.assert_allclose(f(X, n=n, mode=mode), want, rtol=1e-6)
    report = f.polyblocks_report()
    assert report.whole
    assert {variant.outcome for variant in report.variants} == {"compiled"}


def test_static_argnames_is_one_name_as_well():
    f = polyblocks_jit_jax(lambda x, n: jnp.tile(x, n), compile_options={"static_argnames": "n"})
    np.testing.assert_array_equal(f(X, 2), np.tile(X, 2))
    g = polymage_jit_jax(
        lambda x, n: jnp.tile(x, n), execution_backend="xla", runtime_args={"static_argnames": "n"}
    )
    np.testing.assert_array_equal(g(X, 2), np.tile(X, 2))


def test_static_argnames_with_static_argnums():
    options = {"static_argnums": (1,), "static_argnames": ("mode",)}
    f = polyblocks_jit_jax(power, compile_options=options)
    np.testing.assert_allclose(f(X, 2, mode="max"), power(X, 2, mode="max"), rtol=1e-6)


def test_static_argnames_beside_functions():
    def apply(function, x, n):
        return function(x) * n if n > 2 else x

    f = polyblocks_jit_jax(apply, compile_options={"static_argnames": "n"})
    leaf = jax.tree_util.Partial(jnp.tanh)
    np.testing.assert_allclose(f(leaf, X, 3), np.tanh(X) * 3, rtol=1e-6)
    np.testing.assert_allclose(f(jnp.tanh, X, n=3), np.tanh(X) * 3, rtol=1e-6)


def test_equal_values_of_other_types_are_other_constants_beside_functions():
    def apply(function, x, n):
        return function(x * n if isinstance(n, float) else x + n)

    f = polyblocks_jit_jax(apply, compile_options={"static_argnames": "n"})
    plain = jax.jit(apply, static_argnames=("function", "n"))
    x = np.arange(6, dtype=np.int32)
    for n in (1, 1.0, True):
        got, want = f(jnp.negative, x, n), plain(jnp.negative, x, n)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert len(f.polyblocks_report().variants) == 3


@jax.tree_util.register_pytree_node_class
class Scale:
    """A tree that loses its tag when it is flattened."""

    def __init__(self, value, tag=None):
        self.value, self.tag = value, tag

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, values):
        return cls(*values)

    def __hash__(self):
        return hash((self.value, self.tag))

    def __eq__(self, other):
        return (self.value, self.tag) == (other.value, other.tag)


def test_static_trees_are_passed_as_they_are():
    def scaled(x, scale, extra=()):
        return x * scale.value + (0 if scale.tag is None else 100) + len(extra)

    f = polyblocks_jit_jax(scaled, compile_options={"static_argnames": ("scale", "extra")})
    plain = jax.jit(scaled, static_argnames=("scale", "extra"))
    for scale in (Scale(3, "tag"), Scale(3)):
        np.testing.assert_allclose(f(X, scale), plain(X, scale), rtol=1e-6)
        for extra in ((), (1, None)):
            kwargs = {"x": X, "scale": scale, "extra": extra}
            np.testing.assert_allclose(f(**kwargs), plain(**kwargs), rtol=1e-6)


def test_static_trees_are_passed_as_they_are_beside_functions():
    def scaled(function, x, scale, layer):
        offset = 0 if scale.tag is None else 100
        return layer["act"](function(x * scale.value + offset) * layer["w"])

    f = polyblocks_jit_jax(scaled, compile_options={"static_argnames": "scale"})
    layer = {"act": jnp.negative, "w": X}
    for scale in (Scale(3, "tag"), Scale(3), Scale(3, "tag")):
        want = -(jnp.tanh(X * 3 + (0 if scale.tag is None else 100)) * X)
        np.testing.assert_allclose(f(jnp.tanh, X, scale, layer), want, rtol=1e-6)
        kwargs = {"x": X, "scale": scale, "layer": layer}
        np.testing.assert_allclose(f(jnp.tanh, **kwargs), want, rtol=1e-6)


def test_static_argnames_errors():
    with pytest.raises(OptionError, match="'static_argnames' must be a name or a tuple of names"):
        polyblocks_jit_jax(power, compile_options={"static_argnames": 1})
    with pytest.raises(ValueError, match="'m'.*static_argnames"):
        polyblocks_jit_jax(power, compile_options={"static_argnames": "m"})
    f = polyblocks_jit_jax(power, compile_options={"static_argnames": ("n", "mode")})
    with pytest.raises(InputError, match="argument 1 is static, so it must be hashable.*list"):
        f(X, [1])
    with pytest.raises(InputError, match="argument 'mode' is static, so it must be hashable"):
        f(X, 1, mode=["sum"])
    g = polyblocks_jit_jax(power)
    with pytest.raises(InputError, match="'mode' is a value of type str.*static_argnames"):
        g(X, 1, mode="sum")


def test_many_python_floats_are_two_variants():
    f = polyblocks_jit_jax(lambda x, rate: x * rate + 1)
    for rate in np.linspace(0.1, 2, 20):
        np.testing.assert_allclose(f(X, float(rate)), X * rate + 1, atol=1e-6)
    assert len(f.polyblocks_report().variants) == 1
    f(X, 3)  # of another type
    assert len(f.polyblocks_report().variants) == 2


def test_many_static_floats_are_as_many_variants():
    f = polyblocks_jit_jax(lambda x, s: x * s, compile_options={"static_argnames": "s"})
    for s in (0.5, 1.5, 0.5):
        np.testing.assert_allclose(f(X, s), X * np.float32(s), rtol=1e-6)
    assert len(f.polyblocks_report().variants) == 2


def test_four_sizes_of_a_dimension_are_worth_one_line(caplog):
    @polyblocks_jit_jax
    def scaled(x, w):
        return x * w

    for size in (2, 3, 4, 5, 6):
        x = np.ones((size, 5), np.float32)
        np.testing.assert_array_equal(scaled(x, X[0]), x * X[0])
    lines = [r.getMessage() for r in caplog.records if "sizes of dimension" in r.getMessage()]
    assert len(lines) == 1
    assert "scaled: compiled for 4 sizes of dimension 0 of argument 0 (2, 3, 4, 5)" in lines[0]


def test_a_decorator_made_with_partial():
    @functools.partial(polyblocks_jit_jax, compile_options={"static_argnames": ("n",)})
    def f(x, n):
        return x.reshape(n, -1)

    assert f(X, 5).shape == (5, 3)
