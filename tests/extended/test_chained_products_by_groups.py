"""Chains of products on a simulated Hopper: groups of four warps, copies in boxes, and roles."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import torch
from sweeps import sweep
from tests.extended.test_bulk_copies_simulated import expecting, no_wait
from tests.extended.test_chained_products_simulated import (
    PROGRAMS,
    attention,
    causal,
    check,
    queries,
)
from tests.extended.test_group_units_simulated import replaced, without
from tests.extended.test_kernels_simulated import simulate

from polyblocks.affine.gpu.plans import group_chains
from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
from polyblocks.affine.gpu.tiles import chain_cost
from polyblocks.codegen.gpu.matrix_emission.chains import by_groups
from polyblocks.codegen.gpu.matrix_emission.chains.by_groups import BoxedCopies
from polyblocks.codegen.gpu.matrix_emission.chains.passed_operand import PassedOperand
from polyblocks.passes.contraction import chain_products
from polyblocks.simt import LaunchResult
from polyblocks_nvgpu.group_units import LINE

pytestmark = pytest.mark.cpu

ARCH = "sm_90a"
#: Programs of a few rows, most of whose tile would be empty.
FEW_ROWS = [name for name in PROGRAMS if "row" in name and "rows" not in name]
FEW_ROWS.append("rows of groups")
#: Groups of a block, steps of a block, stages.
TILES = ((2, 64, 2), (3, 128, 2), (1, 64, 3), (2, 128, 3), (1, 128, 2))


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> list[GroupChainPlan]:
    """Only such plans, all steps in one kernel; those that were made."""
    made: list[GroupChainPlan] = []
    make = chain_cost.group_chain_plan

    def seen(*given: Any) -> GroupChainPlan | None:
        plan = make(*given)
        made.extend([] if plan is None else [plan])
        return plan

    monkeypatch.setattr(chain_products, "_least_seconds", lambda chain, target: inf)
    monkeypatch.setattr(chain_products, "parts_to_try", lambda blocks, steps, target: [])
    monkeypatch.setattr(chain_cost, "_WARPS", ())
    monkeypatch.setattr(chain_cost, "group_chain_plan", seen)
    return made


def tiled(monkeypatch: pytest.MonkeyPatch, groups: int, block: int, stages: int) -> None:
    """Only these tiles."""
    monkeypatch.setattr(chain_products, "BLOCKS", (block,))
    monkeypatch.setattr(chain_cost, "_GROUPS", (groups,))
    monkeypatch.setattr(chain_cost, "_GROUP_STAGES", (stages,))


@pytest.mark.parametrize(
    "name",
    sweep(
        [name for name in PROGRAMS if name not in FEW_ROWS],
        *("odd lengths", "heads of 128", "causal", "absent blocks", "bfloat16", "groups"),
        *("heads of 40", "kernel sum", "repeated", "expanded"),
    ),
)
def test_a_chain_is_one_kernel(name: str, plans: list[GroupChainPlan]) -> None:
    (launch,) = check(name, ARCH)
    assert plans
    assert launch.counts.instructions["matrix"] > 0


def test_arrays_that_no_boxes_are_of_are_for_warps(
    plans: list[GroupChainPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_cost, "_WARPS", (4,))
    monkeypatch.setattr(group_chains, "boxed_array", lambda *given: None)
    check("attention", ARCH)
    assert not plans


@pytest.mark.parametrize("name", sweep(FEW_ROWS, "a row of groups"))
def test_few_rows_are_for_warps(
    name: str, plans: list[GroupChainPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_cost, "_WARPS", (4,))
    check(name, ARCH)
    assert not plans


@pytest.mark.parametrize("tile", sweep(TILES, *TILES[:2]))
@pytest.mark.parametrize("name", ["causal", "odd lengths"])
def test_tiles_of_a_chain(
    name: str,
    tile: tuple[int, int, int],
    plans: list[GroupChainPlan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiled(monkeypatch, *tile)
    check(name, ARCH)
    groups, block, stages = tile
    found = {(plan.independent_parts, plan.parts.block, plan.stages) for plan in plans}
    assert found == {(groups, block, stages)}


@pytest.mark.parametrize("program", [attention, causal])
def test_stages_come_again_and_again(
    program: Callable[..., Any], plans: list[GroupChainPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of machine code as LLVM writes it."""
    tiled(monkeypatch, 2, 64, 2)
    inputs = queries(1, 512, 512, 64)
    (output, *_), (launch,) = simulate(program, inputs, ARCH, ptx=True)
    assert launch.findings == ()
    exact = program(*(x.double() for x in inputs))
    found = torch.from_numpy(output).double().reshape(exact.shape)
    assert (found - exact).abs().max() <= 2 * (program(*inputs).double() - exact).abs().max()


def test_a_causal_chain_leaves_out_half_of_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    tiled(monkeypatch, 1, 64, 2)
    counts = []
    for function in (attention, causal):
        _, (launch,) = simulate(function, queries(1, 512, 512, 64), ARCH)
        counts.append(launch.counts.instructions["matrix"])
    every, half = counts
    # Tiles on the diagonal are computed.
    assert half * 16 == every * 9


def kinds(optimize: Callable[[str], str] | None = None) -> tuple[set[str], float]:
    """Kinds of findings, and the largest error."""
    torch.manual_seed(0)
    inputs = queries(1, 128, 512, 64)
    given = {} if optimize is None else {"optimize": optimize}
    launches: tuple[LaunchResult, ...]
    (output, *_), launches = simulate(attention, inputs, ARCH, **given)
    exact = attention(*(x.double() for x in inputs))
    wrong = torch.from_numpy(output).double().reshape(exact.shape) - exact
    found = {f.kind for launch in launches for f in launch.findings}
    return found, float(wrong.abs().nan_to_num(inf).max())


