"""Attention in TensorFlow, for its compiler XLA."""

from __future__ import annotations

import math

import tensorflow as tf

from bench.attention.table import CAP, DOCUMENT, WINDOW


def _heads(k: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
    """Keys or values for each query head."""
    return k if k.shape[-3] == q.shape[-3] else tf.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)


def _scores(q: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    return tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5


def _masked(scores: tf.Tensor, most: int) -> tf.Tensor:
    distance = tf.range(scores.shape[-2])[:, None] - tf.range(scores.shape[-1])[None, :]
    return tf.where((distance < 0) | (distance >= most), -math.inf, scores)


def written(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """Two products with a softmax between them."""
    return tf.nn.softmax(_scores(q, k)) @ v


library = written


def causal(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """The same, of keys that are not later."""
    return window(q, k, v, k.shape[-2])


def grouped(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """The same, with several query heads for a key head."""
    return causal(q, _heads(k, q), _heads(v, q))


def grouped_decode(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """One query, which sees all keys."""
    return written(q, _heads(k, q), _heads(v, q))


def cached_decode(
    q: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, k: tf.Tensor, v: tf.Tensor, place: tf.Tensor
) -> tf.Tensor:
    """One query, which sees the keys up to its place; the key and value there are new."""
    at = tf.range(keys.shape[2], dtype=place.dtype)
    own = (at == place)[:, None]
    keys, values = tf.where(own, k, keys), tf.where(own, v, values)
    scores = tf.where(at <= place, _scores(q, _heads(keys, q)), -math.inf)
    return tf.matmul(tf.nn.softmax(scores), _heads(values, q))


def capped(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """Causal, of scores that cannot be larger than a cap, as in Gemma 2."""
    return tf.nn.softmax(_masked(CAP * tf.tanh(_scores(q, k) / CAP), k.shape[-2])) @ v


def window(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor, most: int = WINDOW) -> tf.Tensor:
    """Causal, of the nearest keys."""
    return tf.nn.softmax(_masked(_scores(q, k), most)) @ v


def documents(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """Places see those of their document."""
    document = tf.range(q.shape[-2]) // DOCUMENT
    scores = tf.where(document[:, None] == document[None, :], _scores(q, k), -math.inf)
    return tf.nn.softmax(scores) @ v


def alibi(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    """Causal, of scores that fall with the distance, at each head's rate."""
    places, heads = tf.range(k.shape[-2]), tf.range(1, q.shape[1] + 1)
    rates = tf.pow(2.0, tf.cast(heads, tf.float32) * (-8 / q.shape[1]))[:, None, None]
    distances = tf.cast(places[None, :] - places[:, None], tf.float32)
    return tf.nn.softmax(_masked(_scores(q, k) + distances * rates, k.shape[-2])) @ v


def biased(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Scores that are not scaled, with a bias by position, as in T5."""
    return tf.nn.softmax(tf.matmul(q, k, transpose_b=True) + bias) @ v


def cross_entropy(states: tf.Tensor, words: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
    """The loss over a vocabulary whose embeddings are the last layer's weights."""
    chances = tf.nn.log_softmax(tf.matmul(states, words, transpose_b=True))
    return -tf.reduce_mean(tf.gather(chances, following, axis=1, batch_dims=1))


def kernel_sum(x: tf.Tensor, y: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Sums of weights over all points, by a kernel of the distance."""
    squares = tf.reduce_sum(x * x, -1)[:, None] + tf.reduce_sum(y * y, -1)[None, :]
    return tf.exp(2 * tf.matmul(x, y, transpose_b=True) - squares) @ w
