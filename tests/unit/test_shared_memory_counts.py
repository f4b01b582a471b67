"""Shared memory of a tile: counted for the search, by what writes it, and by its kernel's plan."""

from __future__ import annotations

import random

import pytest
from tests.support.gpu_target import gpu_target
from tests.support.stencil_chain import stencils

from polyblocks import mlir
from polyblocks.affine.cost.group_cost import cost_of
from polyblocks.affine.gpu import choose
from polyblocks.affine.gpu.plans.groups import GroupPlan
from polyblocks.affine.mlir import reader
from polyblocks.affine.tiles.tile_writer import shared_bytes
from polyblocks.mlir import ir
from polyblocks.occupancy import padded_bytes
from polyblocks.options import CompileOptions
from polyblocks.passes.fuse import fuse_tiles
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass
from polyblocks.pipeline import PassContext
from polyblocks.registry.honoured_options import describe_target
from polyblocks.target import TargetDescription


def target_of(arch: str) -> TargetDescription:
    if arch == "imaginary":
        return gpu_target()
    name = "nvgpu" if arch.startswith("sm") else "amdgpu"
    return describe_target(CompileOptions(target=name, arch=arch))


@pytest.mark.parametrize("arch", ["imaginary", "sm_80", "gfx1100"])
def test_all_count_the_same(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(arch)
    counts: list[tuple[int, int]] = []
    write = fuse_tiles._Grouping.write

    def seen(self: fuse_tiles._Grouping, group: fuse_tiles._Group) -> None:
        stages = group.staged or group.stages
        assert group.found is not None
        cost = cost_of(target, stages, group.found, group.local).of(group.tile)
        counts.append(
            (cost.local_bytes, shared_bytes(stages, group.found, group.tile, group.local))
        )
        write(self, group)

    monkeypatch.setattr(fuse_tiles._Grouping, "write", seen)
    draw, compared = random.Random(arch), 0
    for _ in range(8):
        module = mlir.parse(stencils(draw))
        context = PassContext.create(target, CompileOptions())
        with module.context, ir.Location.unknown():
            sequence = reader.read(module)
            FuseTilesPass().transform(sequence, context)
            nests = sequence.nests()
            if len(nests) == 1 and counts:
                kernel, _ = choose.choose(nests[0], target)
                plan = kernel.plan
                assert isinstance(plan, GroupPlan)
                cost, writer = counts[-1]
                assert cost == writer
                assert plan.shared_bytes() == plan.groups * cost
                compared += cost > 0
        counts.clear()
    assert compared >= 4


def test_rows_have_an_element_more() -> None:
    assert padded_bytes((8, 32), 4) == 8 * 33 * 4
    assert padded_bytes((2, 3, 5), 2) == 2 * 3 * 6 * 2
    # There are no rows.
    assert padded_bytes((32,), 4) == 128
    assert padded_bytes((32, 1), 4) == 128
    assert padded_bytes((), 8) == 8
