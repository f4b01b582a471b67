"""Which accesses take turns."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess, Buffer, For, Load, Node, Store, Value
from polyblocks.affine.vectors.interleaves import interleaves

A, B = Buffer((400,), "f32", "input"), Buffer((100, 4), "f32", "output")


def loads(var: Var, step: int, *offsets: int) -> list[Node]:
    return [Load(Value("f32"), A, (Expr.of(var) * step + k,)) for k in offsets]


def places(body: list[Node], var: Var) -> list[tuple[int, int, int] | None]:
    """For each node its step, reach and place."""
    found = interleaves(For(var, body))
    return [
        (found[n][0].step, found[n][0].reach, found[n][1])
        if isinstance(n, AffineAccess) and n in found
        else None
        for n in body
    ]


def test_loads_are_groups_that_need_not_be_complete() -> None:
    i = Var(100)
    assert places(loads(i, 3, 2, 0), i) == [(3, 2, 2), (3, 2, 0)]
    assert places(loads(i, 2, 0, 1, 2), i) == [(2, 1, 0), (2, 1, 1), (2, 0, 0)]
    assert places(loads(i, 4, 0, 0), i) == [(4, 0, 0), (4, 0, 0)]
    assert places(loads(i, 5, 0, 1), i) == [None, None]
    assert places(loads(i, 5, 0, 1, 3), i) == [(5, 3, 0), (5, 3, 1), (5, 3, 3)]
    assert places(loads(i, 17, *range(17)), i) == [None] * 17
    assert places(loads(i, 1, 0, 1), i) == [None, None]
    # Read backwards.
    assert places(loads(i, -2, 390), i) == [(2, 0, 0)]
    assert places(loads(i, -17, 1700), i) == [None]


def test_stores_leave_nothing_out() -> None:
    i, v = Var(100), Value("f32")
    four: list[Node] = [Store(v, B, (Expr.of(i), Expr(k))) for k in (2, 0, 3, 1)]
    assert places(four, i) == [(4, 3, 2), (4, 3, 0), (4, 3, 3), (4, 3, 1)]
    group, _ = interleaves(For(i, four))[four[0]]  # type: ignore[index]
    assert group.first is four[1]
    assert group.last is four[3]
    assert places(four[:3], i) == [None] * 3
    assert places([*four, Store(v, B, (Expr.of(i), Expr(1)))], i) == [None] * 5


def test_nothing_between_touches_the_same_memory() -> None:
    i, v = Var(100), Value("f32")
    flat = Buffer((400,), "f32", "other", base=A)
    other = Store(v, Buffer((100,), "f32", "output"), (Expr.of(i),))
    same = Store(v, flat, (Expr.of(i),))
    one, two = loads(i, 2, 0, 1)
    assert places([one, other, two], i) == [(2, 1, 0), None, (2, 1, 1)]
    assert places([one, same, two], i) == [None] * 3
    assert places([one, two, same], i) == [(2, 1, 0), (2, 1, 1), None]
    pair: list[Node] = [Store(v, A, (Expr.of(i) * 2 + k,)) for k in range(2)]
    reading = Load(Value("f32"), flat, (Expr.of(i),))
    assert places([pair[0], reading, pair[1]], i) == [None] * 3
    assert places([reading, *pair], i) == [None, (2, 1, 0), (2, 1, 1)]
