"""Times of an LSTM of 1,000 steps beside eager mode and Inductor: a row each, tab-separated.

Columns: what, whether it holds, what was seen.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STEPS, BATCH, INPUT, HIDDEN = 1000, 16, 64, 128
ROUNDS = 7
MOST_COMPILE_S = 3.0


def caller(layer: Callable[..., Any], x: torch.Tensor, *, gradients: bool) -> Callable[[], None]:
    """A call of the layer, with its derivative if asked for."""

    def call() -> None:
        with contextlib.nullcontext() if gradients else torch.no_grad():
            outputs, _ = layer(x)
            if gradients:
                outputs.sum().backward()

    return call


def rows(*, gradients: bool) -> None:
    """Print how long compiling takes, and calls relative to the others'."""
    torch.manual_seed(0)
    layer = torch.nn.LSTM(INPUT, HIDDEN)
    x = torch.randn(STEPS, BATCH, INPUT)
    compiled = polyblocks_jit_torch(layer, compile_options={"strict_target": True})
    with torch._dynamo.config.patch(allow_rnn=True):
        inductor = torch.compile(layer)
        others: dict[str, Any] = {"eager": layer, "Inductor": inductor}
        calls = {name: caller(f, x, gradients=gradients) for name, f in others.items()}
        calls["ours"] = caller(compiled, x, gradients=gradients)
        for name, call in list(calls.items()):
            try:
                call()
            except Exception as error:
                # Inductor of PyTorch 2.13 does not run what it makes of this with gradients.
                if name == "ours":
                    raise
                del calls[name]
                others[name] = error
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(ROUNDS):
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - begin)
    report = compiled.polyblocks_report()
    what = "LSTM of 1,000 steps, " + ("forward and backward" if gradients else "forward")
    seconds = sum(variant.seconds for variant in report.variants)
    found = [(f"{what}: compile", seconds <= MOST_COMPILE_S, f"{seconds:.2f} s")]
    for name, other in others.items():
        if isinstance(other, Exception):
            found.append((f"{what}: {name}", True, f"{name} fails: {type(other).__name__}"))
            continue
        ratio = best[name] / best["ours"]
        seen = f"{ratio:.2f} x {name} ({best['ours'] * 1e3:.1f} ms)"
        found.append((f"{what}: {name}", ratio >= 1, seen))
    for row in found:
        print(*row, sep="\t", flush=True)


def main() -> int:
    """All rows. What is compiled here comes from the compiler, not from a cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        # What a process imports once is no part of compiling a layer.
        polyblocks_jit_torch(lambda x: x + 1)(torch.ones(8))
        for gradients in (False, True):
            rows(gradients=gradients)
    return 0


if __name__ == "__main__":
    sys.exit(main())
