"""fuse-tiles on the model, without MLIR: what it makes computes what was there before."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import numpy as np
import pytest
from tests.support.nests import TARGET, Context, buffer, check, row_sum, run, weighted

from polyblocks.affine.cost.tile_cost import TileCost
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
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
from polyblocks.affine.tiles.slices import bounds, slices
from polyblocks.affine.tiles.tile_writer import tiled
from polyblocks.affine.tiles.updates import in_place
from polyblocks.passes.fuse import fuse_tiles
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass


@pytest.mark.parametrize("tile", [(4, 13), (5, 4), (1, 1), (17, 13), (16, 8)])
def test_stencil_chain(tile: tuple[int, int]) -> None:
    """A separable blur: rows and columns of the halo are computed by both neighbours."""
    a, b, out = buffer(21, 17, kind="input"), buffer(21, 13), buffer(17, 13, kind="output")
    nests = [
        weighted(b, (0, 0), (21, 13), *((a, (0, k), k + 1.0) for k in range(5))),
        weighted(out, (0, 0), (17, 13), *((b, (k, 0), k + 2.0) for k in range(5))),
    ]
    values = np.random.default_rng(1).random(a.shape)
    nest = check(nests, {a: values}, out, tile)
    locals_ = [n.buffer for n in walk(nest.body) if isinstance(n, Alloca)]
    assert len(locals_) == 1
    assert locals_[0].shape[0] == min(21, tile[0] + 4)


@pytest.mark.parametrize("tile", [(4, 12), (5, 5), (12, 12), (3, 7)])
def test_borders_of_their_own(tile: tuple[int, int]) -> None:
    """Steps whose border is copied by other nests, as concatenations and updates leave them."""
    n = 12
    u = [buffer(n, n, kind="input"), buffer(n, n), buffer(n, n), buffer(n, n, kind="output")]
    nests = []
    for old, new in itertools.pairwise(u):
        middle = [(0, 1), (2, 1), (1, 0), (1, 2), (1, 1)]
        nests += [
            weighted(new, (0, 0), (0, n), (old, (0, 0), 1.0)),
            weighted(new, (n - 1, 0), (0, n), (old, (n - 1, 0), 1.0)),
            weighted(new, (1, 0), (n - 2, 0), (old, (1, 0), 1.0)),
            weighted(new, (1, n - 1), (n - 2, 0), (old, (1, n - 1), 1.0)),
            weighted(new, (1, 1), (n - 2, n - 2), *((old, o, 0.3) for o in middle)),
        ]
    values = np.random.default_rng(2).random(u[0].shape)
    nest = check(nests, {u[0]: values}, u[-1], tile)
    if tile[0] < n - 4:
        # Rows that exist once are read as such, and the box around them stays small.
        assert all(b.buffer.shape[0] < n for b in walk(nest.body) if isinstance(b, Alloca))


def test_a_tall_buffer_and_a_wide_one_do_not_share_a_square() -> None:
    """One would have room where the other was, if that were as wide as one and as tall as both."""
    x, y = buffer(32, 2, kind="input"), buffer(2, 32, kind="input")
    tall, b, wide, out = buffer(32, 2), buffer(2, 2), buffer(2, 32), buffer(2, 2, kind="output")
    nests = [
        weighted(tall, (0, 0), (32, 2), (x, (0, 0), 2.0)),
        weighted(b, (0, 0), (2, 2), (tall, (0, 0), 1.0), (tall, (30, 0), 1.0)),
        weighted(wide, (0, 0), (2, 32), (y, (0, 0), 3.0)),
        weighted(out, (0, 0), (2, 2), (b, (0, 0), 1.0), (wide, (0, 0), 1.0), (wide, (0, 30), 1.0)),
    ]
    random = np.random.default_rng(3)
    nest = check(nests, {x: random.random(x.shape), y: random.random(y.shape)}, out, (2, 2))
    taken = sum(n.buffer.numel for n in walk(nest.body) if isinstance(n, Alloca))
    assert taken <= tall.numel + b.numel + 2 * wide.numel


def test_normalization_of_rows() -> None:
    """A reduction and what uses it share a tile of rows."""
    a, s, out = buffer(10, 6, kind="input"), buffer(10), buffer(10, 6, kind="output")
    i, j = Var(10), Var(6)
    x, t, q = Value("f32"), Value("f32"), Value("f32")
    divide = Nest(
        [
            For(
                i,
                [
                    For(
                        j,
                        [
                            Load(x, a, (Expr.of(i), Expr.of(j))),
                            Load(t, s, (Expr.of(i),)),
                            Op("arith.divf", [x, t], {}, [q]),
                            Store(q, out, (Expr.of(i), Expr.of(j))),
                        ],
                    )
                ],
            )
        ],
        [],
        changed=True,
    )
    values = np.random.default_rng(3).random(a.shape)
    for tile in ((1, 6), (3, 6), (4, 2)):
        check([row_sum(s, a), divide], {a: values}, out, tile)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_stages_that_write_beside_what_is_read(column: int) -> None:
    """One of three joined columns is read; the others are written all the same."""
    a, b, out = buffer(5, 3, kind="input"), buffer(5, 3), buffer(5, 1, kind="output")
    nests = [weighted(b, (0, k), (5, 0), (a, (0, k), k + 1.0)) for k in range(3)]
    nests.append(weighted(out, (0, 0), (5, 0), (b, (0, column), 1.0)))
    check(nests, {a: np.random.default_rng(5).random((5, 3))}, out, (2, 1))


@pytest.mark.parametrize("tile", [(4, 7), (2, 7), (1, 3)])
def test_a_border_that_nobody_reads_has_no_loop(tile: tuple[int, int]) -> None:
    """The last row of a padded array, where windows end before it."""
    a, b, out = buffer(5, 7, kind="input"), buffer(6, 7), buffer(4, 7, kind="output")
    nests = [
        weighted(b, (5, 0), (1, 7), (a, (0, 0), 2.0)),
        weighted(b, (0, 0), (5, 7), (a, (0, 0), 3.0)),
        weighted(out, (0, 0), (4, 7), *((b, (k, 0), k + 1.0) for k in range(2))),
    ]
    nest = check(nests, {a: np.random.default_rng(6).random((5, 7))}, out, tile)
    assert all(n.trips for n in walk(nest.body) if isinstance(n, For))


def test_two_results_of_one_stage() -> None:
    """A stage that makes two arrays computes of both what either of them is needed for."""
    a, out = buffer(20, kind="input"), buffer(14, kind="output")
    b, c = buffer(20), buffer(20)
    both = weighted(b, (0,), (20,), (a, (0,), 2.0))
    first = next(n for n in walk(both.body) if isinstance(n, Store))
    loop = both.body[0]
    assert isinstance(loop, For)
    loop.body.append(Store(first.value, c, first.index))
    last = weighted(out, (0,), (14,), (b, (3,), 1.0), (c, (0,), 1.0), (c, (6,), 1.0))
    check([both, last], {a: np.random.default_rng(4).random(20)}, out, (4,))


@pytest.mark.parametrize("seed", range(60))
def test_random_chains(seed: int) -> None:
    """Chains with branches, partial writes and strange extents, tiled at random."""
    rng = random.Random(seed)
    rows, columns = rng.randint(1, 14), rng.randint(1, 9)
    a = buffer(rows, columns, kind="input")
    made = [a]
    nests: list[Nest] = []
    for k in range(rng.randint(1, 5)):
        h = rng.choice([0, 1, 2]) if min(b.shape[0] for b in made) > 3 else 0
        w = rng.choice([0, 1]) if min(b.shape[1] for b in made) > 2 else 0
        shape = (min(b.shape[0] for b in made) - h, min(b.shape[1] for b in made) - w)
        taps = [
            (rng.choice(made[-3:]), (rng.randint(0, h), rng.randint(0, w)), rng.random())
            for _ in range(rng.randint(1, 4))
        ]
        taps.append((made[-1], (0, 0), 1.0))
        new = buffer(*shape)
        cut = rng.randint(0, shape[0] - 1)
        if rng.random() < 0.5 and cut:
            # Written by two nests.
            nests.append(weighted(new, (0, 0), (cut, shape[1]), *taps))
            shifted = [(b, (o[0] + cut, o[1]), 0.5 * f) for b, o, f in taps]
            nests.append(weighted(new, (cut, 0), (shape[0] - cut, shape[1]), *shifted))
        else:
            nests.append(weighted(new, (0, 0), shape, *taps))
        made.append(new)
        del k
    out = made[-1]
    out.kind = "output"
    inputs = {a: np.random.default_rng(seed).random(a.shape)}
    expected = run(Sequence(list(nests), []), inputs, out)
    # Nests that nothing needs are not part of a group.
    used, needed = [], {out}
    for nest in reversed(nests):
        reads, writes = nest.effects()
        if writes & needed:
            needed |= reads
            used.append(nest)
    used.reverse()
    tile = (rng.randint(1, out.shape[0]), rng.randint(1, out.shape[1]))
    stages = [s for s in map(FusionStage.of, used) if s is not None]
    assert len(stages) == len(used)
    found = slices(stages, out, set())
    assert found is not None
    local = {s.buffer for st in stages for s in st.stores} - {out}
    cost = TileCost(TARGET, stages, found, local).of(tile)
    assert cost.seconds > 0
    assert cost.redundancy > 0
    body = tiled(stages, found, tile, local)
    assert body is not None
    result = run(Sequence([Nest(body, [], changed=True)], []), inputs, out)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("tile", [(9,), (3,), (1,)])
def test_a_producer_of_a_part_is_computed_once(tile: tuple[int, ...]) -> None:
    """What lies between borders is no more work in a tile that has the borders too."""
    a, b, out = buffer(7, kind="input"), buffer(7), buffer(9, kind="output")
    nests = [
        weighted(b, (0,), (7,), (a, (0,), 2.0)),
        weighted(out, (0,), (1,), (a, (0,), 0.0)),
        weighted(out, (8,), (1,), (a, (0,), 0.0)),
        weighted(out, (1,), (7,), (b, (0,), 1.0)),
    ]
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, set())
    assert found is not None
    assert TileCost(TARGET, stages, found, {b}).of(tile).redundancy == pytest.approx(1.0)


def test_the_pass_chooses_a_tile_and_drops_the_buffer() -> None:
    """The model finds that a chain through main memory is slower than overlapped tiles."""
    a, b, out = buffer(258, 64, kind="input"), buffer(258, 64), buffer(256, 64, kind="output")
    nests = [
        weighted(b, (0, 0), (258, 64), (a, (0, 0), 2.0)),
        weighted(out, (0, 0), (256, 64), (b, (0, 0), 1.0), (b, (1, 0), 1.0), (b, (2, 0), 1.0)),
    ]
    values = np.random.default_rng(5).random(a.shape)
    expected = run(Sequence(list(nests), [a, b, out]), {a: values}, out)
    sequence = Sequence(list(nests), [a, b, out])
    context = Context()
    FuseTilesPass().transform(sequence, context)
    assert len(sequence.nests()) == 1
    np.testing.assert_array_equal(run(sequence, {a: values}, out), expected)
    what, numbers = context.decisions[0]
    assert what == "fused"
    assert numbers["fused_seconds"] < numbers["apart_seconds"]
    assert b not in sequence.nests()[0].effects()[0]


@pytest.mark.parametrize("reason", ["room", "time", "order"])
def test_a_refusal_has_its_reason(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faster is not enough: the tile must have room, and its nests must meet."""
    a, b, out = buffer(258, 64, kind="input"), buffer(258, 64), buffer(256, 64, kind="output")
    nests = [
        weighted(b, (0, 0), (258, 64), (a, (0, 0), 2.0)),
        weighted(out, (0, 0), (256, 64), (b, (0, 0), 1.0), (b, (2, 0), 1.0)),
    ]
    if reason == "order":
        monkeypatch.setattr(fuse_tiles, "_is_blocked", lambda users, stages: True)
    else:
        change = {"over": 0.5} if reason == "room" else {"seconds": 1.0}
        best = TileCost.best

        def worse(self: TileCost, start: tuple[int, ...] = ()) -> Any:
            tile, cost = best(self, start)
            return tile, dataclasses.replace(cost, **change)

        monkeypatch.setattr(TileCost, "best", worse)
    sequence = Sequence(nests, [a, b, out])
    context = Context()
    FuseTilesPass().transform(sequence, context)
    assert len(sequence.nests()) == 2
    what, numbers = context.decisions[0]
    assert (what, numbers["reason"]) == ("kept apart", reason)


