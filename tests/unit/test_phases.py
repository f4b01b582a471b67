"""What a nest executes as it is written, what its loops wait for, and how long that takes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from polyblocks.affine.analysis.footprints import analyze
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import LEVELS_IN_TURN, NOT_HIDDEN, ROW_START
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.cost.execution_order import in_execution_order
from polyblocks.affine.cost.instructions import Mix, Registers, VectorMix, shuffles_of
from polyblocks.affine.cost.phase_times import predict, slots
from polyblocks.affine.cost.phases import Phase, phases
from polyblocks.affine.cost.traffic import Moved, traffic_of_loops
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    Check,
    For,
    Index,
    IndirectLoad,
    IndirectStore,
    Load,
    Nest,
    Node,
    Op,
    Simd,
    Store,
    Value,
)
from polyblocks.target import Issue, MemoryLevel, ParallelLevel, TargetDescription

KIB = 1024
#: One core whose slot is a nanosecond, of 16 lanes.
TARGET = TargetDescription(
    "toy",
    "v1",
    (ParallelLevel("team", 1, 1e-6), ParallelLevel("simd", 16)),
    (
        MemoryLevel("near", 32 * KIB, 64e9),
        MemoryLevel("far", 1024 * KIB, 32e9),
        MemoryLevel("main", 0, 8e9),
    ),
    vector_bits=512,
    vector_registers=32,
    masked_vectors=True,
    multiply_adds_in_flight=4,
    issue=Issue(instructions=1e9),
    flops={"float32": 32e9},
)
REGISTERS = Registers(512, 1.0, 64)


def buffer(*shape: int, kind: str = "input") -> Buffer:
    return Buffer(shape, "f32", kind)


def at(*index: Expr | Var | int) -> tuple[Expr, ...]:
    return tuple(Expr.of(e) for e in index)


def load(source: Buffer, *index: Expr | Var | int) -> Load:
    return Load(Value("f32"), source, at(*index))


def op(name: str, *operands: Value, result: str = "f32", **attributes: Any) -> Op:
    return Op(name, list(operands), attributes, [Value(result)])


def constant(number: float) -> Op:
    class Attribute:
        value = number

    return op("arith.constant", value=Attribute())


def vectors(var: Var, body: list[Node], **simd: Any) -> For:
    return For(var, body, simd=Simd(16, **simd))


def each(*body: Node, var: Var) -> Mix:
    """Instructions of one vector of a loop."""
    return VectorMix(vectors(var, list(body)), REGISTERS).each


X, Y, Z = (buffer(64, 4096) for _ in range(3))
OUT = buffer(64, 4096, kind="output")
ROW, J = Var(64), Var(4096)


def of_two(name: str, result: str = "f32") -> tuple[Load, Load, Op]:
    x, y = load(X, ROW, J), load(Y, ROW, J)
    return x, y, op(name, x.result, y.result, result=result)


class TestVectors:
    def test_a_sum_of_a_product_is_one_multiply_add(self):
        x, y, product = of_two("arith.mulf")
        z = load(Z, ROW, J)
        total = op("arith.addf", product.results[0], z.result)
        mix = each(x, y, product, z, total, Store(total.results[0], OUT, at(ROW, J)), var=J)
        assert (mix.products, mix.sums, mix.others) == (1, 0, 0)
        assert (mix.loaded, mix.stored) == (3 * 64, 64)

    def test_a_sum_of_other_things_has_units_of_its_own(self):
        x, y, total = of_two("arith.addf")
        mix = each(x, y, total, Store(total.results[0], OUT, at(ROW, J)), var=J)
        assert (mix.products, mix.sums) == (0, 1)

    def test_the_smaller_and_the_larger_need_no_comparison(self):
        x, y, less = of_two("arith.cmpf", "i1")
        (a,) = less.results
        low, high = (
            op("arith.select", a, *both) for both in ((x.result, y.result), (y.result, x.result))
        )
        stores = [Store(n.results[0], b, at(ROW, J)) for n, b in ((low, OUT), (high, Z))]
        mix = each(x, y, less, low, high, *stores, var=J)
        assert (mix.products, mix.others) == (2, 0)

    def test_other_choices_do(self):
        x, y, less = of_two("arith.cmpf", "i1")
        z = load(Z, ROW, J)
        chosen = op("arith.select", less.results[0], x.result, z.result)
        mix = each(x, y, less, z, chosen, Store(chosen.results[0], OUT, at(ROW, J)), var=J)
        assert (mix.products, mix.others) == (1, 1)

    def test_a_maximum_that_keeps_nans_takes_six(self):
        x, y, largest = of_two("arith.maximumf")
        mix = each(x, y, largest, Store(largest.results[0], OUT, at(ROW, J)), var=J)
        assert mix.products + mix.others == 6

    @pytest.mark.parametrize(
        ("flags", "cubed", "expected"),
        [("<reassoc>", False, (0, 0, 1)), ("<reassoc>", True, (0, 0, 1)), ("", False, (1, 1, 0))],
    )
    def test_a_quotient_by_a_root_is_one_operation(self, flags, cubed, expected):
        x, y = load(X, ROW, J), load(Y, ROW, J)
        root = op("math.sqrt", y.result)
        body: list[Node] = [x, y, root]
        divisor = root
        if cubed:
            divisor = op("arith.mulf", y.result, root.results[0])
            body.append(divisor)
        quotient = op("arith.divf", x.result, divisor.results[0], fastmath=flags)
        mix = each(*body, quotient, Store(quotient.results[0], OUT, at(ROW, J)), var=J)
        assert (mix.quotients, mix.roots, mix.inverse_roots) == expected
        assert mix.products == 0

    @pytest.mark.parametrize(
        ("exponent", "products", "quotients", "roots"),
        [(2, 1, 0, 0), (3, 2, 0, 0), (-1.0, 0, 1, 0), (0.5, 0, 0, 1), (1.7, 75, 0, 0)],
    )
    def test_a_known_power_is_products(self, exponent, products, quotients, roots):
        x, number = load(X, ROW, J), constant(exponent)
        power = op("math.powf", x.result, number.results[0])
        mix = each(x, number, power, Store(power.results[0], OUT, at(ROW, J)), var=J)
        assert (mix.products, mix.quotients, mix.roots) == (products, quotients, roots)

    def test_a_load_at_an_offset_lies_in_two_lines(self):
        x = load(X, ROW, Expr.of(J) + 1)
        mix = each(x, Store(x.result, OUT, at(ROW, J)), var=J)
        assert (mix.loaded, mix.stored) == (128, 64)

    def test_a_window_is_two_loads_and_shuffles(self):
        taps = [load(X, ROW, Expr.of(J) + k) for k in range(3)]
        mix = each(*taps, *(Store(t.result, OUT, at(ROW, J)) for t in taps), var=J)
        assert (mix.loaded, mix.shuffles) == (2 * 64, 2)

    def test_elements_in_turns_are_loaded_together_and_shuffled(self):
        x = buffer(64, 8192)
        both = [load(x, ROW, Expr.of(J) * 2 + k) for k in range(2)]
        mix = each(*both, *(Store(b.result, OUT, at(ROW, J)) for b in both), var=J)
        assert (mix.loaded, mix.shuffles) == (2 * 64, 2)
        assert [shuffles_of(step) for step in (2, 3, 4, 9)] == [2, 6, 8, 36]

    def test_lanes_of_a_gather_are_counted(self):
        places = Buffer((64, 4096), "i32", "input")
        place = Load(Value("i32"), places, at(ROW, J))
        index = op("arith.index_cast", place.result, result="index")
        found = IndirectLoad(Value("f32"), buffer(1024), [index.results[0]])
        body: list[Node] = [place, index, found]
        value = found.result
        for _ in range(4):
            body.append(op("arith.mulf", value, value))
            value = body[-1].results[0]
        checked = op("arith.cmpi", place.result, place.result, result="i1")
        body += [checked, Check(checked.results[0], "outside")]
        mix = each(*body, Store(value, OUT, at(ROW, J)), var=J)
        assert (mix.gathered, mix.products, mix.scalars) == (16, 4, 3)

    @pytest.mark.parametrize(
        ("apart", "pairs", "lanes"), [(1, True, 16), (-1, True, 16), (2, True, 32), (1, False, 32)]
    )
    def test_gathers_of_neighbours_are_one(self, apart, pairs, lanes):
        place = Load(Value("i32"), Buffer((64, 4096), "i32", "input"), at(ROW, J))
        two, step = (op("arith.constant", result="i32", value=Number(n)) for n in (2, apart))
        double = op("arith.muli", place.result, two.results[0], result="i32")
        next_ = op("arith.addi", double.results[0], step.results[0], result="i32")
        body: list[Node] = [place, two, step, double, next_]
        table, value = buffer(4096), None
        for index in (double, next_):
            cast = op("arith.index_cast", *index.results, result="index")
            found = IndirectLoad(Value("f32"), table, list(cast.results))
            body += [cast, found]
            value = op("arith.mulf", found.result, value.results[0] if value else found.result)
            body.append(value)
        for _ in range(8):
            value = op("arith.mulf", *value.results, *value.results)
            body.append(value)
        loop = vectors(J, [*body, Store(value.results[0], OUT, at(ROW, J))])
        assert VectorMix(loop, Registers(512, 1.0, 64, pairs)).each.gathered == lanes

    def test_what_no_lane_has_of_its_own_is_done_once(self):
        row = load(X, ROW, 0)
        x = load(Y, ROW, J)
        scaled = op("arith.mulf", x.result, row.result)
        loop = vectors(J, [row, x, scaled, Store(scaled.results[0], OUT, at(ROW, J))])
        mix = VectorMix(loop, REGISTERS)
        assert (mix.once.scalars, mix.once.loaded, mix.each.loaded) == (1, 4, 64)

    def test_a_loop_inside_of_a_register_tile_is_gone_through_by_all_lanes(self):
        k = Var(5)
        x = load(buffer(5, 4096), k, J)
        inner = For(k, [x, Store(x.result, OUT, at(ROW, J))])
        tile = vectors(J, [inner])
        tile.lanes = J.extent
        nodes = in_execution_order([tile])
        phase = phases(analyze(nodes), nodes, TARGET)
        (outer,) = phase.inner
        (inside,) = outer.inner
        assert (outer.times, inside.times) == (5, 5 * J.extent)
        assert (inside.mix.loaded, outer.mix.loaded) == (256 * 5 * 64, 0)
        assert (inside.ahead, outer.ahead) == (True, False)

    def test_a_tile_that_is_transposed_is_shuffled(self):
        i, j = Var(16), Var(16)
        x, y = buffer(16, 16), buffer(16, 16, kind="output")
        value = load(x, j, i)
        inner = For(j, [value, Store(value.result, y, at(i, j))])
        nodes: list[Node] = [For(i, [inner], simd=Simd(16, square=True))]
        (phase,) = phases(analyze(nodes), nodes, TARGET).inner
        assert (phase.mix.loaded, phase.mix.stored) == (16 * 64, 16 * 64)
        assert phase.mix.shuffles == 16 * 4


def total(phase: Phase) -> Mix:
    mix = Mix()
    mix.add(phase.mix)
    for inner in phase.inner:
        mix.add(total(inner))
    return mix


def mix_of(nodes: list[Node], target: TargetDescription = TARGET) -> Mix:
    return total(phases(analyze(nodes), nodes, target))


class TestRows:
    def test_a_row_is_started_once(self):
        x = load(X, ROW, J)
        mix = mix_of([For(ROW, [vectors(J, [x, Store(x.result, OUT, at(ROW, J))])])])
        assert (mix.loaded, mix.others) == (64 * 4096 * 4, 64 * ROW_START)

    def test_a_single_vector_is_no_loop(self):
        j = Var(16)
        x = load(X, ROW, j)
        mix = mix_of([For(ROW, [vectors(j, [x, Store(x.result, OUT, at(ROW, j))])])])
        assert mix.others == 0

    @pytest.mark.parametrize(
        ("masked", "trips", "loaded"), [(True, 19, 128), (False, 19, 64 + 3 * 4), (False, 18, 128)]
    )
    def test_what_is_left_is_a_vector_or_scalars(self, masked, trips, loaded):
        j = Var(trips)
        x = load(buffer(64), j)
        mix = mix_of([vectors(j, [x, Store(x.result, buffer(64), at(j))], masked=masked)])
        assert mix.loaded == loaded

    def test_a_sum_waits_for_the_one_before(self):
        j = Var(4096)
        start, so_far, whole = (Value("f32") for _ in range(3))
        x = load(buffer(4096), j)
        added = op("arith.addf", so_far, x.result, fastmath="<reassoc>")

        def loop(**simd: Any) -> For:
            carried = ([start], [so_far], [whole], [added.results[0]])
            return For(j, [x, added], *carried, simd=Simd(16, **simd) if simd else None)

        assert mix_of([loop(accumulators=4)]).waits == 4 * 256 / 4
        assert mix_of([loop(accumulators=1)]).waits == 4 * 256
        assert mix_of([loop()]).waits == 4 * 4096


class TestScalars:
    def test_what_an_unrolled_loop_repeats_is_computed_once(self):
        i, k = Var(100), Var(3)
        table, out = buffer(3), buffer(100, 3, kind="output")
        weight, x = load(table, k), load(buffer(100, 8), i, 0)
        root = op("math.sqrt", weight.result)
        product = op("arith.mulf", x.result, root.results[0])
        body = [weight, x, root, product, Store(product.results[0], out, at(i, k))]
        mix = mix_of([For(i, [For(k, body)])])
        # The table's three elements, and one element for each of the outer iterations.
        assert mix.loaded == 3 * 4 + 100 * 4
        assert (mix.roots, mix.products, mix.stored) == (1, 300, 1200)

    def test_what_another_loop_stores_is_loaded_again(self):
        i, k = Var(100), Var(3)
        table = buffer(3, kind="output")
        weight = load(table, k)
        mix = mix_of([For(i, [For(k, [weight, Store(weight.result, table, at(k))])])])
        assert mix.loaded == 100 * 3 * 4

    def test_small_buffers_of_an_iteration_are_registers(self):
        i, k = Var(100), Var(3)
        local = buffer(3, kind="local")
        x = load(buffer(100, 3), i, k)
        y = load(local, k)
        stages: list[Node] = [
            For(k, [x, Store(x.result, local, at(k))]),
            For(k, [y, Store(y.result, buffer(100, 3, kind="output"), at(i, k))]),
        ]
        mix = mix_of([For(i, stages)])
        assert (mix.loaded, mix.stored) == (1200, 1200)

    def test_quotients_side_by_side_are_a_vector(self):
        i, k = Var(100), Var(9)
        x = load(buffer(100, 9), i, k)
        quotient = op("arith.divf", x.result, x.result)
        store = Store(quotient.results[0], buffer(100, 9, kind="output"), at(i, k))
        assert mix_of([For(i, [For(k, [x, quotient, store])])]).quotients == 100

    def test_updates_at_places_of_run_time_wait_for_each_other(self):
        i = Var(1000)
        table = buffer(64, kind="output")
        place = op("arith.index_cast", load(buffer(1000), i).result, result="index")
        old = IndirectLoad(Value("f32"), table, [place.results[0]])
        new = op("arith.addf", old.result, old.result)
        store = IndirectStore(new.results[0], table, [place.results[0]])
        mix = mix_of([For(i, [place, old, new, store])])
        assert mix.waits == 1000 * (4 + TARGET.issue.forwarding)


def tile(stream: int = 0, rows: int = 32) -> tuple[Nest, Buffer, Buffer]:
    """Tiles of rows that are copied into a buffer of the tile, and from there to the output."""
    x, y = buffer(rows * 64, 1024), buffer(rows * 64, 1024, kind="output")
    local = buffer(rows, 1024, kind="local")
    t, i, j, k, n = Var(64), Var(rows), Var(1024), Var(rows), Var(1024)
    read, again = load(x, Expr.of(t) * rows + i, j), load(local, k, n)
    place = at(Expr.of(t) * rows + k, n)
    stages: list[Node] = [
        For(i, [vectors(j, [read, Store(read.result, local, at(i, j))])]),
        For(k, [vectors(n, [again, Store(again.result, y, place, stream=stream)])]),
    ]
    return Nest([For(t, stages, level="team")], []), x, y


class TestTraffic:
    @pytest.mark.parametrize(("stream", "expected"), [(0, (1, 1, 0)), (64, (0, 0, 1))])
    def test_each_loop_waits_for_what_it_touches(self, stream, expected):
        nest, x, y = tile(stream)
        root = analyze(nest.body)
        first, second = (one.inner[0] for one in root.inner[0].inner)
        moved = traffic_of_loops(root, 512 * KIB, lambda b: b.kind != "local")
        assert moved[first] == Moved(fetched=x.nbytes)
        # A line comes before it is stored to, unless the store passes the caches.
        assert moved[second] == Moved(*(part * y.nbytes for part in expected))

    def test_what_does_not_stay_is_moved_in_every_iteration(self):
        nest, x, y = tile()
        root = analyze(nest.body)
        first, second = (one.inner[0] for one in root.inner[0].inner)
        moved = traffic_of_loops(root, 16 * KIB, lambda _: True)
        assert moved[first] == Moved(2 * x.nbytes, x.nbytes)
        assert moved[second] == Moved(2 * y.nbytes, y.nbytes)

    def test_the_first_of_two_loops_that_read_the_same_waits(self):
        x, i, j, k = buffer(4096), Var(4), Var(1024), Var(1024)
        first, second = load(x, Expr.of(i) * 1024 + j), load(x, Expr.of(i) * 1024 + k)
        root = analyze([For(i, [For(j, [first]), For(k, [second])])])
        moved = traffic_of_loops(root, 16 * KIB, lambda _: True)
        assert moved == {root.inner[0].inner[0]: Moved(fetched=x.nbytes)}

    def test_accesses_between_loops_are_a_line_each(self):
        x, y = buffer(64, 4096), buffer(4096, 64)
        i, j = Var(64), Var(4096)
        root = analyze([For(i, [load(x, i, 0), For(j, [load(y, j, 0)])])])
        rows = root.inner[0]
        moved = traffic_of_loops(root, KIB, lambda b: b is x)
        assert moved == {rows: Moved(fetched=64 * 64)}

    @pytest.mark.parametrize(
        ("shape", "bytes_of_a_row", "factor"),
        [
            ((1 << 20, 64), 256, 1.5 + 192 / 256),
            ((1 << 20,), 64, 1.5 + 192 / 64),
            # Anywhere in a part of a page, which comes as a whole.
            ((64, 16), 64, 1.0),
        ],
    )
    def test_rows_in_any_order_take_longer_than_as_many_in_order(
        self, shape, bytes_of_a_row, factor
    ):
        x, i, j = buffer(*shape), Var(4096), Var(shape[-1] if len(shape) > 1 else 1)
        place = op("arith.index_cast", load(buffer(4096), i).result, result="index")
        column = Index(Value("index"), Expr.of(j))
        index = [place.results[0], column.result][: len(shape)]
        found = IndirectLoad(Value("f32"), x, index)
        root = analyze([For(i, [place, For(j, [column, found])])])
        (in_order,) = traffic_of_loops(root, 256 * KIB, lambda b: b is x).values()
        (moved,) = traffic_of_loops(root, 256 * KIB, lambda b: b is x, 64).values()
        assert moved.fetched == factor * in_order.fetched
        assert in_order.fetched == min(4096 * bytes_of_a_row, x.nbytes)

    def test_only_loads_and_places_of_run_time_are_in_any_order(self):
        nest, x, _ = tile()
        root = analyze(nest.body)
        moved = traffic_of_loops(root, 16 * KIB, lambda _: True, 64)
        assert moved == traffic_of_loops(root, 16 * KIB, lambda _: True)
        i = Var(4096)
        place = op("arith.index_cast", load(buffer(4096), i).result, result="index")
        store = IndirectStore(load(x, 0, 0).result, buffer(1 << 20), [place.results[0]])
        root = analyze([For(i, [place, store])])
        stored = traffic_of_loops(root, 256 * KIB, lambda _: True, 64)
        assert stored == traffic_of_loops(root, 256 * KIB, lambda _: True)


class TestTimes:
    def test_units_work_beside_each_other(self):
        shared, apart = Issue(instructions=1e9), Issue(2.0, sums_apart=True, instructions=1e9)
        mix = Mix(products=100, sums=60, others=20)
        assert (slots(mix, shared, 64), slots(mix, apart, 64)) == (180, 100)
        assert slots(Mix(products=10, quotients=4), apart, 64) == 40
        assert slots(Mix(roots=2), apart, 64) == 24
        assert slots(Mix(inverse_roots=2), apart, 64) == 44
        assert slots(Mix(products=10, shuffles=5, waits=30), apart, 64) == 30
        assert slots(Mix(products=10, gathered=16), apart, 64) == 10 + 32
        assert slots(Mix(products=1, scalars=10, loaded=128), Issue(instructions=2.0), 64) == 6.5

    def test_loops_of_a_tile_take_their_time_one_after_the_other(self):
        nest, x, y = tile(stream=64)
        seconds, busy = self.predict(nest)
        reading, writing = x.nbytes / 8e9, y.nbytes / 8e9
        assert busy["main"] == pytest.approx(reading + writing)
        assert seconds > reading + writing

    def test_short_ones_overlap(self):
        nest, x, _ = tile(stream=64, rows=1)
        seconds, busy = self.predict(nest)
        rest = sum(busy[name] for name in ("compute", "near"))
        expected = busy["main"] + LEVELS_IN_TURN * busy["far"] + NOT_HIDDEN * rest
        assert seconds == pytest.approx(expected)
        assert busy["main"] == pytest.approx(2 * x.nbytes / 8e9)

    def test_what_can_be_written_while_something_is_read(self):
        nest, x, y = tile(stream=64)
        memory = tuple(dataclasses.replace(m, writes=0.5) for m in TARGET.memory)
        _, both = self.predict(nest, dataclasses.replace(TARGET, memory=memory))
        _, shared = self.predict(nest)
        # Twice as long as reading it; a copy in the first cache takes as long either way.
        assert both["main"] == pytest.approx(max(x.nbytes, 2 * y.nbytes) / 8e9)
        assert both["near"] == pytest.approx(shared["near"])
        assert both["far"] < shared["far"]

    def predict(
        self, nest: Nest, target: TargetDescription = TARGET
    ) -> tuple[float, dict[str, float]]:
        root = analyze(nest.body)
        local = [
            traffic_of_loops(root, capacity * KIB // 2, lambda b, k=k: k == 1 or b.kind != "local")
            for k, capacity in ((1, 32), (2, 1024))
        ]
        return predict(root, nest.body, target, 1, local)

    def test_an_estimate_is_of_what_is_written(self):
        nest, x, y = tile(stream=64)
        guess = Estimator(TARGET, [x, y]).estimate(nest)
        found = Estimator(TARGET, [x, y], written=True).estimate(nest)
        assert found.predicted_seconds > guess.predicted_seconds
        # The last cache keeps a share of what is read; stores pass it.
        lost = 1 - rates.kept_share(TARGET, x.nbytes + y.nbytes)
        assert guess.bytes["main"] == x.nbytes + y.nbytes
        assert found.bytes == guess.bytes | {"main": round(lost * x.nbytes + y.nbytes)}
        assert found.floor_bytes == guess.floor_bytes
        assert found.bound == "main"
        assert set(found.seconds) == {"compute", "near", "far", "main", "launch"}

    def test_without_rates_it_is_a_guess(self):
        nest, x, y = tile()
        unknown = dataclasses.replace(TARGET, flops={})
        found = Estimator(unknown, [x, y], written=True).estimate(nest)
        assert found.predicted_seconds is found.bound is None
        assert "compute" not in found.seconds

    def test_values_of_the_loop_are_known(self):
        """Places computed of loop variables are none of run time."""
        i, j = Var(8), Var(64)
        row, column = (Index(Value("index"), Expr.of(v)) for v in (i, j))
        stride = op("arith.constant", result="index", value=Number(64))
        start = op("arith.muli", row.result, stride.results[0], result="index")
        place = op("arith.addi", start.results[0], column.result, result="index")
        x = buffer(512)
        found = IndirectLoad(Value("f32"), x, [place.results[0]])
        root = analyze([For(i, [row, stride, start, For(j, [column, place, found])])])
        assert root.inner[0].once[x].read == 64 * 4
        assert root.whole[x].read == 512 * 4


@dataclasses.dataclass
class Number:
    """An attribute."""

    value: int
