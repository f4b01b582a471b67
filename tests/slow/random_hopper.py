"""Random products, convolutions and attentions on a simulated Hopper, against float64.

``python tests/slow/random_hopper.py --products 100 --convolutions 40 --attentions 40 --seed 1``:
what LLVM has optimized is simulated, so that races, reads too early and bytes that nobody waits for
are findings. An error may be twice PyTorch's own, of the same type. Four in five take units of
several warps (``wgmma``) wherever they can be. ``--first N`` goes on behind others, and
``--products 1 --first N`` repeats one. Exit status 1: one is wrong, or few have used the units.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

#: Of all samples of a kind, the least share that uses units of several warps and bulk copies, where
#: there are enough of them to say so.
SHARE, ENOUGH = 0.3, 20


def main() -> int:
    """Run the samples."""
    from tests.support.hopper_samples import MAKE

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for kind in MAKE:
        parser.add_argument(f"--{kind}", type=int, default=0, help="samples; default: none")
    parser.add_argument("--seed", type=int, default=0, help="of all samples; default: 0")
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    arguments = parser.parse_args()
    bad = 0
    for kind in MAKE:
        if count := getattr(arguments, kind):
            numbers = range(arguments.first, arguments.first + count)
            bad += _run(kind, arguments.seed, numbers)
    return min(bad, 1)


def _run(kind: str, seed: int, numbers: range) -> int:
    """Samples of a kind; how many are wrong, or one if few have used what is tried."""
    from tests.support.hopper_samples import MAKE, outcome_of

    began, bad, used, together = time.perf_counter(), 0, Counter[str](), 0
    for number in numbers:
        sample = MAKE[kind](seed, number)
        try:
            outcome = outcome_of(sample)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        else:
            problem = outcome.problem
            used.update(outcome.used)
            together += {"wgmma"} < outcome.used
        if problem:
            bad += 1
            print(f"{kind} {number}: {problem}: {sample.told}", flush=True)
    shares = ", ".join(f"{count} {name}" for name, count in sorted(used.items()))
    seconds = time.perf_counter() - began
    print(f"{kind}: {bad} of {len(numbers)} wrong; used: {shares}; {seconds:.0f} s", flush=True)
    if len(numbers) >= ENOUGH and together < SHARE * len(numbers):
        print(f"{kind}: {together} have used wgmma and bulk copies, at least {SHARE:.0%} should")
        return bad + 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
