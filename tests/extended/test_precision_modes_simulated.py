"""`mm_conv_precision_mode` on simulated GPUs: what each mode gives, and by which instruction."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_half_programs_simulated import _units_are_quick  # noqa: F401
from tests.extended.test_kernels_simulated import TARGETS, simulate
from tests.support.captured import captured
from tests.support.sweeps import sweep
from torch.nn import functional

from polyblocks.errors import OptionError
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks.registry.honoured_options import describe_target

pytestmark = pytest.mark.cpu

Program = Callable[..., Any]


def as_tf32(x: torch.Tensor) -> torch.Tensor:
    """To ten bits of fraction, ties away from zero."""
    bits = x.contiguous().view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x1000) & 0xFFFFE000
    return torch.from_numpy(rounded.numpy().astype(np.uint32).view(np.float32)).reshape(x.shape)


ROUNDED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fp16": lambda x: x.half().float(),
    "mixed_fp16_fp32": lambda x: x.half().float(),
    "mixed_bf16_fp32": lambda x: x.bfloat16().float(),
    "tf32": as_tf32,
}
PROGRAMS: dict[str, tuple[Program, tuple[tuple[int, ...], ...]]] = {
    "rows of both": (lambda a, b: a @ b.t(), ((40, 72), (48, 72))),
    "columns of both": (lambda a, b: a.t() @ b, ((72, 40), (72, 48))),
    "nothing fits": (torch.matmul, ((35, 67), (67, 41))),
    "epilogue": (
        lambda x, w, b: torch.relu(functional.linear(x, w, b)),
        ((2, 20, 96), (48, 96), (48,)),
    ),
}
#: Architecture -> the modes for floats that it has a unit for, and what the instruction is called.
INSTRUCTIONS: dict[str, dict[str, str]] = {
    "sm_70": dict.fromkeys(
        ("fp16", "mixed_fp16_fp32"), r"mma\.sync\S*m8n8k4\S*\.f32\.f16\.f16\.f32"
    ),
    "sm_75": dict.fromkeys(
        ("fp16", "mixed_fp16_fp32"), r"mma\.sync\S*m16n8k8\S*\.f32\.f16\.f16\.f32"
    ),
    "sm_80": {
        **dict.fromkeys(
            ("fp16", "mixed_fp16_fp32"), r"mma\.sync\S*m16n8k16\S*\.f32\.f16\.f16\.f32"
        ),
        "mixed_bf16_fp32": r"mma\.sync\S*m16n8k16\S*\.f32\.bf16\.bf16\.f32",
        "tf32": r"mma\.sync\S*m16n8k8\S*\.f32\.tf32\.tf32\.f32",
    },
    "gfx1100": {
        **dict.fromkeys(("fp16", "mixed_fp16_fp32"), r"v_wmma_f32_16x16x16_f16"),
        "mixed_bf16_fp32": r"v_wmma_f32_16x16x16_bf16",
    },
}
ANY_MATRIX = r"\b(mma|wmma|wgmma)\b|v_wmma|v_mfma|mma\.sync"
EACH = [(arch, mode) for arch, modes in INSTRUCTIONS.items() for mode in modes]


def options(arch: str, **more: Any) -> CompileOptions:
    return CompileOptions(target=TARGETS[arch], arch=arch, **more)


def assembly(function: Program, inputs: list[torch.Tensor], given: CompileOptions) -> str:
    """What a person reads of a program's kernels."""
    target = describe_target(given)
    module = captured(function, inputs).module
    standard_pipeline(target, given).run(module, PassContext.create(target, given))
    lower = importlib.import_module(f"polyblocks_{given.target}.lower")
    text: str = lower.lower_to_assembly(module, target, given)
    return text


def arguments(name: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape) for shape in PROGRAMS[name][1]]


@pytest.mark.each_choice
@pytest.mark.parametrize(("arch", "mode"), EACH)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operands_are_rounded_on_their_way(name: str, arch: str, mode: str) -> None:
    function, inputs = PROGRAMS[name][0], arguments(name)
    (found,), launches = simulate(function, inputs, arch, options={"mm_conv_precision_mode": mode})
    assert [str(f) for launch in launches for f in launch.findings] == []
    assert len(launches) == 1
    assert launches[0].counts.instructions["matrix"] > 0
    result = torch.from_numpy(found)
    # The bias is no factor.
    rounded = [*(ROUNDED[mode](x) for x in inputs[:2]), *inputs[2:]]
    expected = function(*(x.double() for x in rounded))
    tolerance = 2e-5
    if mode == "fp16":
        tolerance = 2e-2
        if name != "epilogue":
            assert torch.equal(result, result.half().float())
    assert (result.double() - expected).abs().max() < tolerance
    exact = function(*(x.double() for x in inputs))
    assert (result.double() - exact).abs().max() > 1e-4


