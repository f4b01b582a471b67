"""Which sweeps of a tile fetch what: rows count that are jammed, borders do not."""

from __future__ import annotations

from tests.support.nests import TARGET, buffer

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, Simd, Store, Value, walk
from polyblocks.passes.map.prefetches import mark_prefetches

TILES, ROWS, COLUMNS = 8, 16, 256


def copies(
    source: Buffer, target: Buffer, tile: Var, rows: int, at_once: int = 1, first: int = 0
) -> For:
    """A sweep over rows of a tile, some of them at once, in vectors."""
    y, x = Var(rows // at_once), Var(COLUMNS)
    body: list[Node] = []
    for row in range(at_once):
        value = Value("f32")
        inside = Expr.of(y) * at_once + row + first

        def at(array: Buffer, inside: Expr = inside) -> tuple[Expr, Expr]:
            outer = Expr(0) if array.kind == "local" else Expr.of(tile) * ROWS
            return outer + inside, Expr.of(x)

        body += [Load(value, source, at(source)), Store(value, target, at(target))]
    return For(y, [For(x, body, simd=Simd(4))])


def fetched(*sweeps: For, tile: Var) -> list[tuple[Buffer, int]]:
    """The buffers of which lines are fetched, and into which cache."""
    nest = Nest([For(tile, list(sweeps))], [])
    mark_prefetches(nest, TARGET)
    loops = [node for node in walk(nest.body) if isinstance(node, For)]
    return [(fetch.buffer, fetch.level) for loop in loops for fetch in loop.prefetches]


def test_next_rows_come_into_the_second_cache() -> None:
    tile = Var(TILES)
    a, out = buffer(TILES * ROWS, COLUMNS, kind="input"), buffer(TILES * ROWS, COLUMNS)
    local = buffer(ROWS, COLUMNS, kind="local")
    first, second = copies(a, local, tile, ROWS), copies(local, out, tile, ROWS)
    assert (a, 1) in fetched(first, second, tile=tile)


def test_a_sweep_of_jammed_rows_is_as_long_as_one_of_single_rows() -> None:
    tile = Var(TILES)
    a, out = buffer(TILES * ROWS, COLUMNS, kind="input"), buffer(TILES * ROWS, COLUMNS)
    local = buffer(ROWS, COLUMNS, kind="local")
    first, second = copies(a, local, tile, ROWS), copies(local, out, tile, ROWS, at_once=8)
    assert (a, 1) in fetched(first, second, tile=tile)


def test_what_is_stored_elsewhere_too_is_fetched_where_it_is_read() -> None:
    tile = Var(TILES)
    a = buffer(TILES * ROWS, COLUMNS, kind="input")
    state = buffer(2 * TILES * ROWS, COLUMNS)
    update = copies(state, state, tile, ROWS)
    border = copies(a, state, tile, ROWS // 2, first=TILES * ROWS)
    assert (state, 1) in fetched(update, border, tile=tile)


def rows_fetched(sweep: For, array: Buffer, tile: Var) -> list[tuple[Expr, ...]]:
    """Where lines of an array are fetched, without where in the row; with a copy behind."""
    out = buffer(TILES * ROWS, COLUMNS)
    local = buffer(ROWS, COLUMNS, kind="local")
    nest = Nest([For(tile, [sweep, copies(local, out, tile, ROWS)])], [])
    mark_prefetches(nest, TARGET)
    loops = [node for node in walk([sweep]) if isinstance(node, For)]
    found = [fetch for loop in loops for fetch in loop.prefetches if fetch.buffer is array]
    return [fetch.index[:-1] for fetch in found]


def stencil(
    array: Buffer, local: Buffer, window: list[tuple[int, int]], planes: int = 1
) -> tuple[For, Var, Var]:
    """Sums over a window of rows, of several planes at once: the loops, and their variables."""
    z, y, x = Var(4 // planes), Var(ROWS), Var(COLUMNS)
    body: list[Node] = []
    for plane in range(planes):
        for up, down in window:
            value = Value("f32")
            place = (Expr.of(z) * planes + (plane + up + 4), Expr.of(y) + (down + 4))
            body.append(Load(value, array, (*place, Expr.of(x))))
        body.append(Store(value, local, (Expr.of(y), Expr.of(x))))
    return For(z, [For(y, [For(x, body, simd=Simd(4))])]), z, y


STAR = [(0, 0), *((k, 0) for k in (-2, -1, 1, 2)), *((0, k) for k in (-2, -1, 1, 2))]


def test_of_a_window_only_the_row_is_fetched_that_nothing_has_read() -> None:
    tile = Var(TILES)
    array, local = buffer(64, 64, COLUMNS, kind="input"), buffer(ROWS, COLUMNS, kind="local")
    sweep, z, y = stencil(array, local, STAR)
    # Four rows of 1 KiB ahead.
    assert rows_fetched(sweep, array, tile) == [(Expr.of(z) + 6, Expr.of(y) + 8)]


def test_of_jammed_planes_the_row_of_each_is_fetched() -> None:
    tile = Var(TILES)
    array, local = buffer(64, 64, COLUMNS, kind="input"), buffer(ROWS, COLUMNS, kind="local")
    sweep, z, y = stencil(array, local, STAR, planes=2)
    planes = [Expr.of(z) * 2 + 6, Expr.of(z) * 2 + 7]
    assert rows_fetched(sweep, array, tile) == [(plane, Expr.of(y) + 8) for plane in planes]


def test_where_loads_are_no_window_the_furthest_is_fetched() -> None:
    """Rows that do not come by the same step."""
    tile = Var(TILES)
    array, local = buffer(64, COLUMNS, kind="input"), buffer(ROWS, COLUMNS, kind="local")
    y, x = Var(ROWS), Var(COLUMNS)
    first, second = Value("f32"), Value("f32")
    body: list[Node] = [
        Load(first, array, (Expr.of(y), Expr.of(x))),
        Load(second, array, (Expr.of(y) * 2 + 9, Expr.of(x))),
        Store(second, local, (Expr.of(y), Expr.of(x))),
    ]
    sweep = For(y, [For(x, body, simd=Simd(4))])
    assert rows_fetched(sweep, array, tile) == [(Expr.of(y) * 2 + 17,)]
