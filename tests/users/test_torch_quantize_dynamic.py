"""Dynamically quantized models: PyTorch runs the quantized layers, and it is said."""

import pytest
import torch
from torch.ao.quantization import quantize_dynamic

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))


def quantized(model):
    return quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


def test_quantized_model_is_compiled(caplog):
    model, x = quantized(network()), torch.rand(3, 8)
    fast = polyblocks_jit_torch(model)
    torch.testing.assert_close(fast(x), model(x))
    report = fast.polyblocks_report()
    assert not report.whole
    assert report.graph_breaks[0].location.split(":")[0].endswith("linear.py")
    assert "graph break" in caplog.text
    assert "nothing to compute" not in str(report)
    with pytest.raises(FallbackError, match="strict_target"):
        polyblocks_jit_torch(model, compile_options={"strict_target": True})(x)


def test_compiled_model_is_quantized(caplog):
    model, x = network(), torch.rand(3, 8)
    result = quantized(polyblocks_jit_torch(model))
    torch.testing.assert_close(result(x), quantized(model)(x))
    report = result.polyblocks_report()
    assert not report.whole
    assert "not called yet" not in str(report)
    assert "graph break" in caplog.text
