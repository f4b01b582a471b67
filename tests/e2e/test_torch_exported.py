"""What ``torch.export`` gives becomes a file, whatever it asserts of types, numbers and data."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import polyblocks
from polyblocks.errors import ExecutionError

FOLDER = Path(__file__).parent.parent / "models"


@pytest.mark.parametrize(
    "name",
    [
        "U-Net",
        pytest.param("GPT2Model", marks=pytest.mark.extended),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "AlexNet",
                "AlbertModel",
                "BertModel",
                "LlamaModel",
                "ResNetModel",
                "ViTModel",
            )
        ),
    ],
)
def test_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All twenty are checked by ``make models MODELS=--exported``."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    exported = importlib.import_module("exported")
    assert name in exported.NAMES
    models = importlib.import_module("zoo").models()
    outcome = exported.check_exported(next(m for m in models if m.name == name))
    assert (outcome.kind, outcome.reason) == ("compiled", "")


class Norm(nn.Module):
    """Of 16-bit numbers, computed in float32; it asserts something of types, numbers and data."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(7, dtype=torch.bfloat16))

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        torch._assert_async((wide < 100).all(), "too large")
        count = n.item()
        torch._check(count >= 2)
        torch._check(count <= 50)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * count
        return self.weight * scaled.to(x.dtype)


def test_assertions_of_an_exported_program() -> None:
    model = Norm().eval()
    x, n = torch.rand(3, 7, dtype=torch.bfloat16), torch.tensor(4)
    with torch.no_grad():
        program = torch.export.export(model, (x, n))
        expected = model(x, n)
    targets = {str(node.target) for node in program.graph.nodes}
    assert {"aten._assert_tensor_metadata.default", "aten._assert_scalar.default"} <= targets
    function: Any = polyblocks.load(polyblocks.aot(program))
    torch.testing.assert_close(function(x, n), expected)
    with pytest.raises(ExecutionError, match="too large"):
        function(x + 200, n)
    with pytest.raises(ExecutionError, match="u0 <= 50"):
        function(x, torch.tensor(51))
