"""Random products of matrices on simulated GPUs with matrix units, against float64.

``python tests/slow/random_matrix_products.py --count 160``: sizes from 1 to 300, transpositions,
batches, slices, both 16-bit types, epilogues. Every other sample takes any kernel that could be
chosen in the place of the best one. An error may be twice PyTorch's own.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

from tests.e2e.test_kernels_simulated import TARGETS, simulate  # noqa: E402

from polyblocks.codegen.gpu.mapping import choose  # noqa: E402
from polyblocks.codegen.gpu.mapping.kernel_cost import Predicted  # noqa: E402
from polyblocks.codegen.gpu.matrix.cost import predict_matrix  # noqa: E402


def main() -> int:
    """Run the samples; the exit status is 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--arch", choices=TARGETS, action="append", help="default: all in turn")
    arguments = parser.parse_args()
    archs = arguments.arch or list(TARGETS)
    outcomes: Counter[str] = Counter()
    for number in range(arguments.first, arguments.first + arguments.count):
        arch = archs[number % len(archs)]
        outcome, told = run(number, arch)
        outcomes[outcome] += 1
        if outcome != "right":
            print(f"{number} {arch}: {outcome}: {told}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return int(set(outcomes) - {"right", "right, without a unit"} != set())


def run(number: int, arch: str) -> tuple[str, str]:
    """What became of a sample, and what it was."""
    numbers = random.Random(number)
    torch.manual_seed(number)
    dtype = numbers.choice([torch.float16, torch.bfloat16])
    m, n, k = (numbers.randint(1, numbers.choice([40, 300])) for _ in range(3))
    if numbers.random() < 0.5:
        m, n, k = (-(-x // 8) * 8 for x in (m, n, k))
    rows, columns = numbers.random() < 0.5, numbers.random() < 0.5
    batch = numbers.choice([(), (), (), (2,), (2, 3)])
    step = numbers.choice([1, 1, 1, 2])
    epilogue = numbers.choice(["", "", "relu", "bias", "sum"])
    a = torch.randn(*batch, *((m, k * step) if rows else (k * step, m))).to(dtype)
    b = torch.randn(*batch, *((n, k) if columns else (k, n))).to(dtype)
    bias = torch.randn(n).to(dtype)

    def function(a: Any, b: Any, bias: Any) -> Any:
        a = a[..., ::step] if rows else a[..., ::step, :].mT
        c = a @ (b.mT if columns else b)
        if epilogue == "relu":
            return torch.relu(c)
        if epilogue == "bias":
            return c + bias
        return c + c.mT if epilogue == "sum" and m == n else c

    anything = number % 2 == 1
    told = (
        f"{dtype} {m}x{n}x{k} rows={rows} columns={columns} batch={batch} step={step} {epilogue} "
        f"any={anything}"
    )

    def any_kernel(kernel: Any, *given: Any) -> Predicted:
        possible = isfinite(predict_matrix(kernel, *given).seconds)
        return Predicted(-numbers.random() if possible else 1e9, 0.0, 0.0)

    choose.predict_matrix = any_kernel if anything else predict_matrix
    used_bias = epilogue == "bias"
    inputs = [a, b, bias] if used_bias else [a, b]
    called = function if used_bias else (lambda a, b: function(a, b, None))
    outputs, launches = simulate(called, inputs, arch)
    findings = [str(f) for launch in launches for f in launch.findings]
    if findings:
        return "finding", f"{told}: {findings[0]}"
    expected = called(*(x.double() for x in inputs))
    eager = (called(*inputs).double() - expected).abs().max()
    found = torch.from_numpy(outputs[0])
    found = found.view(dtype) if dtype is torch.bfloat16 else found
    error = (found.double() - expected).abs().max()
    # What is left of a sum that cancels may be one unit in the last place of its terms.
    if not error <= 2 * eager + 1e-6:
        return "wrong", f"{told}: error {error:.2e}, eager's {eager:.2e}"
    used = sum(launch.counts.instructions.get("matrix", 0) for launch in launches)
    return ("right" if used else "right, without a unit"), told


if __name__ == "__main__":
    sys.exit(main())
