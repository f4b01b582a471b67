"""Times come from the target's description: no rate is made up, and each one counts."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from offenders import offenders
from tests.support.gpu_target import gpu_target
from tests.support.nests import TARGET, Context, buffer, weighted
from tests.support.syntax import nodes

import polyblocks
from polyblocks import mlir
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.estimate import Estimator, combine, scaled
from polyblocks.affine.cost.tile_cost import TileCost
from polyblocks.affine.model import Sequence
from polyblocks.affine.tiles.slices import Slices
from polyblocks.explanation.decisions import sentence
from polyblocks.options import CompileOptions
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass
from polyblocks.passes.map.estimate_nests import EstimateNestsPass
from polyblocks.passes.map.map_parallelism import MapParallelismPass
from polyblocks.passes.rules import steps
from polyblocks.passes.schedule.split_reductions import SplitReductionsPass
from polyblocks.passes.standard import standard_pipeline
from polyblocks.target import Latencies, MemoryLevel, TargetDescription
from polyblocks_cpu.describe import describe

CORE = Path(polyblocks.__file__).parent
FILECHECK = Path(__file__).parents[1] / "filecheck"
COST_CODE = sorted(
    file
    for pattern in (
        "affine/cost/*.py",
        "affine/operation_cost.py",
        "affine/gpu/*.py",
        "affine/gpu/mapping/*.py",
        "affine/gpu/tiles/*.py",
        "passes/fuse/*.py",
        "passes/map/*.py",
        "passes/normalize/*.py",
        "passes/schedule/*.py",
    )
    for file in CORE.glob(pattern)
)
#: Words for what only a description may say, in comments and names.
_RATE = re.compile(r"(?i)\b(seconds|per second|rates?|bandwidth)\b")
_NAMES = re.compile(r"(?i)(\b|_)(seconds|rates?|bandwidth|latency)(\b|_)")


def constants_of_time(source: str) -> Iterator[str]:
    """Literals as small as times or as large as rates, and constants that are called so."""
    lines = source.splitlines()
    for node in nodes(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            if node.value and not 1e-3 <= node.value <= 1e6:
                yield f"{node.lineno}: {node.value}"
        elif isinstance(node, (ast.Module, ast.ClassDef)):
            for statement in node.body:
                if isinstance(statement, (ast.Assign, ast.AnnAssign)) and _is_number(statement):
                    above = reversed(lines[: statement.lineno - 1])
                    comment = takewhile(lambda line: line.strip().startswith("#:"), above)
                    text = ast.unparse(statement)
                    if _NAMES.search(text) or any(map(_RATE.search, comment)):
                        yield f"{statement.lineno}: {text}"


def _is_number(statement: ast.Assign | ast.AnnAssign) -> bool:
    if statement.value is None:
        return False
    numbers = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(isinstance(n, numbers) for n in ast.walk(statement.value)) and not isinstance(
        getattr(statement.value, "value", 0), str
    )


def test_cost_code_has_no_time_or_rate_of_its_own() -> None:
    assert len(COST_CODE) > 50
    assert offenders(COST_CODE, lambda file: constants_of_time(file.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "STEP = 60e-9",
        "def f(x):\n    return x or 1e11",
        "#: Seconds of a barrier.\nBARRIER = 1",
        "#: Seconds that a load takes,\n#: with others in flight.\nLOAD = 2.0 * 3",
        "LOAD_LATENCY = 400",
        "CACHE_RATE = 2.5",
        "class Pass:\n    #: Bytes; the bandwidth of a cache.\n    cache: float = 2.5",
    ],
)
def test_a_constant_of_time_would_be_seen(source: str) -> None:
    assert len(list(constants_of_time(source))) == 1


def test_constants_of_other_kinds_are_none() -> None:
    source = '#: The part that is separate.\nPART = 0.25\nRATE_NAME = "rate"\nEMPTY = 0.0\n'
    assert list(constants_of_time(source)) == []


def with_bandwidth(target: TargetDescription, **named: float) -> TargetDescription:
    """The target with other bandwidths of the memory levels that are named."""
    memory = tuple(
        dataclasses.replace(m, bandwidth=named.get(m.name, m.bandwidth)) for m in target.memory
    )
    return dataclasses.replace(target, memory=memory)


def with_flops(target: TargetDescription, flops: float) -> TargetDescription:
    return dataclasses.replace(target, flops={"float32": flops} if flops else {})


def without(latency: str) -> TargetDescription:
    """A GPU of whose latencies one is not known."""
    target = gpu_target()
    chip = target.multiprocessor
    assert chip is not None
    latencies = dataclasses.replace(chip.latencies, **{latency: 0.0})
    return dataclasses.replace(
        target, multiprocessor=dataclasses.replace(chip, latencies=latencies)
    )


LATENCIES = [f.name for f in dataclasses.fields(Latencies)]
UNKNOWN = {
    "flops of float32": with_flops(TARGET, 0.0),
    "bandwidth of the main memory": with_bandwidth(TARGET, main=0.0),
    **{f"latency '{name}'": without(name) for name in LATENCIES},
}


@pytest.mark.parametrize("missing", UNKNOWN)
def test_what_a_description_lacks_has_a_name(missing: str) -> None:
    assert rates.unknown_rates(UNKNOWN[missing]) == (missing,)


def test_nothing_is_made_up_of_an_empty_description() -> None:
    empty = TargetDescription("bare", "v1", (), ())
    assert rates.unknown_rates(empty) == ("flops of float32", "bandwidth of the main memory")
    assert rates.lane_rate(empty) is rates.compute_seconds(empty, 1e9) is None
    assert rates.main_bandwidth(empty, 1) is rates.traffic_seconds(empty, 1e9, 1 << 30) is None
    assert not Latencies().known


def test_what_is_known_is_enough() -> None:
    assert rates.unknown_rates(TARGET) == rates.unknown_rates(gpu_target()) == ()
    assert rates.unknown_caches(TARGET) == ()
    assert rates.lane_rate(TARGET) == 5e10
    assert rates.compute_seconds(TARGET, 1e10) == 0.2
    assert rates.overlapped(1.0, 5.0, 2.0) == 5.0 + 0.2 * 3.0


def test_a_cache_of_unknown_bandwidth_is_as_fast_as_what_is_behind_it() -> None:
    target = with_bandwidth(TARGET, L1=0.0)
    first, second, main = target.memory
    assert rates.unknown_caches(target) == ("L1",)
    # Each of two threads has a second cache of its own; they share the main memory.
    assert rates.bandwidth(target, first, 2) == rates.bandwidth(target, second, 2) == 1e11
    assert rates.bandwidth(target, main, 2) == rates.main_bandwidth(target, 2) == 1e9
    assert rates.traffic_seconds(target, 5e10, 1) == 1.0
    assert rates.unknown_rates(target) == ()


def test_traffic_comes_from_where_it_fits() -> None:
    seconds = [rates.traffic_seconds(TARGET, 1e11, n) for n in (1 << 9, 1 << 12, 1 << 13)]
    assert seconds == [1.0, 2.0, 100.0]


@pytest.mark.parametrize(
    ("mib", "share"),
    # Of 32 MiB, as two cores of a Zen 4 found them there by the rates of sums.
    [(24, 0.96), (32, 0.88), (40, 0.80), (48, 0.67), (64, 0.51), (96, 0.33), (128, 0.26)],
)
def test_the_last_cache_keeps_a_share_of_what_exceeds_it(mib: int, share: float) -> None:
    target = with_ways(TARGET, 16, 32 << 20)
    assert rates.kept_share(target, mib << 20) == pytest.approx(share, abs=0.03)


def test_caches_of_unknown_ways_keep_what_they_have_room_for() -> None:
    target = with_ways(TARGET, 0, 32 << 20)
    assert [rates.kept_share(target, n << 20) for n in (0, 16, 32, 64)] == [1.0, 1.0, 1.0, 0.5]
    bare = dataclasses.replace(TARGET, memory=TARGET.memory[-1:])
    assert rates.kept_share(bare, 1) == 0.0
    assert rates.kept_share(with_ways(TARGET, 16, 32 << 20), 1 << 50) < 1e-6


def test_returning_data_comes_from_the_last_cache_in_part() -> None:
    target = with_ways(TARGET, 0, 1 << 20)
    main, cache = (rates.bandwidth(target, m, 1) for m in (target.memory[-1], target.memory[-2]))
    assert main
    assert cache
    assert rates.returning_rate(target, 1 << 19, 1) == cache
    assert rates.returning_rate(target, 1 << 21, 1) == pytest.approx(2 / (1 / main + 1 / cache))
    bare = dataclasses.replace(target, memory=target.memory[-1:])
    assert rates.returning_rate(bare, 1 << 21, 1) == main
    assert rates.returning_rate(dataclasses.replace(target, memory=()), 1, 1) is None


def with_ways(target: TargetDescription, ways: int, size: int) -> TargetDescription:
    """A target whose last cache has that many ways and bytes."""
    *others, last, main = target.memory
    cache = dataclasses.replace(last, size=size, associativity=ways)
    return dataclasses.replace(target, memory=(*others, cache, main))


def test_a_tile_has_no_cost_without_rates() -> None:
    with pytest.raises(ValueError, match=r"'toy' has no flops of float32; ask `unknown_rates`"):
        TileCost(with_flops(TARGET, 0.0), [], Slices([]), set())


def chain() -> Sequence:
    """A point-wise nest, and a stencil of what it writes."""
    a, b, out = buffer(258, 64, kind="input"), buffer(258, 64), buffer(256, 64, kind="output")
    nests = [
        weighted(b, (0, 0), (258, 64), (a, (0, 0), 2.0)),
        weighted(out, (0, 0), (256, 64), (b, (0, 0), 1.0), (b, (1, 0), 1.0), (b, (2, 0), 1.0)),
    ]
    for nest, name in zip(nests, ("twice", "sums"), strict=True):
        nest.name = name
    return Sequence(nests, [a, b, out])


def decided(one: Any, target: TargetDescription, sequence: Sequence) -> list[tuple[str, Any]]:
    """What a pass decides on a target."""
    context = Context()
    context.target = target
    one.transform(sequence, context)
    return context.decisions


@pytest.mark.parametrize(
    ("target", "what", "tile"),
    [
        (TARGET, "fused", [1, 64]),
        # Computing what tiles share again takes longer than to store it.
        (with_flops(TARGET, 1e8), "kept apart", [32, 4]),
        (with_bandwidth(TARGET, main=1e12), "kept apart", [32, 4]),
        (with_bandwidth(TARGET, L1=1e6), "kept apart", [32, 4]),
        (with_bandwidth(TARGET, L2=1e6), "kept apart", [32, 1]),
    ],
)
def test_a_rate_decides_about_fusion_and_tile(
    target: TargetDescription, what: str, tile: list[int]
) -> None:
    (found, numbers), *_ = decided(FuseTilesPass(), target, chain())
    assert (found, numbers["tile"]) == (what, tile)


@pytest.mark.parametrize("target", list(UNKNOWN.values()), ids=list(UNKNOWN))
def test_without_rates_stages_stay_apart(target: TargetDescription) -> None:
    sequence = chain()
    assert decided(FuseTilesPass(), target, sequence) == []
    assert len(sequence.nests()) == 2


def test_without_rates_work_is_shared_among_all_threads() -> None:
    slow = dataclasses.replace(TARGET.parallel[0], overhead=1.0)
    busy = dataclasses.replace(TARGET, parallel=(slow, TARGET.parallel[1]))
    for target, what, why in (
        (busy, "serial", "on one thread; starting threads takes 1 s"),
        (with_flops(busy, 0.0), "team", "its time is unknown"),
    ):
        decisions = decided(MapParallelismPass(), target, chain())
        assert [w for w, _ in decisions] == [what] * 2
        for nest, (_, numbers) in zip(("twice", "sums"), decisions, strict=True):
            assert sentence({"nest": nest, "what": what, **numbers}).endswith(why)
            assert (numbers["predicted_seconds"] is None) == (what == "team")


def test_without_rates_a_loop_of_the_program_shares_its_nests_too() -> None:
    sequence = chain()
    sequence.name = "loop"
    decisions = decided(MapParallelismPass(), with_flops(TARGET, 0.0), sequence)
    assert [w for w, _ in decisions] == ["team"] * 2


@pytest.mark.parametrize("missing", UNKNOWN)
def test_an_estimate_without_rates_predicts_nothing(missing: str) -> None:
    target, sequence = UNKNOWN[missing], chain()
    (nest, _) = sequence.nests()
    estimate = Estimator(target, sequence.buffers).estimate(nest)
    assert estimate.predicted_seconds is estimate.bound is None
    numbers = estimate.to_json()
    assert numbers["flops"] == 258 * 64
    assert not {"predicted_seconds", "bound"} & numbers.keys()
    assert ("compute" in numbers["seconds"]) == (missing != "flops of float32")
    assert ("main" in numbers["seconds"]) == (missing != "bandwidth of the main memory")
    for other in (combine([numbers, numbers]), scaled(numbers, 2)):
        assert other is not None
        assert not {"predicted_seconds", "bound"} & other.keys()
        assert other["flops"] == 2 * numbers["flops"]


def test_the_total_of_a_known_and_an_unknown_time_is_unknown() -> None:
    sequence = chain()
    (nest, _) = sequence.nests()
    known, unknown = (
        Estimator(target, sequence.buffers).estimate(nest).to_json()
        for target in (TARGET, with_flops(TARGET, 0.0))
    )
    unknown["seconds"]["compute"] = 0.0
    for both in ([known, unknown], [unknown, known]):
        total = combine(both)
        assert total is not None
        assert not {"predicted_seconds", "bound"} & total.keys()


def test_what_is_unknown_is_said_once() -> None:
    target = dataclasses.replace(
        with_bandwidth(with_flops(TARGET, 0.0), L1=0.0, main=0.0), name="bare"
    )
    decisions = decided(EstimateNestsPass(), target, Sequence([], []))
    assert [sentence({"what": what, **numbers}) for what, numbers in decisions] == [
        "no flops of float32 and no bandwidth of the main memory in the description of target "
        "'bare': predicted times are unknown, and decisions that need them keep their defaults",
        "no bandwidth of L1 in the description of target 'bare': it counts as fast as the next "
        "level",
    ]
    body = Sequence([], [])
    body.name = "loop"
    assert decided(EstimateNestsPass(), target, body) == []
    assert decided(EstimateNestsPass(), TARGET, Sequence([], [])) == []


def test_every_field_is_in_the_fingerprint() -> None:
    """A cached program of other rates is another program."""
    changed = [without(name) for name in LATENCIES]
    chip = gpu_target().multiprocessor
    assert chip is not None
    for name in ("loads_in_flight", "busy_threads", "busy_warps", "cache"):
        other = dataclasses.replace(chip, **{name: getattr(chip, name) + 1})
        changed.append(dataclasses.replace(gpu_target(), multiprocessor=other))
    assert len({t.fingerprint() for t in (gpu_target(), *changed)}) == len(changed) + 1


def test_a_memory_without_caches_is_its_own_last_cache() -> None:
    """A GPU of which only the main memory is described has costs all the same."""
    main = MemoryLevel("main", 0, 1e12, shared_by=132)
    target = dataclasses.replace(gpu_target(), memory=(main,))
    (_, numbers), *_ = decided(FuseTilesPass(), target, chain())
    assert numbers["fused_seconds"] > 0


def test_without_rates_reductions_are_shared_among_threads() -> None:
    slow = dataclasses.replace(TARGET.parallel[0], overhead=1.0)
    busy = dataclasses.replace(TARGET, parallel=(slow, TARGET.parallel[1]))
    for target, what in ((busy, []), (with_flops(busy, 0.0), ["split"])):
        module = mlir.parse(
            """
            func.func @main(%a: memref<512xf32>, %b: memref<f32>) {
              %zero = arith.constant 0.0 : f32
              %s = affine.for %i = 0 to 512 iter_args(%t = %zero) -> (f32) {
                %x = affine.load %a[%i] : memref<512xf32>
                %u = arith.addf %t, %x fastmath<reassoc> : f32
                affine.yield %u : f32
              }
              affine.store %s, %b[] : memref<f32>
              return
            }
            """
        )
        context = Context()
        context.target = target
        SplitReductionsPass().run(module, context)
        assert [w for w, _ in context.decisions] == what


@pytest.mark.parametrize(
    ("name", "with_rates", "without_rates"),
    [
        ("split-scans", ["split", "split", "left whole"], ["left whole"] * 3),
        ("schedule-scatters", ["columns", "copies", "serial", "serial"], ["serial"] * 4),
        ("eliminate-overwritten-stores", ["split", "left whole"], ["left whole"] * 2),
    ],
)
def test_without_rates_nothing_is_done_more_often_for_speed(
    name: str, with_rates: list[str], without_rates: list[str]
) -> None:
    known = describe(CompileOptions(arch="x86-64-v4"))
    for target, what in ((known, with_rates), (with_flops(known, 0.0), without_rates)):
        context = run_on(name, target)
        assert [w for w, _ in context.decisions] == what
        texts = [sentence({"nest": "f", "what": w, **n}) for w, n in context.decisions]
        if name != "schedule-scatters":
            assert [t.endswith("unknown") for t in texts] == [what is without_rates] * len(texts)


def test_without_rates_producers_are_inlined_by_the_number_of_instructions() -> None:
    known = describe(CompileOptions(arch="x86-64-v4"))
    for target, key in ((known, "traffic_seconds"), (with_flops(known, 0.0), "slots_stored")):
        ((what, numbers),) = run_on("inline-producers", target).decisions
        assert what == "fused"
        assert key in numbers


def run_on(name: str, target: TargetDescription) -> Context:
    """What a pass decides about the programs of its FileCheck test."""
    passes = standard_pipeline(target, CompileOptions()).stages.values()
    known = {one.name: one for stage in passes for one in steps(stage)}
    module = mlir.parse((FILECHECK / f"{name}.mlir").read_text())
    context = Context()
    context.target = target
    known["normalize-nests"].run(module, context)
    context.decisions.clear()
    known[name].run(module, context)
    return context