@pytest.mark.parametrize(
    "case",
    sweep(
        [pair for pair in EACH if pair[0].startswith("sm")],
        ("sm_70", "fp16"),
        *(pair for pair in EACH if pair[0] == "sm_80"),
    ),
    ids="-".join,
)
def test_ptx_rounds_them_alike(case: tuple[str, str]) -> None:
    arch, mode = case
    function, inputs = PROGRAMS["epilogue"][0], arguments("epilogue")
    given = {"mm_conv_precision_mode": mode}
    (found,), launches = simulate(function, inputs, arch, options=given, ptx=True)
    assert [str(f) for launch in launches for f in launch.findings] == []
    assert launches[0].counts.instructions["matrix"] > 0
    (wanted,), _ = simulate(function, inputs, arch, options=given)
    torch.testing.assert_close(torch.from_numpy(found), torch.from_numpy(wanted))


@pytest.mark.parametrize(("arch", "mode"), EACH)
def test_the_instruction_of_each_mode(arch: str, mode: str) -> None:
    function, inputs = PROGRAMS["rows of both"][0], arguments("rows of both")
    text = assembly(function, inputs, options(arch, mm_conv_precision_mode=mode))
    assert re.search(INSTRUCTIONS[arch][mode], text)
    if mode == "tf32":
        assert "cvt.rna.tf32.f32" in text


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", INSTRUCTIONS)
@pytest.mark.parametrize("mode", [None, "fp32"])
def test_float32_takes_no_matrix_instruction(arch: str, mode: str | None) -> None:
    function, inputs = PROGRAMS["rows of both"][0], arguments("rows of both")
    text = assembly(function, inputs, options(arch, mm_conv_precision_mode=mode))
    assert not re.search(ANY_MATRIX, text)


@pytest.mark.parametrize(
    "case",
    sweep(
        [*EACH, ("sm_80", None), ("gfx1100", None)],
        *(pair for pair in EACH if pair[0] == "sm_80"),
        ("gfx1100", "mixed_bf16_fp32"),
        ("sm_80", None),
        ("gfx1100", None),
    ),
    ids=str,
)
def test_without_units_there_is_no_matrix_instruction(case: tuple[str, str | None]) -> None:
    """Of no type; a mode then rounds all the same."""
    arch, mode = case
    function, inputs = PROGRAMS["rows of both"][0], arguments("rows of both")
    if mode is None:
        inputs = [x.half() for x in inputs]
    more = {"polyblocks_gpu_no_tensor_core": True, "mm_conv_precision_mode": mode}
    assert not re.search(ANY_MATRIX, assembly(function, inputs, options(arch, **more)))
    if mode is not None:
        (found,), _ = simulate(function, inputs, arch, options=more)
        rounded = [ROUNDED[mode](x).double() for x in inputs]
        tolerance = 2e-2 if mode == "fp16" else 1e-3
        assert (torch.from_numpy(found) - function(*rounded)).abs().max() < tolerance


@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_a_mode_that_a_chip_lacks_is_refused(arch: str) -> None:
    for mode in ROUNDED:
        given = options(arch, mm_conv_precision_mode=mode)
        if mode in INSTRUCTIONS[arch]:
            assert describe_target(given).options["mm_conv_precision_mode"].count(mode) == 1
            continue
        with pytest.raises(OptionError, match=f"mm_conv_precision_mode='{mode}' is not available"):
            describe_target(given)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "gfx1100"])
def test_bytes(arch: str) -> None:
    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((40, 72), (72, 48)))

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.int() @ b.int()

    more = {"mm_conv_precision_mode": "mixed_int8_int32"}
    (found,), launches = simulate(function, [a, b], arch, options=more)
    assert torch.equal(torch.from_numpy(found).long(), a.long() @ b.long())
    assert sum(launch.counts.instructions.get("matrix", 0) for launch in launches) > 0
    text = assembly(function, [a, b], options(arch, **more))
    assert re.search(r"mma\.sync\S*\.s32\.s8\.s8\.s32|v_wmma_i32_16x16x16_iu8", text)


def test_special_values_of_tf32() -> None:
    a = torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [-torch.inf, 1.0], [-0.0, -0.0]])
    a = torch.cat([a, torch.ones(4, 38)], 1)
    # A NaN whose bits are all behind those that are kept.
    a.view(torch.int32)[0, 0] = 0x7F800001
    b = torch.ones(40, 8)
    (found,), _ = simulate(
        torch.matmul, [a, b], "sm_80", options={"mm_conv_precision_mode": "tf32"}
    )
    result, expected = torch.from_numpy(found), a @ b
    assert torch.equal(result.isnan(), expected.isnan())
    assert torch.equal(result.nan_to_num(), expected.nan_to_num())
