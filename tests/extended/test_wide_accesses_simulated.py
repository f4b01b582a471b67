"""Neighbours that are loaded and stored at once, on both GPU targets, run by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from torch.nn import functional

from polyblocks.affine.gpu import choose, predict, windows
from polyblocks.affine.gpu.mapping.wide import is_one_walk, widest
from polyblocks.affine.gpu.plans.groups import GroupPlan

pytestmark = pytest.mark.cpu

r = torch.randn


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * y + 1.5) * 0.25 + y


def special() -> torch.Tensor:
    """Rows with everything that is no ordinary number."""
    x = r(40, 256)
    x[0, 3] = float("nan")
    x[1, 200] = float("inf")
    x[2, 7] = -float("inf")
    x[3] = -float("inf")
    x[4] = 3e38
    x[5, 100:] = -3e38
    return x


#: Function, arguments, and iterations that a thread does at once of all loops that threads share.
ROWS: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]], set[int]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), lambda: [r(64, 1000)], {4}),
    "softmax of halves": (lambda x: torch.softmax(x, -1), lambda: [r(64, 1000).half()], {8}),
    "softmax of no numbers": (lambda x: torch.softmax(x, -1), lambda: [special()], {4}),
    "odd rows": (lambda x: torch.softmax(x, -1), lambda: [r(9, 1001)], {1}),
    "pairs": (lambda x: torch.softmax(x, -1), lambda: [r(9, 1002)], {2}),
    "layer norm": (
        lambda x, w, b: functional.layer_norm(x, w.shape, w, b),
        lambda: [r(70, 320), r(320), r(320)],
        {4},
    ),
    "layer norm of halves": (
        lambda x, w, b: functional.layer_norm(x, w.shape, w, b),
        lambda: [r(9, 1024).half(), r(1024).half(), r(1024).half()],
        {8},
    ),
    "sum": (lambda x: x.sum(-1), lambda: [r(9, 2052)], {4}),
    "maximum": (lambda x: x.amax(-1), lambda: [special()], {4}),
    "part of a row": (lambda x: torch.softmax(x[:, 4:260], -1), lambda: [r(9, 264)], {4}),
    "another part": (lambda x: torch.softmax(x[:, 3:259], -1), lambda: [r(9, 264)], {1}),
}


@pytest.fixture
def wide_rows(monkeypatch: pytest.MonkeyPatch) -> list[GroupPlan]:
    """Let the model prefer groups of 32 threads; the kernels that have these."""
    chosen: list[GroupPlan] = []
    usual = predict.predict_groups

    def predict_groups(plan: GroupPlan, *given: Any) -> Any:
        found = usual(plan, *given)
        if plan.group != 32 or plan.strided or plan.copied:
            return type(found)(1.0, 1.0, 1.0)
        chosen.append(plan)
        return found

    monkeypatch.setattr(predict, "predict_groups", predict_groups)
    return chosen


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_read_by_neighbours(name: str, arch: str, wide_rows: list[GroupPlan]) -> None:
    torch.manual_seed(0)
    function, make, widths = ROWS[name]
    inputs = make()
    outputs, launches = simulate(function, inputs, arch)
    assert {loop.width for plan in wide_rows for loop in plan.distributed.values()} == widths
    assert [str(f) for launch in launches for f in launch.findings] == []
    assert sum(launch.counts.bank_conflicts for launch in launches) == 0
    half = inputs[0].dtype is torch.float16
    torch.testing.assert_close(
        torch.from_numpy(outputs[0]), function(*inputs), equal_nan=True,
        rtol=2e-3 if half else 2e-5, atol=2e-3 if half else 1e-5,
    )  # fmt: skip


ELEMENTS: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]], int, bool]] = {
    "one row with an end": (chain, lambda: [r(1031), r(1031)], 4, True),
    "through the ends of rows": (chain, lambda: [r(33, 35), r(33, 35)], 4, True),
    "halves": (chain, lambda: [r(7, 9, 5).half(), r(7, 9, 5).half()], 8, True),
    "halves and others": (lambda x: x.float() * 2, lambda: [r(41, 7).half()], 8, True),
    "the same for all": (lambda x, s: x * s, lambda: [r(33, 35), r(1)], 4, True),
    "a row for all rows": (lambda x, b: torch.relu(x + b), lambda: [r(33, 36), r(36)], 4, False),
    "an odd row for all rows": (lambda x, b: x + b, lambda: [r(33, 35), r(35)], 1, False),
    "bytes": (
        lambda x: x + 1,
        lambda: [torch.randint(0, 99, (3, 37), dtype=torch.int8)],
        16,
        True,
    ),
    "a part": (lambda x: x[1:] * 2, lambda: [r(130)], 1, False),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_are_moved_by_neighbours(
    name: str, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    function, make, width, as_one = ELEMENTS[name]
    chosen = []

    def widen(plan: GroupPlan, _: Any, chip: Any) -> None:
        plan.width = widest(plan, chip)
        plan.as_one = plan.width > 1 and is_one_walk(plan)
        chosen.append((plan.width, plan.as_one))

    monkeypatch.setattr(choose, "_widen", widen)
    monkeypatch.setattr(windows, "quickest_windows", lambda nest, target: None)  # one way to widen
    inputs = make()
    outputs, launches = simulate(function, inputs, arch)
    assert chosen == [(width, as_one)]
    assert [str(f) for launch in launches for f in launch.findings] == []
    expected = function(*inputs)
    half = expected.dtype is torch.float16
    torch.testing.assert_close(
        torch.from_numpy(outputs[0]), expected,
        rtol=2e-3 if half else 1e-5, atol=2e-3 if half else 1e-5,
    )  # fmt: skip
