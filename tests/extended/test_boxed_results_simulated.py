"""Results that leave shared memory in boxes, run by the simulator: faults are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.extended.test_group_units_simulated import ARCH, plans, without
from tests.extended.test_kernels_simulated import simulate
from torch.nn import functional

from polyblocks.affine.gpu.plans import unit_plan
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.codegen.gpu.matrix_emission.boxed_results import BoxedResults
from polyblocks.codegen.gpu.matrix_emission.role_steps import ConsumerSteps
from polyblocks.codegen.gpu.matrix_emission.stage_barriers import StageBarriers

pytestmark = pytest.mark.cpu

__all__ = ["plans"]

r = torch.randn


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks compute all tiles."""
    monkeypatch.setattr(
        GroupUnitPlan,
        "persistent",
        property(lambda p: p.result is not None and p.sizes.blocks > 2),
    )
    monkeypatch.setattr(
        GroupUnitPlan, "blocks", property(lambda p: 2 if p.persistent else p.sizes.blocks)
    )


@pytest.fixture(params=["a tile a block", "tile after tile"])
def persistent(request: pytest.FixtureRequest) -> bool:
    """Whether two blocks compute all tiles, if these leave in boxes."""
    if request.param == "tile after tile":
        request.getfixturevalue("turns")
    return str(request.param) == "tile after tile"


def found_kinds(change: Callable[[str], str] | None = None) -> tuple[set[str], float]:
    """Kinds of findings, and the largest error."""
    torch.manual_seed(0)
    a, b = r(328, 264).half(), r(264, 136).half()
    given = {} if change is None else {"optimize": change}
    outputs, launches = simulate(torch.matmul, [a, b], ARCH, **given)
    kinds = {f.kind for launch in launches for f in launch.findings}
    wrong = torch.from_numpy(outputs[0]).double() - a.double() @ b.double()
    return kinds, float(wrong.abs().nan_to_num(torch.inf).max())


def test_nothing_is_found_without_a_fault(plans: list[GroupUnitPlan], persistent: bool) -> None:
    kinds, error = found_kinds()
    assert plans
    assert all(plan.result is not None for plan in plans)
    assert kinds == set()
    assert error < 0.1


def test_results_have_what_is_computed_around_sums(
    plans: list[GroupUnitPlan], persistent: bool
) -> None:
    def program(x: Any, w: Any, b: Any, c: Any) -> Any:
        return functional.gelu(functional.linear(x, w, b), approximate="tanh") + c

    torch.manual_seed(0)
    inputs = [r(2, 70, 72), r(136, 72), r(136), r(2, 70, 136)]
    given = [x.bfloat16() for x in inputs]
    (found,), launches = simulate(program, given, ARCH)
    assert any(plan.result is not None for plan in plans)
    assert not [f for launch in launches for f in launch.findings]
    expected = program(*(x.double() for x in given))
    eager = (program(*given).double() - expected).abs().max()
    error = (torch.from_numpy(found).view(torch.bfloat16).double() - expected).abs().max()
    assert error <= 2 * eager


def test_rows_that_end_inside_of_a_piece_do_not_leave_in_boxes(plans: list[GroupUnitPlan]) -> None:
    """A box's last piece of 16 bytes would be stored as a whole."""
    a, b = r(72, 136).half(), r(68, 136).half()
    (found,), launches = simulate(lambda a, b: a @ b.t(), [a, b], ARCH)
    assert plans
    assert all(plan.result is None for plan in plans)
    assert not [f for launch in launches for f in launch.findings]
    wrong = torch.from_numpy(found).double() - a.double() @ b.double().t()
    assert wrong.abs().max() < 0.1


@pytest.mark.parametrize("of", ["a", "b"])
def test_columns_of_two_loops_whose_last_is_odd_do_not_leave_in_boxes(
    of: str, plans: list[GroupUnitPlan]
) -> None:
    """A lane's two columns would be those of an iteration of the last loop, and of none."""

    def program(x: Any, w: Any, bias: Any) -> Any:
        product = (x @ w.flatten(0, 1).t()).view(-1, *w.shape[:2])
        return product + (bias[:, None] if of == "a" else bias)

    torch.manual_seed(0)
    x, w, bias = (r(*s).half() for s in ((64, 64), (8, 33, 64), (8 if of == "a" else 33,)))
    (found,), launches = simulate(program, [x, w, bias], ARCH)
    assert plans
    assert all(plan.result is None for plan in plans)
    assert any(len(plan.sizes.parts.columns) == 2 for plan in plans)
    assert not [f for launch in launches for f in launch.findings]
    wrong = torch.from_numpy(found).double() - program(x.double(), w.double(), bias.double())
    assert wrong.abs().max() < 0.1


