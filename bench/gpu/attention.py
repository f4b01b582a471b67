"""Attention in 16 bits for GPUs, and rows of queries that meet a cache. NumPy only."""

from __future__ import annotations

import math

from bench.gpu.cases import Pair, Shape
from bench.table import Case, elements, halves

#: The group's name, which its pairs have.
GROUP = "attention"
#: Those that compute it.
PEERS = (
    *("eager", "inductor", "inductor-max-autotune"),
    *("flash", "cudnn", "efficient", "flex_attention"),
)
#: Products with scores, where these are not two: gradients need five.
PRODUCTS = {"attention_gradients": 5}
#: Gradients of scores are small differences: eager mode's, in 16 bits, is off by 0.011.
TOLERANCES = {"attention_gradients": 1e-2}
#: Keys that a row of queries of a windowed one meets: its own and those before it.
WINDOW = 512


def pair(program: str, large: tuple[Shape, Shape], small: tuple[Shape, Shape]) -> Pair:
    """A program at two sizes; each is the shape of the queries and that of the keys."""

    def shapes(size: tuple[Shape, Shape]) -> tuple[Shape, ...]:
        queries, keys = size
        return queries, keys, keys

    def case(size: tuple[Shape, Shape]) -> Case:
        queries, keys = size
        products = PRODUCTS.get(program, 2)
        of_rows = math.prod(queries)
        scores = keys[2] if program != "windowed_attention" else min(keys[2], WINDOW)
        # Half of the scores of a causal one are not needed.
        parts = 2 if program.startswith("causal") else 1
        return Case(
            f"{program.replace('_', ' ')} {'x'.join(map(str, queries))} by {keys[1]}x{keys[2]}",
            program,
            halves(*shapes(size)),
            elements(*shapes(size), *results(program, size)) // 2,
            tolerance=TOLERANCES.get(program, 1e-3),
            flops=2 * products * of_rows * scores // parts,
            operands="float16",
        )

    sizes = {"large": shapes(large), "small": shapes(small)}
    return Pair(case(large), case(small), sizes, "float16", GROUP, PEERS)


def results(program: str, size: tuple[Shape, Shape]) -> tuple[Shape, ...]:
    """Shapes of what a program returns."""
    queries, keys = size
    return (queries, keys, keys) if program == "attention_gradients" else (queries,)


def _same(*shape: int) -> tuple[Shape, Shape]:
    return shape, shape


PAIRS = (
    pair("attention", _same(1, 16, 4096, 128), _same(1, 2, 70, 128)),
    pair("causal_attention", _same(1, 16, 4096, 128), _same(1, 2, 133, 128)),
    pair("attention", _same(1, 32, 2048, 64), _same(1, 3, 77, 64)),
    pair("causal_attention", _same(1, 32, 2048, 64), _same(1, 3, 130, 64)),
    pair("decode", ((8, 32, 1, 128), (8, 32, 4096, 128)), ((2, 2, 1, 128), (2, 2, 203, 128))),
    pair("decode", ((8, 32, 1, 128), (8, 8, 4096, 128)), ((2, 4, 1, 64), (2, 2, 203, 64))),
    pair("decode", ((1, 32, 1, 128), (1, 8, 32768, 128)), ((1, 4, 1, 64), (1, 2, 301, 64))),
)
