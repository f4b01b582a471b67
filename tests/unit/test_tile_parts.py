"""fuse-tiles where only a part of a buffer is written: what it costs, and where tiles run."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.support.nest_interpreter import Machine
from tests.support.nests import TARGET, Context, buffer, check, run, weighted

from polyblocks.affine.cost.group_cost import alone
from polyblocks.affine.cost.tile_cost import TileCost
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import AffineAccess, Alloca, Buffer, For, Nest, Sequence, Store, walk
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import Slices, fixed_extent, slices
from polyblocks.affine.tiles.tile_writer import tiled
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass


def stage(nest: Nest) -> FusionStage:
    """The nest as a stage."""
    found = FusionStage.of(nest)
    assert found is not None
    return found


def seconds(nest: Nest) -> float:
    """What a nest of its own costs, without the start of the threads."""
    return alone(TARGET, stage(nest)) - TARGET.shared_level.overhead


def group_cost(nests: list[Nest], out: Buffer, tile: tuple[int, ...]) -> TileCost:
    """The cost of nests as one group."""
    stages = [stage(n) for n in nests]
    found = slices(stages, out, set())
    assert found is not None
    return TileCost(TARGET, stages, found, {s.buffer for st in stages for s in st.stores} - {out})


class Counting(Machine):
    """A machine that counts how often each element is stored."""

    def __init__(self, contents: dict[Buffer, np.ndarray]) -> None:
        super().__init__(contents)
        self.stores: Counter[tuple[Buffer, tuple[int, ...]]] = Counter()

    def _at(self, node: AffineAccess, variables: dict) -> tuple[int, ...]:
        index = super()._at(node, variables)
        if isinstance(node, Store):
            self.stores[node.buffer, index] += 1
        return index


def test_a_few_columns_cost_what_their_bytes_cost() -> None:
    """Not what the whole buffer does; runs of few bytes take longer than one long run."""
    large = buffer(512, 512, kind="output")
    a = buffer(512, 512, kind="input")
    narrow = weighted(large, (0, 8), (512, 8), (a, (0, 0), 1.0))
    whole = weighted(large, (0, 0), (512, 512), (a, (0, 0), 1.0))
    small = weighted(
        buffer(512, 8, kind="output"),
        (0, 0),
        (512, 8),
        (buffer(512, 8, kind="input"), (0, 0), 1.0),
    )
    assert seconds(small) < seconds(narrow) < 20 * seconds(small)
    assert seconds(narrow) < seconds(whole) / 3
    # Whole rows are one run.
    rows = weighted(large, (7, 0), (8, 512), (a, (0, 0), 1.0))
    assert seconds(rows) == pytest.approx(seconds(whole) / 64, rel=0.01)


def test_accesses_beside_each_other_count_together() -> None:
    """The box of a buffer holds all that is read of it, once."""
    a, out = buffer(512, 64, kind="input"), buffer(500, 64, kind="output")
    near = weighted(out, (0, 0), (500, 64), (a, (0, 0), 1.0), (a, (1, 0), 1.0))
    far = weighted(out, (0, 0), (500, 64), (a, (0, 0), 1.0), (a, (12, 0), 1.0))
    assert seconds(far) == pytest.approx(seconds(near), rel=0.02)
    assert seconds(far) > seconds(near)


@pytest.mark.parametrize("row", [0, 5, 511])
def test_one_row_is_computed_as_a_whole(row: int) -> None:
    """A nest that writes one row of a buffer computes as much as if there was only that row."""
    a = buffer(512, 64, kind="input")
    many, one = buffer(512, 64, kind="output"), buffer(1, 64, kind="output")
    taps = [(a, (3, 0), float(k)) for k in range(40)]
    inside = TileCost(TARGET, [stage(weighted(many, (row, 0), (0, 64), *taps))], *_alone(many, row))
    lonely = TileCost(TARGET, [stage(weighted(one, (0, 0), (0, 64), *taps))], *_alone(one, 0))
    assert inside.of(()).compute == lonely.of(()).compute > 0


def _alone(target: Buffer, row: int) -> tuple:
    """Slices of a nest of its own that writes one row."""
    found = Slices([])
    found.boxes[target] = [(Expr(row), Expr(row)), (Expr(0), Expr(63))]
    return found, set()


def one_row(rows: int, row: int) -> tuple[list[Nest], Buffer, Buffer]:
    """A producer, and one row of an output of so many rows."""
    a, b, out = buffer(20, 30, kind="input"), buffer(20, 30), buffer(rows, 30, kind="output")
    nests = [
        weighted(b, (0, 0), (20, 30), (a, (0, 0), 2.0)),
        weighted(out, (row, 0), (0, 30), (b, (7, 0), 3.0), (b, (8, 0), 3.0)),
    ]
    return nests, a, out


@pytest.mark.parametrize("row", [0, 5, 19])
def test_a_group_that_writes_one_row_runs_for_it(row: int) -> None:
    """There is one row of tiles; every one of them computes, and no guard asks for the row."""
    nests, a, out = one_row(20, row)
    single, _, lonely = one_row(1, 0)
    costs = [group_cost(n, o, (1, 10)).of((1, 10)) for n, o in ((nests, out), (single, lonely))]
    assert costs[0].compute == costs[1].compute
    values = {a: np.random.default_rng(1).random(a.shape)}
    nest = check(nests, values, out, (1, 10))
    assert not any(isinstance(n, For) and n.bounded for n in walk(nest.body))
    locals_ = [n.buffer.shape for n in walk(nest.body) if isinstance(n, Alloca)]
    assert locals_ == [(2, 10)]


@pytest.mark.parametrize("tile", [(16, 13), (32, 5), (100, 13), (7, 7)])
def test_tiles_run_over_what_is_written(tile: tuple[int, int]) -> None:
    """Rows 100 to 199 of 1000: no tile and no iteration for the others."""
    a, b = buffer(1000, 13, kind="input"), buffer(1000, 13)
    out = buffer(1000, 13, kind="output")
    nests = [
        weighted(b, (0, 0), (1000, 13), (a, (0, 0), 2.0)),
        weighted(out, (100, 0), (100, 13), (b, (99, 0), 1.0), (b, (101, 0), 3.0)),
    ]
    stages = [stage(n) for n in nests]
    found = slices(stages, out, set())
    assert found is not None
    assert [y.extent for y in found.tile] == [100, 13]
    values = {a: np.random.default_rng(1).random(a.shape)}
    nest = check(nests, values, out, tile)
    loop = nest.body[0]
    assert isinstance(loop, For)
    assert loop.var.extent in (-(-100 // tile[0]), -(-13 // tile[1]))
    machine = Counting(values)
    machine.run(Sequence([nest], []))
    stored = {index: n for (target, index), n in machine.stores.items() if target is out}
    assert set(stored) == {(i, j) for i in range(100, 200) for j in range(13)}
    assert set(stored.values()) == {1}
    # Of the producer not much more than these rows: a halo of two rows for each tile.
    made = sum(n for (target, _), n in machine.stores.items() if target is not out)
    count = -(-100 // tile[0]) * -(-13 // tile[1])
    assert made <= count * (tile[0] + 2) * max(tile[1], 16)


def test_parts_with_nothing_between() -> None:
    """Tiles over a box with a gap in it: some have nothing to do, and it is costed so."""
    a, b = buffer(1000, 8, kind="input"), buffer(1000, 8)
    out = buffer(1000, 8, kind="output")
    nests = [
        weighted(b, (0, 0), (1000, 8), (a, (0, 0), 2.0)),
        weighted(out, (10, 0), (20, 8), (b, (10, 0), 1.0)),
        weighted(out, (400, 0), (20, 8), (b, (400, 0), 3.0)),
    ]
    stages = [stage(n) for n in nests]
    found = slices(stages, out, set())
    assert found is not None
    assert [y.extent for y in found.tile] == [410, 8]
    values = {a: np.random.default_rng(1).random(a.shape)}
    check(nests, values, out, (16, 8))
    apart = [group_cost([nests[0], n], out, (16, 8)).of((16, 8)).compute for n in nests[1:]]
    both = group_cost(nests, out, (16, 8)).of((16, 8)).compute
    # The producer runs for all tiles, the two others for a twentieth of them.
    producer = group_cost(
        [nests[0], weighted(out, (10, 0), (410, 8), (b, (10, 0), 1.0))], out, (16, 8)
    ).of((16, 8))
    assert sum(apart) < both < producer.compute


def padded_part(out: Buffer, first: int, count: int) -> tuple[list[Nest], Buffer, Buffer]:
    """Planes of ``out`` from images with rows around them that are copies of their edges."""
    _, rows, width = out.shape
    a, p = buffer(count, rows, width, kind="input"), buffer(count, rows + 2, width)
    taps = ((p, (0, k, 0), float(k + 1)) for k in range(3))
    nests = [
        weighted(p, (0, 0, 0), (count, 0, width), (a, (0, 0, 0), 1.0)),
        weighted(p, (0, 1, 0), (count, rows, width), (a, (0, 0, 0), 1.0)),
        weighted(p, (0, rows + 1, 0), (count, 0, width), (a, (0, rows - 1, 0), 1.0)),
        weighted(out, (first, 0, 0), (count, rows, width), *taps),
    ]
    return nests, a, p


def test_parts_of_one_output_stay_apart_and_take_their_producers() -> None:
    """Three padded groups of planes in one array: three nests, each with its borders."""
    out = buffer(6, 64, 32, kind="output")
    nests: list[Nest] = []
    inputs, padded = [], []
    for k in range(3):
        more, a, p = padded_part(out, 2 * k, 2)
        nests += more
        inputs.append(a)
        padded.append(p)
    generator = np.random.default_rng(1)
    values = {a: generator.random(a.shape) for a in inputs}
    expected = run(Sequence(list(nests), []), values, out)
    sequence = Sequence(list(nests), [*inputs, *padded, out])
    FuseTilesPass().transform(sequence, Context())
    assert len(sequence.nests()) == 3
    for nest, a in zip(sequence.nests(), inputs, strict=True):
        reads, writes = nest.effects()
        assert a in reads
        assert not {*padded, *inputs} - {a} & reads
        assert out in writes
        assert not set(padded) & (reads | writes)
    np.testing.assert_array_equal(run(sequence, values, out), expected)


def test_a_part_and_what_others_read_of_it() -> None:
    """A result that others use is written as a whole, whatever part of the output is."""
    a, b = buffer(40, kind="input"), buffer(40, kind="output")
    out = buffer(100, kind="output")
    nests = [
        weighted(b, (0,), (40,), (a, (0,), 2.0)),
        weighted(out, (30,), (40,), (b, (0,), 1.0)),
    ]
    stages = [stage(n) for n in nests]
    found = slices(stages, out, {b, out})
    assert found is not None
    values = {a: np.random.default_rng(1).random(a.shape)}
    machine = Counting(values)
    tile = tuple(y.extent if y in found.whole else 7 for y in found.tile)
    body = tiled(stages, found, tile, set())
    assert body is not None
    machine.run(Sequence([Nest(body, [], changed=True)], []))
    assert {n for (target, _), n in machine.stores.items() if target is b} == {1}
    np.testing.assert_array_equal(machine.array(b), values[a] * 2)
    np.testing.assert_array_equal(machine.array(out)[30:70], values[a] * 2)


def test_a_part_that_nothing_reads_has_no_elements() -> None:
    """Its last element lies before its first one."""
    assert fixed_extent((Expr(40), Expr(6)), {}, {}) == 0
    assert fixed_extent((Expr(6), Expr(40)), {}, {}) == 35
