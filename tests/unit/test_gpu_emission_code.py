"""Integers of a kernel's body are computed once, wherever they are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from polyblocks import mlir
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.mlir import ir


@pytest.fixture
def block() -> Iterator[Any]:
    """The body of a function of two indices and a memref; verified in the end."""
    module = mlir.parse("func.func @f(%a: index, %b: index, %m: memref<8xf32>) { return }")
    body = module.body.operations[0].body.blocks[0]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(body.operations[0]):
        yield body
    module.operation.verify()


def names(block: Any) -> list[str]:
    return [op.operation.name for op in block.operations]


def test_what_is_known_is_not_computed_again(block: Any) -> None:
    code = Code(block)
    a, b, _ = block.arguments
    assert code.add(a, b) == code.add(a, b)
    assert code.times(a, 3) == code.times(a, 3)
    assert code.compare("ult", a, b) != code.compare("slt", a, b)
    assert code.add(a, b) != code.add(b, a)
    assert names(block).count("arith.addi") == 2
    assert names(block).count("arith.muli") == 1
    assert names(block).count("arith.cmpi") == 2


def test_numbers_are_folded(block: Any) -> None:
    code = Code(block)
    a = block.arguments[0]
    two, seven = code.integer(2), code.integer(7)
    assert code.add(two, seven) == code.integer(9)
    assert code.times(seven, 3) == code.integer(21)
    assert (code.quotient(seven, 2), code.remainder(seven, 4)) == (code.integer(3), code.integer(3))
    assert code.add(a, code.integer(0)) == a == code.add(code.integer(0), a)
    assert set(names(block)) == {"arith.constant", "func.return"}


def test_blocks_know_what_is_known_around_them_alone(block: Any) -> None:
    code = Code(block)
    a, b, _ = block.arguments
    outside, seen = code.add(a, b), []

    def inside() -> list[Any]:
        assert code.add(a, b) == outside
        seen.append(code.times(a, 5))
        assert code.times(a, 5) == seen[-1]
        return []

    condition = code.compare("ult", a, b)
    code.when(condition, inside)
    code.when(condition, inside)
    assert seen[0] != seen[1]
    assert code.times(a, 5) not in seen


def test_what_came_later_is_not_known_behind_a_definition(block: Any) -> None:
    code = Code(block)
    a, b, memref = block.arguments
    total = code.add(a, b)
    late = code.add(total, b)
    with code.behind(memref):
        assert code.add(a, b) != total
    with code.behind(total):
        assert code.add(total, b) != late
    assert (code.add(a, b), code.add(total, b)) == (total, late)
