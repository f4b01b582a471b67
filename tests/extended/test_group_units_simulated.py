"""Products by units of several warps that read shared memory, run by the simulator."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import isfinite
from typing import Any

import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from tests.support.any_unit import predict_by
from tests.support.sweeps import sweep
from torch.nn import functional

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans import unit_plan
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles.units_cost import predict_units
from polyblocks.affine.swizzles import Swizzle
from polyblocks.simt import LaunchResult

pytestmark = pytest.mark.cpu

r = torch.randn
ARCH = "sm_90a"


def last(x: torch.Tensor) -> torch.Tensor:
    """Images whose channels are next to each other, with these as the second dimension."""
    return x.permute(0, 3, 1, 2)


def first(x: torch.Tensor) -> torch.Tensor:
    """The same the other way round."""
    return x.permute(0, 2, 3, 1)


#: name -> function, shapes of the arguments.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "rows of both": (lambda a, b: a @ b.t(), ((130, 200), (264, 200))),
    "columns of the other": (torch.matmul, ((65, 72), (72, 136))),
    "columns of both": (lambda a, b: a.t() @ b, ((264, 136), (264, 72))),
    "columns of the one": (lambda a, b: a.t() @ b.t(), ((520, 72), (256, 520))),
    "one tile": (torch.matmul, ((64, 64), (64, 64))),
    "few steps": (torch.matmul, ((72, 40), (40, 64))),
    "many steps": (lambda a, b: a @ b.t(), ((64, 1032), (64, 1032))),
    "a batch": (torch.bmm, ((3, 72, 136), (3, 136, 64))),
    "epilogue": (
        lambda x, w, b, c: torch.relu(functional.linear(x, w, b)) + c,
        ((65, 136), (72, 136), (72,), (65, 72)),
    ),
    "results of columns": (lambda a, b: (a @ b).t().contiguous(), ((72, 64), (64, 136))),
    "windows": (
        lambda x, w, b: first(functional.conv2d(last(x), last(w), b, padding=1).relu()),
        ((2, 9, 11, 64), (72, 3, 3, 64), (72,)),
    ),
    "steps of windows": (
        lambda x, w: first(functional.conv2d(last(x), last(w), stride=2, padding=1)),
        ((2, 13, 10, 72), (64, 3, 3, 72)),
    ),
}


def inputs_of(name: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [r(shape).to(dtype) for shape in PROGRAMS[name][1]]


@pytest.fixture
def plans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[GroupUnitPlan]:
    """Let the model prefer any plan of such a unit; those that were possible."""
    numbers = random.Random(request.node.name)
    seen: list[GroupUnitPlan] = []

    def predict(plan: UnitPlan, *given: Any) -> Predicted:
        fits = isinstance(plan, GroupUnitPlan) and isfinite(predict_units(plan, *given).seconds)
        seen.extend([plan] * fits)  # type: ignore[list-item]
        return Predicted(-numbers.random() if fits else 1e9, 0.0, 0.0)

    predict_by(monkeypatch, predict)
    return seen


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads copy pieces, even where boxes could be copied."""
    monkeypatch.setattr(unit_plan, "boxed_arrays", lambda *given: None)


def errors(name: str, outputs: list[Any], inputs: list[torch.Tensor]) -> tuple[float, float]:
    """Ours, and eager mode's, against float64."""
    function = PROGRAMS[name][0]
    expected = function(*(x.double() for x in inputs))
    eager = (function(*inputs).double() - expected).abs().max()
    found = torch.from_numpy(outputs[0])
    if inputs[0].dtype is torch.bfloat16:
        found = found.view(torch.bfloat16)
    return float((found.double() - expected).abs().max()), float(eager)


def findings(launches: tuple[LaunchResult, ...]) -> list[str]:
    return [f"{f.kind}: {f.message}" for launch in launches for f in launch.findings]


