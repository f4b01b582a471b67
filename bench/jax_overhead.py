"""Host overhead of one compiled call in JAX: ``python -m bench.jax_overhead``.

The program adds two vectors of 16 elements, so that what is measured is everything else. The peers
take turns; the fastest of several rounds counts, and CPU time, not the clock, on a busy machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax


def seconds_per_call(function: Callable[..., object], *arguments: object, calls: int) -> float:
    """CPU seconds that the calling thread spends on one call."""
    begin = time.thread_time()
    for _ in range(calls):
        result = function(*arguments)
    jax.block_until_ready(result)
    return (time.thread_time() - begin) / calls


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 above three times ``jax.jit``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args(arguments)

    def add(x: jax.Array, y: jax.Array) -> jax.Array:
        return x + y

    def tree(values: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return {name: value * 2 for name, value in values.items()}

    vector = jnp.arange(16.0)
    cases: dict[str, tuple[Callable[..., object], tuple[object, ...]]] = {
        "two JAX arrays": (add, (vector, vector)),
        "two NumPy arrays": (add, (np.asarray(vector), np.asarray(vector))),
        "a tree of eight arrays": (tree, ({f"a{i}": vector for i in range(8)},)),
    }
    worst = 0.0
    for name, (function, given) in cases.items():
        peers = {"jax.jit": jax.jit(function), "polyblocks": polyblocks_jit_jax(function)}
        best = dict.fromkeys(peers, float("inf"))
        for peer in peers.values():
            seconds_per_call(peer, *given, calls=200)
        for _ in range(args.rounds):
            for label, peer in peers.items():
                taken = seconds_per_call(peer, *given, calls=args.calls)
                best[label] = min(best[label], taken)
        ratio = best["polyblocks"] / best["jax.jit"]
        worst = max(worst, ratio)
        ours, theirs = best["polyblocks"] * 1e6, best["jax.jit"] * 1e6
        print(f"{name}: polyblocks {ours:.2f} µs, jax.jit {theirs:.2f} µs, ratio {ratio:.2f}")
    return 0 if worst <= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
