"""Random sorts and selections of PyTorch, compiled, against stable sorts of eager mode.

``python tests/slow/random_sorts.py --count 200``: rows of up to 6,000 elements along any dimension,
of all types, with equal elements, NaN and zeros of both signs; what is read of the sorted rows, and
strides, differ. With ``--arch sm_90a`` or ``--arch gfx1100`` they run on a simulated GPU, with rows
of up to 300 elements.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from sort_samples import draw  # noqa: E402

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch  # noqa: E402

#: The target of each architecture.
TARGETS = {"sm_90a": "nvgpu", "gfx1100": "amdgpu"}


def main() -> int:
    """Run the samples; the exit status is 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--arch", choices=TARGETS, help="default: this machine's CPU")
    parser.add_argument("--longest", type=int, help="elements of a row")
    arguments = parser.parse_args()
    options: dict[str, Any] = {"strict_target": True}
    if arguments.arch:
        options |= {"target": TARGETS[arguments.arch], "arch": arguments.arch, "simulate": True}
    longest = arguments.longest or (300 if arguments.arch else 6000)
    wrong = 0
    for number in range(arguments.first, arguments.first + arguments.count):
        sample = draw(number, longest)
        try:
            results = polyblocks_jit_torch(sample.function, compile_options=options)(sample.x)
            difference = sample.difference(results)
        except Exception as failure:
            difference = str(failure).partition("\n")[0]
        if difference:
            wrong += 1
            print(f"{number}: {sample.text}: {difference}", flush=True)
    print(f"{arguments.count} samples, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
