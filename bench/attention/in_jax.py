"""Attention in JAX: for XLA, and for IREE, which takes the StableHLO of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from bench.attention.table import CAP, DOCUMENT, WINDOW


def _heads(k: Array, q: Array) -> Array:
    """Keys or values for each query head."""
    return k if k.shape[-3] == q.shape[-3] else jnp.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)


def _scores(q: Array, k: Array) -> Array:
    return (q @ jnp.swapaxes(k, -1, -2)) * q.shape[-1] ** -0.5


def _masked(scores: Array, most: int) -> Array:
    distance = jnp.arange(scores.shape[-2])[:, None] - jnp.arange(scores.shape[-1])[None, :]
    return jnp.where((distance < 0) | (distance >= most), -jnp.inf, scores)


def written(q: Array, k: Array, v: Array) -> Array:
    """Two products with a softmax between them."""
    return jax.nn.softmax(_scores(q, k), axis=-1) @ v


library = written


def causal(q: Array, k: Array, v: Array) -> Array:
    """The same, of keys that are not later."""
    return window(q, k, v, k.shape[-2])


def grouped(q: Array, k: Array, v: Array) -> Array:
    """The same, with several query heads for a key head."""
    return causal(q, _heads(k, q), _heads(v, q))


def grouped_decode(q: Array, k: Array, v: Array) -> Array:
    """One query, which sees all keys."""
    return written(q, _heads(k, q), _heads(v, q))


def cached_decode(q: Array, keys: Array, values: Array, k: Array, v: Array, place: Array) -> Array:
    """One query, which sees the keys up to its place; the key and value there are new."""
    keys, values = keys.at[:, :, place].set(k), values.at[:, :, place].set(v)
    scores = _scores(q, _heads(keys, q))
    scores = jnp.where(jnp.arange(keys.shape[2]) <= place, scores, -jnp.inf)
    return jax.nn.softmax(scores, axis=-1) @ _heads(values, q)


def capped(q: Array, k: Array, v: Array) -> Array:
    """Causal, of scores that cannot be larger than a cap, as in Gemma 2."""
    scores = _masked(CAP * jnp.tanh(_scores(q, k) / CAP), k.shape[-2])
    return jax.nn.softmax(scores, axis=-1) @ v


def window(q: Array, k: Array, v: Array, most: int = WINDOW) -> Array:
    """Causal, of the nearest keys."""
    return jax.nn.softmax(_masked(_scores(q, k), most), axis=-1) @ v


def documents(q: Array, k: Array, v: Array) -> Array:
    """Places see those of their document."""
    document = jnp.arange(q.shape[-2]) // DOCUMENT
    scores = jnp.where(document[:, None] == document[None, :], _scores(q, k), -jnp.inf)
    return jax.nn.softmax(scores, axis=-1) @ v


def alibi(q: Array, k: Array, v: Array) -> Array:
    """Causal, of scores that fall with the distance, at each head's rate."""
    places, heads = jnp.arange(k.shape[-2]), jnp.arange(q.shape[1])
    rates = jnp.exp2(-8 / q.shape[1] * (heads + 1))[:, None, None]
    scores = _scores(q, k) + (places[None, :] - places[:, None]) * rates
    return jax.nn.softmax(_masked(scores, k.shape[-2]), axis=-1) @ v


def biased(q: Array, k: Array, v: Array, bias: Array) -> Array:
    """Scores that are not scaled, with a bias by position, as in T5."""
    return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) + bias, axis=-1) @ v


def cross_entropy(states: Array, words: Array, following: Array) -> Array:
    """The loss over a vocabulary whose embeddings are the last layer's weights."""
    chances = jax.nn.log_softmax(states @ words.T, axis=-1)
    return -jnp.take_along_axis(chances, following[:, None], axis=-1).mean()


def kernel_sum(x: Array, y: Array, w: Array) -> Array:
    """Sums of weights over all points, by a kernel of the distance."""
    squares = (x * x).sum(-1)[:, None] + (y * y).sum(-1)[None, :]
    return jnp.exp(2 * (x @ y.T) - squares) @ w
