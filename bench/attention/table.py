"""The rows of attention and of other sums over pairs whose matrices need not be in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.contractions.table import MODEL_TOLERANCE, TOLERANCES, random
from bench.table import Arrays, Case

_TOLERANCE = TOLERANCES["float32"]

#: Keys that a query sees in rows with a window, itself included, and the cap of scores.
WINDOW, CAP = 512, 50.0

#: Places of a document.
DOCUMENT = 512


def attention(
    title: str,
    program: str,
    queries: tuple[int, ...],
    keys: tuple[int, ...],
    *extra: tuple[int, ...],
    bar: float,
    bar_floor: float,
    seen: float = 1.0,
) -> Case:
    """A row; shapes are heads x length x size, batches in front.

    Args:
        title: the row's name.
        program: in the modules beside this one.
        queries: shape of the queries.
        keys: shape of keys and of values.
        extra: shapes of further arguments.
        bar: see :class:`Case`.
        bar_floor: see :class:`Case`.
        seen: part of the scores that are needed.
    """
    scores = math.prod(queries[:-1]) * keys[-2]
    numbers = 2 * math.prod(queries) + 2 * math.prod(keys) + sum(math.prod(s) for s in extra)
    return Case(
        title,
        f"attention.{program}",
        random(queries, keys, keys, *extra),
        4 * numbers,
        bar=bar,
        bar_floor=bar_floor,
        tolerance=_TOLERANCE,
        flops=int(2 * 2 * scores * queries[-1] * seen),
    )


def vocabulary(rows: int, size: int, words: int) -> Callable[[], Arrays]:
    """States of a model, embeddings of its words, and the words that come next."""

    def make() -> Arrays:
        generator = np.random.default_rng(0)
        states = generator.standard_normal((rows, size), np.float32)
        embeddings = generator.standard_normal((words, size), np.float32) * np.float32(0.05)
        return states, embeddings, generator.integers(0, words, rows)

    return make


def points(count: int, width: int, columns: int) -> Callable[[], Arrays]:
    """Two sets of points in a cube, and columns of weights."""

    def make() -> Arrays:
        generator = np.random.default_rng(0)
        sets: list[Any] = [generator.random((count, width), np.float32) for _ in range(2)]
        return *sets, generator.standard_normal((count, columns), np.float32)

    return make


def cached(queries: int, heads: int, length: int, size: int) -> Callable[[], Arrays]:
    """A query per head, caches of keys and values, what is stored in them, and the last place."""
    cache, new = (1, heads, length, size), (1, heads, 1, size)
    make = random((1, queries, 1, size), cache, cache, new, new)
    return lambda: (*make(), np.array([length - 1]))


def tokens(count: int, words: int, *, counted: bool = False) -> Callable[[], Arrays]:
    """Numbers of words, and whether each counts."""

    def make() -> Arrays:
        found = np.random.default_rng(0).integers(0, words, (1, count))
        return (found, np.ones_like(found)) if counted else (found,)

    return make


def layer(count: int, *caches: tuple[int, ...]) -> Callable[[], Arrays]:
    """States of the last ``count`` tokens, their places, and caches that end there."""
    make = random((1, count, 1024), *caches)
    end = caches[0][2] if caches else count

    def states() -> Arrays:
        first, *more = make()
        return first, np.arange(end - count, end), *more

    return states


def network(
    title: str,
    name: str,
    inputs: Callable[[], Arrays],
    weights: int,
    rows: int,
    scores: int,
    width: int,
    *,
    bar: float,
    bar_floor: float,
) -> Case:
    """A model, or a layer of one, whose time is that of products.

    Args:
        title: the row's name.
        name: of :data:`bench.models.MODELS`.
        inputs: makes its arguments.
        weights: numbers in the matrices.
        rows: that are multiplied with them.
        scores: that the masks leave, of all heads of all layers.
        width: of a head.
        bar: see :class:`Case`.
        bar_floor: see :class:`Case`.
    """
    return Case(
        title,
        f"models.{name}",
        inputs,
        4 * weights,
        bar=bar,
        bar_floor=bar_floor,
        tolerance=MODEL_TOLERANCE,
        flops=2 * weights * rows + 2 * 2 * scores * width,
    )


#: Numbers in the matrices of twelve layers of 768 channels, and of a layer of Llama's kind.
_LAYERS, _LLAMA = 12 * 12 * 768**2, 2 * 1024**2 + 2 * 1024 * 256 + 3 * 1024 * 2816
#: Those of four layers of 256 channels: a joint projection, what joins heads, and a wide layer.
_ENCODER = 4 * 12 * 256**2

CASES: tuple[Case, ...] = (
    attention(
        "attention 12x512x64",
        "library",
        (1, 12, 512, 64),
        (1, 12, 512, 64),
        bar=1.2,
        bar_floor=0.95,
    ),
    attention(
        "attention 12x2048x64 written out",
        "written",
        (12, 2048, 64),
        (12, 2048, 64),
        bar=1.2,
        bar_floor=0.95,
    ),
    attention(
        "causal attention 12x2048x64",
        "causal",
        (1, 12, 2048, 64),
        (1, 12, 2048, 64),
        bar=2.0,
        bar_floor=1.4,
        seen=0.5,
    ),
    attention(
        "causal attention 32/8 heads 1024x128",
        "grouped",
        (1, 32, 1024, 128),
        (1, 8, 1024, 128),
        bar=1.5,
        bar_floor=1.0,
        seen=0.5,
    ),
    attention(
        "capped causal attention 8x1024x128",
        "capped",
        (8, 1024, 128),
        (8, 1024, 128),
        bar=1.5,
        bar_floor=1.0,
        seen=0.5,
    ),
    attention(
        "window of 512 in 4096 8x64",
        "window",
        (8, 4096, 64),
        (8, 4096, 64),
        bar=2.0,
        bar_floor=1.2,
        seen=WINDOW / 4096,
    ),
    attention(
        "flex: documents of 512 in 2048 8x64",
        "documents",
        (1, 8, 2048, 64),
        (1, 8, 2048, 64),
        bar=2.0,
        bar_floor=1.2,
        seen=DOCUMENT / 2048,
    ),
    attention(
        "flex: causal ALiBi 8x1024x64",
        "alibi",
        (1, 8, 1024, 64),
        (1, 8, 1024, 64),
        bar=2.0,
        bar_floor=1.2,
        seen=0.5,
    ),
    attention(
        "T5 bias 2x8x512x64",
        "biased",
        (2, 8, 512, 64),
        (2, 8, 512, 64),
        (1, 8, 512, 512),
        bar=1.1,
        bar_floor=0.9,
    ),
    attention(
        "cross-attention 16x1024 queries 77 keys of 40",
        "library",
        (1, 16, 1024, 40),
        (1, 16, 77, 40),
        bar=1.1,
        bar_floor=0.9,
    ),
    attention(
        "decode 32/8 heads 4096 keys of 128",
        "grouped_decode",
        (1, 32, 1, 128),
        (1, 8, 4096, 128),
        bar=1.5,
        bar_floor=1.0,
    ),
    Case(
        "cross-entropy 512x50257 from 768",
        "attention.cross_entropy",
        vocabulary(512, 768, 50257),
        4 * (512 * 768 + 50257 * 768 + 1) + 8 * 512,
        bar=1.3,
        bar_floor=1.0,
        tolerance=_TOLERANCE,
        flops=2 * 512 * 50257 * 768,
    ),
    Case(
        "kernel sum 16384x16384x3 32 columns",
        "attention.kernel_sum",
        points(16384, 3, 32),
        4 * 16384 * (3 + 3 + 32 + 32),
        bar=4.0,
        bar_floor=2.0,
        tolerance=_TOLERANCE,
        flops=2 * 16384**2 * (3 + 32),
    ),
    Case(
        "decode with a cache 32/8 heads 4096 keys of 128",
        "attention.cached_decode",
        cached(32, 8, 4096, 128),
        4 * (2 * 32 * 128 + 2 * 8 * 4096 * 128 + 4 * 8 * 128),
        bar=1.5,
        bar_floor=1.0,
        tolerance=_TOLERANCE,
        flops=2 * 2 * 32 * 4096 * 128,
    ),
    network(
        "BERT-base b1 128 tokens",
        "BERT-base states",
        tokens(128, 30522, counted=True),
        _LAYERS,
        128,
        12 * 12 * 128**2,
        64,
        bar=1.05,
        bar_floor=0.95,
    ),
    network(
        "GPT-2 b1 128 tokens",
        "GPT-2",
        tokens(128, 50257),
        _LAYERS + 50257 * 768,
        128,
        12 * 12 * 128**2 // 2,
        64,
        bar=1.05,
        bar_floor=0.95,
    ),
    network(
        "ViT-B/16 b1",
        "ViT-B/16",
        random((1, 3, 224, 224)),
        _LAYERS + 768**2,
        197,
        12 * 12 * 197**2,
        64,
        bar=1.05,
        bar_floor=0.95,
    ),
    network(
        "Llama layer 1024 prefill of 256",
        "Llama layer",
        layer(256),
        _LLAMA,
        256,
        16 * 256**2 // 2,
        64,
        bar=1.2,
        bar_floor=1.0,
    ),
    network(
        "Llama layer 1024 decode with 2048 keys",
        "Llama layer",
        layer(1, (1, 4, 2048, 64), (1, 4, 2048, 64)),
        _LLAMA,
        1,
        16 * 2048,
        64,
        bar=1.2,
        bar_floor=1.0,
    ),
    Case(
        "training step, 4 layers b8 128x256",
        "models.training step",
        random((8, 128, 256), (8, 128, 256)),
        # Matrices are read and written.
        4 * 2 * _ENCODER,
        bar=1.3,
        bar_floor=1.0,
        tolerance=MODEL_TOLERANCE,
        # A product forward, and two backward.
        flops=3 * (2 * _ENCODER * 8 * 128 + 2 * 2 * 4 * 8 * 128**2 * 256),
    ),
)
