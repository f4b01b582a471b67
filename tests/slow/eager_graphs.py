"""Hold what the torch frontend makes of operations against eager mode: `eager_graphs.py`.

Nothing is compiled: decomposed and rewritten graphs are run by PyTorch, tens of thousands of them.
`--part 0/8` does an eighth of them.
"""

from __future__ import annotations

import argparse
import collections
import logging
import random
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from eager_cases import DTYPES, Case, cases_of, changed, elementwise, recorded

from polyblocks_torch.importing.decompositions import decomposition_table

#: Types that samples of float32 are changed to.
OTHERS = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8)


def cases(part: tuple[int, int], samples: int, most: int) -> Iterator[Case]:
    """All calls: of element-wise operations, of samples, of gradients, and of special numbers."""
    for op in elementwise(decomposition_table())[part[0] :: part[1]]:
        yield from cases_of(op, random.Random(str(op)), most)
    for dtype in DTYPES:
        yield from recorded(dtype, samples, part=part)
    for dtype in (torch.float32, torch.float64):
        yield from recorded(dtype, samples, gradients=True, part=part)
    for gradients in (False, True):
        for case in recorded(torch.float32, samples, gradients=gradients, part=part):
            for dtype in OTHERS:
                for share in (0.1, 0.6):
                    yield changed(case, dtype, share)


def main() -> int:
    """Print what differs; the exit status is the number of such operations, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1", help="K/N: every N-th operation from K on")
    parser.add_argument("--samples", type=int, default=6, help="of an entry of the database")
    parser.add_argument("--most", type=int, default=400, help="calls of an element-wise operation")
    arguments = parser.parse_args()
    first, step = map(int, arguments.part.split("/"))
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    counts: collections.Counter[str] = collections.Counter()
    shown: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    for case in cases((first, step), arguments.samples, arguments.most):
        outcome = case.outcome()
        counts["left" if outcome is None else "other" if outcome else "as eager"] += 1
        if outcome:
            shown[str(case.func)] += 1
            if shown[str(case.func)] <= 3:
                print(f"{case}\n    {outcome}", flush=True)
    print(dict(counts), f"{time.monotonic() - began:.0f} s")
    return min(len(shown), 100)


if __name__ == "__main__":
    sys.exit(main())
