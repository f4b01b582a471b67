"""is_parallel against a run of all iterations."""

from __future__ import annotations

import itertools

import pytest

from polyblocks.affine.access import address
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    AffineAccess,
    Buffer,
    For,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Store,
    Value,
)

Access = tuple[str, int, int]


def store(buffer: Buffer, *index: Expr | int) -> Store:
    return Store(Value("f32"), buffer, tuple(Expr.of(e) for e in index))


def load(buffer: Buffer, *index: Expr | int) -> Load:
    return Load(Value("f32"), buffer, tuple(Expr.of(e) for e in index))


def conflict(loop: For) -> bool:
    """Whether two iterations touch one element and one of them writes it."""
    written: dict[object, set[int]] = {}
    touched: dict[object, set[int]] = {}

    def run(nodes: list[Node], values: dict[Var, int], t: int) -> None:
        for node in nodes:
            if isinstance(node, For):
                low = max([0, *(e.evaluate(values) for e in node.lower)])
                high = min([node.var.extent, *(e.evaluate(values) for e in node.upper)])
                for i in range(low, high):
                    run(node.body, values | {node.var: i}, t)
            elif isinstance(node, AffineAccess):
                place = (node.buffer.base, address(node.buffer, node.index).evaluate(values))
                touched.setdefault(place, set()).add(t)
                if isinstance(node, Store):
                    written.setdefault(place, set()).add(t)

    for t in range(loop.var.extent):
        run(loop.body, {loop.var: t}, t)
    return any(len(touched[place]) > 1 for place in written)


