"""Compile random attentions and compare them with float64 and eager mode: `--count 200`.

A sample has random heads, lengths, sizes, types and masks, among them rows without keys, NaN and
infinities, and is the library's operation, `flex_attention` or written out. `--seed S --only N`
repeats one sample and prints it. With `--arch sm_80` samples are small ones on a simulated GPU,
some with gradients, by kernels that the model chooses and by chains of products in several tiles.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]


def main() -> int:
    """The number of samples with a problem, at most 1."""
    from attention_fuzz import make, problem
    from simulated_attention import make_small, problem_on
    from tests.extended.test_kernels_simulated import TARGETS

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="samples; default: 200")
    parser.add_argument("--seed", type=int, default=0, help="of all samples; default: 0")
    parser.add_argument("--only", type=int, metavar="N", help="sample N alone, and what it is")
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--arch", choices=TARGETS, help="a simulated GPU; default: this CPU")
    arguments = parser.parse_args()
    arch, first = arguments.arch, arguments.first
    numbers = range(first, first + arguments.count) if arguments.only is None else [arguments.only]
    bad, began = 0, time.perf_counter()
    for number in numbers:
        sample = (make_small if arch else make)(arguments.seed, number)
        if arguments.only is not None:
            print(sample)
        try:
            found = problem_on(sample, arch) if arch else problem(sample)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            bad += 1
            print(f"{number}: {found}: {sample}", flush=True)
    print(f"{bad} of {len(numbers)} samples wrong, {time.perf_counter() - began:.0f} s")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