#: Fault -> how LLVM IR is changed, and what the simulator says.
FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "no fence": (without("fence.proxy.async"), "missing fence"),
    "no wait": (without("cp.async.bulk.wait.group.read"), "unwaited copy"),
    "no group": (without("cp.async.bulk.commit.group"), "unwaited copy"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, plans: list[GroupUnitPlan], persistent: bool) -> None:
    change, expected = FAULTS[fault]
    kinds, _ = found_kinds(change)
    assert expected in kinds


def test_a_store_past_the_end_of_a_row_is_found(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch, persistent: bool
) -> None:
    of = unit_plan.boxed_result

    def shorter(*given: Any) -> Any:
        array = of(*given)
        assert array is not None
        return replace(array, extents=(array.extents[0] - 1, *array.extents[1:]))

    monkeypatch.setattr(unit_plan, "boxed_result", shorter)
    kinds, _ = found_kinds()
    assert "out of bounds" in kinds


def test_a_role_that_leaves_a_barrier_is_found(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch, persistent: bool
) -> None:
    monkeypatch.setattr(StageBarriers, "meet", lambda self: None)
    kinds, _ = found_kinds()
    assert kinds & {"race", "unwritten read", "missing fence"}


def test_a_thread_that_does_not_wait_at_a_barrier_is_found(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch, persistent: bool
) -> None:
    prepare = StageBarriers.prepare

    def more(self: Any, thread: Any, warp: int) -> None:
        plan = self.plan
        monkeypatch.setattr(
            GroupUnitPlan, "consumers", property(lambda p: p.sizes.threads + (p is plan))
        )
        prepare(self, thread, warp)
        monkeypatch.setattr(GroupUnitPlan, "consumers", property(lambda p: p.sizes.threads))

    monkeypatch.setattr(StageBarriers, "prepare", more)
    kinds, _ = found_kinds()
    assert "wrong barrier" in kinds


def test_another_box_is_found(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch, persistent: bool
) -> None:
    box = GroupUnitPlan.result_box.fget  # type: ignore[attr-defined]

    def larger(plan: GroupUnitPlan) -> tuple[int, ...]:
        columns, rows, *rest = box(plan)
        return (columns, 2 * rows, *rest)

    monkeypatch.setattr(GroupUnitPlan, "result_box", property(larger))
    kinds, _ = found_kinds()
    assert kinds & {"race", "unwritten read", "out of bounds"}


def test_results_of_another_place_are_wrong(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch, persistent: bool
) -> None:
    copy = BoxedResults._copy

    def other(self: Any, node: Any, group: Any) -> Any:
        first = self.scope.tile.first
        self.scope.tile.first = [self.code.plus(first[0], 1), first[1]]
        made = copy(self, node, group)
        self.scope.tile.first = first
        return made

    monkeypatch.setattr(BoxedResults, "_copy", other)
    kinds, error = found_kinds()
    assert kinds or error > 1


def test_places_that_stay_taken_behind_a_tile_are_found(
    plans: list[GroupUnitPlan], turns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = ConsumerSteps._free

    def some(self: Any) -> None:
        if self._pending:
            free(self)

    monkeypatch.setattr(ConsumerSteps, "_free", some)
    kinds, _ = found_kinds()
    assert "wrong barrier" in kinds


def test_results_over_those_of_the_tile_before_are_found(
    plans: list[GroupUnitPlan], turns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoxedResults, "wait", lambda self: [])
    kinds, _ = found_kinds()
    assert "unwaited copy" in kinds


def test_a_tile_that_begins_with_the_phase_of_another_one_is_found(
    plans: list[GroupUnitPlan], turns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ConsumerSteps.place

    def again(self: Any) -> Any:
        if self._begun.is_constant and not self._begun.const:
            self.state = self.code.integer(self.plan.stages - 1), self.barriers.number(1)
        return place(self)

    monkeypatch.setattr(ConsumerSteps, "place", again)
    kinds, error = found_kinds()
    assert kinds or error > 1
