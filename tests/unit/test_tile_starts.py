"""Where the search for a tile begins again, and groups that are offered again."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.support.nests import TARGET, Context, buffer, run, weighted

from polyblocks.affine.cost.constants import CLEARLY_LARGER, RECOMPUTED_ITERATIONS
from polyblocks.affine.cost.tile_cost import Cost, TileCost
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Nest, Sequence, Store, Value, around
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import slices
from polyblocks.options import CompileOptions
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass
from polyblocks.target import MemoryLevel
from polyblocks_cpu.describe import describe

#: A core's own cache holds a few rows of all planes; its share of the last one, many.
TWO_CACHES = dataclasses.replace(
    TARGET,
    memory=(
        MemoryLevel("L1", 1 << 12, 4e11),
        MemoryLevel("L2", 1 << 15, 2e11),
        MemoryLevel("L3", 1 << 22, 2e11, shared_by=2),
        MemoryLevel("main", 0, 1e9, shared_by=2),
    ),
)


def colours(rows: int, columns: int) -> tuple[list[Nest], list[Buffer], Buffer]:
    """A plane that takes long, three of it, and a blur of each."""
    a, plane = buffer(rows + 4, columns, kind="input"), buffer(rows + 4, columns)
    three, out = buffer(3, rows + 4, columns), buffer(3, rows, columns, kind="output")
    taps = [(a, (0, 0), k + 1.0) for k in range(40)]
    variables = Var(3), Var(rows + 4), Var(columns)
    at = tuple(Expr.of(v) for v in variables)
    value = Value("f32")
    spread = [Load(value, plane, at[1:]), Store(value, three, at)]
    nests = [
        weighted(plane, (0, 0), (rows + 4, columns), *taps),
        Nest(around(variables, spread), [], changed=True),
    ]
    blur = [(three, (0, k, 0), k + 1.0) for k in range(5)]
    nests.append(weighted(out, (0, 0, 0), (3, rows, columns), *blur))
    return nests, [a, plane, three], out


def cost_of_colours(rows: int, columns: int) -> TileCost:
    nests, (_, plane, three), out = colours(rows, columns)
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, set())
    assert found is not None
    return TileCost(TWO_CACHES, stages, found, {plane, three})


def test_tiles_are_whole_along_what_a_stage_does_not_have() -> None:
    """For two of these planes there is no room, for three of them with fewer rows there is."""
    cost = cost_of_colours(256, 64)
    assert cost.of((1, 32, 64)).over == 0
    assert cost.of((2, 32, 64)).over > 0
    assert cost.of((3, 8, 64)).seconds < cost.of((1, 32, 64)).seconds
    assert cost.best((1, 32, 64))[0][0] == 3


def test_small_tiles_that_compute_much_again_may_be_larger() -> None:
    cost = cost_of_colours(256, 1024)
    tile, found = cost.best((3, 2, 1024))
    assert cost.of((3, 2, 1024)).redundancy > RECOMPUTED_ITERATIONS
    assert cost.of(tile).over > 0, "more than a core's own cache may hold"
    assert found.over == 0
    assert found.redundancy < cost.of((3, 2, 1024)).redundancy


def test_a_start_without_room_may_have_fewer_rows_that_are_as_long() -> None:
    """Shorter rows would begin more often, and repeat more columns than these do rows."""
    rows, columns = 8192, 2048
    a = buffer(rows + 4, columns + 64, kind="input")
    b, out = buffer(rows + 4, columns + 64), buffer(rows, columns, kind="output")
    taps = [(a, (0, 0), k + 1.0) for k in range(40)]
    corners = [(b, (4 * k, 64 * e), 1.0) for k in range(2) for e in range(2)]
    nests = [weighted(b, (0, 0), b.shape, *taps), weighted(out, (0, 0), out.shape, *corners)]
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, {out})
    assert found is not None
    cost = TileCost(describe(CompileOptions(arch="znver4")), stages, found, {b})
    assert cost.of((256, columns)).over > 0
    assert cost.of((128, columns // 2)).over == 0
    assert cost.best((256, columns))[0] == (64, columns)


def passed(writes: float, *, apart: bool) -> Cost:
    """An output of 64 MiB that passes the caches, and as many bytes read.

    Args:
        writes: bytes that the main memory takes while one is read from it; 0: in its bandwidth.
        apart: whether a stage reads them, and then another one writes.
    """
    n = 1 << 12
    a, b, out = buffer(n, n, kind="input"), buffer(n, n), buffer(n, n, kind="output")
    nests = [weighted(out, (0, 0), (n, n), (b if apart else a, (0, 0), 2.0))]
    if apart:
        nests.insert(0, weighted(b, (0, 0), (n, n), (a, (0, 0), 2.0)))
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, {out})
    assert found is not None
    *caches, main = TARGET.memory
    memory = (*caches, dataclasses.replace(main, writes=writes))
    target = dataclasses.replace(TARGET, memory=memory)
    return TileCost(target, stages, found, {b} if apart else set()).of((1, n))


def test_stores_past_the_caches_wait_for_memory_unless_their_stage_reads_meanwhile() -> None:
    """60 MB, two cores of a Zen 4: read in 1.2 ms, written 2.1, copied 2.2, in two loops 3.2."""
    together, apart = passed(0.5, apart=False), passed(0.5, apart=True)
    shared = passed(0.0, apart=False)
    assert together.memory == shared.memory == passed(0.0, apart=True).memory
    assert apart.memory == pytest.approx(1.5 * together.memory)


def star(extent: int) -> TileCost:
    """27 points of three dimensions around each, and a second one of every result."""
    a = buffer(extent + 8, extent + 8, extent + 8, kind="input")
    b, out = (buffer(extent, extent, extent, kind=kind) for kind in ("intermediate", "output"))
    taps = [
        (a, tuple(k if e == d else 4 for e in range(3)), k + 1.0)
        for d in range(3)
        for k in range(9)
    ]
    box = (extent, extent, extent)
    nests = [weighted(b, (0, 0, 0), box, *taps), weighted(out, (0, 0, 0), box, (b, (0, 0, 0), 2.0))]
    stages = [s for s in map(FusionStage.of, nests) if s is not None]
    found = slices(stages, out, {b})
    assert found is not None
    return TileCost(describe(CompileOptions(arch="znver4")), stages, found, set())


@pytest.mark.parametrize("extent", [128, 256])
def test_steps_that_each_save_little_traffic_with_memory_lead_to_a_large_tile(extent: int) -> None:
    """Of the planes that a tile reads, the next one reads 8 again."""
    cost = star(extent)
    tile, found = cost.best()
    assert tile[0] >= 16
    fewer = cost.of((tile[0] // 4, *tile[1:]))
    assert CLEARLY_LARGER * fewer.seconds < found.seconds < fewer.seconds
    assert found.memory < fewer.memory


def test_traffic_in_caches_alone_does_not_lead_to_a_large_tile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a table that every tile reads is read less often, nothing is saved of memory's time."""
    whole = TileCost.of

    def equal(self: TileCost, tile: tuple[int, ...]) -> Cost:
        seconds = 1.0 - 0.01 * np.log2(np.prod(tile)) / 24
        return dataclasses.replace(whole(self, tile), seconds=seconds, compute=1.0, memory=1.0)

    monkeypatch.setattr(TileCost, "of", equal)
    assert star(256).best()[0] == (1, 32, 32)


