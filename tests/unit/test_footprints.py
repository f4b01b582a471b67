"""Footprints, traffic and predicted times of nests made by hand; no MLIR."""

from __future__ import annotations

import pytest

from polyblocks.affine.analysis.footprints import analyze
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
    Index,
    IndirectLoad,
    Load,
    Nest,
    Node,
    Op,
    Store,
    Value,
)
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

KIB = 1024
TARGET = TargetDescription(
    "toy",
    "v1",
    (ParallelLevel("team", 2, 1e-6), ParallelLevel("simd", 8)),
    (
        MemoryLevel("near", 32 * KIB, 100e9),
        MemoryLevel("far", 1024 * KIB, 50e9, shared_by=2),
        MemoryLevel("main", 0, 10e9, shared_by=2),
    ),
    flops={"float32": 64e9},
)


def buffer(*shape: int, kind: str = "input") -> Buffer:
    return Buffer(shape, "f32", kind)


def at(*index: Expr | Var | int) -> tuple[Expr, ...]:
    return tuple(Expr.of(e) for e in index)


def load(source: Buffer, *index: Expr | Var | int) -> Load:
    return Load(Value("f32"), source, at(*index))


def op(name: str, *operands: Value) -> Op:
    return Op(name, list(operands), {}, [Value("f32")])


def loops(variables: list[Var], body: list[Node], level: str | None = None) -> list[Node]:
    """A perfect nest; ``level`` is that of the outermost loop."""
    for var in reversed(variables):
        body = [For(var, body, level=level if var is variables[0] else None)]
    return body


def copy_nest(rows: int, columns: int, level: str | None = None) -> tuple[Buffer, Buffer, Nest]:
    x, y = buffer(rows, columns), buffer(rows, columns, kind="output")
    i, j = Var(rows), Var(columns)
    value = load(x, i, j)
    nest = Nest(loops([i, j], [value, Store(value.result, y, at(i, j))], level), [])
    return x, y, nest


def matmul(m: int, n: int, k: int) -> tuple[tuple[Buffer, Buffer, Buffer], Nest]:
    a, b, c = buffer(m, k), buffer(k, n), buffer(m, n, kind="output")
    i, j, r = Var(m), Var(n), Var(k)
    left, right, old = load(a, i, r), load(b, r, j), load(c, i, j)
    product = op("arith.mulf", left.result, right.result)
    total = op("arith.addf", old.result, product.results[0])
    body = [left, right, old, product, total, Store(total.results[0], c, at(i, j))]
    return (a, b, c), Nest(loops([i, j, r], body), [])


def estimate(nest: Nest, *buffers: Buffer):
    return Estimator(TARGET, buffers).estimate(nest)


