"""Seconds by which kernels are left out, and needs that are remembered, are those of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as product_of
from math import inf, isfinite
from typing import Any

import numpy as np
import pytest
import torch
from sweeps import sweep
from tests.support.any_unit import predict_by
from tests.support.captured import captured

from polyblocks.affine.gpu import choose
from polyblocks.affine.gpu.plans.unit_access import unit_access
from polyblocks.affine.gpu.tiles.lanes_cost import (
    least_lanes,
    least_of_all,
    predict_lanes,
)
from polyblocks.affine.gpu.tiles.needs import needs_of
from polyblocks.affine.gpu.tiles.unit_plans import unit_plans
from polyblocks.affine.gpu.tiles.units_cost import predict_units, quickest_units
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks.registry.honoured_options import describe_target

CHIPS = [("nvgpu", "sm_80"), ("amdgpu", "gfx1100")]


def compiled(
    function: Callable[..., Any], inputs: list[torch.Tensor], target: str, arch: str
) -> None:
    """Run all passes of the mid-level."""
    options = CompileOptions(target=target, arch=arch)
    description = describe_target(options)
    module = captured(function, inputs).module
    standard_pipeline(description, options).run(module, PassContext.create(description, options))


def product(m: int, n: int, k: int) -> list[torch.Tensor]:
    """Inputs of a product of matrices."""
    return [torch.zeros(m, k).half(), torch.zeros(k, n).half()]


@pytest.mark.each_choice
@pytest.mark.parametrize("sizes", [(1000, 300, 700), (17, 2048, 96)])
@pytest.mark.parametrize(("target", "arch"), CHIPS)
def test_no_tiled_kernel_is_quicker(
    target: str, arch: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def checked(plan: Any, description: Any, chip: Any) -> Any:
        found = predict_lanes(plan, description, chip)
        if isfinite(found.seconds):
            least = least_of_all(plan.sizes.parts, description)
            bound = least_lanes(description, chip)(plan)
            seen.append((least, bound, found.seconds))
        return found

    predict_by(monkeypatch, checked, "contraction")
    compiled(torch.matmul, product(*sizes), target, arch)
    assert len(seen) > 50
    rounding = 1 + 1e-9
    assert all(0 < least <= bound * rounding for least, bound, _ in seen)
    assert all(bound <= seconds * rounding for _, bound, seconds in seen)


#: Channels and sizes of images, and whether their channels are last.
IMAGES = list(product_of(((32, 14), (32, 13), (24, 14), (64, 7)), (False, True)))
FEW = [((32, 14), False), ((32, 14), True), ((24, 14), True)]


@pytest.mark.parametrize("images", sweep([IMAGES, FEW], FEW), ids=["all", "few"])
# The simpler of the two has fewer kernels to try.
@pytest.mark.parametrize(
    ("target", "arch"), [pytest.param(*CHIPS[0], marks=pytest.mark.slow), CHIPS[1]]
)
def test_remembered_needs_are_those_of_the_kernel(
    target: str, arch: str, images: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kind of product after the other: each gets the kernel that is the quickest by itself."""
    seen = []

    def checked(nest: Any, description: Any, chip: Any) -> Any:
        found = unit_access(nest, description.matrix_units)
        chosen = quickest_units(nest, description, chip)
        if found is not None and chosen is not None:
            plans = list(unit_plans(chip, found))
            times = [predict_units(plan, description, chip).seconds for plan in plans]
            best = plans[int(np.argmin(times))]
            assert (chosen[0].tiles, chosen[0].stages) == (best.tiles, best.stages)
            assert chosen[1].seconds == min(times) < inf
            seen.append((chosen[0].tiles, chosen[0].stages))
        return chosen

    monkeypatch.setattr(choose, "quickest_units", checked)
    convolution = torch.nn.functional.conv2d
    for (channels, size), last in images:
        image, weight = torch.zeros(2, channels, size, size), torch.zeros(32, channels, 3, 3)
        inputs = [image.half(), weight.half()]
        if last:
            inputs = [x.to(memory_format=torch.channels_last) for x in inputs]
        compiled(lambda x, w: convolution(x, w, padding=1), inputs, target, arch)
    for sizes in ((256, 256, 4096), (256, 256, 4095), (255, 256, 4096), (256, 8, 500)):
        compiled(torch.matmul, product(*sizes), target, arch)
    assert len(set(seen)) > 3


def test_a_unit_without_kernels_of_a_product() -> None:
    """Such as one of 16 steps where there are eight."""
    chip = describe_target(CompileOptions(target="nvgpu", arch="sm_90a")).multiprocessor
    assert chip is not None
    found = needs_of([], chip)
    assert [column.size for column in found.tile] == [0, 0, 0]
