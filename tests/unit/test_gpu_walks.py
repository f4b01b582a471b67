"""Accesses that walk memory as threads count; buffers of tiles that take each other's place."""

from __future__ import annotations

import pytest
from tests.support.nests import buffer

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.mapping.contiguity import is_contiguous, offset
from polyblocks.affine.model import Buffer, Load, Value
from polyblocks.affine.tiles.tile_writer import _Storage

T, C, H, W = Var(4, "t"), Var(8, "c"), Var(5, "h"), Var(7, "w")


def load(source: Buffer, *index: Expr) -> Load:
    return Load(Value("f32"), source, index)


def test_a_walk_through_whole_rows_is_one_number() -> None:
    x = buffer(4, 16, 5, 7, kind="input")
    node = load(x, Expr.of(T), Expr.of(C) + 8, Expr.of(H), Expr.of(W))
    assert is_contiguous(node, [C, H, W])
    assert offset(node, [C, H, W]) == Expr.of(T) * 560 + Expr.of(W) + 280


@pytest.mark.parametrize("order", [[W], [H, C, W], [C, W], [C, W, H]])
def test_others_are_not(order: list[Var]) -> None:
    x = buffer(4, 16, 5, 7, kind="input")
    assert not is_contiguous(load(x, Expr.of(T), Expr.of(C), Expr.of(H), Expr.of(W)), order)


def test_parts_of_rows_and_digits_of_numbers_are_not() -> None:
    wide = buffer(16, 5, 9, kind="input")
    assert not is_contiguous(load(wide, Expr.of(C), Expr.of(H), Expr.of(W)), [C, H, W])
    row = buffer(35, kind="input")
    assert not is_contiguous(load(row, (Expr.of(H) * 7 + Expr.of(W)) // 2), [H, W])


def test_own_buffers_may_lie_elsewhere() -> None:
    x = buffer(8, 5, 7, kind="local")
    assert not is_contiguous(load(x, Expr.of(C), Expr.of(H), Expr.of(W)), [C, H, W])


def test_buffers_of_other_shapes_get_memory_of_their_own() -> None:
    # Each dimension as long as the longest would be ten times what either needs.
    assert _Storage(buffer(1, 23, 33, 3)).waste([1, 9, 16, 48])
    assert not _Storage(buffer(1, 18, 16, 16)).waste([1, 16, 16, 16])
