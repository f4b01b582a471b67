"""Programs in 16 bits on simulated GPUs: their products are those of matrix units.

How many kernels there are is part of it: a product that leaves float32 behind, for another kernel
to round or to add a bias to, would be as right and slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest
import torch
from sweeps import sweep
from tests.extended.test_kernels_simulated import simulate
from tests.support.any_unit import predict_by
from torch import nn
from torch.nn import functional

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.tiles.units_cost import predict_units

pytestmark = pytest.mark.cpu

Program = Callable[..., Any]
r = torch.randn
CHIPS = ("sm_80", "gfx1100")


@pytest.fixture(autouse=True)
def _units_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sizes that a simulator computes in seconds, the model may prefer other kernels."""

    def predict(*given: Any) -> Predicted:
        parts = astuple(predict_units(*given))
        return Predicted(*(None if part is None else part / 1000 for part in parts))

    predict_by(monkeypatch, predict)


def of_module(module: nn.Module, *inputs: torch.Tensor) -> tuple[Program, list[torch.Tensor]]:
    """A module as a function of its inputs and parameters."""
    names = [name for name, _ in module.named_parameters()]
    parameters = [p.detach() for p in module.parameters()]
    count = len(inputs)

    def function(*given: torch.Tensor) -> Any:
        named = dict(zip(names, given[count:], strict=True))
        return torch.func.functional_call(module, named, given[:count])

    return function, [*inputs, *parameters]


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(128, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax((q @ k.transpose(-1, -2)) / 8, -1) @ v


def wide(x: torch.Tensor) -> torch.Tensor:
    """As float32; the exact numbers stay what they are."""
    return x if x.dtype is torch.float64 else x.float()


def converted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return wide(a) @ wide(b)


def scaled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (wide(a) * 0.125) @ (wide(b) * 0.3).mT


def scaled_square(a: torch.Tensor) -> torch.Tensor:
    a = wide(a) * 0.3
    return torch.relu(a @ a.mT) + 1


QKV = ((1, 2, 64, 64),) * 3
#: name -> function and shapes of its inputs, products, all kernels.
FUNCTIONS: dict[str, tuple[Program, tuple[tuple[int, ...], ...], int, int]] = {
    "attention": (functional.scaled_dot_product_attention, QKV, 1, 1),
    "causal": (causal, QKV, 1, 1),
    "attention by hand": (by_hand, QKV, 1, 1),
    "linear": (functional.linear, ((2, 32, 64), (96, 64), (96,)), 1, 1),
    "linear without a bias": (functional.linear, ((2, 32, 64), (96, 64)), 1, 1),
    "points": (functional.conv2d, ((2, 64, 5, 8), (24, 64, 1, 1), (24,)), 1, 1),
    "converted": (converted, ((64, 96), (96, 48)), 1, 1),
    "scaled": (scaled, ((64, 96), (48, 96)), 1, 1),
    "few steps": (scaled, ((64, 16), (48, 16)), 1, 1),
    "square of what is scaled": (scaled_square, ((64, 96),), 1, 1),
}


def check(function: Program, inputs: list[torch.Tensor], arch: str) -> tuple[int, int]:
    """Launches with a unit, and all of them; results are as good as eager mode's."""
    outputs, launches = simulate(function, inputs, arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    expected = function(*(x.double() for x in inputs))
    eager = (function(*inputs).double() - expected).abs().max()
    found = torch.from_numpy(outputs[0])
    if inputs[0].dtype is torch.bfloat16 and outputs[0].dtype.itemsize == 2:
        found = found.view(torch.bfloat16)
    assert (found.double() - expected).abs().max() <= 2 * eager + 1e-6
    used = [launch for launch in launches if launch.counts.instructions.get("matrix", 0)]
    return len(used), len(launches)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    "name",
    sweep(
        FUNCTIONS,
        "causal",
        "attention by hand",
        "linear",
        "points",
        "converted",
        "scaled",
        "square of what is scaled",
    ),
)
def test_products_are_those_of_units(name: str, arch: str, dtype: torch.dtype) -> None:
    function, shapes, products, kernels = FUNCTIONS[name]
    torch.manual_seed(0)
    inputs = [r(shape).to(dtype) for shape in shapes]
    assert check(function, inputs, arch) == (products, kernels)


@pytest.mark.parametrize("arch", sweep(CHIPS, CHIPS[0]))
def test_a_module_of_attention(arch: str) -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        function, inputs = of_module(SelfAttention().half().eval(), r(1, 128, 128).half())
        assert check(function, inputs, arch) == (3, 3)
