"""How threads count the rows that they walk: by transactions, and as shared memory does."""

from __future__ import annotations

import pytest

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.mapping.banks import pitch_rows
from polyblocks.affine.gpu.mapping.barriers import same_iteration
from polyblocks.affine.gpu.plans.groups import DistributedLoop, GroupPlan, Place
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Store, Value


def copy(rows: int, width: int, begin: int, pitch: int = 2048) -> tuple[GroupPlan, DistributedLoop]:
    """A kernel that copies rows of a buffer from an element on to shared memory."""
    t, i, j = Var(4), Var(rows), Var(width)
    source = Buffer((4096, pitch), "f32", "input", bytes_per_element=4)
    tile = Buffer((rows, width), "f32", "local", bytes_per_element=4)
    value = Value("f32")
    body: list[Node] = [
        Load(value, source, (Expr.of(i), Expr.of(t) * 128 + j + begin)),
        Store(value, tile, (Expr.of(i), Expr.of(j))),
    ]
    loops = [For(i, []), For(j, body)]
    loops[0].body = [loops[1]]
    inside: list[Node] = [Alloca(tile), loops[0]]
    outer = For(t, inside)
    kernel = GroupPlan([outer], [t], inside, group=256)
    shared = DistributedLoop(loops, [i, j])
    kernel.distributed = {loops[0]: shared}
    kernel.places = {tile: Place.SHARED}
    return kernel, shared


@pytest.mark.parametrize(
    ("width", "begin", "sector", "lead", "pitch"),
    [
        # From the beginning of a transaction: to the end of one.
        (132, 0, 32, 0, 136),
        (148, 10, 32, 2, 152),
        (148, 10, 64, 10, 160),
        # Nothing to do.
        (128, 0, 32, 0, 0),
        # Too many threads would be idle.
        (9, 7, 64, 0, 0),
    ],
)
def test_rows_of_main_memory(width: int, begin: int, sector: int, lead: int, pitch: int) -> None:
    kernel, shared = copy(20, width, begin)
    pitch_rows(kernel, sector)
    assert (shared.lead, shared.pitch) == (lead, pitch)


def test_rows_that_begin_differently_are_counted_as_they_are() -> None:
    kernel, shared = copy(20, 132, 0, pitch=2044 + 1)
    pitch_rows(kernel, 32)
    assert (shared.lead, shared.pitch) == (0, 0)


def test_elements_belong_to_the_iteration_of_the_same_number() -> None:
    i, j, k = Var(8), Var(56), Var(448)
    rows, row = DistributedLoop([], [i, j]), DistributedLoop([], [k])
    by_row, at_once = (Expr.of(i), Expr.of(j)), (Expr.of(k) // 56, Expr.of(k) % 56)
    assert same_iteration(by_row, rows, at_once, row)
    assert not same_iteration(by_row, rows, (at_once[0], Expr.of(k) % 55), row)
    # Counted with a pitch they are others.
    rows.pitch = 64
    assert not same_iteration(by_row, rows, at_once, row)
    other = DistributedLoop([], [Var(8), Var(56)], pitch=64, lead=4)
    there = tuple(Expr.of(v) for v in other.order)
    assert not same_iteration(by_row, rows, there, other)
    rows.lead = 4
    assert same_iteration(by_row, rows, there, other)