def test_a_result_that_others_read_is_not_cut_with_a_halo() -> None:
    """What leaves the group is written once: tiles must not share its elements."""
    a, b, out = buffer(40, kind="input"), buffer(40, kind="output"), buffer(38, kind="output")
    nests = [
        weighted(b, (0,), (40,), (a, (0,), 2.0)),
        weighted(out, (0,), (38,), (b, (0,), 1.0), (b, (2,), 1.0)),
    ]
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, {b})
    assert found is not None
    assert found.whole == set(found.tile)


def test_bounds() -> None:
    """Spans of expressions over boxes; corners that would change places are refused."""
    y, v, r = Var(32), Var(32), Var(3)
    spans = {v: (Expr.of(y), Expr.of(y))}
    assert bounds(Expr.of(v) + r, spans) == (Expr.of(y), Expr.of(y) + 2)
    assert bounds(Expr.of(v) * 2 + 1, spans) == (Expr.of(y) * 2 + 1, Expr.of(y) * 2 + 1)
    assert bounds(Expr.of(v) * -1 + 31, spans) is None
    assert bounds(Expr.of(r) * -1 + 2, spans) == (Expr(0), Expr(2))
    low, high = bounds((Expr.of(v) + 1) // 2, spans) or (None, None)
    assert low == (Expr.of(y) + 1) // 2
    assert high == (Expr.of(y) + 1) // 2
    assert bounds((Expr.of(v) + 1) % 4, spans) == (Expr(0), Expr(3))


@pytest.mark.parametrize("tile", [(4, 12), (5, 5), (12, 12), (3, 7)])
def test_updates_in_place(tile: tuple[int, ...]) -> None:
    """Steps write over what they have read; borders that stay as they are need no stage."""
    n = 12
    source, out = buffer(n, n, kind="input"), buffer(n, n, kind="output")
    u = [buffer(n, n) for _ in range(3)]
    middle = [(0, 1), (2, 1), (1, 0), (1, 2), (1, 1)]
    nests = [weighted(u[0], (0, 0), (n, n), (source, (0, 0), 1.0))]
    for old, new in itertools.pairwise(u):
        nests += [
            same(new, old, (0, 0), (0, n)),
            same(new, old, (n - 1, 0), (0, n)),
            same(new, old, (1, 0), (n - 2, 0)),
            weighted(new, (1, 1), (n - 2, n - 2), *((old, o, 0.3) for o in middle)),
            same(new, old, (1, n - 1), (n - 2, 0)),
        ]
    nests.append(weighted(out, (0, 0), (n, n), (u[-1], (0, 0), 2.0)))
    values = np.random.default_rng(1).random(source.shape)
    expected = run(Sequence(list(nests), [source, *u, out]), {source: values}, out)
    stages = [FusionStage.of(nest) for nest in nests]
    found = in_place(stages, set(u))
    assert found is not None
    stages, versions = found
    assert versions == {u[0]}
    # The first one, two for each step, the last one.
    assert len(stages) == 6
    boxes = slices(stages, out, set(), versions)
    assert boxes is not None
    local = {s.buffer for stage in stages for s in stage.stores} - {out}
    body = tiled(stages, boxes, tile, local, rows=False)
    assert body is not None
    nest = Nest(body, [], changed=True)
    np.testing.assert_allclose(
        run(Sequence([nest], [source, out]), {source: values}, out), expected
    )
    # The buffer, and what threads keep of each step.
    assert sum(isinstance(node, Alloca) for node in walk(body)) == 3


def test_no_update_in_place_of_what_is_still_needed() -> None:
    n = 12
    source, out = buffer(n, kind="input"), buffer(n, kind="output")
    a, b = buffer(n), buffer(n)
    nests = [
        weighted(a, (0,), (n,), (source, (0,), 1.0)),
        weighted(b, (1,), (n - 2,), (a, (0,), 1.0), (a, (2,), 1.0)),
        weighted(out, (1,), (n - 2,), (a, (1,), 1.0), (b, (1,), 1.0)),
    ]
    assert in_place([FusionStage.of(nest) for nest in nests], {a, b}) is None


def same(target: Buffer, source: Buffer, place: tuple[int, ...], box: tuple[int, ...]) -> Nest:
    """A nest that copies a box from one buffer to the same place of another one."""
    loops = [Var(size) if size else None for size in box]
    index = tuple(
        Expr.of(v) + o if v is not None else Expr(o) for v, o in zip(loops, place, strict=True)
    )
    value = Value("f32")
    body = around(
        [v for v in loops if v], [Load(value, source, index), Store(value, target, index)]
    )
    return Nest(body, [], changed=True)