def _anew(code: str) -> str:
    """A change: each call of the second product forgets the sums so far."""
    changed, count = re.subn(r"(m64n64k16\.f32\.f16\.r1)\((?:float [^,]+, ){32}", r"\1.new(", code)
    assert count
    return changed


#: Fault -> how LLVM IR is changed, and what the simulator says; nothing: the result is wrong.
CHANGES: dict[str, tuple[Callable[[str], str], str]] = {
    "products that are no group": (without("wgmma.commit_group"), "unwaited product"),
    "no wait for products": (replaced("wgmma.wait.0.", "wgmma.wait.2."), "unwaited product"),
    "no wait for the first product": (replaced("wgmma.wait.1.", "wgmma.wait.2."), ""),
    "registers that are not ordered": (without("wgmma.fence"), "missing fence"),
    "more bytes than are copied": (expecting(16), "wrong barrier"),
    "fewer bytes than are copied": (expecting(-16), "wrong barrier"),
    "no wait for copies": (no_wait, "unwaited copy"),
    "places that are never free": (without("@llvm.nvvm.mbarrier.arrive.shared"), "wrong barrier"),
    "barriers that are not made": (without("mbarrier.init"), "wrong barrier"),
    "values as rows": (replaced(".r1(", ".r0("), ""),
    "sums that begin again": (_anew, ""),
}


@pytest.mark.parametrize("fault", CHANGES)
def test_faults_of_code_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tiled(monkeypatch, 2, 64, 2)
    change, expected = CHANGES[fault]
    found, error = kinds(change)
    assert expected in found if expected else error > 0.05
    if "wait for products" in fault:
        # Scores were read before they were there.
        assert error == inf


def test_operands_that_are_written_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of the next block, in the registers of those that are still multiplied."""
    tiled(monkeypatch, 2, 64, 2)
    inputs, change = queries(1, 128, 512, 64), replaced("wgmma.wait.0.", "wgmma.wait.2.")
    # In PTX sums are numbers at once, and weights not the same every time.
    _, launches = simulate(attention, inputs, ARCH, optimize=change, ptx=True)
    said = {f.message for launch in launches for f in launch.findings}
    assert "reads registers that were written before its products were done" in said


def leaves_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of a block's keys is free before they are multiplied."""
    whole = BoxedCopies.turn

    def turn(self: BoxedCopies, number: Any) -> Any:
        stage = whole(self, number)
        self._leave(stage)
        return stage

    monkeypatch.setattr(BoxedCopies, "turn", turn)
    monkeypatch.setattr(BoxedCopies, "between", lambda self, number: None)


def values_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoxedCopies, "columns_arrive", lambda self: None)


def another_phase_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that multiply wait for the phase before, or behind."""
    whole = BoxedCopies.columns_arrive

    def arrive(self: BoxedCopies) -> None:
        kept = self._columns
        other = self.code.value("arith.xori", self.code.i32, kept[1], self.barriers.number(1))
        self._columns = kept[0], other
        whole(self)
        self._columns = kept

    monkeypatch.setattr(BoxedCopies, "columns_arrive", arrive)


def another_phase_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that copy wait for the first places, which are free."""
    whole = BoxedCopies._over_blocks

    def over(self: BoxedCopies, *given: Any) -> None:
        wait = self.barriers.wait

        def other(at: Any, parity: Any) -> None:
            one = self.barriers.number(1)
            wait(at, self.code.value("arith.xori", self.code.i32, parity, one))

        monkeypatch.setattr(self.barriers, "wait", other)
        whole(self, *given)
        monkeypatch.setattr(self.barriers, "wait", wait)

    monkeypatch.setattr(BoxedCopies, "_over_blocks", over)


def a_row_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the boxes, and of the bytes that are expected."""
    whole, tile_bytes = by_groups.operands_of_box, GroupChainPlan.tile_bytes

    def larger(*given: Any) -> Any:
        *rest, (columns, rows, *others) = given
        return whole(*rest, (columns, rows + 1, *others))

    def more(plan: GroupChainPlan, number: int, operand: Any) -> int:
        panels = plan.by_groups[number].panels(operand)
        return tile_bytes(plan, number, operand) + LINE * panels

    monkeypatch.setattr(by_groups, "operands_of_box", larger)
    monkeypatch.setattr(GroupChainPlan, "tile_bytes", more)


def another_lane_has_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 8 and more of a unit are taken for the first ones, and the other way round."""
    whole = PassedOperand._place

    def place(self: PassedOperand, height: int, call: int, number: int) -> Any:
        pattern, row, column = whole(self, height, call, number)
        return pattern, row ^ 1, column

    monkeypatch.setattr(PassedOperand, "_place", place)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (leaves_too_early, "race|unwaited product"),
        (values_are_not_waited_for, "unwaited copy|unwritten read|race"),
        (another_phase_of_columns, "unwaited copy|unwritten read|wrong barrier"),
        (another_phase_of_places, "wrong barrier|race|unwaited product"),
        (a_row_too_many, "race|unwaited product|unwaited copy|wrong barrier|out of bounds"),
        (another_lane_has_an_element, ""),
    ],
)
def test_planted_faults_are_found(
    fault: Callable[[pytest.MonkeyPatch], None], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiled(monkeypatch, 2, 64, 2)
    found, error = kinds()
    assert found == set()
    assert error < 0.01
    fault(monkeypatch)
    found, error = kinds()
    assert found & set(expected.split("|")) if expected else error > 0.05


def test_blocks_of_less_than_a_units_columns_are_for_warps(
    plans: list[GroupChainPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiled(monkeypatch, 2, 32, 2)
    monkeypatch.setattr(chain_cost, "_WARPS", (4,))
    check("attention", ARCH)
    assert not plans
