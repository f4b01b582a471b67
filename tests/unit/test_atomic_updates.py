"""Atomic updates may come in any order, and only they: loops over them are parallel."""

from __future__ import annotations

import pytest

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    Buffer,
    For,
    IndirectAtomic,
    IndirectLoad,
    IndirectStore,
    Load,
    Store,
    Value,
)

TABLE = Buffer((8,), "f32", "output")
PLACE, TERM = Value("index", external="place"), Value("f32", external="term")
UPDATE = IndirectAtomic("arith.addf", TERM, TABLE, [PLACE])


def loop(*accesses: Access) -> For:
    return For(Var(64), list(accesses))


def test_updates_of_one_table_are_parallel() -> None:
    of_all = loop(UPDATE, IndirectAtomic("arith.addf", TERM, TABLE, [PLACE]))
    assert is_parallel(of_all, [of_all])


@pytest.mark.parametrize(
    "other",
    [
        IndirectLoad(Value("f32"), TABLE, [PLACE]),
        IndirectStore(TERM, TABLE, [PLACE]),
        Load(Value("f32"), TABLE, (Expr(0),)),
        Store(TERM, TABLE, (Expr(0),)),
    ],
    ids=lambda node: type(node).__name__,
)
def test_an_update_beside_another_access_is_not(other: Access) -> None:
    of_all = loop(UPDATE, other)
    assert not is_parallel(of_all, [of_all])
