"""`mm_conv_precision_mode`: operands and sums of contractions in other types than the program's."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from polyblocks.errors import OptionError
from polyblocks.options import PRECISION_MODES
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def compiled(function, mode: str | None):
    options = {"target": "cpu", "strict_target": True, "mm_conv_precision_mode": mode}
    return polyblocks_jit_torch(compile_options=options)(function)


def as_tf32(x: torch.Tensor) -> torch.Tensor:
    """To ten bits of fraction, to nearest even."""
    scale = torch.exp2(x.abs().log2().floor() - 10)
    return torch.where(x == 0, x, (x.double() / scale).round() * scale).float()


ROUNDED = {
    "fp16": lambda x: x.half().float(),
    "fp32": lambda x: x,
    "mixed_fp16_fp32": lambda x: x.half().float(),
    "mixed_bf16_fp32": lambda x: x.bfloat16().float(),
    "tf32": as_tf32,
}
PROGRAMS = {
    "product": (lambda a, b: a @ b, (50, 70), (70, 40)),
    "short sums": (lambda a, b: a @ b, (50, 7), (7, 40)),
    "odd sums": (lambda a, b: torch.relu(a @ b.T), (33, 77), (21, 77)),
    "batch": (lambda a, b: torch.bmm(a, b), (3, 20, 65), (3, 65, 30)),
    "convolution": (lambda x, w: functional.conv2d(x, w, padding=1), (2, 9, 12, 11), (8, 9, 3, 3)),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", ROUNDED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operands_are_rounded(name: str, mode: str) -> None:
    function, *shapes = PROGRAMS[name]
    torch.manual_seed(0)
    a, b = (torch.randn(shape) for shape in shapes)
    result = compiled(function, mode)(a, b)
    rounded = ROUNDED[mode](a), ROUNDED[mode](b)
    expected = function(*(x.double() for x in rounded))
    assert result.dtype == torch.float32
    tolerance = 2e-5
    if mode == "fp16":
        assert torch.equal(result, result.half().float())
        tolerance = 1e-2
    assert (result.double() - expected).abs().max() < tolerance
    if mode != "fp32":
        # What was not asked for would be further away.
        exact = function(a.double(), b.double())
        assert (result.double() - exact).abs().max() > 10 * (tolerance if mode != "fp16" else 1e-5)


def test_special_values_of_tf32() -> None:
    a = torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [-torch.inf, 1.0], [-0.0, -0.0]])
    a = torch.cat([a, torch.ones(4, 38)], 1)
    a[3] = -0.0
    # A NaN whose bits are all behind those that are kept.
    a.view(torch.int32)[0, 0] = 0x7F800001
    result = compiled(torch.matmul, "tf32")(a, torch.ones(40, 8))
    expected = a @ torch.ones(40, 8)
    assert torch.equal(result.isnan(), expected.isnan())
    assert torch.equal(result.nan_to_num(), expected.nan_to_num())


def test_other_code_keeps_its_precision() -> None:
    x = torch.randn(40, 50)
    result = compiled(lambda x: (x * 1.2345).sum(1), "mixed_bf16_fp32")(x)
    torch.testing.assert_close(result, (x * 1.2345).sum(1))


def test_float64_stays() -> None:
    a, b = torch.randn(20, 50).double(), torch.randn(50, 30).double()
    result = compiled(torch.matmul, "mixed_bf16_fp32")(a, b)
    torch.testing.assert_close(result, a @ b, atol=1e-12, rtol=1e-12)


def test_bfloat16_stays_what_it_is() -> None:
    a, b = torch.randn(20, 50).bfloat16(), torch.randn(50, 30).bfloat16()
    assert torch.equal(
        compiled(torch.matmul, "mixed_bf16_fp32")(a, b), compiled(torch.matmul, None)(a, b)
    )


@pytest.mark.parametrize("mode", ["int32", "mixed_int8_int32"])
@pytest.mark.parametrize("types", [(torch.int8, torch.int8), (torch.uint8, torch.int8)])
def test_integers(mode: str, types: tuple[torch.dtype, torch.dtype]) -> None:
    a, b = (torch.randint(0, 100, (40, 40)).to(t) for t in types)

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.to(torch.int32) @ b.to(torch.int32)

    assert torch.equal(compiled(product, mode)(a, b), product(a, b))


def test_sums_of_int64_in_32_bits() -> None:
    a = torch.full((4, 40), 1 << 20)
    result = compiled(torch.matmul, "int32")(a, torch.full((40, 8), 1 << 10))
    wrapped = ((40 << 30) + (1 << 31)) % (1 << 32) - (1 << 31)
    assert result.dtype == torch.int64
    assert torch.equal(result, torch.full((4, 8), wrapped))


@pytest.mark.parametrize("mode", ["int32", "mixed_int8_int32"])
def test_modes_for_integers_refuse_floats(mode: str) -> None:
    a = torch.randn(40, 40)
    message = f"mode='{mode}' expects products of .*, not of f32 as in aten.mm.default at .*; conv"
    with pytest.raises(OptionError, match=message):
        compiled(torch.matmul, mode)(a, a)


def test_bytes_are_expected_where_they_are_named() -> None:
    a = torch.ones(40, 40, dtype=torch.int32)
    with pytest.raises(OptionError, match="expects products of int8 or uint8 numbers, not of i32"):
        compiled(torch.matmul, "mixed_int8_int32")(a, a)


@pytest.mark.parametrize("mode", PRECISION_MODES)
def test_programs_without_contractions_take_every_mode(mode: str) -> None:
    x = torch.randn(30)
    assert torch.equal(compiled(lambda x: x + 1, mode)(x), x + 1)
