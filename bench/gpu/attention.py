"""Attention in 16 bits for GPUs, and rows of queries that meet a cache. NumPy only."""

from __future__ import annotations

import math

from bench.gpu.cases import Pair, Shape
from bench.table import Case, elements, halves

#: The group's name, which its pairs have.
GROUP = "attention"


def _attention(program: str, large: tuple[Shape, Shape], small: tuple[Shape, Shape]) -> Pair:
    """A program at two sizes; each is the shape of the queries and that of the keys."""

    def shapes(size: tuple[Shape, Shape]) -> tuple[Shape, ...]:
        queries, keys = size
        return queries, keys, keys

    def case(size: tuple[Shape, Shape]) -> Case:
        queries, keys = size
        # Half of the scores of a causal one are not needed.
        parts = 2 if program.startswith("causal") else 1
        return Case(
            f"{program.replace('_', ' ')} {'x'.join(map(str, queries))} by {keys[1]}x{keys[2]}",
            program,
            halves(*shapes(size)),
            elements(*shapes(size), queries) // 2,
            tolerance=1e-3,
            flops=4 * math.prod(queries) * keys[2] // parts,
            operands="float16",
        )

    sizes = {"large": shapes(large), "small": shapes(small)}
    return Pair(case(large), case(small), sizes, "float16", GROUP)


def _same(*shape: int) -> tuple[Shape, Shape]:
    return shape, shape


PAIRS = (
    _attention("attention", _same(1, 16, 4096, 128), _same(1, 2, 70, 128)),
    _attention("causal_attention", _same(1, 16, 4096, 128), _same(1, 2, 133, 128)),
    _attention("attention", _same(1, 32, 2048, 64), _same(1, 3, 77, 64)),
    _attention("causal_attention", _same(1, 32, 2048, 64), _same(1, 3, 130, 64)),
    _attention("decode", ((8, 32, 1, 128), (8, 32, 4096, 128)), ((2, 2, 1, 128), (2, 2, 203, 128))),
    _attention("decode", ((8, 32, 1, 128), (8, 8, 4096, 128)), ((2, 4, 1, 64), (2, 2, 203, 64))),
    _attention("decode", ((1, 32, 1, 128), (1, 8, 32768, 128)), ((1, 4, 1, 64), (1, 2, 301, 64))),
)
