"""Random products of matrices on simulated GPUs with matrix units, against float64.

``python tests/slow/random_matrix_products.py --count 160``: sizes from 1 to 300, and long sums of
few rows and columns, which are done in parts; transpositions, batches, slices, both 16-bit types,
float32 with the modes of ``mm_conv_precision_mode`` that the chip has, conversions and factors
before the product, epilogues. Every other sample takes any kernel of a unit that could be chosen in
the place of the best one. An error may be twice PyTorch's own; with a mode, PyTorch's is that of
the product of rounded numbers.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

from tests.extended.test_kernels_simulated import TARGETS, simulate  # noqa: E402
from tests.extended.test_precision_modes_simulated import ROUNDED, options  # noqa: E402
from tests.support.any_unit import any_unit  # noqa: E402

from polyblocks.registry.honoured_options import describe_target  # noqa: E402


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
    return int(any(not outcome.startswith("right") for outcome in outcomes))


def run(number: int, arch: str) -> tuple[str, str]:
    """What became of a sample, and what it was."""
    numbers = random.Random(number)
    torch.manual_seed(number)
    has = describe_target(options(arch)).options["mm_conv_precision_mode"]
    modes = [mode for mode in ROUNDED if mode in has]
    halves = [torch.float16, *[torch.bfloat16] * ("mixed_bf16_fp32" in has)]
    mode = numbers.choice([None, None, numbers.choice(modes)])
    dtype = torch.float32 if mode else numbers.choice(halves)
    m, n, k = (numbers.randint(1, numbers.choice([40, 300])) for _ in range(3))
    if numbers.random() < 0.15:
        m, n, k = numbers.randint(1, 48), numbers.randint(1, 48), numbers.randint(3000, 9000)
    if numbers.random() < 0.5:
        m, n, k = (-(-x // 8) * 8 for x in (m, n, k))
    rows, columns = numbers.random() < 0.5, numbers.random() < 0.5
    batch = numbers.choice([(), (), (), (2,), (2, 3)])
    step = numbers.choice([1, 1, 1, 2])
    epilogue = numbers.choice(["", "", "relu", "bias", "sum"])
    prologue = "" if mode else numbers.choice(["", "", "convert", "scale"])
    a = torch.randn(*batch, *((m, k * step) if rows else (k * step, m))).to(dtype)
    b = torch.randn(*batch, *((n, k) if columns else (k, n))).to(dtype)
    bias = torch.randn(n).to(dtype)

    def function(a: Any, b: Any, bias: Any) -> Any:
        if prologue:
            a, b = (x if x.dtype is torch.float64 else x.float() for x in (a, b))
            a = a * 0.3 if prologue == "scale" else a
        a = a[..., ::step] if rows else a[..., ::step, :].mT
        c = a @ (b.mT if columns else b)
        if epilogue == "relu":
            return torch.relu(c)
        if epilogue == "bias":
            return c + bias
        return c + c.mT if epilogue == "sum" and m == n else c

    # The model does long sums in parts. As one, in which every step rounds what is there so far,
    # they are further off than eager's, which are sums of short ones.
    anything = number % 2 == 1 and k <= 1000
    told = (
        f"{dtype} {mode} {prologue} {m}x{n}x{k} "
        f"rows={rows} columns={columns} batch={batch} step={step} {epilogue} "
        f"any={anything}"
    )

    used_bias = epilogue == "bias"
    inputs = [a, b, bias] if used_bias else [a, b]
    called = function if used_bias else (lambda a, b: function(a, b, None))
    with any_unit(numbers if anything else None) as possible:
        modes = {"mm_conv_precision_mode": mode}
        outputs, launches = simulate(called, inputs, arch, options=modes)
    findings = [str(f) for launch in launches for f in launch.findings]
    if findings:
        return "finding", f"{told}: {findings[0]}"
    if mode:
        inputs = [*(ROUNDED[mode](x) for x in inputs[:2]), *inputs[2:]]
    expected = called(*(x.double() for x in inputs))
    eager = (called(*inputs).double() - expected).abs().max()
    if mode == "fp16":
        eager = max(eager, expected.abs().max() * 2**-11)
    found = torch.from_numpy(outputs[0])
    if dtype is torch.bfloat16 and found.itemsize == 2:
        found = found.view(dtype)
    error = (found.double() - expected).abs().max()
    # What is left of a sum that cancels may be one unit in the last place of its terms.
    if not error <= 2 * eager + 1e-6:
        return "wrong", f"{told}: error {error:.2e}, eager's {eager:.2e}"
    used = sum(launch.counts.instructions.get("matrix", 0) for launch in launches)
    if used:
        return "right, in parts" if any("_parts" in x.kernel for x in launches) else "right", told
    slower = "right, another kernel was quicker" if possible else "right, without a unit"
    return slower, told


if __name__ == "__main__":
    sys.exit(main())
