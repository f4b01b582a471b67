"""Run every small program of a bundle once, on NumPy's arrays, and compare.

What runs on the GPU are the programs and copies, and nothing of a framework's: what a tool of the
vendor's finds or counts in this process is ours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import polyblocks
from bench.engines import joined
from bench.errors import max_error
from bench.gpu.bundle import Bundle


def run(bundle: Bundle, tell: Callable[[str], None] = print) -> int:
    """How many of the programs are wrong."""
    wrong = 0
    for pair in bundle.pairs("small"):
        with np.load(bundle.data(pair)) as data:
            inputs = [data[f"input{k}"] for k in range(len(data.files) - 1)]
            expected = data["expected"]
        result = polyblocks.load(bundle.program(pair, "small"))(*inputs)
        error = max_error(joined(result), expected, pair.small.branches)
        right = error <= pair.small.tolerance
        wrong += not right
        tell(f"{pair.small.name}: {'right' if right else 'WRONG'}, error {error:.1e}")
    return wrong
