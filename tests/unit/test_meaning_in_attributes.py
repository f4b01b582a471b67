"""Whether zeros are padding and roundings are free is said by attributes, and by nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.support.captured import captured
from tests.support.stablehlo_programs import program
from torch.nn import functional

from polyblocks import mlir, signature
from polyblocks.affine.padding.padded import Padded
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.registry.registry import get_registry
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

IMAGE = torch.rand(2, 8, 13, 11)
KERNEL = torch.rand(16, 8, 3, 3)


def of_torch(function: Callable[..., Any], *inputs: torch.Tensor) -> str:
    """The module of a PyTorch function."""
    return str(captured(function, inputs).module.operation.get_asm(enable_debug_info=True))


def of_jax(function: Callable[..., Any], *inputs: Any) -> str:
    """The module of a JAX function."""
    jax = pytest.importorskip("jax")
    text = jax.jit(function).lower(*inputs).as_text(debug_info=True)
    return of_stablehlo(text, *inputs)


def of_stablehlo(text: str, *inputs: Any) -> str:
    """The module of one of StableHLO."""
    lowered = program(text, *inputs)
    signature.attach(lowered)
    return str(lowered.module.operation.get_asm(enable_debug_info=True))


def epilogue(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    image = functional.gelu(functional.conv2d(x, w, padding=1))
    return image.mean((2, 3)) @ y


PROGRAMS: dict[str, Callable[[], str]] = {
    "convolutions": lambda: of_torch(
        lambda x, w: functional.conv2d(functional.conv2d(x, w, padding=1), w.mT, padding=(2, 0)),
        IMAGE,
        KERNEL[:8],
    ),
    "depthwise": lambda: of_torch(
        lambda x, w: functional.conv2d(x, w, padding=1, groups=8, stride=2), IMAGE, KERNEL[:8, :1]
    ),
    "transposed": lambda: of_torch(
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1), IMAGE, KERNEL.mT[:8]
    ),
    "pool": lambda: of_torch(
        lambda x: functional.avg_pool2d(functional.max_pool2d(x, 3, 2, 1), 3, 1, 1), IMAGE
    ),
    "resize": lambda: of_torch(
        lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear"), IMAGE
    ),
    "pad and reduce": lambda: of_torch(
        lambda x: functional.pad(x, (1, 2, 3, 4)).sum(3).amax(2), IMAGE
    ),
    "half": lambda: of_torch(epilogue, IMAGE.half(), KERNEL.half(), torch.rand(16, 5).half()),
}


def _jax_convolution(x: Any, w: Any) -> Any:
    from jax import lax

    numbers = ("NCHW", "OIHW", "NCHW")
    y = lax.conv(x, w, (1, 1), "SAME").astype("bfloat16")
    return lax.conv_transpose(y, w.astype("bfloat16"), (2, 2), "SAME", dimension_numbers=numbers)


PROGRAMS["jax"] = lambda: of_jax(
    _jax_convolution, np.ones((1, 8, 9, 9), "float32"), np.ones((8, 8, 3, 3), "float32")
)


def _of_tensorflow() -> str:
    tensorflow = pytest.importorskip("tensorflow")
    function = tensorflow.function(
        lambda x, w: tensorflow.nn.conv2d(x, w, 1, "SAME"), jit_compile=True
    )
    inputs = (np.ones((1, 9, 9, 8), "float32"), np.ones((3, 3, 8, 8), "float32"))
    concrete = function.experimental_get_compiler_ir(*map(tensorflow.constant, inputs))
    return of_stablehlo(concrete(stage="stablehlo"), *inputs)


PROGRAMS["tensorflow"] = _of_tensorflow


def without_locations(text: str) -> str:
    """The module with all locations unknown."""
    module = mlir.parse(text)
    mlir.run_textual(module, "strip-debuginfo")
    return str(module.operation.get_asm(enable_debug_info=True))


def code_of(text: str, target: str, arch: str) -> str:
    """S3's module without names, which are those of locations: all else follows from it."""
    options = CompileOptions(target=target, arch=arch)
    chip = get_registry().target(target).hook.describe_target(options=options)
    module, context = mlir.parse(text), PassContext.create(chip, options)
    stages = standard_pipeline(chip, options).stages
    for stage in ("S1", "S2", "S3"):
        run_stage(stage, stages[stage], module, context)
    context.release()
    names: dict[str, str] = {}
    code = re.sub(r"@\w+", lambda m: names.setdefault(m[0], f"@name{len(names)}"), str(module))
    code = re.sub(r'polyblocks\.kernel = "[^"]*"', 'polyblocks.kernel = ""', code)
    return re.sub(r"polyblocks\.sources = \[[^\]]*\]", "polyblocks.sources = []", code)


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_the_same_without_locations(name: str) -> None:
    text = PROGRAMS[name]()
    stripped = without_locations(text)
    assert "loc(" in stripped
    assert not re.search(r'loc\("|callsite|fused', stripped)
    assert code_of(stripped, "cpu", "x86-64-v4") == code_of(text, "cpu", "x86-64-v4")


@pytest.mark.parametrize("name", ["convolutions", "half"])
def test_code_of_a_gpu_is_the_same_without_locations(name: str) -> None:
    text = PROGRAMS[name]()
    assert code_of(without_locations(text), "nvgpu", "sm_80") == code_of(text, "nvgpu", "sm_80")


def test_frontends_say_how_convolutions_are_padded() -> None:
    said = {name: PROGRAMS[name]().count("polyblocks.padded") for name in PROGRAMS}
    assert said == {
        "convolutions": 2,
        "depthwise": 1,
        "transposed": 1,
        "half": 1,
        "pool": 0,
        "resize": 0,
        "pad and reduce": 0,
        "jax": 2,
        "tensorflow": 1,
    }


def test_zeros_of_the_program_meet_weights_also_where_a_convolution_adds_its_own() -> None:
    def padded_twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(functional.pad(x, (1, 1, 1, 1)), w, padding=1)

    image, weights = torch.rand(1, 16, 12, 12), torch.rand(32, 16, 3, 3)
    weights[:, :, 0, 0] = torch.inf
    compiled = polyblocks_jit_torch(padded_twice)
    torch.testing.assert_close(
        compiled(image, weights), padded_twice(image, weights), equal_nan=True
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit", r"'first', 'size' and 'step', each an array<i64>.*got unit"),
        ("{first = array<i64: 1>}", "'first', 'size' and 'step'"),
        (
            "{first = array<i64: 1>, size = array<i64: 1, 2>, step = array<i64: 1>}",
            "a number for each dimension",
        ),
        (
            "{first = array<i64: 1>, size = array<i64: 0>, step = array<i64: 1>}",
            "sizes and steps from 1 and first indices from 0",
        ),
    ],
)
def test_what_says_no_padding_is_refused(text: str, message: str) -> None:
    with mlir.make_context(), pytest.raises(ValueError, match=message):
        Padded.of(mlir.ir.Attribute.parse(text))


def test_the_box_of_a_padding_is_around_all_elements() -> None:
    assert Padded((0, 1), (4, 8), (1, 2)).box == ((0, 4), (1, 16))


def test_roundings_that_the_program_does_not_ask_for_are_marked_until_target_code() -> None:
    def normed(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (8,)).float()

    text = of_torch(normed, torch.rand(4, 8).half())
    assert "polyblocks.free_rounding" in text
    assert not re.search(r"(ext|trunc)f %\w+ fastmath", text)
    code = code_of(text, "cpu", "x86-64-v4")
    assert not re.search(r"(ext|trunc)f %\w+ fastmath", code)
