"""Tensors of dtypes that are not compiled: PyTorch runs what touches them, and it is said."""

import pytest
import torch

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}

MADE = {
    "float8_e4m3fn": lambda: torch.rand(4, 5).to(torch.float8_e4m3fn),
    "float8_e5m2": lambda: torch.rand(4, 5).to(torch.float8_e5m2),
    "uint16": lambda: torch.arange(20).to(torch.uint16),
    "uint32": lambda: torch.arange(20).to(torch.uint32),
    "uint64": lambda: torch.arange(20).to(torch.uint64),
    "complex32": lambda: torch.rand(6, dtype=torch.complex64).to(torch.complex32),
}
if hasattr(torch, "bcomplex32"):  # from PyTorch 2.14 on
    MADE["bcomplex32"] = lambda: torch.rand(6, dtype=torch.complex64).to(torch.bcomplex32)


def widened(x):
    return x.to(torch.complex64 if x.is_complex() else torch.float32) * 2 + 1


@pytest.mark.parametrize("dtype", MADE)
def test_argument_of_dtype(dtype, caplog):
    x = MADE[dtype]()
    fast = polyblocks_jit_torch(widened)
    torch.testing.assert_close(fast(x), widened(x))
    report = fast.polyblocks_report()
    assert not report.whole
    (row,) = report.fallbacks
    assert row.op == "aten._to_copy.default"
    assert dtype in row.reason
    assert __file__ in row.location
    assert "aten._to_copy.default" in caplog.text
    # What follows the conversion is compiled.
    assert report.variants[0].outcome == "partitioned"
    with pytest.raises(FallbackError, match=f"a tensor of dtype {dtype}; strict_target"):
        polyblocks_jit_torch(widened, compile_options=STRICT)(x)


def test_result_of_dtype():
    def narrow(x):
        return (x * 2).to(torch.float8_e5m2)

    x = torch.rand(4, 5)
    fast = polyblocks_jit_torch(narrow)
    assert torch.equal(fast(x).view(torch.uint8), narrow(x).view(torch.uint8))
    assert [row.op for row in fast.polyblocks_report().fallbacks] == ["aten._to_copy.default"]


def test_argument_of_dtype_is_updated():
    def fill(x):
        return x.fill_(7)

    x = torch.arange(6).to(torch.uint16)
    fast = polyblocks_jit_torch(fill)
    assert fast(x) is x
    assert x.tolist() == [7] * 6
    assert not fast.polyblocks_report().whole


@pytest.mark.filterwarnings("ignore:.*[Qq]uantiz")
def test_quantized_tensor(caplog):
    def read(x):
        return x.dequantize() * 2

    x = torch.quantize_per_tensor(torch.rand(4, 5), 0.1, 0, torch.quint8)
    fast = polyblocks_jit_torch(read)
    torch.testing.assert_close(fast(x), read(x))
    (frame,) = fast.polyblocks_report().frames
    assert "x is a quantized tensor (quint8)" in frame.reason
    assert "x is a quantized tensor" in caplog.text
    text = str(fast.polyblocks_report())
    assert "nothing to compute" not in text
    assert "not called yet" not in text
    with pytest.raises(FallbackError, match="strict_target"):
        polyblocks_jit_torch(read, compile_options=STRICT)(x)