def test_a_group_that_has_grown_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = buffer(260, 64, kind="input"), buffer(260, 64), buffer(260, 64)
    out = buffer(256, 64, kind="output")
    nests = [
        weighted(b, (0, 0), (260, 64), (a, (0, 0), 2.0)),
        weighted(c, (0, 0), (258, 64), (b, (0, 0), 1.0), (b, (2, 0), 1.0)),
        weighted(out, (0, 0), (256, 64), (c, (0, 0), 1.0), (c, (2, 0), 1.0)),
    ]
    values = np.random.default_rng(5).random(a.shape)
    expected = run(Sequence(list(nests), [a, b, c, out]), {a: values}, out)
    best = TileCost.best

    def apart(self: TileCost, start: tuple[int, ...] = ()) -> tuple[tuple[int, ...], Cost]:
        tile, cost = best(self, start)
        written = {s.buffer for stage in self.stages for s in stage.stores}
        seconds = {2: cost.seconds, 3: 0.0}[len(self.stages)]
        return tile, dataclasses.replace(cost, seconds=1.0 if written == {c, out} else seconds)

    monkeypatch.setattr(TileCost, "best", apart)
    sequence = Sequence(list(nests), [a, b, c, out])
    context = Context()
    FuseTilesPass().transform(sequence, context)
    whats: list[Any] = [what for what, _ in context.decisions]
    assert whats == ["kept apart", "fused", "fused"]
    assert len(sequence.nests()) == 1
    np.testing.assert_array_equal(run(sequence, {a: values}, out), expected)
