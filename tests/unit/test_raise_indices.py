"""raise-indices: arithmetic on ranges against arithmetic on all numbers."""

from __future__ import annotations

import itertools

import pytest

from polyblocks.affine.analysis.known_values import binary
from polyblocks.affine.expr import Expr, Var

K = Var(7, "k")
EXPRS = [Expr.of(K), Expr.of(K) - 3, Expr.of(K) * 2 + 1, Expr(5), Expr(0) - K, Expr(-2)]


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MEANING = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.divsi": truncated,
    "arith.remsi": lambda a, b: a - truncated(a, b) * b,
}


@pytest.mark.parametrize("name", MEANING)
def test_expressions_equal_what_is_computed(name: str) -> None:
    found = 0
    for x, y in itertools.product(EXPRS, EXPRS):
        expr = binary(name, x, y)
        if expr is None:
            continue
        found += 1
        for k in range(K.extent):
            at = {K: k}
            assert expr.evaluate(at) == MEANING[name](x.evaluate(at), y.evaluate(at))
    assert found


def test_division_of_what_may_be_negative_is_left_alone() -> None:
    assert binary("arith.divsi", Expr.of(K) - 3, Expr(2)) is None
    assert binary("arith.remsi", Expr.of(K) - 3, Expr(2)) is None
    assert binary("arith.divsi", Expr.of(K), Expr(0)) is None
