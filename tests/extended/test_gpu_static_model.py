"""The model of kernels' machine code: resources, schedules, waves; and the benchmark around it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench.gpu_static import (
    against,
    amd_assembly,
    bars,
    cases,
    listing,
    loops,
    measure,
    page,
    resnet_50,
    sass,
    vector,
)
from bench.gpu_static.__main__ import main
from bench.gpu_static.build import Built, describe
from bench.gpu_static.instructions import Instruction, Kind, Wait
from bench.gpu_static.loops import Parts
from bench.gpu_static.machines import Machine, machine
from bench.gpu_static.model import Launch, Problem, in_flight, predict, sums_of_warp, trips_of
from bench.gpu_static.schedule import cycles_once, cycles_per_iteration
from sweeps import sweep

from polyblocks_nvgpu import ptxas

#: What is imported where they run, which decides in which process; see tests/support/parts.py.
FRAMEWORKS = ("torch",)

WARPS = 8


@pytest.fixture(scope="module")
def ampere() -> Machine:
    return machine(describe("sm_80"))


@pytest.fixture(scope="module")
def rdna3() -> Machine:
    return machine(describe("gfx1100"))


def matrix(number: int, **given: object) -> Instruction:
    """A matrix instruction of 2048 products: 8 cycles of a partition of an A100."""
    made = Instruction(
        "HMMA.16816.F32", Kind.MATRIX, products=2048, shape=(16, 8, 16), operands="float16",
        accumulator="float32", sums=f"R{number}", addend=f"R{number}",
    )  # fmt: skip
    return replace(made, **given)  # type: ignore[arg-type]


ADD = Instruction("IADD3", Kind.INTEGER)
LOAD = Instruction("LDSM.16.M88.4", Kind.SHARED, bytes=512)
COPY = Instruction("LDGSTS.E.128", Kind.COPY, bytes=512)
CLOSE = Instruction("LDGDEPBAR", Kind.CONTROL, signals=("SB0",), closes=True)


def per_iteration(loop: list[Instruction], found: Machine, blocks: int = 1) -> float:
    return cycles_per_iteration(loop, found, WARPS, blocks, found.cache_rate)


def test_rates_of_a_machine(ampere: Machine, rdna3: Machine) -> None:
    assert ampere.busy(matrix(0)) == 8
    assert ampere.busy(LOAD) == 4
    wmma = replace(matrix(0), products=4096, shape=(16, 16, 16))
    assert rdna3.busy(wmma) == 32
    assert machine(describe("gfx1200")).busy(wmma) == 16
    assert machine(describe("gfx1200")).busy(
        replace(wmma, operands="int8", accumulator="int32")
    ) == pytest.approx(8)


def test_what_a_target_does_not_describe(ampere: Machine) -> None:
    with pytest.raises(LookupError, match="no matrix unit of float4 into float32"):
        ampere.busy(matrix(0, operands="float4"))
    target = describe("sm_80")
    memory = tuple(replace(level, bandwidth=0.0) for level in target.memory)
    with pytest.raises(LookupError, match="description of sm_80 has no rates of its memories"):
        machine(replace(target, memory=memory))
    with pytest.raises(ValueError, match="sm_81"):
        describe("sm_81")


def test_a_loop_takes_what_its_busiest_resource_does(ampere: Machine) -> None:
    # Two warps of each partition.
    assert per_iteration([matrix(n) for n in range(32)], ampere) == 2 * 32 * 8
    assert per_iteration([LOAD] * 16, ampere) == 8 * 16 * 4
    assert per_iteration([Instruction("NOP", Kind.CONTROL)] * 100, ampere) == 2 * 100
    moved = 8 * 10 * 512 / ampere.cache_rate
    wait = Instruction("DEPBAR.LE", Kind.CONTROL, waits=(Wait("SB0", 1),))
    assert per_iteration([*[COPY] * 10, CLOSE, wait], ampere) == pytest.approx(moved, rel=0.01)


def test_what_a_warp_waits_for(ampere: Machine) -> None:
    alone = [replace(LOAD, signals=("SB1",)), replace(ADD, waits=(Wait("SB1"),))]
    latency = ampere.latencies[Kind.SHARED]
    one = cycles_per_iteration(alone, ampere, 1, 1, ampere.cache_rate)
    assert latency < one < latency + 10
    # Other warps do something meanwhile.
    eight = cycles_per_iteration(alone, ampere, 8, 1, ampere.cache_rate)
    assert eight < 1.5 * one
    stalled = cycles_per_iteration([replace(ADD, stall=13)], ampere, 1, 1, ampere.cache_rate)
    assert stalled == 13


def test_copies_ahead_hide_their_latency(ampere: Machine) -> None:
    def loop(ahead: int) -> list[Instruction]:
        wait = Instruction("DEPBAR.LE", Kind.CONTROL, waits=(Wait("SB0", ahead),))
        return [COPY, CLOSE, wait, *(matrix(n) for n in range(8))]

    waiting, ahead = per_iteration(loop(0), ampere), per_iteration(loop(2), ampere)
    assert waiting > ampere.cache_cycles
    assert ahead < 0.7 * waiting
    assert (in_flight(loop(0)), in_flight(loop(2))) == (512, 3 * 512)
    assert in_flight([Instruction("global_load_b128", Kind.LOAD, bytes=512)] * 3) == 3 * 512


def test_warps_wait_for_each_other_at_barriers(ampere: Machine) -> None:
    barrier = Instruction("BAR.SYNC", Kind.BARRIER)
    slow = [matrix(n) for n in range(16)]
    free, together = per_iteration([*slow, ADD], ampere), per_iteration([*slow, barrier], ampere)
    assert together >= free + ampere.latencies[Kind.BARRIER] - 10


def test_other_vector_instructions_cost_where_they_share_the_pipe(
    ampere: Machine, rdna3: Machine
) -> None:
    for found, factor in ((ampere, 1.0), (rdna3, (32 + 8) / 32)):
        units = [replace(matrix(n), products=4096, shape=(16, 16, 16)) for n in range(8)]
        mixed = [each for unit in units for each in (unit, *[ADD] * 8)]
        ratio = per_iteration(mixed, found) / per_iteration(units, found)
        assert ratio == pytest.approx(factor, rel=0.05)


def test_registers_are_waited_for_where_the_hardware_does(rdna3: Machine) -> None:
    first = Instruction("v_add", Kind.INTEGER, writes=("v1",))
    then = Instruction("v_add", Kind.INTEGER, reads=("v1",), writes=("v2",))
    apart = replace(then, reads=("v3",))
    chained = cycles_once([first, then], rdna3, 1, 1, 1.0)
    assert chained > cycles_once([first, apart], rdna3, 1, 1, 1.0)


def test_iterations_follow_from_the_sums() -> None:
    # Two steps of 16 for each of four tiles of 16 by 8; one step is done behind the loop.
    chain = [matrix(n) for n in range(4)]
    parts = Parts((), (*chain, *chain), tuple(chain), True)
    assert sums_of_warp(parts.loop, Kind.MATRIX) == 4 * 128
    # A tile that moves on to other registers is the same one.
    moved = [matrix(0, sums="R9"), matrix(9, sums="R0"), matrix(4)]
    assert sums_of_warp(moved, Kind.MATRIX) == 2 * 128
    launch = Launch(64, 32 * WARPS, 128, 0)
    problem = Problem(64 * WARPS, 4 * 128, 1040, 0)
    assert trips_of(parts, problem, launch, WARPS) == 32
    # Twice as many blocks as tiles: each has half of the steps.
    twice = replace(launch, blocks=128)
    assert trips_of(parts, problem, twice, WARPS) == 16
    assert trips_of(replace(parts, is_loop=False), problem, launch, WARPS) == 1


def product_of_halves() -> tuple[Parts, Launch, Problem]:
    """A kernel of ours for an H100."""
    text = (against.LISTINGS / "sm_90a-product.txt").read_text()
    launch = Launch(2048, 256, 246, 73728)
    return listing.load(text), launch, Problem(8192, 8192, 8192, 3 * 8192**2 * 2)


def test_a_chain_of_products_runs_over_the_blocks_that_its_rows_meet() -> None:
    # Eight warps of 16 rows, and blocks of 64 columns: products of 64 steps, and of 64 columns.
    loop = tuple(matrix(4 * n) for n in range(16 * 64 * 128 // 2048))
    launch = Launch(2 * 1024 // (16 * WARPS), 32 * WARPS, 128, 0)
    full = Problem(2 * 1024, 1024, 128, 0, sequence=1024)
    parts = Parts((), loop, (), True)
    assert trips_of(parts, full, launch, WARPS) == 16
    causal = replace(full, causal=True)
    assert causal.blocks_met(16 * WARPS, 64) == (16 + 2) / 2
    assert trips_of(parts, causal, launch, WARPS) == 9
    assert causal.products == 1024 * 1025 // 2 * 2 * 128


def test_blocks_that_share_out_columns_run_over_those_of_their_tile() -> None:
    """A tile of 64 columns of both products comes past the registers, or through them."""
    # 8 heads of queries for each of 4 heads of keys, two blocks for each of these.
    problem = Problem(32, 4096, 2 * 128, 0, sequence=8, shared_out=True)
    launch = Launch(4 * 2, 32 * WARPS, 128, 0)
    for kind in (Kind.COPY, Kind.LOAD):
        moved = Instruction("moved", kind, bytes=512)
        loop = (matrix(0), *[moved] * (64 * 2 * 128 * 2 // (512 * WARPS)))
        assert trips_of(Parts((), loop, (), True), problem, launch, WARPS) == 4096 // 64 // 2


def test_a_slower_loop_is_predicted_slower() -> None:
    parts, launch, problem = product_of_halves()
    hopper = machine(describe("sm_90a"))
    as_it_is = predict(parts, launch, problem, hopper)
    assert as_it_is.trips == 255
    slower = {
        "instructions": (*parts.loop, *[ADD] * 400),
        "shared": (*parts.loop, *[LOAD] * 24),
        "copies": (*parts.loop, *[COPY] * 6),
        "stalls": tuple(replace(i, stall=i.stall + 3) for i in parts.loop),
        "barriers": (*parts.loop, *[Instruction("BAR.SYNC", Kind.BARRIER)] * 8),
    }
    for what, loop in slower.items():
        found = predict(replace(parts, loop=loop), launch, problem, hopper)
        assert found.seconds > 1.05 * as_it_is.seconds, what
        assert found.reach < as_it_is.reach, what
    # Half of the copies: what is left limits it.
    copies = [i for i in parts.loop if i.kind is Kind.COPY]
    fewer = tuple(i for i in parts.loop if i not in copies[:3])
    assert predict(replace(parts, loop=fewer), launch, problem, hopper).seconds < as_it_is.seconds


def test_a_block_more_than_a_wave_is_another_wave() -> None:
    parts, launch, problem = product_of_halves()
    hopper = machine(describe("sm_90a"))
    one, two = (
        predict(parts, replace(launch, blocks=n), replace(problem, floor_bytes=0), hopper)
        for n in (132, 133)
    )
    assert one.seconds * 1.5 < two.seconds < one.seconds * 2.05
    with pytest.raises(ValueError, match="no block of .* fits into a multiprocessor"):
        predict(parts, replace(launch, shared_bytes=300_000), problem, hopper)


def test_code_without_a_loop_runs_once() -> None:
    parts, launch, problem = product_of_halves()
    hopper = machine(describe("sm_90a"))
    small = replace(problem, steps=32, floor_bytes=0)
    looped, once = (
        predict(replace(parts, is_loop=is_loop), launch, small, hopper) for is_loop in (True, False)
    )
    assert looped.trips == once.trips == 1
    # The next iteration's copies are not there yet.
    assert once.scheduled > looped.scheduled


def test_groups_of_warps_compute_under_the_products_of_others() -> None:
    """Of two groups one has all of its products before the other one."""
    hopper = machine(describe("sm_90a"))
    given = {"asynchronous": True, "products": 64 * 128 * 16 // 4, "shape": (64, 128, 16)}
    one = matrix(0, name="HGMMA.64x128x16.F32", **given)
    products = (one, one, one, replace(one, signals=("gsb0",)))
    wait = Instruction("WARPGROUP.DEPBAR.LE", Kind.CONTROL, waits=(Wait("gsb0", 0),))
    busy = 4 * hopper.busy(one)
    code = (*products, wait, *[ADD] * int(busy / 4))
    cycles = cycles_per_iteration(code, hopper, 8, 1, hopper.cache_rate)
    assert cycles == pytest.approx(2 * busy, rel=0.1)


def test_the_memory_is_a_bound() -> None:
    parts, launch, problem = product_of_halves()
    hopper = machine(describe("sm_90a"))
    found = predict(parts, launch, replace(problem, floor_bytes=10**12), hopper)
    assert found.seconds == found.memory_seconds == 10**12 / hopper.bandwidth
    assert found.reach == 1


def test_the_convolutions_of_resnet_50() -> None:
    convolutions = resnet_50.layers()
    assert len(convolutions) == len(cases.GROUPS["resnet-50"]) == 53
    operations = sum(2 * case.problem.products for case in cases.GROUPS["resnet-50"]) // cases.BATCH
    # The network's, less its linear layer.
    assert operations == 8_178_368_512 - 2 * 2048 * 1000
    assert {layer.image for layer in convolutions} == {224, 56, 28, 14, 7}


def test_cases_by_name() -> None:
    assert [c.name for c in cases.named("products", "int8")] == ["x @ w.T int8 8192x8192x8192"]
    assert len(cases.named("products,resnet-50")) == 13 + 53
    with pytest.raises(ValueError, match="no group 'conv'; the groups are products, resnet-50, "):
        cases.named("conv")
    with pytest.raises(ValueError, match="no case contains '7x9'; the cases are a @ b float16"):
        cases.named("products", "7x9")


SMALL = cases.product("float16", 256, 256, 512, transposed=True)


@pytest.mark.parametrize("dtype", sweep(["float16", "int8"], "int8"))
def test_a_row_of_amd(dtype: str, rdna3: Machine) -> None:
    case = cases.product(dtype, 256, 256, 512, transposed=True)
    row = measure.measured(case, "gfx1100", rdna3, sample=3)
    assert (row["kernels"], row["matrix_cycles"], row["conflicts"]) == (1, 32, 0)
    assert row["spill_bytes"] == row["stack_bytes"] == 0
    assert 0 < row["reach"] < 1
    assert row["seconds"] >= 2 * 256 * 256 * 512 / (2 * 512 * 48 * rdna3.hertz)
    assert json.loads(json.dumps(row)) == row


@pytest.mark.skipif(ptxas.find() is None, reason="no ptxas")
def test_a_row_of_nvidia_on_its_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cases.GROUPS, "products", (SMALL,))
    status = main(["--arch", "sm_80", "--results", str(tmp_path)])
    said = capsys.readouterr()
    assert "## sm_80, a100" in said.out
    assert f"{SMALL.name} for sm_80: reach 0." in said.err
    (path,) = tmp_path.glob("*.json")
    results = json.loads(path.read_text())
    (row,) = results["rows"]
    assert (row["case"], row["limit"], row["kernels"]) == (SMALL.name, "schedule", 1)
    assert row["resident"] >= row["assumed"] == 1
    assert status == bool(results["misses"])
    assert path.with_suffix(".md").read_text() == page.markdown(results)


@pytest.mark.skipif(ptxas.find() is None, reason="no ptxas")
def test_a_row_at_the_clock_near_the_limit_of_power(ampere: Machine) -> None:
    hopper = machine(describe("sm_90a"))
    row = measure.measured(SMALL, "sm_90a", hopper)
    found = row["sustained"]
    assert hopper.power is not None
    # It has little to do.
    assert found["hertz"] == hopper.power.highest > hopper.hertz
    ratio = hopper.hertz / found["hertz"]
    assert 0.999 * ratio * row["seconds"] < found["seconds"] < row["seconds"]
    assert found["reach"] <= found["of_nominal"] < 1
    assert "| at the limit of power | GHz | ms |" in "\n".join(page._sustained([row]))
    assert ampere.power is None


def test_a_chip_that_does_more_has_a_lower_clock() -> None:
    power = machine(describe("h200")).power
    assert power is not None
    products, attention = power.hertz(0.755, 0.138), power.hertz(0.655, 0.403)
    assert products == pytest.approx(power.measured, rel=2e-3)
    assert attention == pytest.approx(power.measured, rel=2e-3)
    assert power.hertz(0.9, 0.138) < products < power.hertz(0.5, 0.138) < power.highest
    assert power.hertz(0.1, 0.1) == power.highest


def test_pieces_of_memory_take_whole_units_of_the_cache() -> None:
    names = "STG.E.128", "STG.E", "STG.E.64"
    whole, halves, sectors = (sass.instruction(name, 0, pieces=8) for name in names)
    # Eight rows: 64 bytes of each; 16, for which the rest of a sector is read; 32, a sector.
    assert (whole.bytes, halves.bytes, sectors.bytes) == (512, 1024, 512)
    assert [sass.pieces(each) for each in (whole, halves, sectors)] == [0, 8, 8]
    assert sass.instruction("UTMALDG.2D", 0, pieces=32).kind is Kind.COPY
    assert sass.instruction("UTMALDG.2D", 0).kind is Kind.CONTROL


def test_rows_that_begin_anywhere_touch_more_of_the_cache() -> None:
    at = [Launch(1, 128, 32, 0, boxes=(8192,), pitch=pitch) for pitch in (0, 2048, 2000, 96)]
    assert [launch.touched(64) for launch in at] == [1, 1, 2.75 / 2, 1.25]
    assert [launch.touched(32) for launch in at] == [1, 1, 4.5 / 4, 1]


def test_what_does_not_compile_is_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def build(*given: object) -> list[Built]:
        raise LookupError("no assembler")

    monkeypatch.setattr(measure, "build", build)
    assert main(["--arch", "gfx1200", "--only", "int8", "--results", str(tmp_path)]) == 1
    assert "x @ w.T int8 8192x8192x8192 for gfx1200: no assembler" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [(["--arch", "sm_1"], "sm_1"), (["--groups", "all"], "no group 'all'")],
)
def test_what_there_is_not(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 1
    assert f"{said}" in capsys.readouterr().err


def row_of(**given: object) -> measure.Json:
    """A row that holds everything, but for what is given."""
    held = dict.fromkeys(measure.KEYS) | {
        "case": "c", "arch": "sm_80", "group": "products", "dtype": "float16",
        "size": "8192x8192x8192", "shape": "c", "seconds": 1.0, "mapping_seconds": 1.0,
        "reach": 0.9, "spill_bytes": 0, "stack_bytes": 0, "resident": 2, "assumed": 2,
        "conflicts": 0, "bytes_in_flight": 10**8, "matrix_slots": 0.5, "matrix_cycles": 8.0,
        "vector_per_matrix": 0.5,
    }  # fmt: skip
    return held | given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"reach": 0.84}, "c for sm_80: reach 0.84, at least 0.85"),
        ({"reach": 0.1, "dtype": "int8"}, None),
        ({"spill_bytes": 4}, "c for sm_80: 4 bytes of registers are spilled"),
        ({"stack_bytes": 8}, "c for sm_80: 8 bytes are on the stack"),
        ({"resident": 1}, "c for sm_80: 1 blocks at once, the mapping assumes 2"),
        ({"conflicts": 7}, "c for sm_80: 7 simulated bank conflicts"),
        ({"bytes_in_flight": 10**6}, "c for sm_80: 1.00 MB in flight, at least 1.12"),
        (
            {"matrix_slots": 0.3},
            "c for sm_80: 30% of the loop's instructions are matrix ones, at least 45%",
        ),
        ({"matrix_slots": None}, "c for sm_80: no matrix unit computes it"),
        ({"matrix_slots": None, "group": "resnet-50", "kernels": 1}, None),
        ({"group": "resnet-50-nchw", "kernels": 2}, "c for sm_80: 2 kernels, at most 1"),
        ({"mapping_seconds": 0.7}, "c for sm_80: the mapping predicts 0.70 times as much"),
        ({"mapping_seconds": None}, None),
    ],
)
def test_what_does_not_hold(given: dict[str, object], said: str | None, ampere: Machine) -> None:
    assert [str(miss) for miss in bars.misses(row_of(**given), ampere)] == [said] * bool(said)


def test_what_does_not_hold_of_groups_of_warps() -> None:
    row = row_of(arch="sm_90a", reach=0.79, matrix_cycles=64.0)
    assert [str(miss) for miss in bars.misses(row, machine(describe("sm_90a")))] == [
        "c for sm_90a: reach 0.79, at least 0.8"
    ]


def test_what_does_not_hold_of_amd(rdna3: Machine) -> None:
    row = row_of(arch="gfx1100", reach=0.81, matrix_cycles=32.0, vector_per_matrix=3.5)
    assert [str(miss) for miss in bars.misses(row, rdna3)] == [
        "c for gfx1100: 3.5 vector instructions for each matrix one, at most 3"
    ]


def vector_row(**given: object) -> measure.Json:
    """A row without matrix units that holds everything, but for what is given."""
    held = dict.fromkeys(vector.KEYS) | {
        "case": "c", "arch": "sm_80", "float_slots": 0.75, "operands": {128: 9}, "loads": {128: 2},
        "stores": {128: 1}, "spill_bytes": 0, "stack_bytes": 0, "narrow": "", "wide": True,
    }  # fmt: skip
    return held | given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"float_slots": None, "operands": None}, None),
        ({"float_slots": 0.7}, "70% of the loop's instructions are multiply-adds, at least 75%"),
        ({"operands": {128: 8, 64: 2}}, "2 narrow reads of shared memory in the main loop"),
        ({"stores": {128: 1, 32: 3}}, "3 narrow accesses of memory"),
        ({"stores": {128: 1, 32: 3}, "narrow": "ends"}, None),
        ({"loads": {32: 2}, "stores": {32: 1}, "narrow": "ends"}, "no wide accesses of memory"),
        ({"loads": {32: 2}, "stores": {32: 1}, "narrow": "odd", "wide": False}, None),
        ({"spill_bytes": 4}, "4 bytes of registers are spilled"),
        ({"stack_bytes": 8}, "8 bytes are on the stack"),
        ({"conflicts": 7}, "7 simulated bank conflicts"),
    ],
)
def test_what_does_not_hold_without_units(given: dict[str, object], said: str | None) -> None:
    assert [miss.what for miss in bars.vector_misses(vector_row(**given))] == [said] * bool(said)


def test_widths_of_accesses() -> None:
    lines = (
        "global_load_b128 v[0:3], v0, s[0:1]",
        "ds_load_2addr_b32 v[0:1], v0",
        "v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmac_f32 v3, v1, v2",
        "s_waitcnt vmcnt(0)",
    )
    text = "".join(f"\t{line}\n" for line in lines)
    text = f"\t.type k,@function\nk:\n{text}.Lfunc_end0:\n"
    found = amd_assembly.parse(text)["k"].instructions
    assert vector.widths(found[:2]) == {128: 1, 32: 1}
    assert vector.float_slots(found) == 0.25


@pytest.mark.skipif(ptxas.find() is None, reason="no ptxas")
def test_rows_without_units_on_their_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cases.GROUPS, "vector", cases.VECTOR[:1])
    assert main(["--arch", "sm_80,gfx1100", "--groups", "vector"]) == 0
    said = capsys.readouterr().out
    assert said.count("| a @ b float32 1024x1024 |") == 2
    assert "Everything does." in said


def test_what_rows_do_not_hold_together(ampere: Machine, rdna3: Machine) -> None:
    rows = [row_of(), row_of(dtype="int8", seconds=0.7)]
    (miss,) = bars.together(rows, ampere)
    assert str(miss) == "c for sm_80: 1.43 times as fast as float16, at least 1.7"
    assert bars.together(rows, rdna3) == []
    layers = [row_of(group="resnet-50", reach=reach) for reach in (0.5, 0.6)]
    (miss,) = bars.together(layers, ampere)
    assert miss.what == "geometric mean of the reach 0.55, at least 0.6"


def test_a_main_loop_that_does_not_multiply_by_units() -> None:
    ffma = Instruction("FFMA", Kind.FLOAT, products=32, sums="R1", addend="R1")
    parts = Parts((), (ffma, ffma, replace(ffma, sums="R2", addend="R2")), (), True)
    assert loops.multiplier(parts.loop) is Kind.FLOAT
    assert sums_of_warp(parts.loop, Kind.FLOAT) == 2 * 32
