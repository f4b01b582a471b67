"""What kernels move at the sizes of the benchmark, counted on a sample of their blocks."""

from __future__ import annotations

import pytest
from bench.gpu_counts import CHIPS, blocks_of, cases, counted
from sweeps import sweep

#: Bytes that threads ask for over those that nobody can avoid, at most.
BOUNDS = {
    "blur_x_blur_y": 1.05,
    "softmax": 1.05,
    "layer_norm": 1.05,
    "group_norm": 1.05,
    "elementwise_chain": 1.05,
    "heat": 1.25,
}
QUICK = ("blur_x_blur_y", "softmax", "layer_norm", "group_norm")


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("program", sweep(BOUNDS, *QUICK))
def test_one_kernel_that_moves_what_it_must(program: str, target: str) -> None:
    (case,) = (c for c in cases() if c.program == program)
    found = counted(case, target, CHIPS[target], blocks_of(case))
    assert found.kernels == 1
    assert found.asked <= BOUNDS[program]
    assert found.conflicts == 0
    # Rows of the blur's result begin anywhere in a transaction.
    assert found.coalescing <= (1.2 if program == "blur_x_blur_y" else 1.02)
