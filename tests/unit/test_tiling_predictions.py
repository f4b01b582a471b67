"""Times that the search for a tiling expects, against predictions of the nests that it makes."""

from __future__ import annotations

import random

import pytest
from tests.support.some_tilings import tiling_of

from polyblocks import mlir
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings import choice
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.affine.mlir import reader
from polyblocks.affine.mlir.json_attributes import from_attribute
from polyblocks.events import Event, listening
from polyblocks.mlir import ir
from polyblocks.options import CompileOptions
from polyblocks.passes.contraction.expand_packing import ExpandPackingPass
from polyblocks.passes.contraction.plan_contractions import PlanContractionsPass
from polyblocks.passes.contraction.tile_contractions import TileContractionsPass
from polyblocks.passes.map.vectorize_nests import VectorizeNestsPass
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe

PRODUCT = """
func.func @main(%a: memref<{m}x{k}x{t}>, %b: memref<{k}x{n}x{t}>, %c: memref<{m}x{n}xf32>) {{
  %zero = arith.constant -0.0 : f32
  affine.for %i = 0 to {m} {{ affine.for %j = 0 to {n} {{
    %s = affine.for %l = 0 to {k} iter_args(%p = %zero) -> (f32) {{
      %v = affine.load %a[%i, %l] : memref<{m}x{k}x{t}>
      %w = affine.load %b[%l, %j] : memref<{k}x{n}x{t}>
      {extend}
      %z = arith.mulf %x, %y fastmath<reassoc,contract> : f32
      %u = arith.addf %p, %z fastmath<reassoc,contract> : f32
      affine.yield %u : f32
    }}
    affine.store %s, %c[%i, %j] : memref<{m}x{n}xf32>
  }} }} {{polyblocks.kernel = "mm", polyblocks.kind = "contraction", polyblocks.sources = []}}
  return
}}
"""
EXTEND = {
    "f32": "%x = arith.bitcast %v : f32 to f32 %y = arith.bitcast %w : f32 to f32",
    "bf16": "%x = arith.extf %v : bf16 to f32 %y = arith.extf %w : bf16 to f32",
}
PASSES = (PlanContractionsPass, TileContractionsPass, ExpandPackingPass, VectorizeNestsPass)
#: By vectors, by a unit of vectors, and by a unit of tiles.
CHIPS = [("znver4", "f32"), ("neoverse-v2", "f32"), ("znver4", "bf16"), ("sapphirerapids", "bf16")]


def sizes(seed: int) -> tuple[int, int, int]:
    draw = random.Random(seed)
    m, n, k = (draw.choice([4, 17, 64, 100, 200, draw.randrange(2, 1500)]) for _ in range(3))
    return m, n, k


def seconds(arch: str, type_: str, shape: tuple[int, int, int]) -> tuple[float, float] | None:
    """Of the search and of the nest in tiles; None where there are none."""
    m, n, k = shape
    options = CompileOptions(arch=arch)
    context = PassContext.create(describe(options), options)
    module = mlir.parse(PRODUCT.format(m=m, n=n, k=k, t=type_, extend=EXTEND[type_]))
    events: list[Event] = []
    with listening(events.append), module.context, ir.Location.unknown():
        sequence = reader.read(module)
        for one in PASSES:
            one().transform(sequence, context)
        nest = sequence.nests()[-1]
        found = from_attribute(nest.estimate)["predicted_seconds"]
        assert from_attribute(nest.estimate)["flops"] > 1.9 * m * n * k
    tiled = [e.data for e in events if e.data.get("what") == "register tiles"]
    return (tiled[0]["predicted_seconds"], found) if tiled else None


#: Where the rest of a call counts for more than copies of operands and the ends of tiles.
LONG = 1e-5


@pytest.mark.parametrize(("arch", "type_"), CHIPS)
def test_the_search_expects_what_is_predicted(arch: str, type_: str) -> None:
    """Of the tilings that it chooses, which it has to be right about."""
    found = [pair for seed in range(12) if (pair := seconds(arch, type_, sizes(seed)))]
    assert len(found) >= 8
    ratios = sorted(predicted / expected for expected, predicted in found)
    assert ratios[0] > 0.5
    assert ratios[-1] < 2.5
    assert 0.8 < ratios[len(ratios) // 2] < 1.2
    assert all(0.6 < b / a < 1.5 for a, b in found if a > LONG)


#: M, N and K of products whose operands a private cache has no room for, and the last one may have.
IN_CACHES = [
    (8, 1024, 4096),
    (8, 4096, 4096),
    (64, 2048, 2048),
    (1024, 1024, 1024),
    (4096, 4096, 8),
]


@pytest.mark.parametrize(("arch", "type_"), CHIPS)
def test_the_search_finds_operands_in_the_cache_in_which_the_nest_does(
    arch: str, type_: str
) -> None:
    found = [pair for shape in IN_CACHES if (pair := seconds(arch, type_, shape))]
    assert len(found) == len(IN_CACHES)
    assert all(1 / 1.5 < predicted / expected < 1.5 for expected, predicted in found)


@pytest.mark.parametrize(("arch", "type_"), CHIPS)
def test_the_search_finds_what_is_predicted_to_be_fast(
    arch: str, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other tiling is predicted to take much less than the one that is chosen."""
    compared = 0
    for seed in range(6):
        chosen = seconds(arch, type_, sizes(seed))
        if chosen is None:
            continue
        draw = random.Random(seed)

        def some(cost: TilingCost, draw: random.Random = draw) -> Tiling:
            return tiling_of(cost, draw)

        with monkeypatch.context() as patch:
            patch.setattr(choice, "choose_tiling", some)
            others = [seconds(arch, type_, sizes(seed)) for _ in range(4)]
        for other in filter(None, others):
            assert chosen[1] < (1.15 if other[1] > LONG else 1.35) * other[1]
            compared += 1
    assert compared >= 8
