"""Functions among the arguments of a compiled function: constants of what is compiled."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.errors import InputError  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)


def apply(function, x, scale=2.0):
    return function(x) * scale


def test_lower_and_trace_take_functions_as_static_arguments():
    f = polyblocks_jit_jax(apply)
    plain = jax.jit(apply, static_argnames="function")
    for function in (jnp.tanh, jnp.negative):
        for arguments in ((X,), (jax.ShapeDtypeStruct(X.shape, X.dtype), 2.0)):
            lowered, want = f.lower(function, *arguments), plain.lower(function, *arguments)
            assert lowered.in_tree == want.in_tree
            got = lowered.compile()(X, *arguments[1:])
            np.testing.assert_allclose(got, function(X) * 2, rtol=1e-6)
        traced = f.trace(x=X, function=function)
        assert "polyblocks_call" in str(traced.jaxpr)
        np.testing.assert_allclose(traced.lower().compile()(x=X), function(X) * 2, rtol=1e-6)


def test_lower_and_trace_take_trees_that_hold_functions():
    f = polyblocks_jit_jax(lambda layer, x: layer["act"](x * layer["w"]))
    layer = {"act": jnp.tanh, "w": X}
    assert "polyblocks" in f.lower(layer, X).as_text()
    assert "polyblocks_call" in str(f.trace(layer, X).jaxpr)


def test_report_names_the_arguments_beside_functions():
    f = polyblocks_jit_jax(apply)
    f(jnp.tanh, X)
    (part,) = f.polyblocks_report().parts
    assert [row["name"] for row in part.arguments if row["role"] == "input"] == ["x"]


def test_calls_without_functions_are_the_same_variant_before_and_after():
    f = polyblocks_jit_jax(lambda tree, x: tree["f"](x) if "f" in tree else x + tree["w"])
    for _ in range(2):
        np.testing.assert_allclose(f({"w": X}, X), X + X)
        np.testing.assert_allclose(f({"f": jnp.negative}, X), -X)
    assert len(f.polyblocks_report().variants) == 2


def test_clear_cache_forgets_variants_with_functions():
    f = polyblocks_jit_jax(apply)
    for variants in (1, 2):
        f(jnp.tanh, X)
        assert len(f.polyblocks_report().variants) == variants
        f.clear_cache()


def test_a_function_where_an_array_would_be_given_up_is_a_constant():
    for donated in ({"donate_argnums": (0, 1)}, {"donate_argnames": ("function", "x")}):
        f = polyblocks_jit_jax(apply, **donated)
        for call in (lambda f, x: f(jnp.negative, x), lambda f, x: f(x=x, function=jnp.negative)):
            x = jnp.array(X)
            np.testing.assert_allclose(call(f, x), -2 * X)
            assert x.is_deleted()


class Unhashable:
    __hash__ = None

    def __call__(self, x):
        return x


def test_wrong_arguments_beside_functions_are_named():
    f = polyblocks_jit_jax(lambda function, x: function(x))
    wrong = {
        "argument 1 is a value of type str; expected arrays": (jnp.tanh, "text"),
        "argument 0 is a function.*must be hashable, which Unhashable is not": (Unhashable(), X),
        r"argument 1\['f'\] is a function.*must be hashable": (jnp.tanh, {"f": Unhashable()}),
    }
    for _ in range(2):  # before and after it has met functions
        for match, arguments in wrong.items():
            for way in (f, f.lower, f.trace):
                with pytest.raises(InputError, match=match):
                    way(*arguments)
        f(jnp.tanh, X)


class Model:
    """No tree, and what it holds may change."""

    def __init__(self, factor):
        self.factor = factor

    @polyblocks_jit_jax
    def __call__(self, x):
        return x * self.factor


class Negative:
    def __call__(self, x):
        return -x


@dataclasses.dataclass(frozen=True)
class Times:
    factor: float

    def __call__(self, x):
        return x * self.factor


def test_objects_whose_attributes_may_change_are_no_constants():
    f = polyblocks_jit_jax(lambda function, x: function["f"](x))
    for _ in range(2):  # before and after it has met functions
        with pytest.raises(InputError, match="argument 0 is a Model, an object with attributes"):
            Model(3)(X)
        with pytest.raises(InputError, match=r"argument 0\['f'\] is a Model.*as arguments, reg"):
            f({"f": Model(3)}, X)
        for function, factor in ((Negative(), -1), (Times(2.0), 2), (Times(3.0), 3)):
            np.testing.assert_allclose(f({"f": function}, X), factor * X, rtol=1e-6)
        partial = functools.partial(jnp.multiply, 4)
        np.testing.assert_allclose(f({"f": partial}, X), 4 * X, rtol=1e-6)
