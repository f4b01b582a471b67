"""Tiles of stages that store every other element, or check what they read."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.nests import Context, buffer, check, weighted

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    Check,
    IndirectLoad,
    Load,
    Nest,
    Op,
    Sequence,
    Store,
    Value,
    around,
    walk,
)
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import all_run, has_even_slices, slices
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass


def phase(target: Buffer, source: Buffer, rows: tuple[int, int], columns: tuple[int, int]) -> Nest:
    """``target[2 i + p, 2 j + q] = source[i, j] + source[i + 1, j]``; a pair is (extent, p)."""
    i, j = Var(rows[0]), Var(columns[0])
    a, b, total = (Value("f32") for _ in range(3))
    store = (Expr.of(i) * 2 + rows[1], Expr.of(j) * 2 + columns[1])
    body = [
        Load(a, source, (Expr.of(i), Expr.of(j))),
        Load(b, source, (Expr.of(i) + 1, Expr.of(j))),
        Op("arith.addf", [a, b], {}, [total]),
        Store(total, target, store),
    ]
    return Nest(around((i, j), body), [], changed=True)


def interleaved(height: int, width: int) -> tuple[list[Nest], list[Buffer], Buffer]:
    """Four phases of an array, and a stencil over it."""
    sources = [buffer(height // 2 + 3, width // 2 + 2, kind="input") for _ in range(4)]
    whole, out = buffer(height, width), buffer(height - 2, width - 2, kind="output")
    places = [(p, q) for p in (0, 1) for q in (0, 1)]
    nests = [
        phase(whole, source, ((height + 1 - p) // 2, p), ((width + 1 - q) // 2, q))
        for source, (p, q) in zip(sources, places, strict=True)
    ]
    taps = [(whole, (k, 1), k + 1.0) for k in range(3)]
    nests.append(weighted(out, (0, 0), out.shape, *taps, (whole, (1, 2), 7.0)))
    return nests, sources, out


@pytest.mark.parametrize("tile", [(1, 3), (2, 8), (3, 2), (9, 9)])
@pytest.mark.parametrize("shape", [(18, 18), (17, 12), (11, 19)])
def test_phases_of_an_array(tile: tuple[int, int], shape: tuple[int, int]) -> None:
    """Tiles are counted in pairs, so that each begins with the same phase."""
    nests, sources, out = interleaved(*shape)
    random = np.random.default_rng(3)
    nest = check(nests, {s: random.random(s.shape) for s in sources}, out, tile)
    if tile == (2, 8):
        locals_ = [n.buffer for n in walk(nest.body) if isinstance(n, Alloca)]
        assert [b.shape[0] for b in locals_] == [2 * 2 + 2]


def test_the_unit_is_that_of_the_steps() -> None:
    nests, _, out = interleaved(18, 18)
    stages = [FusionStage.of(n) for n in nests]
    found = slices([s for s in stages if s is not None], out, set())
    assert found is not None
    assert found.units == [2, 2]
    assert [y.extent for y in found.tile] == [8, 8]


def looked_up(target: Buffer, source: Buffer, table: Buffer) -> Nest:
    """``target[i, j] = table[source[..., j]]``, with a check."""
    i, j = (Var(n) for n in target.shape)
    place = (Expr.of(i), Expr.of(j))
    number, good, found = Value("index"), Value("i1"), Value("f32")
    body = [
        Load(number, source, place[-len(source.shape) :]),
        Op("toy.inside", [number], {}, [good]),
        Check(good, "index out of range"),
        IndirectLoad(found, table, [number]),
        Store(found, target, place),
    ]
    return Nest(around((i, j), body), [], changed=True)


@pytest.mark.parametrize(
    ("rows", "runs"), [((0, 1, 2), True), ((0, 1), False), ((1, 2), False), ((0, 2), True)]
)
def test_checks_run_for_all_elements_or_stay_outside(rows: tuple[int, ...], runs: bool) -> None:
    """What nothing reads has to be checked all the same."""
    source, table = buffer(64, 8, kind="input"), buffer(16, kind="input")
    found, out = buffer(64, 8), buffer(62, 8, kind="output")
    nests = [
        looked_up(found, source, table),
        weighted(out, (0, 0), (62, 8), *((found, (row, 0), 2.0) for row in rows)),
    ]
    assert FusionStage.of(nests[0]) is None
    stages = [FusionStage.of(n, checks=True) for n in nests]
    known = slices([s for s in stages if s is not None], out, set())
    assert known is not None
    assert stages[0] is not None
    assert all_run(stages[0], known) is runs
    sequence = Sequence(list(nests), [source, table, found, out])
    FuseTilesPass().transform(sequence, Context())
    if not runs:
        assert len(sequence.items) == 2


def test_places_in_a_table_stay_outside() -> None:
    """They are the same for all rows, and may be affine."""
    source, table, found = buffer(8, kind="input"), buffer(16, kind="input"), buffer(64, 8)
    assert FusionStage.of(looked_up(found, source, table), checks=True) is None


def test_a_step_between_tiles_leaves_elements_out() -> None:
    """Every other row is read: tiles of one row skip those between."""
    source, table = buffer(64, 8, kind="input"), buffer(16, kind="input")
    found, out = buffer(64, 8), buffer(32, 8, kind="output")
    i, j, x = Var(32), Var(8), Value("f32")
    body = [
        Load(x, found, (Expr.of(i) * 2, Expr.of(j))),
        Store(x, out, (Expr.of(i), Expr.of(j))),
    ]
    nests = [looked_up(found, source, table), Nest(around((i, j), body), [])]
    stages = [FusionStage.of(n, checks=True) for n in nests]
    known = slices([s for s in stages if s is not None], out, set())
    assert known is not None
    assert stages[0] is not None
    assert not all_run(stages[0], known)


def test_tiles_of_enlarged_rows_are_even_where_groups_begin() -> None:
    """Of a row that is enlarged twice and once more."""
    source, once, out = buffer(10, kind="input"), buffer(18), buffer(32, kind="output")
    nests = []
    for small, large in ((source, once), (once, out)):
        i, x, y, total = Var(large.shape[0]), *(Value("f32") for _ in range(3))
        body = [
            Load(x, small, (Expr.of(i) // 2,)),
            Load(y, small, (Expr.of(i) // 2 + 1,)),
            Op("arith.addf", [x, y], {}, [total]),
            Store(total, large, (Expr.of(i),)),
        ]
        nests.append(Nest(around((i,), body), []))
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, set(), rows=False)
    assert found is not None
    assert not found.whole
    (y,) = found.tile
    assert [n for n in range(1, 13) if has_even_slices(found, y, n)] == [4, 8, 12]
    held = slices(stages, out, set())
    assert held is not None
    assert held.whole == set(held.tile)
