"""Accesses of 128 bits on both GPU targets, run by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from bench.programs import in_torch
from tests.extended.test_kernels_simulated import simulate

from polyblocks.affine.gpu import choose, windows
from polyblocks.affine.gpu.mapping.wide import widest
from polyblocks.affine.gpu.plans.groups import GroupPlan

r = torch.randn

#: Bytes that a warp asks for at once, on average.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[torch.Tensor], float]] = {
    "element-wise": (in_torch.elementwise_chain, [r(1024, 12), r(1024, 12)], 512),
    "one element for all": (lambda x, b: x * 2 + b[:, None], [r(128, 64), r(128)], 400),
    "two widths": (lambda x, y: x.float() + y, [r(64, 64).half(), r(64, 64)], 2560 / 3),
    "long integers": (lambda x: x * 3, [torch.arange(4096).reshape(64, 64)], 512),
    "an index": (lambda x: x + torch.arange(64), [r(32, 64)], 512),
    "a row of another length": (lambda x: x * 3, [r(33, 63)], 416),
    "transposed": (lambda x: (x.t() + 1).contiguous(), [r(512, 512)], 128),
}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small programs have wide accesses, too."""

    def widen(plan: GroupPlan, target: Any, chip: Any) -> None:
        del target
        plan.width = widest(plan, chip)

    monkeypatch.setattr(choose, "_widen", widen)
    # The same by jammed iterations would be another way.
    monkeypatch.setattr(windows, "quickest_windows", lambda nest, target: None)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_wide_accesses_compute_what_pytorch_does(name: str, arch: str) -> None:
    function, inputs, bytes_at_once = PROGRAMS[name]
    (found,), (launch,) = simulate(function, inputs, arch)
    assert launch.findings == ()
    torch.testing.assert_close(torch.from_numpy(found), function(*inputs))
    moved = launch.counts.global_loaded + launch.counts.global_stored
    assert moved / launch.counts.global_accesses == pytest.approx(bytes_at_once, rel=0.07)


def test_arrays_are_to_begin_where_wide_accesses_may() -> None:
    """What accesses them need not ask: the manifest tells who calls."""
    asked: list[Any] = []

    def keep(plan: dict[str, Any]) -> None:
        asked.extend(row.get("alignment") for row in plan["arguments"])

    simulate(lambda x: x * 3, [torch.arange(4096.0)], "sm_90a", keep)
    assert asked == [16, 16]


def test_small_programs_keep_all_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    _, (launch,) = simulate(lambda x: x * 3, [r(4096)], "sm_90a")
    assert launch.counts.global_stored / launch.counts.global_accesses * 2 == 128
