"""Whole loops become straight-line code."""

from __future__ import annotations

from polyblocks.affine.cleanup.unroll import unroll_loops
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Store, Value, walk


def triangle(buffer: Buffer, extent: int) -> For:
    """A loop over elements before each diagonal one, which are stored over it."""
    i, j = Var(extent), Var(extent)
    x = Value("f32")
    body: list[Node] = [Load(x, buffer, (Expr.of(j),)), Store(x, buffer, (Expr.of(i),))]
    return For(i, [For(j, body, upper=(Expr.of(i),))])


def places(nodes: list[Node]) -> list[int]:
    return [n.index[0].const for n in walk(nodes) if isinstance(n, (Load, Store))]


def test_bounds_that_depend_on_a_loop_around() -> None:
    nodes = unroll_loops([triangle(Buffer((3,), "f32", "alloc"), 3)], 100)
    assert not any(isinstance(n, For) for n in nodes)
    assert places(nodes) == [0, 1, 0, 2, 1, 2]


def test_what_is_carried_is_handed_on() -> None:
    buffer = Buffer((4,), "f32", "alloc")
    start, argument, result, total = (Value("f32") for _ in range(4))
    k = Var(2)
    add = Op("arith.addf", [argument, argument], {}, [total])
    loop = For(k, [add], [start], [argument], [result], [total])
    first, second, store = unroll_loops([loop, Store(result, buffer, (Expr(0),))], 100)
    assert isinstance(first, Op)
    assert isinstance(second, Op)
    assert isinstance(store, Store)
    assert first.operands == [start, start]
    assert second.operands == [*first.results, *first.results]
    assert store.value is second.results[0]


def test_a_loop_that_is_too_long_stays_and_those_in_it_are_tried() -> None:
    buffer = Buffer((64,), "f32", "alloc")
    outer = For(Var(8), [triangle(buffer, 3)])
    (loop,) = unroll_loops([outer], 10)
    assert loop is outer
    assert places(outer.body) == [0, 1, 0, 2, 1, 2]
    (kept,) = unroll_loops([triangle(buffer, 64)], 10)
    assert isinstance(kept, For)
    assert isinstance(kept.body[0], For)
