"""Blocks of a cluster that share what they read, run by the simulator: faults are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

import pytest
import torch
from tests.extended.test_boxed_results_simulated import turns
from tests.extended.test_group_units_simulated import ARCH, without
from tests.extended.test_kernels_simulated import simulate
from tests.support.any_unit import predict_by

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles.units_cost import predict_units
from polyblocks.codegen.gpu.matrix_emission.stage_barriers import StageBarriers

pytestmark = pytest.mark.cpu

__all__ = ["turns"]

r = torch.randn


@pytest.fixture
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[GroupUnitPlan]:
    """Let the model prefer small tiles of a cluster, of two rows without a parameter."""
    wanted = getattr(request, "param", (2, 1))
    seen: list[GroupUnitPlan] = []

    def predict(plan: UnitPlan, *given: Any) -> Predicted:
        fits = isinstance(plan, GroupUnitPlan) and isfinite(predict_units(plan, *given).seconds)
        if not fits or plan.cluster != wanted or plan.stages != 4:
            return Predicted(1e9, 0.0, 0.0)
        seen.append(plan)  # type: ignore[arg-type]
        return Predicted(plan.shared_bytes() - 1e9, 0.0, 0.0)

    predict_by(monkeypatch, predict)
    return seen


def run(
    change: Callable[[str], str] | None = None,
    function: Callable[..., Any] = torch.matmul,
    shapes: tuple[tuple[int, int], ...] = ((120, 328), (328, 128)),
    ptx: bool = False,
) -> tuple[set[str], float]:
    """Kinds of findings, and the largest error."""
    torch.manual_seed(0)
    inputs = [r(*shape).half() for shape in shapes]
    given = {} if change is None else {"optimize": change}
    clusters: list[int] = []

    def look(plan: dict[str, Any]) -> None:
        clusters.extend(row.get("cluster", 1) for row in plan["launches"])

    outputs, launches = simulate(function, inputs, ARCH, look, ptx=ptx, **given)
    assert clusters == [2]
    kinds = {f.kind for launch in launches for f in launch.findings}
    wrong = torch.from_numpy(outputs[0]).double() - function(*(x.double() for x in inputs))
    return kinds, float(wrong.abs().nan_to_num(torch.inf).max())


def of_rows(a: Any, b: Any) -> Any:
    return a @ b.t()


@pytest.mark.parametrize("ptx", [False, True], ids=["ir", "ptx"])
@pytest.mark.parametrize("chosen", [(2, 1), (1, 2)], indirect=True, ids=str)
@pytest.mark.parametrize("of", ["columns", "rows"])
def test_nothing_is_found_without_a_fault(
    of: str, chosen: list[GroupUnitPlan], ptx: bool, turns: None
) -> None:
    function = torch.matmul if of == "columns" else of_rows
    shapes = ((248, 264), (264, 128)) if of == "columns" else ((248, 264), (128, 264))
    kinds, error = run(None, function, shapes, ptx)
    assert chosen
    assert kinds == set()
    assert error < 0.2


@pytest.mark.parametrize("chosen", [(2, 1), (1, 2)], indirect=True, ids=str)
def test_blocks_that_compute_a_tile_each_share_what_they_read(chosen: list[GroupUnitPlan]) -> None:
    kinds, error = run()
    assert chosen
    assert kinds == set()
    assert error < 0.2


def test_bytes_are_shared_as_well(chosen: list[GroupUnitPlan], turns: None) -> None:
    """Their results do not leave in boxes."""
    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((120, 592), (128, 592)))
    (found,), launches = simulate(lambda a, b: torch._int_mm(a, b.t()), [a, b], ARCH)
    assert any(plan.result is None for plan in chosen)
    assert not [f for launch in launches for f in launch.findings]
    assert torch.equal(torch.from_numpy(found).long(), a.long() @ b.long().t())


@pytest.mark.parametrize("chosen", [(2, 1), (1, 2)], indirect=True, ids=str)
def test_clusters_are_of_one_batch(chosen: list[GroupUnitPlan], turns: None) -> None:
    """What is not a number stays in its batch, its row and its column."""
    torch.manual_seed(0)
    a, b, c = r(3, 72, 72).half(), r(3, 72, 136).half(), r(136).half()
    a[1, 70, 71], b[0, 71, 135] = torch.nan, torch.inf
    (found,), launches = simulate(lambda a, b, c: torch.bmm(a, b) + c, [a, b, c], ARCH)
    assert any(plan.result is not None for plan in chosen)
    assert not [f for launch in launches for f in launch.findings]
    expected = torch.bmm(a.double(), b.double()) + c.double()
    result = torch.from_numpy(found).double()
    torch.testing.assert_close(result, expected, rtol=2e-3, atol=2e-2, equal_nan=True)


def no_meeting(last: bool) -> Callable[[str], str]:
    """A change: blocks do not meet at the beginning, or at the end."""

    def change(code: str) -> str:
        lines = code.splitlines()
        at = [n for n, x in enumerate(lines) if "call void @llvm.nvvm.barrier.cluster" in x]
        assert len(at) == 4
        left = at[2:] if last else at[:2]
        if not last:
            # They meet by themselves.
            lines[at[0]] = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
            lines.insert(0, "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
            left = [at[1] + 1]
        return "\n".join(x for n, x in enumerate(lines) if n not in left)

    return change


def mask(blocks: int) -> Callable[[str], str]:
    """A change of the blocks that get a box."""
    pattern = re.compile(r"(i16 )3(, i64 0, i1 true)")

    def change(code: str) -> str:
        changed, count = pattern.subn(rf"\g<1>{blocks}\2", code)
        assert count
        return changed

    return change


#: Fault -> how LLVM IR is changed, and what the simulator says.
FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "barriers that may not be made yet": (no_meeting(last=False), "race"),
    "a block that ends too early": (no_meeting(last=True), "wrong barrier"),
    "boxes for one block alone": (mask(1), "wrong barrier"),
    "boxes for the other block alone": (mask(2), "wrong barrier"),
    "boxes for a block that there is not": (mask(7), "out of bounds"),
    "places that are never free": (without("mbarrier.arrive.scope.cta"), "wrong barrier"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, chosen: list[GroupUnitPlan]) -> None:
    change, expected = FAULTS[fault]
    kinds, _ = run(change)
    assert chosen
    assert expected in kinds


def test_a_place_that_the_other_block_still_uses_is_found(
    chosen: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block waits for its own warps only."""

    def own(self: Any, stage: Any, lane: Any) -> None:
        code, copies = self.code, self.copies

        def one() -> list[Any]:
            code.intrinsic(copies.arrive, [code.i64], [self.free(stage)])
            return []

        code.when(code.compare("ult", lane, code.integer(2)), one)

    monkeypatch.setattr(StageBarriers, "leave", own)
    kinds, _ = run()
    assert "race" in kinds


def test_more_boxes_than_those_of_a_block_are_found(
    chosen: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copies a whole tile from its part on."""
    monkeypatch.setattr(
        GroupUnitPlan,
        "boxes",
        lambda plan, o: plan.sizes.tile[o.side] // plan.line if plan.is_transposed(o) else 1,
    )
    kinds, error = run()
    assert kinds or error > 1
