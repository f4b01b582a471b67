"""What eager mode refuses of values, compiled programs refuse with the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

BYTES, FLOATS = tensor([1, 2, 3], dtype=torch.uint8), tensor([0.25, 0.5, 1.0])

#: Function, arguments that it takes, and such that it refuses.
DATA: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]] = {
    "input of a loss": (F.binary_cross_entropy, (FLOATS, FLOATS), (FLOATS * 2, FLOATS)),
    "NaN of a loss": (F.binary_cross_entropy, (FLOATS, FLOATS), (FLOATS * torch.nan, FLOATS)),
    "target of a loss": (F.binary_cross_entropy, (FLOATS, FLOATS), (FLOATS, FLOATS - 1)),
    "large class": (lambda x: F.one_hot(x, 3), (tensor([0, 2]),), (tensor([3, 0]),)),
    "negative class": (lambda x: F.one_hot(x, 3), (tensor([0, 2]),), (tensor([-1, 0]),)),
}


@pytest.mark.parametrize("name", DATA)
def test_data(name: str) -> None:
    function, right, wrong = DATA[name]
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    torch.testing.assert_close(ours(*right), function(*right))
    words = "should be between 0 and 1|Class values must be"
    with pytest.raises(RuntimeError, match=words) as eager:
        function(*wrong)
    with pytest.raises(RuntimeError, match=words) as found:
        ours(*wrong)
    assert str(found.value) == str(eager.value)


def test_ranges_of_histograms() -> None:
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(torch.histc)
    assert torch.equal(ours(FLOATS), torch.histc(FLOATS))
    for value in (torch.inf, torch.nan):
        with pytest.raises(RuntimeError, match=r"torch.histc: range .*is not finite"):
            torch.histc(FLOATS / 0 * value)
        with pytest.raises(RuntimeError, match="torch.histc: range is not finite"):
            ours(FLOATS / 0 * value)


NUMBERS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "full_like": lambda x, n: torch.full_like(x, n),
    "fill": lambda x, n: x.clone().fill_(n),
    "masked_fill": lambda x, n: x.masked_fill(x > 1, n),
    "where": lambda x, n: torch.where(x > 1, x, n),
    "clamp": lambda x, n: x.clamp(max=n),
    "clamp_min": lambda x, n: x.clamp(min=n),
    "clamp_both": lambda x, n: x.clamp(1, n),
    "hardtanh": lambda x, n: F.hardtanh(x, 0, n) if n > 0 else x,
    "index_fill": lambda x, n: x.index_fill(0, tensor([0]), n),
    "scatter": lambda x, n: x.scatter(0, tensor([0]), n),
    "pad": lambda x, n: F.pad(x, (1, 1), value=n),
    "threshold": lambda x, n: F.threshold(x, 1, n),
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "pow": lambda x, n: x**n,
}


#: From PyTorch 2.15 on, limits of integers are refused on their wrong side alone.
REFUSED = "overflow|negative integer powers|outside the representable range"
_SCALAR_TYPES = {torch.uint8: "Byte", torch.int8: "Char", torch.int32: "Int"}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_numbers_that_a_type_does_not_hold(name: str, dtype: torch.dtype) -> None:
    x = BYTES.to(dtype)
    limits = torch.iinfo(dtype)
    for n in (2, -1, limits.max, limits.max + 1, limits.min - 1, -limits.max - 1):
        function = lambda x, n=n: NUMBERS[name](x, n)  # noqa: E731
        ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
        expected, words = said(function, x)
        if words is None:
            assert torch.equal(ours(x), expected), n
            continue
        with pytest.raises(RuntimeError, match=REFUSED) as found:
            ours(x)
        if "representable range" in words:
            # Refused while Dynamo traces, which calls the type by its other name.
            words = words.replace(_SCALAR_TYPES[dtype], str(dtype))
            assert f"Dynamo cannot trace it: RuntimeError('{words}')" in str(found.value)
            continue
        assert str(found.value) == words


def test_numbers_as_large_as_the_largest_integer() -> None:
    """As floats they are 2**63, which releases of PyTorch refuse or not."""
    x = tensor([1, 2, 3])
    for function in (
        lambda x: F.pad(x, (1, 1), value=2**63 - 1),
        lambda x: torch.full_like(x, 2.0**63),
        lambda x: F.threshold(x, 1, 2.0**63),
        lambda x: torch.full_like(x, 2.0**62),
    ):
        ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
        expected, words = said(function, x)
        if words is None:
            assert torch.equal(ours(x), expected)
            continue
        with pytest.raises(RuntimeError, match="int64_t without overflow") as found:
            ours(x)
        assert str(found.value) == words


@pytest.mark.parametrize("name", ["clamp", "clamp_min", "hardtanh"])
def test_limits_that_change_and_that_a_type_does_not_hold(name: str) -> None:
    function = NUMBERS[name]
    ours = polyblocks_jit_torch(function)
    for n in (2, 3, 4, -1, 300, -300):
        expected, words = said(lambda x, n=n: function(x, n), BYTES)
        if words is None:
            assert torch.equal(ours(BYTES, n), expected), n
            continue
        with pytest.raises(RuntimeError, match=REFUSED) as found:
            ours(BYTES, n)
        assert str(found.value) == words


def said(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Any, str | None]:
    """The result of a function, and the words of the error that it raises."""
    try:
        return function(x), None
    except RuntimeError as error:
        return None, str(error)


def test_a_negative_beta() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return F.smooth_l1_loss(x, y, beta=-1.0)

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    with pytest.raises(RuntimeError, match="does not support negative values for beta"):
        function(FLOATS, FLOATS)
    with pytest.raises(RuntimeError, match="does not support negative values for beta"):
        ours(FLOATS, FLOATS)