@pytest.mark.parametrize("ptx", sweep([False, True], False), ids=["ir", "ptx"])
@pytest.mark.parametrize("dtype", sweep([torch.float16, torch.bfloat16], torch.float16), ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_units_of_groups_compute_what_pytorch_does(
    name: str, dtype: torch.dtype, ptx: bool, plans: list[GroupUnitPlan]
) -> None:
    inputs = inputs_of(name, dtype)
    outputs, launches = simulate(PROGRAMS[name][0], inputs, ARCH, ptx=ptx)
    assert plans
    assert findings(launches) == []
    error, eager = errors(name, outputs, inputs)
    assert error <= 2 * eager + 1e-6


@pytest.mark.parametrize("name", ["rows of both", "columns of the other", "many steps"])
def test_pieces_compute_what_boxes_do(name: str, pieces: None, plans: list[GroupUnitPlan]) -> None:
    inputs = inputs_of(name, torch.float16)
    outputs, launches = simulate(PROGRAMS[name][0], inputs, ARCH)
    assert plans
    assert {plan.bulk for plan in plans} == {None}
    assert findings(launches) == []
    error, eager = errors(name, outputs, inputs)
    assert error <= 2 * eager + 1e-6


@pytest.mark.parametrize("ptx", [False, True], ids=["ir", "ptx"])
def test_bytes_are_multiplied_exactly(ptx: bool, plans: list[GroupUnitPlan]) -> None:
    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((72, 272), (136, 272)))
    (found,), launches = simulate(lambda a, b: torch._int_mm(a, b.t()), [a, b], ARCH, ptx=ptx)
    assert plans
    assert findings(launches) == []
    assert torch.equal(torch.from_numpy(found).long(), a.long() @ b.long().t())


def test_not_a_number_stays_in_its_row_and_column(plans: list[GroupUnitPlan]) -> None:
    """What is beyond the last step is zero, and not what happens to lie there."""
    a, b = r(72, 40).half(), r(40, 64).half()
    a[7, 39] = torch.nan
    b[0, 5] = torch.inf
    (found,), _ = simulate(torch.matmul, [a, b], ARCH)
    expected = a.double() @ b.double()
    assert plans
    result = torch.from_numpy(found).double()
    torch.testing.assert_close(result.isnan(), expected.isnan())
    torch.testing.assert_close(result.isinf(), expected.isinf())


def without(text: str) -> Callable[[str], str]:
    """A change of LLVM IR that leaves out calls."""

    def change(code: str) -> str:
        lines = code.splitlines()
        kept = [line for line in lines if text not in line or line.startswith("declare")]
        assert len(kept) < len(lines)
        return "\n".join(kept)

    return change


def replaced(old: str, new: str) -> Callable[[str], str]:
    """A change of LLVM IR that writes something else."""

    def change(code: str) -> str:
        assert old in code
        return code.replace(old, new)

    return change


#: Fault -> how LLVM IR is changed, and what the simulator says; nothing: the result is wrong.
FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "no fence of what threads have written": (without("fence.proxy.async"), "missing fence"),
    "no wait for the last products": (
        replaced("wgmma.wait.0.", "wgmma.wait.1."),
        "unwaited product",
    ),
    "products that are no group": (without("wgmma.commit_group"), "unwaited product"),
    "copies that are not waited for": (
        replaced("cp.async.wait.group(i32 ", "cp.async.wait.group(i32 2"),
        "unwaited copy|unwritten read",
    ),
    "columns as rows": (replaced(".f16.01(", ".f16.00("), ""),
    "rows as columns": (replaced(".f16.01(", ".f16.11("), ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, pieces: None, plans: list[GroupUnitPlan]) -> None:
    change, expected = FAULTS[fault]
    a, b = r(128, 640).half(), r(640, 128).half()
    outputs, launches = simulate(torch.matmul, [a, b], ARCH, optimize=change)
    kinds = {f.kind for launch in launches for f in launch.findings}
    if expected:
        assert kinds & set(expected.split("|"))
        if "wait for the last" in fault:
            # Sums that are read before they are done are no numbers.
            assert not torch.from_numpy(outputs[0]).isfinite().any()
    else:
        wrong = torch.from_numpy(outputs[0]).double() - a.double() @ b.double()
        assert not wrong.abs().max() < 1


def test_a_stage_that_is_filled_too_early_is_found(
    pieces: None, plans: list[GroupUnitPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupUnitPlan, "ahead", property(lambda plan: plan.stages - 1))
    _, launches = simulate(torch.matmul, [r(128, 1024).half(), r(1024, 128).half()], ARCH)
    kinds = {f.kind for launch in launches for f in launch.findings}
    assert kinds & {"race", "unwaited product"}


@pytest.mark.parametrize(
    "layout", [(), (Swizzle(1, 2, (16, 8, 32)),)], ids=["none", "bits that change places"]
)
def test_another_swizzle_gives_wrong_sums(
    layout: tuple[Swizzle, ...],
    pieces: None,
    plans: list[GroupUnitPlan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GroupUnitPlan, "layout", lambda plan, operand: layout)
    a, b = r(128, 64).half(), r(64, 64).half()
    (found,), _ = simulate(torch.matmul, [a, b], ARCH)
    wrong = torch.from_numpy(found).double() - a.double() @ b.double()
    assert not wrong.abs().max() < 1
