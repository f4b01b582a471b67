"""Loads that LLVM has put in front of the branch that decides whether their value is used."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import Run, kernel_of, launch


def run(used: str = "^use, ^end", use: str = "llvm.store %p, %o : f32, !llvm.ptr<1>") -> Run:
    """Thread 1 writes a number of its block, all others load it; some use what they have."""
    module = kernel_of(
        f"""%s = llvm.mlir.addressof @number : !llvm.ptr<3>
        %c1 = llvm.mlir.constant(1 : i32) : i32
        %five = llvm.mlir.constant(5.0 : f32) : f32
        %o = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %first = llvm.icmp "eq" %t32, %c1 : i32
        llvm.cond_br %first, ^write, ^read
      ^write:
        llvm.store %five, %s : f32, !llvm.ptr<3>
        llvm.br ^join(%five : f32)
      ^read:
        %v = llvm.load %s : !llvm.ptr<3> -> f32
        llvm.br ^join(%v : f32)
      ^join(%p: f32):
        llvm.cond_br %first, {used}
      ^use:
        {use}
        llvm.br ^end
      ^end:""",
        "%out: !llvm.ptr<1>",
        globals_="llvm.mlir.global internal @number() {addr_space = 3 : i32} : f32",
    )
    return launch(module, "nvvm", "k", (1,), (64,), np.zeros(64, np.float32))


def test_threads_that_do_not_use_a_value_have_not_read_it() -> None:
    assert run().kinds == []


@pytest.mark.parametrize(
    "case",
    [
        {"used": "^end, ^use"},
        # An edge more leads to where it is used.
        {"used": "^use, ^use"},
    ],
    ids=str,
)
def test_threads_that_use_it_have(case: dict[str, str]) -> None:
    assert set(run(**case).kinds) == {"unwritten read", "race"}