class TestFootprints:
    def test_a_copy_touches_each_row_once(self):
        x, y, nest = copy_nest(8, 32)
        root = analyze(nest.body)
        rows, columns = root.inner[0], root.inner[0].inner[0]
        assert (rows.trips, columns.trips) == (8, 32)
        assert rows.once[x].read == 32 * 4
        assert rows.whole[x].read == 8 * 32 * 4
        assert rows.whole[y].written == 8 * 32 * 4
        assert (rows.whole[x].written, rows.whole[y].read) == (0, 0)

    def test_a_window_is_one_box(self):
        x = buffer(64, 64)
        i, j = Var(60), Var(64)
        window = [load(x, Expr.of(i) + d, j) for d in range(5)]
        root = analyze(loops([i, j], window))
        rows = root.inner[0]
        assert rows.once[x].read == 5 * 64 * 4
        assert rows.whole[x].read == 64 * 64 * 4
        assert rows.reuse(x) == pytest.approx(60 * 5 / 64)

    def test_a_loop_that_does_not_move_an_access_reuses_it(self):
        (a, b, _), nest = matmul(8, 16, 32)
        i = analyze(nest.body).inner[0]
        j = i.inner[0]
        assert j.reuse(a) == 16
        assert j.reuse(b) == pytest.approx(16 * 64 / 64)  # a column: a line per element
        assert i.reuse(b) == 8

    def test_strided_accesses_touch_whole_lines(self):
        x = buffer(64, 64)
        i = Var(16)
        touched = analyze(loops([i], [load(x, 3, 4 * Expr.of(i))])).whole[x]
        assert touched.read == 16 * 4
        assert touched.read_lines == 64 * 4
        column = analyze(loops([i], [load(x, i, 3)])).whole[x]
        assert (column.read, column.read_lines) == (16 * 4, 16 * 64)

    def test_streams_side_by_side_touch_each_line_once(self):
        x = buffer(1 << 16)
        part, i = Var(16), Var(1024)
        index = 4096 * Expr.of(part) + i
        body = [load(x, index + 1024 * k) for k in range(4)]
        root = analyze(loops([part, i], body))
        parts = root.inner[0]
        assert parts.once[x].read_lines == parts.once[x].read == 4 * 1024 * 4
        assert parts.inner[0].once[x].read_lines == 4 * 64
        assert root.whole[x].read == x.nbytes
        halves = [load(x, 4096 * Expr.of(part) + i), load(x, 4096 * Expr.of(part) + i + 2048)]
        apart = analyze(loops([part, i], halves)).inner[0]
        assert apart.once[x].read_lines == 2 * 1024 * 4
        assert apart.whole[x].read_lines == 16 * 2 * 1024 * 4

    def test_full_rows_are_one_run(self):
        x = buffer(10, 3)
        i, j = Var(10), Var(3)
        assert analyze(loops([i, j], [load(x, i, j)])).whole[x].read_lines == 128

    def test_places_of_one_buffer_are_united_where_they_meet(self):
        x = buffer(64)
        i, j = Var(16), Var(16)
        same = loops([i], [load(x, i)]) + loops([j], [load(x, j)])
        assert analyze(same).whole[x].read == 16 * 4
        i, j = Var(16), Var(16)
        apart = loops([i], [load(x, i)]) + loops([j], [load(x, Expr.of(j) + 16)])
        assert analyze(apart).whole[x].read == 32 * 4

    def test_collapsed_loops_are_seen_through(self):
        x = buffer(32, 8, 16)
        t, k = Var(32 * 8), Var(16)
        e = Expr.of(t)
        root = analyze(loops([t, k], [load(x, e // 8, e % 8, k)]))
        assert root.inner[0].once[x].read == 16 * 4
        assert root.whole[x].read == x.nbytes

    def test_a_gather_touches_a_line_each(self):
        table = buffer(1000, 16)
        i = Var(10)
        body: list[Node] = [IndirectLoad(Value("f32"), table, [Value("index"), Value("index")])]
        touched = analyze(loops([i], body)).whole[table]
        assert (touched.read, touched.read_lines) == (40, 640)

    def test_a_star_has_few_rows(self):
        x = buffer(64, 64, 64)
        i, j, k = Var(60), Var(60), Var(64)
        offsets = [(2, 2), *((d, 2) for d in (0, 1, 3, 4)), *((2, d) for d in (0, 1, 3, 4))]
        star = [load(x, Expr.of(i) + di, Expr.of(j) + dj, k) for di, dj in offsets]
        rows = analyze(loops([i, j, k], star)).inner[0].inner[0]
        assert rows.once[x].read == rows.once[x].read_lines == 9 * 64 * 4
        # Row after row the star becomes five planes.
        assert rows.whole[x].read == 5 * 64 * 64 * 4

    def test_places_of_run_time_stay_within_their_digit(self):
        """Nine elements for each i, of which three are chosen by a table."""
        x, table = buffer(900), buffer(3)
        i, k = Var(100), Var(3)
        chosen = load(table, k)
        row = Index(Value("index"), Expr.of(i) * 9)
        place = Op("arith.addi", [row.result, chosen.result], {}, [Value("index")])
        found = IndirectLoad(Value("f32"), x, list(place.results))
        root = analyze(loops([i, k], [chosen, row, place, found]))
        outer = root.inner[0]
        assert (outer.once[x].read, outer.once[x].read_lines) == (3 * 4, 64)
        assert outer.whole[x].read_lines <= x.nbytes + 64

    def test_places_of_run_time_are_no_more_than_there_are_accesses(self):
        x = buffer(1 << 20)
        i, k = Var(8), Var(4)
        first, second = load(buffer(8), i), load(buffer(8, 4), i, k)
        factor = Index(Value("index"), Expr(1024))
        product = Op("arith.muli", [first.result, factor.result], {}, [Value("index")])
        place = Op("arith.addi", [product.results[0], second.result], {}, [Value("index")])
        found = IndirectLoad(Value("f32"), x, list(place.results))
        touched = analyze(loops([i, k], [first, second, factor, product, place, found])).whole[x]
        assert (touched.read, touched.read_lines) == (32 * 4, 32 * 64)

    def test_memory_with_two_names_is_touched_once(self):
        x = buffer(16, 64)
        view = Buffer((1024,), "f32", "other", base=x)
        i, j = Var(16), Var(64)
        root = analyze(loops([i, j], [load(x, i, j), load(view, 64 * Expr.of(i) + j)]))
        assert {b: t.read for b, t in root.whole.items()} == {view: x.nbytes}

    def test_stores_that_pass_the_caches_are_told_from_others(self):
        x, y = buffer(64), buffer(64, kind="output")
        i = Var(64)
        value = load(x, i)
        for streams, passes in (((64,), True), ((64, 0), False)):
            stores = [Store(value.result, y, at(i), stream=n) for n in streams]
            assert analyze(loops([i], [value, *stores])).whole[y].passes == passes

    def test_loops_with_bounds_run_over_a_tile(self):
        x, y = buffer(64 + 2, kind="input"), buffer(64, kind="output")
        tile, i = Var(4), Var(64)
        start = 16 * Expr.of(tile)
        body = [load(x, i), load(x, Expr.of(i) + 2)]
        body.append(Store(body[0].result, y, at(i)))
        inner = For(i, body, lower=(start,), upper=(start + 16,))
        root = analyze([For(tile, [inner])])
        outer = root.inner[0]
        assert outer.inner[0].trips == 16
        assert outer.once[x].resident == 128  # 18 elements: two lines
        assert outer.once[x].read == 18 * 4 - 2 * 4 + 2 * 4
        assert outer.whole[y].written == 64 * 4

    def test_bounds_that_only_cut_at_the_border_count_on_average(self):
        x, y = buffer(66), buffer(66, kind="output")
        tile, i = Var(4), Var(18)
        start = 16 * Expr.of(tile)
        value = load(x, start + i)
        inner = For(i, [value, Store(value.result, y, at(start + i))])
        inner.lower, inner.upper = (start * -1 + 1,), (start * -1 + 65,)
        root = analyze([For(tile, [inner])])
        assert root.inner[0].once[x].read == 17.5 * 4
        assert root.whole[x].read == root.whole[y].written == 66 * 4

    def test_triangles_touch_a_part_of_their_box(self):
        x, y = buffer(64, 64), buffer(64, 64, kind="output")
        i, j = Var(64), Var(64)
        value = load(x, Expr.of(i), Expr.of(j))
        inner = For(j, [value, Store(value.result, y, at(Expr.of(i), Expr.of(j)))])
        inner.upper = (Expr.of(i) + 1,)
        root = analyze([For(i, [inner])])
        assert root.whole[x].read == root.whole[x].read_lines == 65 * 32 * 4
        assert root.whole[y].written == 65 * 32 * 4


class TestTraffic:
    def test_what_fits_is_loaded_once(self):
        (a, b, _), nest = matmul(64, 64, 64)
        traffic = analyze(nest.body).traffic(1 << 20)
        assert (traffic[a], traffic[b]) == (a.nbytes, b.nbytes)

    def test_what_does_not_fit_is_loaded_again(self):
        (a, b, _), nest = matmul(64, 64, 64)
        # One iteration of the outer loop needs all of B (16 KiB), one of the next a column.
        traffic = analyze(nest.body).traffic(8 * KIB)
        assert traffic[a] == a.nbytes
        assert traffic[b] == 64 * b.nbytes

    def test_a_sliding_window_is_loaded_once(self):
        x = buffer(68, 64)
        i, j = Var(64), Var(64)
        nest = loops([i, j], [load(x, Expr.of(i) + d, j) for d in range(5)])
        assert analyze(nest).traffic(2 * KIB)[x] == x.nbytes


class TestEstimate:
    def test_a_copy_is_bound_by_main_memory(self):
        x, y, nest = copy_nest(1024, 1024, level="team")
        e = estimate(nest, x, y)
        assert e.floor_bytes == e.moved_bytes == e.bytes["main"] == 2 * x.nbytes
        assert e.bytes["near"] == 2 * x.nbytes
        assert (e.flops, e.iterations) == (0, 1 << 20)
        assert e.bound == "main"
        assert e.predicted_seconds == pytest.approx(2 * x.nbytes / 10e9 + 1e-6)
        assert e.seconds["near"] == pytest.approx(2 * x.nbytes / 200e9)

    def test_buffers_are_found_where_they_fit(self):
        x, y, nest = copy_nest(32, 32)
        e = estimate(nest, x, y)
        assert (e.bytes["far"], e.bytes["main"]) == (0, 0)
        assert e.bytes["near"] == e.moved_bytes == e.floor_bytes == 2 * x.nbytes
        # Beside much else that the program touches they are not.
        e = estimate(nest, x, y, buffer(1024, 1024))
        assert e.bytes["main"] == e.floor_bytes == 2 * x.nbytes

    def test_an_intermediate_stays_where_it_fits_by_itself(self):
        x, y, nest = copy_nest(32, 32)
        y.kind = "alloc"
        e = estimate(nest, x, y, buffer(1024, 1024))
        assert e.bytes["main"] == x.nbytes

    def test_local_buffers_cost_no_main_memory_and_no_floor(self):
        x, y = buffer(256, 1024), buffer(256, 1024, kind="output")
        tile = buffer(1024, kind="local")
        i, j, k = Var(256), Var(1024), Var(1024)
        first, second = load(x, i, j), load(tile, k)
        body: list[Node] = [
            Alloca(tile),
            For(j, [first, Store(first.result, tile, at(j))]),
            For(k, [second, Store(second.result, y, at(i, k))]),
        ]
        e = estimate(Nest([For(i, body, level="team")], []), x, y)
        assert e.floor_bytes == 2 * x.nbytes
        assert e.bytes["main"] == e.bytes["far"] == 2 * x.nbytes
        assert e.bytes["near"] == 4 * x.nbytes

    def test_flops_and_the_peak(self):
        (a, b, c), nest = matmul(16, 16, 16)
        e = estimate(nest, a, b, c)
        assert e.flops == 2 * 16**3
        # The innermost loop walks down a column of B: no vectors, on one of two threads.
        assert e.seconds["compute"] == pytest.approx(16**3 * 8 * 2 / 32e9)
        assert e.bound == "compute"

    def test_gathered_rows_are_copied_in_vectors(self):
        table, ids, y = buffer(100, 64), buffer(10), buffer(10, 64, kind="output")
        i, j = Var(10), Var(64)
        number, place = load(ids, i), Index(Value("index"), Expr.of(j))
        cast = op("arith.index_cast", number.result)

        def seconds(*index: Value) -> float:
            value = IndirectLoad(Value("f32"), table, list(index))
            body: list[Node] = [number, cast, place, value, Store(value.result, y, at(i, j))]
            return estimate(Nest(loops([i, j], body), []), table, ids, y).seconds["compute"]

        rows = seconds(cast.results[0], place.result)
        assert rows > 0
        assert seconds(place.result, cast.results[0]) == pytest.approx(8 * rows)

    def test_half_filled_vectors_cost_whole_ones(self):
        x, y = buffer(1000, 12), buffer(1000, 12, kind="output")
        i, j = Var(1000), Var(12)
        value = load(x, i, j)
        double = op("arith.addf", value.result, value.result)
        nest = Nest(loops([i, j], [value, double, Store(double.results[0], y, at(i, j))]), [])
        assert estimate(nest, x, y).seconds["compute"] == pytest.approx(1000 * 16 * 2 / 32e9)

    def test_moved_bytes_are_never_below_the_floor(self):
        for m, n, k in [(3, 5, 7), (1, 1, 1), (64, 1024, 64), (512, 512, 512), (1000, 3, 2)]:
            buffers, nest = matmul(m, n, k)
            e = estimate(nest, *buffers)
            assert e.moved_bytes >= e.floor_bytes == sum(x.nbytes for x in buffers) + m * n * 4

    def test_an_empty_nest_costs_nothing(self):
        x, y, nest = copy_nest(0, 8)
        e = estimate(nest, x, y)
        assert (e.iterations, e.floor_bytes, e.bytes["near"]) == (0, 0, 0)
        assert e.predicted_seconds == 0

    def test_a_parallel_loop_without_iterations(self):
        x, y, nest = copy_nest(0, 8, level="team")
        assert estimate(nest, x, y).predicted_seconds == 0

    def test_a_buffer_of_run_time_size(self):
        x = buffer(-1, 8)
        i, j = Var(4), Var(8)
        e = estimate(Nest(loops([i, j], [load(x, i, j)]), []), x)
        assert e.floor_bytes == e.moved_bytes == 4 * 8 * 4

    def test_json_holds_plain_values(self):
        x, y, nest = copy_nest(1024, 1024, level="team")
        data = estimate(nest, x, y).to_json()
        assert data["bytes"] == {"near": 2 * x.nbytes, "far": 2 * x.nbytes, "main": 2 * x.nbytes}
        assert data["bound"] == "main"
        assert data["seconds"]["launch"] == 1e-6
