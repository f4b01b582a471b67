"""Products whose operands one thread copies in boxes, run by the simulator: faults are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.extended.test_group_units_simulated import ARCH, plans, without
from tests.extended.test_kernels_simulated import simulate
from tests.extended.test_window_copies_simulated import predict_boxes

from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.codegen.gpu.matrix_emission.role_steps import ConsumerSteps, ProducerSteps
from polyblocks.simt import Simulator
from polyblocks_nvgpu.passes import lower_group_units

pytestmark = pytest.mark.cpu

__all__ = ["plans"]

r = torch.randn


def found_kinds(change: Callable[[str], str] | None = None) -> tuple[set[str], float]:
    """Kinds of findings, and the largest error."""
    torch.manual_seed(0)
    a, b = r(64, 520).half(), r(520, 64).half()
    given = {} if change is None else {"optimize": change}
    outputs, launches = simulate(torch.matmul, [a, b], ARCH, **given)
    kinds = {f.kind for launch in launches for f in launch.findings}
    wrong = torch.from_numpy(outputs[0]).double() - a.double() @ b.double()
    return kinds, float(wrong.abs().nan_to_num(torch.inf).max())


def test_nothing_is_found_without_a_fault(plans: list[GroupUnitPlan]) -> None:
    kinds, error = found_kinds()
    assert plans
    assert all(plan.bulk is not None for plan in plans)
    assert kinds == set()
    assert error < 0.2


def expecting(more: int) -> Callable[[str], str]:
    """A change of the bytes that are expected."""
    pattern = re.compile(r"(expect\.tx[^\n]*, i32 )(\d+)\)")

    def change(code: str) -> str:
        changed, count = pattern.subn(lambda m: f"{m[1]}{int(m[2]) + more})", code)
        assert count
        return changed

    return change


def no_wait(code: str) -> str:
    """A change: the end of no phase is waited for."""
    pattern = re.compile(r"(%\S+ = ).*call i1 @llvm\.nvvm\.mbarrier\.try\.wait[^\n]*")
    changed, count = pattern.subn(r"\1or i1 true, true", code)
    assert count
    return changed


#: Fault -> how LLVM IR is changed, and what the simulator says.
FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "more bytes than are copied": (expecting(16), "wrong barrier"),
    "fewer bytes than are copied": (expecting(-16), "wrong barrier"),
    "no wait": (no_wait, "unwaited copy"),
    "no bytes that are expected": (without("mbarrier.arrive.expect"), "wrong barrier"),
    "places that are never free": (without("@llvm.nvvm.mbarrier.arrive.shared"), "wrong barrier"),
    "barriers that are not made": (without("mbarrier.init"), "wrong barrier"),
    "registers that are not ordered": (without("wgmma.fence"), "missing fence"),
    "registers of sums that are used early": (
        lambda code: code.replace("wgmma.wait.0.", "wgmma.wait.1."),
        "unwaited product",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, plans: list[GroupUnitPlan]) -> None:
    change, expected = FAULTS[fault]
    kinds, _ = found_kinds(change)
    assert expected in kinds


@pytest.mark.parametrize("role", [ConsumerSteps, ProducerSteps])
def test_another_phase_is_found(
    role: Any, plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = role.place

    def other(self: Any) -> tuple[Any, Any]:
        stage, parity = place(self)
        one = self.barriers.number(1)
        return stage, self.code.value("arith.xori", self.code.i32, parity, one)

    monkeypatch.setattr(role, "place", other)
    kinds, _ = found_kinds()
    assert kinds & {"unwaited copy", "wrong barrier"}


def test_a_place_that_is_free_too_early_is_found(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = ConsumerSteps._free

    def early(self: Any) -> None:
        self._pending = 0
        free(self)

    monkeypatch.setattr(ConsumerSteps, "_free", early)
    kinds, _ = found_kinds()
    assert kinds & {"unwaited product", "unwaited copy", "race", "wrong barrier"}


def test_a_tensor_map_of_a_buffer_that_has_moved_is_found(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Simulator.tensor_map

    def kept(self: Simulator, place: Any, described: Any) -> Any:
        with self.scratch():
            before = self.buffer(place.buffer.nbytes) + place.offset
        return made(self, before, described)

    monkeypatch.setattr(Simulator, "tensor_map", kept)
    a, b = r(64, 520).half(), r(520, 64).half()
    _, (launch,) = simulate(torch.matmul, [a, b], ARCH)
    assert any("a buffer that is no longer there" in f.message for f in launch.findings)


@pytest.mark.parametrize("rows", [lambda n: n // 2, lambda n: n + 1], ids=["half", "and a row"])
def test_another_box_is_found(
    rows: Callable[[int], int], plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = GroupUnitPlan.box
    monkeypatch.setattr(
        GroupUnitPlan, "box", lambda plan, o: (box(plan, o)[0], rows(box(plan, o)[1]))
    )
    kinds, _ = found_kinds()
    assert "wrong barrier" in kinds


#: Fault -> how a descriptor is changed, and what the simulator says; nothing: sums are wrong.
DESCRIPTORS: dict[str, tuple[Callable[[int], int], str]] = {
    "another start": (lambda bits: bits + 2, ""),
    "groups of lines twice as far apart": (lambda bits: bits + (1024 >> 4 << 32), ""),
    "panels twice as far apart": (lambda bits: bits + (bits & 0x3FFF0000), ""),
    "a swizzle of 32 bytes": (lambda bits: bits - (1 << 63), "inactive lane"),
    "no swizzle": (lambda bits: bits - (1 << 62), "inactive lane"),
}


@pytest.mark.parametrize("fault", DESCRIPTORS)
def test_other_descriptors_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows in two panels."""
    change, expected = DESCRIPTORS[fault]
    whole, plans = lower_group_units.descriptor_bits, predict_boxes(monkeypatch, tile=128)
    monkeypatch.setattr(lower_group_units, "descriptor_bits", lambda *given: change(whole(*given)))
    torch.manual_seed(0)
    a, b = r(520, 128).half(), r(520, 64).half()
    (found,), launches = simulate(lambda a, b: a.t() @ b, [a, b], ARCH)
    assert plans
    kinds = {f.kind for launch in launches for f in launch.findings}
    wrong = torch.from_numpy(found).double() - a.double().t() @ b.double()
    error = float(wrong.abs().nan_to_num(torch.inf).max())
    assert expected in kinds if expected else kinds or error > 1


def test_steps_of_another_tile_are_wrong(
    plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    value = ProducerSteps.value
    monkeypatch.setattr(ProducerSteps, "value", lambda self, n: value(self, n + 1))
    assert found_kinds()[1] > 1


def test_rows_outside_of_an_array_are_zeros_and_not_those_of_the_next(
    plans: list[GroupUnitPlan],
) -> None:
    """A batch's last rows are followed by those of the next one, which have no numbers."""
    a, b = r(2, 40, 72).half(), r(2, 72, 64).half()
    a[1] = torch.nan
    (found,), launches = simulate(torch.bmm, [a, b], ARCH)
    assert plans
    assert not [f for launch in launches for f in launch.findings]
    error = torch.from_numpy(found)[0].double() - a[0].double() @ b[0].double()
    assert error.abs().max() < 0.1
