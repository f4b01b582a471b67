"""Contractions by matrix units of both GPU targets, run by the simulator, whatever the tile is."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

import pytest
import torch
from tests.extended.test_kernels_simulated import TARGETS, simulate
from tests.support.any_unit import any_unit, predict_by
from tests.support.sweeps import sweep
from torch.nn import functional

import polyblocks
from polyblocks.affine.buffers.copies import Barrier, Wait
from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu import scheduled
from polyblocks.affine.gpu.plans import unit_access, units
from polyblocks.affine.gpu.plans.unit_access import unit_accesses
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.staged.copy_pipeline import CopyPipeline
from polyblocks.affine.gpu.tiles.units_cost import predict_units
from polyblocks.codegen.gpu.matrix_emission import operand_reads
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.simt import LaunchResult
from polyblocks_nvgpu import emit

pytestmark = pytest.mark.cpu

r = torch.randn


def last(x: torch.Tensor) -> torch.Tensor:
    """Images whose channels are next to each other, with these as the second dimension."""
    return x.permute(0, 3, 1, 2)


def first(x: torch.Tensor) -> torch.Tensor:
    """The same the other way round."""
    return x.permute(0, 2, 3, 1)


#: name -> function, shapes of the arguments.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "product": (torch.matmul, ((64, 96), (96, 128))),
    "rows of both": (lambda a, b: a @ b.t(), ((65, 88), (33, 88))),
    "columns of both": (lambda a, b: a.t() @ b, ((72, 96), (72, 64))),
    "rows of the other": (lambda a, b: a.t() @ b.t(), ((40, 72), (56, 40))),
    "nothing fits": (torch.matmul, ((70, 83), (83, 67))),
    "long sums": (lambda a, b: a @ b.t(), ((17, 1000), (9, 1000))),
    "batch": (torch.bmm, ((3, 40, 80), (3, 80, 72))),
    "shared by a batch": (torch.matmul, ((2, 3, 33, 48), (48, 40))),
    "epilogue": (
        lambda x, w, b: torch.relu(functional.linear(x, w, b)),
        ((33, 96), (48, 96), (48,)),
    ),
    "residual": (
        lambda x, w, b, c, g: torch.tanh(x @ w.t() + b) * g[:, None] + c,
        ((33, 96), (48, 96), (48,), (33, 48), (33,)),
    ),
    "results of columns": (lambda a, b: (a @ b).t().contiguous(), ((40, 64), (64, 48))),
    "a mask of pieces": (
        lambda a, b: torch.where(torch.arange(40)[:, None] >= torch.arange(64), a @ b, -1.0),
        ((40, 88), (88, 64)),
    ),
    "mask": (
        lambda a, b: torch.where(torch.arange(33)[:, None] >= torch.arange(65), a @ b, -1.0),
        ((33, 88), (88, 65)),
    ),
    "points": (functional.conv2d, ((2, 64, 5, 8), (24, 64, 1, 1))),
    "windows": (
        lambda x, w, b: torch.relu(functional.conv2d(x, w, b, padding=1)),
        ((2, 24, 9, 11), (40, 24, 3, 3), (40,)),
    ),
    "channels last": (
        lambda x, w: first(functional.conv2d(last(x), last(w), stride=2, padding=(1, 2))),
        ((2, 10, 13, 32), (24, 3, 5, 32)),
    ),
    "three channels": (
        lambda x, w: first(functional.conv2d(last(x), last(w), stride=2, padding=3)),
        ((1, 15, 16, 3), (16, 7, 7, 3)),
    ),
    "gaps and groups": (
        lambda x, w: functional.conv2d(x, w, padding=2, dilation=2, groups=2),
        ((1, 32, 8, 10), (32, 16, 3, 3)),
    ),
    "along a signal": (
        lambda x, w: functional.conv1d(x, w, padding=4),
        ((3, 17, 50), (33, 17, 9)),
    ),
    "transposed": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1),
        ((1, 40, 7, 6), (40, 17, 4, 4)),
    ),
    "strided": (lambda a, b: a[::2] @ b[:, ::3], ((64, 48), (48, 96))),
    "beginning apart": (lambda a, b: a[:, 3:] @ b[3:], ((40, 51), (51, 64))),
}
#: Operands of each layout and alignment, epilogues that store by columns, masks, windows. Other
#: tests here take rows of both operands, what is left over of them, and signals.
QUICK = (
    *("nothing fits", "long sums", "batch", "results of columns", "a mask of pieces"),
    *("windows", "channels last", "three channels", "gaps and groups", "transposed"),
    *("strided", "beginning apart"),
)
#: Convolutions of which nothing is copied before.
ONE_KERNEL = ("windows", "channels last", "three channels", "gaps and groups")
CHIPS = ("sm_70", "sm_75", "sm_80", "sm_90a", "gfx1100", "gfx1200")


@pytest.fixture
def kernels(request: pytest.FixtureRequest) -> Iterator[list[UnitPlan]]:
    """Let the model prefer any matrix kernel that could run; those that were possible."""
    with any_unit(random.Random(request.node.name)) as seen:
        yield seen


def arguments(name: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [r(shape).to(dtype) for shape in PROGRAMS[name][1]]


def check(
    name: str, arch: str, dtype: torch.dtype, kernels: list[UnitPlan], ptx: bool = False
) -> None:
    """A program computes what PyTorch does, by units where the chip has them."""
    function, inputs = PROGRAMS[name][0], arguments(name, dtype)
    outputs, launches = simulate(function, inputs, arch, ptx=ptx)
    assert [str(f) for launch in launches for f in launch.findings] == []
    # Volta's and Turing's units have no bfloat16.
    by_units = arch not in ("sm_70", "sm_75") or dtype is torch.float16
    assert len(launches) == 1 or name not in ONE_KERNEL or not by_units
    assert bool(kernels) == by_units
    used = sum(launch.counts.instructions.get("matrix", 0) for launch in launches)
    assert (used > 0) == by_units
    expected = function(*(x.double() for x in inputs))
    eager = (function(*inputs).double() - expected).abs().max()
    found = torch.from_numpy(outputs[0]).view(dtype) if dtype is torch.bfloat16 else outputs[0]
    error = (torch.as_tensor(found).double() - expected).abs().max()
    assert error <= 2 * eager + (1e-11 if dtype is torch.float64 else 1e-6)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", sweep([torch.float16, torch.bfloat16], torch.float16), ids=str)
@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80", "gfx1100"))
@pytest.mark.parametrize("name", sweep(PROGRAMS, *QUICK))
def test_units_compute_what_pytorch_does(
    name: str, arch: str, dtype: torch.dtype, kernels: list[UnitPlan]
) -> None:
    check(name, arch, dtype, kernels)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_units_of_each_chip(arch: str, dtype: torch.dtype, kernels: list[UnitPlan]) -> None:
    check("residual", arch, dtype, kernels)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", [arch for arch in CHIPS if arch.startswith("sm")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", sweep(PROGRAMS, "columns of both", "residual"))
def test_units_in_ptx(name: str, dtype: torch.dtype, arch: str, kernels: list[UnitPlan]) -> None:
    check(name, arch, dtype, kernels, ptx=True)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("ptx", [False, True])
@pytest.mark.parametrize(
    "name", ["nothing fits", "rows of both", "columns of both", "batch", "residual", "windows"]
)
def test_units_of_64_bits(name: str, ptx: bool, arch: str, kernels: list[UnitPlan]) -> None:
    check(name, arch, torch.float64, kernels, ptx)


def test_doubles_are_rounded_as_they_are_written(kernels: list[UnitPlan]) -> None:
    """A unit adds four products at once, and rounds none of them."""
    torch.manual_seed(0)
    a, b = (torch.randn(64, 64, dtype=torch.float64) for _ in range(2))
    options = {"mlir_disable_fast_math": True}
    (found,), (launch,) = simulate(torch.matmul, [a, b], "sm_80", options=options)
    assert not kernels
    assert "matrix" not in launch.counts.instructions
    expected = torch.zeros(64, 64, dtype=torch.float64)
    for k in range(64):
        expected = expected + a[:, k, None] * b[None, k]
    assert (torch.from_numpy(found) == expected).all()


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS[1:])
@pytest.mark.parametrize(
    ("rows", "columns"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_bytes_are_multiplied_exactly(
    rows: bool, columns: bool, arch: str, kernels: list[UnitPlan]
) -> None:
    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((40, 72), (72, 48)))
    given = [a if rows else a.t().contiguous(), b if columns else b.t().contiguous()]

    def function(a: Any, b: Any) -> Any:
        return torch._int_mm(a if rows else a.t(), b if columns else b.t())

    for ptx in (False, True)[: 1 + arch.startswith("sm")]:
        (found,), (launch,) = simulate(function, given, arch, ptx=ptx)
        assert kernels
        assert launch.counts.instructions["matrix"] > 0
        assert [str(f) for f in launch.findings] == []
        assert torch.equal(torch.from_numpy(found).long(), a.long() @ b.long())


#: name -> function, shapes of the arguments: images whose channels are apart, of tiles of windows.
WINDOWS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "padded": (
        lambda x, w, b: torch.relu(functional.conv2d(x, w, b, padding=1)),
        ((2, 32, 8, 16), (64, 32, 3, 3), (64,)),
    ),
    "strided": (
        lambda x, w: functional.conv2d(x, w, stride=2, dilation=2, padding=(2, 1)),
        ((3, 16, 14, 13), (72, 16, 3, 3)),
    ),
    "two by two": (lambda x, w: functional.conv2d(x, w, stride=2), ((1, 8, 18, 16), (32, 8, 2, 2))),
    "one dimension": (
        lambda x, w: functional.conv1d(x, w, padding=1),
        ((3, 16, 50), (33, 16, 3)),
    ),
}


@pytest.mark.parametrize("dtype", sweep([torch.float16, torch.bfloat16], torch.float16), ids=str)
@pytest.mark.parametrize(
    "case",
    # Tiles that are written out one after the other have no rows beyond the end.
    sweep(
        [*((name, "sm_80") for name in WINDOWS), ("padded", "gfx1100"), ("padded", "gfx1200")],
        *((name, "sm_80") for name in WINDOWS),
        ("padded", "gfx1100"),
    ),
    ids="-".join,
)
def test_tiles_of_windows(
    case: tuple[str, str], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step of a window has its own condition, and pieces of several windows no conflicts."""
    name, arch = case
    numbers = random.Random(name)
    chosen = []

    def predict(candidate: UnitPlan, *given: Any) -> Predicted:
        fits = any(candidate.window(o) > 1 for o in candidate.product.operands)
        possible = fits and isfinite(predict_units(candidate, *given).seconds)
        chosen.extend([candidate] * possible)
        return Predicted(-numbers.random() if possible else 1e9, 0.0, 0.0)

    predict_by(monkeypatch, predict)
    function, shapes = WINDOWS[name]
    torch.manual_seed(0)
    inputs = [r(shape).to(dtype) for shape in shapes]
    (output,), (launch,) = simulate(function, inputs, arch)
    assert chosen
    assert [str(f) for f in launch.findings] == []
    assert launch.counts.instructions["matrix"] > 0
    expected = function(*(x.double() for x in inputs))
    eager = (function(*inputs).double() - expected).abs().max()
    found = torch.from_numpy(output).view(dtype) if dtype is torch.bfloat16 else output
    assert (torch.as_tensor(found).double() - expected).abs().max() <= 2 * eager + 1e-6
    assert launch.counts.bank_conflicts == 0


