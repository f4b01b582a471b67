"""What it costs that windows along loops are read again from a slower cache."""

from __future__ import annotations

from tests.support.nests import TARGET, buffer

from polyblocks.affine.cost.returning_loads import window_slots
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Load, Node, Value


def window(planes: int, rows: int, row: int) -> tuple[list[Node], Var, Var, Var]:
    """Loads of so many neighbouring planes of so many rows of so many elements."""
    z, y, x = Var(4), Var(rows), Var(row)
    a = buffer(64, 64, 512, kind="input")
    body: list[Node] = [
        Load(Value("f32"), a, (Expr.of(z) + k, Expr.of(y), Expr.of(x))) for k in range(planes)
    ]
    return body, z, y, x


def slots(planes: int, rows: int, row: int, factor: int = 1, along_rows: bool = False) -> float:
    body, z, y, x = window(planes, rows, row)
    return window_slots(body, [z, y], x, y if along_rows else z, factor, TARGET)


def test_what_the_first_cache_keeps_costs_nothing() -> None:
    """Three planes of two rows of 128 bytes are 768 bytes, of 1 KiB."""
    assert slots(planes=3, rows=2, row=32) == 0
    assert slots(planes=3, rows=4, row=32) > 0


def test_a_single_slice_is_not_read_again() -> None:
    assert slots(planes=1, rows=64, row=512) == 0


def test_planes_in_one_share_all_but_the_last() -> None:
    one = slots(planes=3, rows=8, row=32)
    # Three slices, then four and five for two planes and for three.
    assert slots(planes=3, rows=8, row=32, factor=2) == one / 3 * 4
    assert slots(planes=3, rows=8, row=32, factor=3) == one / 3 * 5
    # Rows in one share none of the planes.
    assert slots(planes=3, rows=8, row=32, factor=2, along_rows=True) == 2 * one


def test_slower_caches_cost_more() -> None:
    assert slots(planes=3, rows=64, row=64) > slots(planes=3, rows=8, row=32)


def test_windows_inside_grow_with_the_planes_in_one() -> None:
    """Five rows of 128 bytes fit; those of two planes in one do not."""
    z, y, x = Var(4), Var(8), Var(32)
    a = buffer(64, 64, 512, kind="input")
    body: list[Node] = [
        Load(Value("f32"), a, (Expr.of(z), Expr.of(y) + k, Expr.of(x))) for k in range(5)
    ]
    assert window_slots(body, [z, y], x, z, 1, TARGET) == 0
    assert window_slots(body, [z, y], x, z, 2, TARGET) > 0
