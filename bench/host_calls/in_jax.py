"""Calls in JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import polyblocks
from bench.host_calls import cases
from bench.host_calls.cases import Case
from bench.host_calls.measure import Call, Peer
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

STRICT = {"target": "cpu", "strict_target": True}


#: Elements of a weight: JAX puts smaller constants into the program. 16 of them are read.
WEIGHT_ELEMENTS = 8192


def peers(case: Case, folder: Path) -> list[Peer]:
    """Ours, a file that is made of the same function, eager, ``jax.jit``, and what it compiles to.

    Weights are the first argument, as usual in JAX, and those of the file are bound to it.
    """
    values: list[Any] = [x if case.kind == cases.HOST else jnp.asarray(x) for x in case.inputs]
    positional, keywords = cases.arguments_of(case.kind, values)
    function = cases.function_of(case.kind)
    held = [jnp.asarray(np.resize(x, WEIGHT_ELEMENTS)) for x in case.weights]
    if held:
        function, positional = _with_weights, (held, *positional)

    def loaded() -> Call:
        one = cases.doubled_in_a_row if case.kind == cases.TREE else function
        if not held:
            return Call(polyblocks.load(polyblocks.aot(one, values, frontend="jax")), tuple(values))

        def bound(x: jax.Array) -> Any:
            return _with_weights(held, x)

        artifact = polyblocks.aot(bound, values, frontend="jax", weights="arguments")
        weights = {f"held.{number}": value for number, value in enumerate(held)}
        return Call(polyblocks.load(artifact, weights=weights), tuple(values))

    def ahead() -> Call:
        compiled = jax.jit(function).lower(*positional, **keywords).compile()
        return Call(compiled, positional, keywords)

    return [
        Peer(
            "decorated",
            lambda: Call(
                polyblocks_jit_jax(function, compile_options=STRICT), positional, keywords
            ),
        ),
        *([] if case.kind == cases.KEYWORDS else [Peer("loaded", loaded)]),
        Peer("eager", lambda: Call(function, positional, keywords)),
        Peer("jax.jit", lambda: Call(jax.jit(function), positional, keywords)),
        Peer("jax.jit, compiled ahead", ahead),
    ]


def _with_weights(weights: list[jax.Array], x: jax.Array) -> Any:
    return cases.total(x, *(weight[: cases.ELEMENTS] for weight in weights))


def arrays_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a result."""
    return [np.asarray(x) for x in jax.tree.leaves(result)]


def wait(result: Any) -> None:
    """Dispatch is asynchronous."""
    jax.block_until_ready(result)
