"""Times that the search for tiles expects, against predictions of the nests that it makes."""

from __future__ import annotations

import dataclasses
import random

import pytest
from tests.support.nests import buffer, weighted
from tests.support.stencil_chain import stencils

from polyblocks import mlir
from polyblocks.affine.cost import rates
from polyblocks.affine.mlir.json_attributes import from_attribute
from polyblocks.affine.model import Buffer
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.passing_stores import BufferWriter
from polyblocks.attributes import ESTIMATE_ATTRIBUTE
from polyblocks.codegen.walk import nested
from polyblocks.options import CompileOptions
from polyblocks.passes.fuse import fuse_tiles
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass
from polyblocks.passes.map.map_parallelism import MapParallelismPass
from polyblocks.passes.map.vectorize_nests import VectorizeNestsPass
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe


@pytest.mark.parametrize("arch", ["znver4", "znver5", "sapphirerapids"])
def test_the_search_expects_what_is_predicted(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of groups that are large enough for threads to matter, in caches and in memory.

    Of what just fits in the last cache the one expects more than the other hopes for. Of what does
    not the search hopes for nothing.
    """
    monkeypatch.setattr(rates, "kept_share", lambda target, touched: 0.0)
    expected: list[float] = []
    write = fuse_tiles._Grouping.write

    def seen(self: fuse_tiles._Grouping, group: fuse_tiles._Group) -> None:
        expected.append(group.seconds)
        write(self, group)

    monkeypatch.setattr(fuse_tiles._Grouping, "write", seen)
    options = CompileOptions(arch=arch)
    draw, ratios = random.Random(arch), []
    for _ in range(10):
        module = mlir.parse(stencils(draw, (256, 20000), (1024, 3000, 4096)))
        context = PassContext.create(describe(options), options)
        for one in (FuseTilesPass(), MapParallelismPass(), VectorizeNestsPass()):
            one.run(module, context)
        found = [
            from_attribute(op.attributes[ESTIMATE_ATTRIBUTE])["predicted_seconds"]
            for op in nested(module.operation)
            if ESTIMATE_ATTRIBUTE in op.attributes
        ]
        if len(found) == 1 and expected:
            ratios.append(found[0] / expected[-1])
        expected.clear()
    assert len(ratios) >= 5
    ratios.sort()
    assert ratios[0] > 0.6
    # Near the size of a cache the one may find arrays in it that the other does not.
    assert ratios[-1] < 1.4
    assert 0.7 < ratios[len(ratios) // 2] < 1.25


def test_outputs_that_no_cache_keeps_are_written_once() -> None:
    """Stores that pass the caches read no lines; of others each is read before it is written."""
    target = describe(CompileOptions(arch="znver4"))
    cache = target.memory[-2].size
    large, small = (Buffer((size // 4,), "f32", "output") for size in (cache, cache // 8))
    assert rates.passes_caches(target, large, cache)
    assert rates.passes_caches(target, large, 2 * cache, walks=True)
    # What fits with all else that is touched, what is small, and what is read again.
    assert not rates.passes_caches(target, large, cache // 4)
    assert not rates.passes_caches(target, large, cache, walks=True)
    assert not rates.passes_caches(target, small, cache)
    assert not rates.passes_caches(target, Buffer((cache,), "f32", "alloc"), 8 * cache)
    bare = dataclasses.replace(target, memory=target.memory[-1:])
    assert not rates.passes_caches(bare, large, 8 * cache)


def test_what_tiles_leave_to_outputs_waits_for_no_lines() -> None:
    """As stores are marked: where only a tile is read, they pass the caches from fewer bytes on."""
    a, tile, out = buffer(64, 64, kind="input"), buffer(64, 64), buffer(64, 64, kind="output")
    tap, other = (tile, (0, 0), 1.0), (a, (0, 0), 1.0)

    def walks(*taps: object) -> bool:
        nests = weighted(tile, (0, 0), (64, 64), other), weighted(out, (0, 0), (64, 64), *taps)
        stages = [stage for stage in map(FusionStage.of, nests) if stage is not None]
        return BufferWriter.of(stages, out).walks({tile})

    assert not walks(tap)
    assert walks(tap, other)
    assert walks(other)
