"""PyTorch's tensors of the host in the place of those of a GPU, on a stand-in for its driver."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.support.random_launches import Bench

from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import Device
from polyblocks.runtime.native.reader import NativeReader
from polyblocks_torch.launch.arrays import TorchArrays
from polyblocks_torch.launch.native_reader import STATE, reader
from polyblocks_torch.specs import TORCH_DTYPES


class GpuTensors(TorchArrays):
    """Parameters are on device 1, all other tensors on device 0, whose memory is the host's.

    Args:
        bench: has the devices.

    Attributes:
        stream_of: the current stream of each device.
        described: how many tensors Python has looked at.
        updated: how often it was told of updates.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.kind = bench.driver.device_kinds[0]
        self.stream_of: dict[int, int] = {
            n: bench.driver.create_stream(n) for n in range(len(bench.stand_in.archs))
        }
        self.described = 0
        self.updated = 0

    def tensor(self, values: Any, device: int = 0) -> torch.Tensor:
        """A tensor with these values on a device."""
        array = np.asarray(values)
        return self.at(self._bench.upload(array, device), array.shape, device, array.dtype.name)

    def at(
        self, address: int, shape: tuple[int, ...], device: int = 0, dtype: str = "float32"
    ) -> torch.Tensor:
        """A tensor in memory of a device."""
        nbytes = ArraySpec.contiguous(shape, dtype).nbytes
        memory = (ctypes.c_char * nbytes).from_address(address)
        made = torch.frombuffer(memory, dtype=TORCH_DTYPES[dtype]).view(shape)
        return torch.nn.Parameter(made, requires_grad=False) if device else made

    def describe(self, array: torch.Tensor) -> ArraySpec:
        """As of the base class."""
        self.described += 1
        return super().describe(array)

    def readings(self, arrays: Any) -> Any:
        """As of the base class, with the devices."""
        self.described += len(arrays)
        read = super().readings(arrays)
        return None if read is None else (read[0], (read[1], [type(each) for each in arrays]))

    def device(self, array: torch.Tensor) -> Device:
        """By its class."""
        return Device(self.kind, int(isinstance(array, torch.nn.Parameter)))

    def has_streams(self, device: Device) -> bool:
        """They have."""
        return True

    def allocates(self, device: Device) -> bool:
        """It does."""
        return True

    def stream(self, device: Device) -> int:
        """The stream that a test has set."""
        return self.stream_of[device.number]

    def stream_getter(self, device: Device) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The same."""
        return self.stream_of.__getitem__, (device.number,)

    def empty(self, spec: ArraySpec, device: Device) -> torch.Tensor:
        """Memory of the device, as the tensor's class says."""
        plain = np.zeros(max(spec.nbytes, 1), np.uint8)
        made = self.tensor(plain, device.number).detach().view(TORCH_DTYPES[spec.dtype])
        made = made.as_strided(spec.shape, spec.strides)
        return torch.nn.Parameter(made, requires_grad=False) if device.number else made

    def device_allocation(
        self, spec: ArraySpec, device: Device
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The same."""
        return self.empty, (spec, device)

    def device_reader(self, device: Device) -> NativeReader | None:
        """PyTorch's for the host, which takes tensors of one class only."""
        host = reader()
        assert host is not None
        state = type(host.state)(*host.state)
        kept, other = ("parameter", "tensor") if device.number else ("tensor", "parameter")
        state[STATE.index(other)] = state[STATE.index(kept)]
        return dataclasses.replace(host, state=state)

    def updating(self, *arrays: torch.Tensor) -> None:
        """Counts."""
        self.updated += 1
        super().updating(*arrays)
