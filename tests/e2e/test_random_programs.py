"""Random chains of operators, compiled as a whole, against float64.

`python tests/slow/random_programs.py FIRST LAST` runs many more of them.
"""

from __future__ import annotations

import program_fuzz
import pytest

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


@pytest.mark.parametrize("seed", [2, 5, 11, 17, 23, 42, 64])
def test_random_program(seed: int) -> None:
    program = program_fuzz.make(seed)
    assert program_fuzz.check(program, polyblocks_jit_torch, seed) == []


@pytest.mark.cpu
def test_a_stride_of_one_element_may_be_as_pytorch_promises() -> None:
    assert program_fuzz.check(program_fuzz.make(570), polyblocks_jit_torch, 570) == []
