"""Compiled functions inside of JAX's loops and transformations, each run and held against JAX.

Run as a program, so that a loop that never ends is one that is killed: it prints the name of each
way and whether its results are JAX's.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

PAIR = (1.0, 0.0)
ROWS = (jnp.arange(1.0, 4.0), jnp.ones(3))


def _below(state):
    return jnp.max(state[0]) <= 40.0


def _double(state):
    return state[0] * 2, state[1] + 1


def _swap(state):
    return state[1] + 1, state[0]


def _rows(state):
    return state[0] * 1.5, state[1] + state[0]


def _square(x):
    return (x**2).sum()


#: Name -> what is computed; the argument decorates a function.
WAYS = {
    "while": lambda p: lax.while_loop(_below, p(_double), PAIR),
    "while of swapped values": lambda p: lax.while_loop(_below, p(_swap), PAIR),
    "while of one value": lambda p: lax.while_loop(lambda x: x <= 8.0, p(lambda x: x * 2), 1.0),
    "while of arrays": lambda p: lax.while_loop(_below, p(_rows), ROWS),
    "while of several types": lambda p: lax.while_loop(
        lambda s: s[0] <= 8, p(lambda s: (s[0] * 2, s[1] + 1.5, s[2] * s[1])), (1, 0.0, ROWS[0])
    ),
    "while with a condition": lambda p: lax.while_loop(p(_below), p(_rows), ROWS),
    "while in while": lambda p: lax.while_loop(
        _below, lambda s: lax.while_loop(lambda t: t[0] < 2 * s[0] + 1, p(_double), s), PAIR
    ),
    "while in a compiled function": lambda p: p(lambda s: lax.while_loop(_below, p(_double), s))(
        PAIR
    ),
    "jvp of while": lambda p: jax.jvp(lambda *s: lax.while_loop(_below, p(_rows), s), ROWS, ROWS),
    "jvp in while": lambda p: lax.while_loop(
        _below, lambda s: jax.jvp(p(lambda a: a * a + 1), (s[0],), (s[1],)), ROWS
    ),
    "grad in while": lambda p: lax.while_loop(
        lambda s: s[0] < 40, lambda s: jax.value_and_grad(p(_square))(s[1]), (1.0, ROWS[0])
    ),
    "vmap of while": lambda p: jax.vmap(lambda a: lax.while_loop(_below, p(_double), (a, 0.0)))(
        ROWS[0]
    ),
    "vmap in while": lambda p: lax.while_loop(_below, jax.vmap(p(_double)), ROWS),
    "jit in while": lambda p: lax.while_loop(_below, jax.jit(p(_double)), PAIR),
    "fori_loop": lambda p: lax.fori_loop(0, 4, lambda i, s: p(_double)(s), PAIR),
    "scan": lambda p: lax.scan(p(lambda c, x: (c + x, c * x)), 0.0, ROWS[0]),
    "grad of scan": lambda p: jax.grad(
        lambda x: lax.scan(p(lambda c, x: (c * x, c + x)), 1.0, x)[0]
    )(ROWS[0]),
    "cond": lambda p: lax.cond(ROWS[0][0] > 5, p(_double), p(_swap), PAIR),
    "cond in while": lambda p: lax.while_loop(
        _below, lambda s: lax.cond(s[0] > 2, p(_double), p(_swap), s), PAIR
    ),
    "nested": lambda p: p(lambda s: p(_rows)(p(_double)(s)))(ROWS),
}


def main() -> None:
    """Run all ways; print ``name: right`` or what is wrong."""
    plain = lambda f: f  # noqa: E731
    for name, way in WAYS.items():
        print(f"{name}: ", end="", flush=True)
        want, got = (jax.tree.map(np.asarray, way(p)) for p in (plain, polyblocks_jit_jax))
        right = jax.tree.map(
            lambda g, w: g.dtype == w.dtype and np.allclose(g, w, rtol=1e-5), got, want
        )
        print("right" if all(jax.tree.leaves(right)) else f"{got}, not {want}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
