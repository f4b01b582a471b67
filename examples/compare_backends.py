"""One function by three backends: PyTorch as it is, Inductor, PolyBlocks; results are compared."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import torch

from polyblocks.common_utils import validate_outputs
from polyblocks.torch_polyblocks_compiler import polymage_jit_torch


def gelu_and_sum(x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Activations (rows x columns) and their sum by row."""
    y = torch.nn.functional.gelu(x + bias)
    return y, y.sum(dim=1)


def best_of(function: Callable[..., object], *arguments: torch.Tensor, calls: int = 20) -> float:
    """Seconds of the fastest of some calls, after one that compiles."""
    function(*arguments)
    samples = []
    for _ in range(calls):
        begin = time.perf_counter()
        function(*arguments)
        samples.append(time.perf_counter() - begin)
    return min(samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run each backend; the exit status is 1 if two of them disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--columns", type=int, default=1024)
    # Inductor needs a C++ compiler.
    parser.add_argument("--backends", default="std,inductor,polyblocks")
    args = parser.parse_args(arguments)

    torch.manual_seed(0)
    inputs = torch.randn(args.rows, args.columns), torch.randn(args.columns)
    references = gelu_and_sum(*(x.double() for x in inputs))
    agree = True
    for backend in args.backends.split(","):
        function = polymage_jit_torch(gelu_and_sum, execution_backend=backend)
        seconds = best_of(function, *inputs)
        print(f"{backend}: {seconds * 1e3:.3f} ms")
        agree &= validate_outputs(function(*inputs), references)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