def test_padding_that_is_computed_takes_no_memory(kernels: list[UnitPlan]) -> None:
    x, v, w = (r(shape).half() for shape in ((1, 16, 8, 8), (16, 16, 3, 3), (16, 16, 3, 3)))

    def function(x: Any, v: Any, w: Any) -> Any:
        return functional.conv2d(functional.conv2d(x, v, padding=1), w, padding=1)

    (found,), launches = simulate(function, [x, v, w], "sm_80")
    assert len(launches) == 2
    expected = function(*(t.double() for t in (x, v, w)))
    eager = (function(x, v, w).double() - expected).abs().max()
    assert (torch.from_numpy(found).double() - expected).abs().max() <= 2 * eager


def test_what_a_unit_multiplies_is_computed_before(kernels: list[UnitPlan]) -> None:
    a, b = r(40, 64).half(), r(64, 48).half()

    def function(a: Any, b: Any) -> Any:
        return torch.relu(a) @ b

    (found,), launches = simulate(function, [a, b], "sm_80")
    assert sum(launch.counts.instructions.get("matrix", 0) for launch in launches) > 0
    expected = function(a.double(), b.double())
    assert (torch.from_numpy(found).double() - expected).abs().max() < 0.05


def test_infinity_meets_the_zeros_of_the_padding(kernels: list[UnitPlan]) -> None:
    x, w = r(1, 16, 6, 6).half(), r(16, 16, 3, 3).half()
    x[0, 3, 0, 0] = float("inf")
    w[2, 5, 0, 0] = float("nan")

    def function(x: Any, w: Any) -> Any:
        return functional.conv2d(x, w, padding=1)

    (found,), _ = simulate(function, [x, w], "sm_80")
    expected = function(x.float(), w.float())
    # A product with a zero that pads is computed here, and left out by PyTorch.
    same = torch.from_numpy(found).isfinite() == expected.isfinite()
    assert same[0, [c for c in range(16) if c != 2]].all()


