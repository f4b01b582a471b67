"""hoist-invariants on the model: what may leave a loop and what may not."""

from __future__ import annotations

from polyblocks.affine.cleanup.invariants import invariants
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    Check,
    For,
    Index,
    IndirectLoad,
    Load,
    Node,
    Op,
    Store,
    Value,
)

TABLE = Buffer((10, 8), "f32", "input")
ROWS = Buffer((4,), "index", "input")
OUT = Buffer((4, 8), "f32", "output")


def gather(j: Var, check_varies: bool = False) -> list[Node]:
    """``out[2, j] = table[rows[2], j]`` with a check of the row."""
    row, ok, column, x = Value("index"), Value("i1"), Value("index"), Value("f32")
    where = Expr.of(j) if check_varies else Expr(2)
    return [
        Load(row, ROWS, (where,)),
        Op("arith.cmpi", [row], {}, [ok]),
        Check(ok, "out of range"),
        Index(column, Expr.of(j)),
        IndirectLoad(x, TABLE, [row, column]),
        Store(x, OUT, (Expr(2), Expr.of(j))),
    ]


def test_row_and_check_leave_the_loop() -> None:
    j = Var(8)
    taken, kept = invariants(For(j, gather(j)))
    assert [type(n) for n in taken] == [Load, Op, Check]
    assert [type(n) for n in kept] == [Index, IndirectLoad, Store]


def test_check_of_every_element_stays() -> None:
    j = Var(8)
    taken, kept = invariants(For(j, gather(j, check_varies=True)))
    assert not taken
    assert len(kept) == 6


def test_load_behind_a_check_that_stays_stays() -> None:
    j = Var(8)
    body = gather(j, check_varies=True)
    first, x = Value("index"), Value("f32")
    body[3:3] = [Index(first, Expr(0)), IndirectLoad(x, TABLE, [first, first])]
    taken, _ = invariants(For(j, body))
    assert [type(n) for n in taken] == [Index]


def test_loop_that_may_not_run_keeps_everything() -> None:
    i, j = Var(4), Var(8)
    loop = For(j, gather(j), upper=(Expr.of(i),))
    assert invariants(loop) == ([], loop.body)


def test_load_of_what_the_loop_stores_stays() -> None:
    j = Var(8)
    row = Value("index")
    body: list[Node] = [Load(row, ROWS, (Expr(2),)), Store(row, ROWS, (Expr.of(j),))]
    assert invariants(For(j, body))[0] == []