def border_and_interior(rows: int, first: int) -> For:
    """Tiles of 8 rows of a fill of row 0 and of the rows from ``first`` on."""
    b = Buffer((rows, 4), "f32", "output")
    t, row, r, j = Var(-(-rows // 8)), Var(1), Var(8), Var(4)
    tile = Expr.of(t) * 8
    border = For(row, [For(j, [store(b, 0, Expr.of(j))])], lower=(tile,), upper=(tile + 8,))
    inside = For(
        r,
        [store(b, tile + r, 2)],
        lower=(Expr(first) - tile,),
        upper=(Expr(rows) - tile,),
    )
    return For(t, [border, inside])


@pytest.mark.parametrize("rows", [8, 16, 30])
def test_pieces_of_one_array_in_tiles(rows: int) -> None:
    apart = border_and_interior(rows, 1)
    assert not conflict(apart)
    assert is_parallel(apart, [apart])


def test_piece_that_is_written_in_every_tile() -> None:
    loop = border_and_interior(16, 1)
    (border, _) = loop.body
    assert isinstance(border, For)
    border.lower, border.upper = (), ()
    assert conflict(loop)
    assert not is_parallel(loop, [loop])


@pytest.mark.parametrize("first", [4, 3])
def test_margins_and_inside_through_views_of_different_rows(first: int) -> None:
    whole, rows = Buffer((144,), "f32", "output"), Buffer((6, 24), "f32", "output")
    rows.viewed = whole
    t, row, a, b, r = Var(3), Var(6), Var(2), Var(3), Var(8)
    sides, tile = (Var(4), Var(4)), Expr.of(t) * 8
    line = Expr.of(row) * 24
    left = For(sides[0], [store(whole, line + sides[0])], lower=(tile,))
    right = For(sides[1], [store(whole, line + sides[1] + 20)], upper=(tile - 12,))
    lower, upper = (Expr(first) - tile,), (Expr(20) - tile,)
    inside = For(r, [store(rows, Expr.of(a) * 3 + b, tile + r)], lower=lower, upper=upper)
    loop = For(t, [For(row, [left, right]), For(a, [For(b, [inside])])])
    assert is_parallel(loop, [loop]) == (first == 4)
    # One element is written twice, by one iteration.
    assert not conflict(loop)


def test_random_bounded_pieces_are_never_called_parallel_wrongly() -> None:
    found = 0
    for low, high, shift, size in itertools.product((-1, 0, 3), (5, 8), (-2, 0, 2), (4, 8)):
        b = Buffer((64,), "f32", "output")
        t, r, q = Var(4), Var(8), Var(size)
        tile = Expr.of(t) * 8
        loop = For(
            t,
            [
                For(r, [store(b, tile + r + 8)], lower=(Expr(low),), upper=(Expr(high),)),
                For(q, [load(b, tile + q + 8 + shift)], upper=(Expr(20) - tile,)),
            ],
        )
        if is_parallel(loop, [loop]):
            found += 1
            assert not conflict(loop)
    assert found


def blocks_of_rows(rows: int, block: int, stride: int, divided: bool = False) -> For:
    """Rows that a tile writes in blocks, of which the last one is shorter, a stride per tile."""
    t, k, r, lane = Var(3), Var(-(-rows // block)), Var(block), Var(2)
    b = Buffer((4096,) if not divided else (64, 8), "f32", "output")
    number = Expr.of(k) * block + r
    index = [Expr.of(t) * stride + number * 2 + lane]
    if divided:
        index = [Expr.of(t) * stride + number // 4, number % 4 * 2 + lane]
    rest = (Expr(rows) - Expr.of(k) * block,)
    return For(t, [For(k, [For(lane, [For(r, [store(b, *index)], upper=rest)])])])


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize(
    ("rows", "block", "less"), [(16, 6, 0), (16, 8, 0), (17, 6, 0), (16, 6, 1)]
)
def test_blocks_of_which_the_last_is_shorter(
    rows: int, block: int, less: int, divided: bool
) -> None:
    stride = -(-rows // 4) if divided else rows * 2
    loop = blocks_of_rows(rows, block, stride - less, divided)
    assert conflict(loop) == (less > 0)
    assert is_parallel(loop, [loop]) == (less == 0)


def rows_of_a_table(column: Expr, other: Expr) -> tuple[For, For]:
    """``table[row, column] = table[row, other]`` for the loops of rows and of columns."""
    table = Buffer((10, 64), "f32", "output")
    i, j = Var(4), Var(8)
    at = {COLUMN: Expr.of(j)}
    row, here, there, x = (Value("index") for _ in range(4))
    body: list[Node] = [
        Index(here, column.substitute(at)),
        Index(there, other.substitute(at)),
        IndirectLoad(x, table, [row, there]),
        IndirectStore(x, table, [row, here]),
    ]
    inner = For(j, body)
    return For(i, [inner]), inner


COLUMN = Var(8)


def test_columns_of_rows_at_run_time_indices() -> None:
    rows, columns = rows_of_a_table(Expr.of(COLUMN), Expr.of(COLUMN))
    assert is_parallel(columns, [rows])
    assert not is_parallel(rows, [rows])


def test_column_that_reads_its_neighbour() -> None:
    rows, columns = rows_of_a_table(Expr.of(COLUMN), Expr.of(COLUMN) + 1)
    assert not is_parallel(columns, [rows])


def means(flat_extent: int, back: int) -> For:
    """Rows of means, stored through one view of a buffer and loaded through a flat one."""
    memory = Buffer((6 * 8,), "f32", "alloc")
    rows = Buffer((6, 8, 1, 1), "f32", "other", base=memory)
    flat = Buffer((flat_extent,), "f32", "other", base=memory)
    i, j, k = Var(5), Var(8), Var(8)
    return For(
        i,
        [
            For(j, [store(rows, Expr.of(i) + 1, j, 0, 0)]),
            For(k, [load(flat, (Expr.of(i) + 1) * 8 + k - back)]),
        ],
    )


def test_two_views_of_all_the_memory() -> None:
    apart = means(48, 0)
    assert not conflict(apart)
    assert is_parallel(apart, [apart])


@pytest.mark.parametrize("back", [1, 8])
def test_two_views_that_meet_in_other_iterations(back: int) -> None:
    loop = means(48, back)
    assert conflict(loop)
    assert not is_parallel(loop, [loop])


def test_a_view_of_a_part_could_begin_anywhere() -> None:
    loop = means(47, 0)
    assert not is_parallel(loop, [loop])


def padded(blocks: int) -> For:
    """Images that are cleared through a flat view, then filled block of rows by block of rows."""
    memory = Buffer((4 * 8 * 8,), "f32", "alloc")
    images = Buffer((4, 8, 8), "f32", "other", base=memory)
    flat = Buffer((4 * 8 * 8,), "f32", "other", base=memory)
    i, k, block, row, column = Var(4), Var(64), Var(blocks), Var(4), Var(6)
    rows = For(
        row,
        [For(column, [store(images, i, Expr.of(block) * 4 + row + 1, Expr.of(column) + 1)])],
        upper=(Expr(6) - Expr.of(block) * 4,),
    )
    return For(i, [For(k, [store(flat, Expr.of(i) * 64 + k)]), For(block, [rows])])


def test_a_bounded_index_stays_in_its_buffer_behind_another_view() -> None:
    # As far as its range goes, the second block's last row would be one of the next image.
    loop = padded(2)
    assert not conflict(loop)
    assert is_parallel(loop, [loop])


@pytest.mark.parametrize(("last", "stride"), [(8, 16), (9, 16)])
def test_a_tile_that_is_not_full(last: int, stride: int) -> None:
    """The extent of the inner loop alone would reach into the next iteration's elements."""
    t, column, row = Var(3), Var(16), Var(2)
    b = Buffer((256,), "f32", "output")
    inner = For(row, [store(b, Expr.of(t) * stride + Expr.of(column) * 2 + row)])
    loop = For(t, [For(column, [inner], upper=(Expr(last),))])
    assert conflict(loop) == (last > 8)
    assert is_parallel(loop, [loop]) == (last <= 8)
