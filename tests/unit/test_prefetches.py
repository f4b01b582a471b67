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
