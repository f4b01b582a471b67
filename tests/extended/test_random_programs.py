"""Random chains of operators, compiled as a whole, against float64.

`python tests/slow/random_programs.py FIRST LAST` runs many more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import program_fuzz
import pytest
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


@pytest.mark.parametrize("seed", sweep([2, 5, 11, 17, 23, 42, 64], 2, 5, 17))
def test_random_program(seed: int) -> None:
    program = program_fuzz.make(seed)
    assert program_fuzz.check(program, polyblocks_jit_torch, seed) == []


@pytest.mark.cpu
def test_a_stride_of_one_element_may_be_as_pytorch_promises() -> None:
    assert program_fuzz.check(program_fuzz.make(570), polyblocks_jit_torch, 570) == []


@pytest.mark.cpu
def test_the_sign_of_a_sum_that_is_zero_has_no_right_answer() -> None:
    assert program_fuzz.check(program_fuzz.make(42, 16), polyblocks_jit_torch, 42) == []


@pytest.mark.cpu
def test_signs_that_are_clear_excuse_nothing() -> None:
    def wrong(compile_options: Any) -> Callable[..., Any]:
        del compile_options
        return lambda function: lambda *inputs: [x + 1 for x in function(*inputs)]

    program = program_fuzz.make(0)
    assert program.signs
    (problem,) = program_fuzz.check(program, wrong)
    assert "error 1, at most" in problem
