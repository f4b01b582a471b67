"""Tensors through the generic launch path's interface."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from polyblocks.errors import InputError  # noqa: E402
from polyblocks.program import ArraySpec  # noqa: E402
from polyblocks.runtime.arrays import HOST, Device  # noqa: E402
from polyblocks_torch.launch.arrays import POOLED_BYTES, TorchArrays  # noqa: E402
from polyblocks_torch.plugin import array_interface  # noqa: E402

arrays = TorchArrays()


def test_a_tensor_is_described():
    x = torch.empty(4, 6, dtype=torch.bfloat16).t()
    assert arrays.is_array(x)
    assert not arrays.is_array([1.0])
    assert arrays.describe(x) == ArraySpec((6, 4), "bfloat16", (1, 6))
    assert arrays.pointer(x[1:]) == x.data_ptr() + 2
    assert arrays.device(x) == HOST
    assert arrays.stream(HOST) == 0
    assert isinstance(array_interface(), TorchArrays)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: torch.ones(2).to_sparse(), "layout is torch.sparse_coo; use .to_dense"),
        (
            lambda: torch.ones(2).to(torch.uint16),
            "unsupported dtype uint16: expected one of float64",
        ),
        (lambda: torch.ones(2, dtype=torch.complex64).conj(), "lazy conjugate"),
    ],
)
def test_what_no_program_takes(make, message):
    with pytest.raises(InputError, match=message):
        arrays.describe(make())


def test_a_tensor_without_memory():
    with pytest.raises(InputError, match="a tensor on meta has no memory"):
        arrays.device(torch.empty(2, device="meta"))


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("freed", [True, False])
def test_memory_that_is_gone(freed, first):
    x = (torch.ones(3) if freed else torch._efficientzerotensor((3,)))[first:]
    assert freed or x._is_zerotensor()
    if freed:
        assert arrays.readings([x]) is not None
        x.untyped_storage().resize_(0)
    assert arrays.readings([torch.ones(3), x]) is None
    with pytest.raises(InputError, match="no memory .a ZeroTensor, or its storage was freed"):
        arrays.pointer(x)


def test_updates_are_refused_while_autograd_records():
    x = torch.ones(2, requires_grad=True)
    assert not arrays.is_writable(x)
    with torch.no_grad():
        assert arrays.is_writable(x)


@pytest.mark.parametrize("n", [3, 700])
def test_new_tensors_have_the_layout(n):
    spec = ArraySpec((n, n), "float32", (1, n))
    made = arrays.empty(spec, HOST)
    assert arrays.describe(made) == spec
    assert arrays.transfer(made, HOST) is made


def test_devices_that_pytorch_does_not_have():
    with pytest.raises(InputError, match=r"no tensors here on device \(7, 0\)"):
        arrays.empty(ArraySpec.contiguous((2,), "float32"), Device(7, 0))
    assert arrays.allocates(HOST)
    assert not arrays.allocates(Device(7, 0))
    assert not arrays.has_streams(HOST)


def test_the_stream_and_the_allocator_of_a_gpu_are_pytorchs(monkeypatch):
    made = []

    def empty_strided(shape, strides, dtype, device):
        made.append((shape, strides, dtype, device))

    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda n: 70 + n, raising=False)
    gpu = Device(2, 1)
    assert arrays.allocates(gpu)
    assert arrays.has_streams(gpu)
    assert arrays.stream(gpu) == 71
    monkeypatch.setattr(torch, "empty_strided", empty_strided)
    arrays.empty(ArraySpec((2, 3), "float32", (1, 2)), gpu)
    assert made == [((2, 3), (1, 2), torch.float32, torch.device("cuda", 1))]


@pytest.mark.parametrize("length", [3, POOLED_BYTES])
def test_results_of_the_host_wherever_pytorch_makes_tensors(length):
    with torch.device("meta"):
        made = arrays.empty(ArraySpec.contiguous((length,), "float32"), HOST)
    assert made.device.type == "cpu"
    assert made.shape == (length,)
