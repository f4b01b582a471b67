"""Random sorts and selections of PyTorch, compiled, against stable sorts of eager mode.

``python tests/slow/random_sorts.py --count 200``: rows of up to 6,000 elements along any dimension,
of all types, with equal elements, NaN and zeros of both signs; what is read of the sorted rows, and
strides, differ. With ``--arch sm_90a`` or ``--arch gfx1100`` they run on a simulated GPU, with rows
of up to 300 elements.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from sort_samples import draw  # noqa: E402
from sort_sweep import Outcome, sweep  # noqa: E402

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch  # noqa: E402


def drawn(number: int, longest: int) -> tuple[str, Outcome]:
    """What a sample is, and how its results differ."""
    sample = draw(number, longest)

    def outcome(options: dict[str, Any]) -> str:
        ours = polyblocks_jit_torch(sample.function, compile_options=options)(sample.x)
        return sample.difference(ours)

    return sample.text, outcome


if __name__ == "__main__":
    sys.exit(sweep(__doc__, 200, 6000, drawn))
