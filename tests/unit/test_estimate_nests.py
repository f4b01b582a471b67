"""The pass estimate-nests: numbers as attributes, and on their way to the manifest."""

from __future__ import annotations

import dataclasses

import pytest
from tests.support.described_chips import described

from polyblocks import mlir
from polyblocks.affine.cost.estimate import combine, mapped
from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.mlir import reader
from polyblocks.affine.mlir.json_attributes import from_attribute
from polyblocks.attributes import ESTIMATE_ATTRIBUTE
from polyblocks.codegen.walk import nested
from polyblocks.options import CompileOptions
from polyblocks.passes.base import NestPass
from polyblocks.passes.map.estimate_nests import EstimateNestsPass
from polyblocks.passes.map.vectorize_nests import VectorizeNestsPass
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe

ROW = {
    "iterations": 4,
    "flops": 8,
    "floor_bytes": 32,
    "moved_bytes": 64,
    "bytes": {"near": 64, "main": 32},
    "seconds": {"near": 1e-7, "main": 2.5e-7, "compute": 3e-7, "launch": 1e-6},
    "predicted_seconds": 1.3e-6,
    "bound": "compute",
}


def test_several_nests_are_added_up():
    seconds = {"near": 1e-7, "main": 9e-7, "compute": 3e-7, "launch": 1e-6}
    other = ROW | {"seconds": seconds, "predicted_seconds": 1.9e-6, "bound": "main"}
    total = combine([ROW, other])
    assert (total["flops"], total["bytes"]) == (16, {"near": 128, "main": 64})
    assert total["seconds"]["main"] == pytest.approx(1.15e-6)
    assert total["predicted_seconds"] == pytest.approx(3.2e-6)
    assert total["bound"] == "main", "of the one that takes longest"
    assert ROW["bytes"] == {"near": 64, "main": 32}
    assert combine([ROW]) == ROW
    assert combine([]) is None


@pytest.mark.parametrize(
    ("memory", "compute", "latency", "bound"),
    [(5e-6, 1e-6, 2e-6, "main"), (1e-6, 5e-6, 2e-6, "compute"), (1e-6, 2e-6, 5e-6, "latency")],
)
def test_the_prediction_that_chose_a_mapping_is_the_one_that_is_told(
    memory: float, compute: float, latency: float, bound: str
) -> None:
    predicted = Predicted(memory, compute, latency)
    found = mapped(ROW, predicted.numbers(), "main")
    assert found["predicted_seconds"] == pytest.approx(predicted.seconds, rel=1e-3)
    assert found["bound"] == bound
    levels = {"near": 1e-7, "main": 2.5e-7}
    rest = {"compute": compute, "latency": latency, "launch": 1e-6}
    assert found["seconds"] == levels | rest
    assert found["bytes"] == ROW["bytes"]
    assert combine([found, found])["predicted_seconds"] == pytest.approx(2 * predicted.seconds)


def test_what_comes_from_the_main_memory_takes_its_time_whatever_is_chosen() -> None:
    predicted = Predicted(1e-6, 2e-6, 5e-7)
    streamed = ROW | {"seconds": ROW["seconds"] | {"main": 8e-6}}
    found = mapped(streamed, predicted.numbers(), "main")
    slowest = Predicted(8e-6, 2e-6, 5e-7)
    assert found["predicted_seconds"] == pytest.approx(slowest.seconds, rel=1e-3)
    assert found["bound"] == "main"
    often = streamed | {"bytes": {"near": 64, "main": 64}}
    found = mapped(often, predicted.numbers(), "main")
    assert found["predicted_seconds"] == pytest.approx(Predicted(4e-6, 2e-6, 5e-7).seconds)


def test_a_mapping_of_unknown_time_has_no_prediction() -> None:
    found = mapped(ROW, Predicted(1e-6, None, 2e-6).numbers(), "main")
    assert not {"predicted_seconds", "bound"} & found.keys()
    assert found["seconds"] == {"near": 1e-7, "main": 2.5e-7, "latency": 2e-6, "launch": 1e-6}


NEST = """
affine.parallel (%i) = (0) to (64) {
  %v = affine.load %x[%i] : memref<64xf32>
  affine.store %v, %y[%i] : memref<64xf32>
} {polyblocks.kernel = "k", polyblocks.kind = "copy", polyblocks.level = "team",
   polyblocks.sources = []}
"""
LOOP = 'affine.for %t = 0 to 4 {{ {} }} {{polyblocks.region = "loop"}}'


def launches(body: str, barrier: float) -> list[float]:
    """What starting each nest takes, by its estimate."""
    options = CompileOptions()
    chip = described("lanes-8-large-team", options)
    team = dataclasses.replace(chip.parallel[0], barrier=barrier)
    target = dataclasses.replace(chip, parallel=(team, *chip.parallel[1:]))
    text = f"func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {{ {body} return }}"
    module = mlir.parse(text)
    EstimateNestsPass().run(module, PassContext.create(target, options))
    found = [
        from_attribute(op.attributes[ESTIMATE_ATTRIBUTE])
        for op in nested(module.operation)
        if ESTIMATE_ATTRIBUTE in op.attributes
    ]
    return [estimate["seconds"]["launch"] for estimate in found]


def test_nests_that_share_a_region_cost_a_barrier() -> None:
    assert launches(NEST, 2e-7) == [3e-6]
    assert launches(NEST + NEST, 2e-7) == [2e-7, 2e-7]
    assert launches(LOOP.format(NEST), 2e-7) == [2e-7]
    # A target without such regions.
    assert launches(NEST + NEST, 0.0) == [3e-6, 3e-6]


GATHER = """
affine.parallel (%i) = (0) to (512) {
  affine.for %j = 0 to 4096 {
    %place = affine.load %ids[%i, %j] : memref<512x4096xi32>
    %index = arith.index_cast %place : i32 to index
    %x = memref.load %table[%index] : memref<1024xf32>
    %1 = arith.mulf %x, %x : f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.mulf %3, %3 : f32
    affine.store %4, %y[%i, %j] : memref<512x4096xf32>
  }
} {polyblocks.kernel = "k", polyblocks.kind = "gather", polyblocks.level = "team",
   polyblocks.sources = []}
"""


def compute_seconds(*passes: NestPass) -> float:
    """Seconds of arithmetic of the nest above, after some passes."""
    arguments = "%ids: memref<512x4096xi32>, %table: memref<1024xf32>, %y: memref<512x4096xf32>"
    module = mlir.parse(f"func.func @main({arguments}) {{ {GATHER} return }}")
    options = CompileOptions(arch="znver4")
    context = PassContext.create(describe(options), options)
    with module.context, mlir.ir.Location.unknown():
        sequence = reader.read(module)
        for one in passes:
            one.transform(sequence, context)
        (nest,) = sequence.nests()
        return from_attribute(nest.estimate)["seconds"]["compute"]


def test_a_nest_is_estimated_as_it_is_written():
    """Lanes of a gather take a cycle each, and iterations one by one several."""
    vectors = compute_seconds(VectorizeNestsPass())
    assert vectors < 0.7 * compute_seconds(EstimateNestsPass())


def test_nests_that_may_have_vectors_are_estimated_once():
    options = CompileOptions(arch="znver4")
    names = standard_pipeline(describe(options), options).steps()
    assert "vectorize-nests" in names
    assert "estimate-nests" not in names
