"""The types of ``@main`` are those of the arrays that a frontend describes."""

from __future__ import annotations

import pytest

from polyblocks import mlir, signature
from polyblocks.errors import UnsupportedError
from polyblocks.program import Argument, ArraySpec, Program, Result

MODULE = """
func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi1> {
  %y = arith.trunci %x : tensor<2x3xi8> to tensor<2x3xi1>
  return %y : tensor<2x3xi1>
}
"""


def program(argument: ArraySpec, *results: ArraySpec) -> Program:
    return Program(
        "f",
        mlir.parse(MODULE),
        (Argument("x", argument),),
        tuple(Result(f"r{i}", spec) for i, spec in enumerate(results)),
        {},
    )


BYTES = ArraySpec.contiguous((2, 3), "uint8")
TRUTHS = ArraySpec.contiguous((2, 3), "bool")


def test_arrays_that_fit_are_attached():
    made = program(BYTES, TRUTHS)
    signature.attach(made)
    assert signature.is_in(str(made.module).encode())


@pytest.mark.parametrize(
    ("argument", "results", "message"),
    [
        (BYTES, [ArraySpec.contiguous((2, 3), "int64")], "result 'r0' .*i1>, expected .*2x3xi64>"),
        (BYTES, [ArraySpec.contiguous((6,), "bool")], "2x3xi1>, expected tensor<6xi1>"),
        (ArraySpec.contiguous((2, 3), "int32"), [TRUTHS], "argument 'x' of 'f' a .*, expected"),
        (BYTES, [TRUTHS, TRUTHS], "has 1 results, expected 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(argument, results, message):
    with pytest.raises(UnsupportedError, match=message):
        signature.attach(program(argument, *results))
