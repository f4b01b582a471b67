"""Blocks of units in an order in which few rows of tiles read columns that no cache keeps."""

from __future__ import annotations

import importlib
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.extended.test_kernels_simulated import TARGETS, simulate
from tests.support.any_unit import any_unit
from tests.support.captured import captured

from polyblocks.affine.gpu import choose, scheduled
from polyblocks.affine.gpu.tiles.units_cost import quickest_units
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext

pytestmark = pytest.mark.cpu

#: Rows of tiles that divide into several groups and into one, that do not, with what is left over,
#: and of a batch.
SHAPES = (
    ((576, 64), (64, 96)),
    ((128, 32), (32, 80)),
    ((272, 32), (32, 96)),
    ((299, 40), (40, 83)),
    ((3, 96, 32), (3, 32, 128)),
)


def _describe(arch: str) -> Any:
    return importlib.import_module(f"polyblocks_{TARGETS[arch]}.describe")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Plans of products as they are emitted, for chips whose caches keep next to nothing."""
    seen: list[Any] = []
    for arch in ("sm_80", "gfx1100"):
        module = _describe(arch)
        described = module.describe

        def tiny(options: CompileOptions, described: Any = described) -> Any:
            target = described(options)
            levels = (replace(level, size=min(level.size, 1024)) for level in target.memory)
            return replace(target, memory=tuple(levels))

        monkeypatch.setattr(module, "describe", tiny)
    ordered = scheduled.in_order

    def in_order(*given: Any) -> Any:
        seen.append(ordered(*given))
        return seen[-1]

    monkeypatch.setattr(scheduled, "in_order", in_order)
    return seen


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ["sm_80", "gfx1100"])
@pytest.mark.parametrize("shapes", SHAPES, ids=lambda s: "x".join(map(str, s[0])))
def test_tiles_in_any_order_are_the_same_product(
    shapes: tuple[tuple[int, ...], ...], arch: str, plans: list[Any]
) -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(shape).half() for shape in shapes)
    a[..., 5, 3], b[..., 2, 7] = torch.nan, torch.inf
    with any_unit(random.Random(str(shapes))):
        outputs, launches = simulate(torch.matmul, [a, b], arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    rows = plans[-1].sizes.grid[0]
    assert plans[-1].order == (max(n for n in range(1, 17) if rows % n == 0), 1)
    expected = a.double() @ b.double()
    eager = (a @ b).double()
    found = torch.from_numpy(outputs[0]).double()
    finite = expected.isfinite()
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found[found.isinf()], expected[expected.isinf()])
    error = (found - expected)[finite].abs().max()
    assert error <= 2 * (eager - expected)[finite].abs().max() + 1e-6


@pytest.mark.parametrize("arch", ["sm_80", "gfx1100", "sm_90a"])
@pytest.mark.parametrize(("columns", "together"), [(4096, False), (1 << 17, True)])
def test_columns_that_a_cache_keeps_are_read_row_by_row(
    columns: int, together: bool, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And units that read shared memory have the order of their clusters."""
    chosen = []

    def quickest(*given: Any) -> Any:
        found = quickest_units(*given)
        chosen.extend([] if found is None else [found[0]])
        return found

    monkeypatch.setattr(choose, "quickest_units", quickest)
    options = CompileOptions(target=TARGETS[arch], arch=arch)
    target = _describe(arch).describe(options)
    inputs = [torch.zeros(1024, 1024).half(), torch.zeros(1024, columns).half()]
    module = captured(torch.matmul, inputs).module
    standard_pipeline(target, options).run(module, PassContext.create(target, options))
    # Others are of products of parts of the steps.
    plan = chosen[0]
    assert (plan.row_tiles > 1) == (together and arch != "sm_90a")
    assert plan.decision()["row_tiles"] == plan.order[0]
