"""Whole calls of a program for GPUs, for :mod:`bench.host_launches`.

PyTorch's tensors of the host stand for those of a GPU: they are read and allocated by functions of
the same kind. New addresses are those of the same arrays in another order, so that the arrays are
in the caches as those are that a caller has just made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from bench.host_launches import ARRAYS, LAUNCHES, SHAPE, STREAM, executable
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import Device
from polyblocks.runtime.bound_weights import bind_weights
from polyblocks.runtime.foreign.array_packages import ArrayPackage
from polyblocks.runtime.foreign.protocol_arrays import ProtocolArrays
from polyblocks.runtime.launch import bind
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.runtime.native.reader import NativeReader
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks.runtime.slots import WEIGHT_NAMES
from polyblocks_torch.launch.arrays import TorchArrays
from polyblocks_torch.specs import TORCH_DTYPES

Calls = Iterator[tuple[str, Callable[[], object]]]
CASES = (("plain", False), ("replayed", True), ("new addresses", "auto"))


class Tensors(TorchArrays):
    """Tensors of the host, as if they were of a GPU."""

    def device(self, array: torch.Tensor) -> Device:
        """The first GPU."""
        return Device(2, 0)

    def has_streams(self, device: Device) -> bool:
        """PyTorch has."""
        return True

    def allocates(self, device: Device) -> bool:
        """PyTorch does."""
        return True

    def stream(self, device: Device) -> int:
        """Always the same."""
        return STREAM

    def stream_getter(self, device: Device) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A builtin function, as PyTorch's is."""
        return int, (STREAM,)

    def empty(self, spec: ArraySpec, device: Device) -> torch.Tensor:
        """On the host."""
        return torch.empty_strided(spec.shape, spec.strides, dtype=TORCH_DTYPES[spec.dtype])

    def device_allocation(
        self, spec: ArraySpec, device: Device
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """PyTorch's for the host."""
        return self.allocation(spec)

    def device_reader(self, device: Device) -> NativeReader | None:
        """The reader of tensors of the host."""
        return self.native_reader()


class Array:
    """An array on the device, as its vendor's protocol shows it."""

    memory: Any = None

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 3, "typestr": "<f4", "shape": SHAPE, "strides": None,
            "data": (address, False), "stream": None,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def tensors(driver: Any, arrays: int = ARRAYS, launches: int = LAUNCHES) -> Calls:
    """With PyTorch's tensors."""
    given = [torch.empty(SHAPE) for _ in range(arrays - 1)]
    for case, use_graph in CASES:
        loaded = executable(driver, use_graph, arrays, launches)
        yield case, _in_turns(loaded, use_graph, bind(loaded, Tensors()), _rotated(given, case))


def weights(driver: Any, arrays: int = ARRAYS, launches: int = LAUNCHES) -> Calls:
    """With one tensor; the others are bound."""
    interface = Tensors()
    for case, use_graph in CASES:
        loaded = executable(driver, use_graph, arrays, launches)
        names = [[f"a{k}"] for k in range(1, arrays - 1)]
        loaded.manifest[WEIGHT_NAMES] = names
        held = {name: torch.empty(SHAPE) for (name,) in names}
        bound = bind_weights(loaded.manifest, {}, held, lambda _: interface)
        function = bind(loaded, interface, weights=bound)
        # Of one array there is no other order.
        given = [[torch.empty(SHAPE)] for _ in range(200 if case == "new addresses" else 1)]
        yield case, _in_turns(loaded, use_graph, function, given)


def protocol(driver: Any, arrays: int = ARRAYS, launches: int = LAUNCHES) -> Calls:
    """With arrays of a package that speaks the vendor's protocol, as ``from_dlpack`` makes them."""

    def taken(memory: Any) -> Array:
        array = Array(memory.address)
        array.memory = memory
        return array

    given = [Array(4096 * k) for k in range(1, arrays)]
    for case, use_graph in CASES:
        loaded = executable(driver, use_graph, arrays, launches)
        interface = ProtocolArrays(ArrayPackage("bench", taken), driver.array_protocols, loaded)
        yield case, _in_turns(loaded, use_graph, bind(loaded, interface), _rotated(given, case))


def host(driver: Any, arrays: int = ARRAYS, launches: int = LAUNCHES) -> Calls:
    """With NumPy's arrays, which are copied to the device and back."""
    given = [np.empty(SHAPE, np.float32) for _ in range(arrays - 1)]
    loaded = executable(driver, True, arrays, launches)
    yield "replayed", _in_turns(loaded, True, bind(loaded, NumpyArrays()), [given])


def _rotated(given: Sequence[Any], case: str) -> list[list[Any]]:
    """The arrays, or where addresses are to be new, in more orders than are remembered."""
    orders = len(given) if case == "new addresses" else 1
    turned = [[*given[k:], *given[:k]] for k in range(orders)]
    turned += [row[::-1] for row in turned] if orders > 1 else []
    turned += [[*row[1::2], *row[::2]] for row in turned] if orders > 1 else []
    return turned


def _in_turns(
    loaded: Any, use_graph: Any, call: Callable[..., Any], given: Sequence[Sequence[Any]]
) -> Callable[[], object]:
    function = dispatched(call, lambda *_: call)
    for _ in range(4):  # there is machine code
        function(*given[0])
    while use_graph and not loaded.graphs():
        for _ in range(2):
            function(*given[0])
    number = 0

    def next_call() -> object:
        nonlocal number
        number = (number + 1) % len(given)
        return function(*given[number])

    return next_call
