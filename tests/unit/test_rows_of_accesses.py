"""Neighbouring elements of an iteration that are one access of a thread's."""

from __future__ import annotations

from typing import Any

import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Node, Store, Value
from polyblocks.affine.vectors.rows import rows_of
from polyblocks.mlir import ir


@pytest.fixture(autouse=True)
def context() -> Any:
    with ir.Context(), ir.Location.unknown():
        yield


def _buffer(*shape: int) -> Buffer:
    return Buffer(shape, ir.F32Type.get(), "input")


def _loads(buffer: Buffer, places: list[Expr], where: tuple[Expr, ...] = ()) -> list[Node]:
    return [Load(Value(buffer.element), buffer, (at,), None, where) for at in places]


def _widths(nodes: list[Node], most: int = 16) -> list[int]:
    rows = dict.fromkeys(rows_of(nodes, most).values())
    return sorted(row.width for row in rows)


def test_a_window_is_aligned_pieces() -> None:
    x = Expr.of(Var(16)) * 4
    loads = _loads(_buffer(64), [x - 1, x, x + 1, x + 2, x + 3, x + 4])
    # Those at both ends are in other pieces of 16 bytes.
    assert _widths(loads) == [4]
    assert loads[0] not in rows_of(loads, 16)


def test_parts_of_a_piece() -> None:
    x = Expr.of(Var(16)) * 4
    buffer = _buffer(64)
    assert _widths(_loads(buffer, [x, x + 1])) == [2]
    assert _widths(_loads(buffer, [x + 2, x + 3])) == [2]
    # From one half into the other one, it is the whole.
    assert _widths(_loads(buffer, [x + 1, x + 2])) == [4]
    assert _widths(_loads(buffer, [x, x + 3]), 8) == []


def test_nothing_beyond_the_end() -> None:
    x = Expr.of(Var(8)) * 4
    assert _widths(_loads(_buffer(34), [x + 1, x + 2])) == []
    assert _widths(_loads(_buffer(34), [x, x + 1])) == [2]


def test_loads_under_other_conditions_are_apart() -> None:
    x = Expr.of(Var(16)) * 4
    buffer = _buffer(64)
    loads = [*_loads(buffer, [x], (x - 4,)), *_loads(buffer, [x + 1])]
    assert _widths(loads) == []
    assert _widths([*loads, *_loads(buffer, [x + 1], (x - 4,))]) == [2]


def test_stores_are_whole_and_meet_no_load() -> None:
    x = Expr.of(Var(16)) * 4
    buffer = _buffer(64)
    value = Value(buffer.element)
    stores: list[Node] = [Store(value, buffer, (x + k,)) for k in range(4)]
    assert _widths(stores) == [4]
    assert _widths(stores[:3]) == [2]
    assert _widths(stores[1:3]) == []
    assert _widths([*stores, *_loads(buffer, [x])]) == []
    # The later of two stores to an element counts.
    assert _widths([*stores, Store(value, buffer, (x,))]) == [2]
    row = rows_of(stores, 16)[stores[0]]
    assert row.stands_at is stores[3]


def test_stores_do_not_pass_others_to_the_same_memory() -> None:
    x, y = Expr.of(Var(16)) * 4, Expr.of(Var(64))
    buffer = _buffer(64)
    value = Value(buffer.element)
    first, second = (Store(value, buffer, (x + k,)) for k in range(2))
    assert _widths([first, Store(value, buffer, (y,)), second]) == []
    assert _widths([first, Store(value, _buffer(64), (y,)), second]) == [2]


def test_loads_do_not_pass_stores() -> None:
    x = Expr.of(Var(16)) * 4
    buffer = _buffer(64)
    loads = _loads(buffer, [x, x + 1])
    assert isinstance(loads[0], Load)
    nodes = [loads[0], Store(loads[0].result, buffer, (x + 8,)), loads[1]]
    assert _widths(nodes) == []