def test_not_a_number_stays_in_its_row_and_column(kernels: list[UnitPlan]) -> None:
    """What is beyond the last step is zero, and not what happens to lie there."""
    a, b = r(40, 43).half(), r(43, 24).half()
    a[7, 42] = torch.nan
    b[0, 5] = torch.inf
    (found,), _ = simulate(torch.matmul, [a, b], "sm_80")
    expected = a.double() @ b.double()
    found = torch.from_numpy(found).double()
    assert kernels
    torch.testing.assert_close(found.isnan(), expected.isnan())
    torch.testing.assert_close(found.isinf(), expected.isinf())


@pytest.mark.parametrize(
    ("arch", "rows_of_both"),
    # Without loads by columns pairs of steps are put together, and meet in banks.
    [
        ("sm_80", True),
        ("sm_80", False),
        ("gfx1100", True),
        pytest.param("gfx1200", True, marks=pytest.mark.slow),
    ],
)
def test_large_products_have_no_conflicts(
    arch: str, rows_of_both: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the model chooses: copies, and reads of operands."""
    monkeypatch.setattr(units.UnitPlan, "exchanges_sums", False)
    assert launched(arch, rows_of_both).counts.bank_conflicts == 0


def test_sums_change_places_without_conflicts_and_fill_sectors() -> None:
    counts = launched("sm_80", True).counts
    assert counts.bank_conflicts == 0
    assert counts.coalescing == 1


def launched(arch: str, rows_of_both: bool) -> LaunchResult:
    """A product of halves, its launch."""
    a, b = r(512, 128).half(), r(512, 128).half()
    function = (lambda a, b: a @ b.t()) if rows_of_both else (lambda a, b: a.t() @ b)
    _, (launch,) = simulate(function, [a, b], arch)
    assert launch.counts.instructions["matrix"] > 0
    return launch


@pytest.mark.parametrize("arch", ["sm_80", "gfx1100"])
def test_the_manifest_names_the_unit(arch: str) -> None:
    a, b = r(1024, 512), r(512, 1024)
    for dtype, named in ((torch.float16, True), (torch.float32, False)):
        given = [a.to(dtype), b.to(dtype)]
        options = {"target": TARGETS[arch], "arch": arch}
        (row,) = polyblocks.aot(torch.matmul, given, options, frontend="torch").manifest["kernels"]
        names = {unit.name for unit in describe_target(CompileOptions(**options)).matrix_units}
        assert row["unit"] in names if named else row["unit"] == ""


# --- planted -----------------------------------------------------------------------------------


@pytest.fixture
def product(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[bool, list[str]]]:
    """A product with several stages of several calls: whether it is right, what was found."""

    def predict(candidate: UnitPlan, *given: Any) -> Predicted:
        wanted = (candidate.calls, candidate.stages, candidate.warps) == (4, 3, (2, 2))
        possible = isfinite(predict_units(candidate, *given).seconds)
        return Predicted(-1.0 if wanted and possible else 1e9, 0.0, 0.0)

    predict_by(monkeypatch, predict)

    def run(ptx: bool = False) -> tuple[bool, list[str]]:
        a, b = r(64, 512).half(), r(64, 512).half()
        outputs, launches = simulate(lambda a, b: a @ b.t(), [a, b], "sm_80", ptx=ptx)
        right = torch.allclose(torch.from_numpy(outputs[0]), a @ b.t(), rtol=1e-2, atol=0.1)
        return right, [str(f) for launch in launches for f in launch.findings]

    return run


def test_nothing_is_found_where_nothing_is_planted(product: Any) -> None:
    assert product() == (True, [])
    assert product(ptx=True) == (True, [])


@pytest.mark.parametrize(
    ("line", "kind"), [("cp.async.wait_group", "unwaited copy"), ("bar.sync", "race")]
)
def test_a_line_that_is_missing_in_ptx_is_found(
    line: str, kind: str, product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = emit.ptx_of
    monkeypatch.setattr(
        emit, "ptx_of", lambda *given: re.sub(rf"(?m)^\t{line}.*;$", "", made(*given))
    )
    _, found = product(ptx=True)
    assert any(kind in text for text in found), found


def test_a_missing_wait_is_found(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyPipeline, "_arrived", lambda *given: [Barrier("block")])
    _, found = product()
    assert any("unwaited copy" in text for text in found), found


@pytest.mark.slow
def test_one_group_too_many_under_way_is_found(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CopyPipeline, "_arrived", lambda self, n: [Wait(n + 1), Barrier("block")])
    _, found = product()
    assert any("unwaited copy" in text for text in found), found


def test_a_dropped_barrier_is_found(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyPipeline, "_arrived", lambda self, n: [Wait(n)])
    _, found = product()
    assert any("race" in text or "unwaited" in text for text in found), found


@pytest.mark.slow
def test_a_stage_that_is_filled_while_it_is_read_is_found(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = CopyPipeline._reads

    def other_stage(self: Any, number: Any, call: int) -> Any:
        # The tile is the same for what follows, and its stage is another one's.
        nodes = reads(self, number, call)
        for loop in nodes:
            load = loop.body[0]
            stage = (number + self.plan.stages - 1) % self.plan.stages
            load.index = (stage, *load.index[1:])
        return nodes

    monkeypatch.setattr(CopyPipeline, "_reads", other_stage)
    right, found = product()
    assert not right or found


def test_a_wrong_bit_of_a_fragment_is_found(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bits of the lane's number add each other's rows, for kernels and not for the chip."""

    def products(parts: Any, units: Any) -> Any:
        changed = []
        for unit in units:
            if unit.fragments is not None:
                first, *others = unit.fragments
                a, b, c, d, e = first.lanes
                wrong = replace(first, lanes=(a, b, d, c, e))
                unit = replace(unit, fragments=(wrong, *others))
            changed.append(unit)
        return unit_accesses(parts, changed)

    monkeypatch.setattr(unit_access, "unit_accesses", products)
    monkeypatch.setattr(scheduled, "unit_accesses", products)
    right, _ = product()
    assert not right


def test_a_wrong_swizzle_is_found(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is read, and not of what is written."""
    monkeypatch.setattr(operand_reads, "exchanged", lambda code, layout, into, by, place: place)
    right, _ = product()
    assert not right


@pytest.mark.slow
def test_a_tile_that_is_a_row_too_small_is_found(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = units.UnitPlan.shape

    def smaller(self: Any, operand: Any) -> tuple[int, ...]:
        stages, length, depth = shape(self, operand)
        return stages, length - 1, depth

    monkeypatch.setattr(units.UnitPlan, "shape", smaller)
    right, found = product()
    assert not right or found
