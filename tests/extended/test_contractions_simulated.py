"""Contractions tile by tile on both GPU targets, run by the simulator, whatever the tile is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from tests.support.any_unit import predict_by
from torch.nn import functional

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans.lanes import LanePlan
from polyblocks.passes.fuse import fuse_tiles

r = torch.randn

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]]]] = {
    "product": (torch.matmul, lambda: [r(64, 96), r(96, 64)]),
    "ends of tiles": (torch.matmul, lambda: [r(70, 83), r(83, 67)]),
    "rows of both": (lambda a, b: a @ b.t(), lambda: [r(33, 88), r(65, 88)]),
    "steps by fours": (torch.matmul, lambda: [r(36, 84), r(84, 67)]),
    "columns by fours": (torch.matmul, lambda: [r(37, 81), r(81, 68)]),
    "columns of both": (lambda a, b: a.t() @ b, lambda: [r(88, 36), r(88, 68)]),
    "batch": (torch.bmm, lambda: [r(3, 40, 81), r(3, 81, 65)]),
    "epilogue": (
        lambda x, w, b: torch.relu(functional.linear(x, w, b)),
        lambda: [r(33, 96), r(48, 96), r(48)],
    ),
    "mask": (
        lambda a, b: torch.where(torch.arange(33)[:, None] >= torch.arange(65), a @ b, -1.0),
        lambda: [r(33, 88), r(88, 65)],
    ),
    "convolution": (functional.conv2d, lambda: [r(2, 70, 5, 7), r(20, 70, 1, 3)]),
    "distances": (
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
        lambda: [r(40, 70), r(50, 70)],
    ),
    "integers": (
        lambda a, b: (a[:, :, None] * b[None]).sum(1),
        lambda: [torch.randint(0, 9, (40, 70)), torch.randint(0, 9, (70, 50))],
    ),
    "halves": (torch.matmul, lambda: [r(64, 96).half(), r(96, 64).half()]),
}

#: Rows and columns of a thread, threads along both, and steps at a time.
TILES = [
    ((4, 2), (8, 16), 4),
    ((1, 1), (4, 16), 1),
    ((2, 2), (4, 32), 2),
    ((4, 4), (4, 16), 8),
    ((8, 4), (4, 16), 8),
]


@pytest.fixture
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[LanePlan]:
    """Let the model prefer one tile; the kernels that have it."""
    chosen: list[LanePlan] = []

    def predict(plan: LanePlan, *_: Any) -> Predicted:
        sizes = plan.sizes
        is_it = (sizes.of_thread, sizes.across, sizes.depth) == request.param
        chosen.extend([plan] * is_it)
        return Predicted(0.0 if is_it else 1e9, 0.0, 0.0)

    predict_by(monkeypatch, predict, "contraction")
    # Of small operands tiles would have whole copies.
    monkeypatch.setattr(fuse_tiles, "worth_copies", lambda stages: [])
    return chosen


@pytest.mark.each_choice
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    ("tile", "arch"),
    [*((tile, "sm_90a") for tile in TILES), (TILES[0], "gfx1100")],
    indirect=["tile"],
    ids=str,
)
def test_tiles_compute_what_pytorch_does(name: str, arch: str, tile: list[LanePlan]) -> None:
    torch.manual_seed(0)
    function, make = PROGRAMS[name]
    inputs = make()
    outputs, launches = simulate(function, inputs, arch)
    assert tile
    assert [str(f) for launch in launches for f in launch.findings] == []
    assert sum(launch.counts.barriers for launch in launches) > 0
    rtol = 2e-3 if inputs[0].dtype is torch.float16 else 2e-4
    expected = function(*inputs)
    torch.testing.assert_close(torch.from_numpy(outputs[0]), expected, rtol=rtol, atol=1e-3)


@pytest.mark.parametrize("tile", [((4, 4), (8, 16), 8)], indirect=True)
def test_operands_are_read_once_by_a_block_and_without_conflicts(tile: list[LanePlan]) -> None:
    _, (launch,) = simulate(torch.matmul, [r(64, 96), r(96, 128)], "sm_90a")
    assert {plan.tile for plan in tile} == {(32, 64, 8)}
    read = 4 * (2 * 2) * 96 * (32 + 64)
    assert launch.counts.global_loaded == read
    assert launch.counts.global_stored == 4 * 64 * 128
    assert launch.counts.bank_conflicts == 0
    assert launch.counts.coalescing == 1
