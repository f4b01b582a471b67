"""The ArrayInterface of PyTorch: tensors for the generic launch path."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake
from torch.autograd.graph import increment_version
from torch.utils import _pytree as pytree

from polyblocks.errors import InputError, UnsupportedError
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.native.reader import NativeReader
from polyblocks.runtime.source import Source
from polyblocks_torch.launch import accelerator
from polyblocks_torch.launch.launcher import POOLED_BYTES, allocation_of, pooled_tensor
from polyblocks_torch.launch.memory_of import LARGEST_ELEMENT, has_memory, memory_expression
from polyblocks_torch.launch.native_reader import reader
from polyblocks_torch.specs import ACCELERATOR, DTYPE_NAMES, TORCH_DTYPES, spec_of

_CLASSES = (torch.Tensor, torch.nn.Parameter)


class TorchArrays(ArrayInterface):
    """Strided tensors. Those that require gradients are taken as they are; none are recorded."""

    def is_array(self, value: Any) -> bool:
        """Whether ``value`` is a tensor."""
        return isinstance(value, torch.Tensor)

    def describe(self, array: torch.Tensor) -> ArraySpec:
        """Shape, dtype and strides of a tensor; see the base class."""
        if array.layout != torch.strided:
            raise InputError(f"the tensor's layout is {array.layout}; use .to_dense()")
        if array.dtype not in DTYPE_NAMES:
            names = ", ".join(DTYPE_NAMES.values())
            dtype = str(array.dtype).removeprefix("torch.")
            raise InputError(f"unsupported dtype {dtype}: expected one of {names}; use .to()")
        if array.is_conj() or array.is_neg():
            raise InputError("the tensor is a lazy conjugate or negation; use .resolve_conj()")
        try:
            return spec_of(array)
        except UnsupportedError as error:
            raise InputError(error.reason) from None

    def pointer(self, array: torch.Tensor) -> int:
        """The address of the first element."""
        address = int(array.data_ptr())
        if array.numel() and not has_memory(array):
            raise InputError(
                "the tensor has no memory (a ZeroTensor, or its storage was freed); expected one "
                "with data"
            )
        return address

    def memory(self, array: torch.Tensor) -> torch.Tensor:
        """A tensor on the same storage, which ``array.data = …`` does not replace."""
        return array.detach()

    def device(self, array: torch.Tensor) -> Device:
        """Where the tensor lies."""
        if array.device.type == "cpu":
            return HOST  # also where it is page-locked
        try:
            kind, number = array.detach().__dlpack_device__()
        except (BufferError, RuntimeError, ValueError):
            raise InputError(f"a tensor on {array.device} has no memory; use .cpu()") from None
        return Device(int(kind), int(number))

    def is_writable(self, array: torch.Tensor) -> bool:
        """Whether it may be updated: not while autograd records it."""
        return not (array.requires_grad and torch.is_grad_enabled())

    def readings(self, arrays: Sequence[torch.Tensor]) -> tuple[list[int], Any] | None:
        """See the base class. Tensors without memory have to be checked each time."""
        addresses = [array.data_ptr() for array in arrays]
        reach = [LARGEST_ELEMENT * array.storage_offset() for array in arrays]
        if any(map(operator.le, addresses, reach)):
            return None
        recorded = torch.is_grad_enabled()
        return addresses, [
            (
                array.device, array.dtype, array.shape, array.stride(), array.layout,
                array.is_conj(), array.is_neg(), recorded and array.requires_grad,
            )
            for array in arrays
        ]  # fmt: skip

    def updating(self, *arrays: torch.Tensor) -> None:
        """A new version, so that autograd finds what it has saved of them changed."""
        increment_version([each for each in arrays if not each.is_inference()])

    def empty(self, spec: ArraySpec, device: Device) -> torch.Tensor:
        """A new tensor; large ones on the host are on pooled memory."""
        dtype = TORCH_DTYPES[spec.dtype]
        if device == HOST and spec.nbytes >= POOLED_BYTES:
            return pooled_tensor(spec.nbytes, spec.shape, spec.strides, dtype)
        place = _place(device)
        return torch.empty_strided(spec.shape, spec.strides, dtype=dtype, device=place)

    def allocation(self, spec: ArraySpec) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The result of :func:`polyblocks_torch.launch.launcher.allocation_of`."""
        return allocation_of(spec)

    def native_reader(self) -> NativeReader | None:
        """Reads tensors and parameters, but no subclasses."""
        return reader()

    def device_reader(self, device: Device) -> NativeReader | None:
        """Of tensors on a GPU."""
        if device.kind != accelerator.kind():
            return None
        return reader(torch.device(ACCELERATOR, device.number))

    def device_allocation(
        self, spec: ArraySpec, device: Device
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """PyTorch's allocator for such layouts."""
        allocate = accelerator.allocator(torch.device(ACCELERATOR, device.number))
        return allocate, (spec.shape, spec.strides, TORCH_DTYPES[spec.dtype])

    def stream_getter(self, device: Device) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """PyTorch's own function."""
        return accelerator.current_stream(), (device.number,)

    def check_expressions(
        self, source: Source, array: str, spec: ArraySpec, written: bool
    ) -> tuple[list[str], str] | None:
        """Compares attributes of tensors and parameters."""
        dtype = TORCH_DTYPES.get(spec.dtype)
        if dtype is None:
            return None
        classes = source.name("classes", _CLASSES)
        conditions = [
            f"type({array}) in {classes}",
            f"{array}.dtype is {source.name('dtype', dtype)}",
            f"{array}.layout is {source.name('strided', torch.strided)}",
            f"{array}.is_cpu",
            f"{array}.shape == {spec.shape}",
            f"not {array}.is_neg()",
        ]
        if spec.numel:
            conditions.append(f"{array}.stride() == {spec.strides}")
            conditions.append(memory_expression(f"{array}.data_ptr()", array))
        if dtype.is_complex:
            conditions.append(f"not {array}.is_conj()")
        if written:
            recorded = source.name("is_grad_enabled", torch.is_grad_enabled)
            conditions.append(f"not ({array}.requires_grad and {recorded}())")
        return conditions, f"{array}.data_ptr()"

    def guard_expressions(self, source: Source) -> list[str]:
        """No mode sees operations, and no transform of ``torch.func`` is at work."""
        modes = source.name("modes", torch._C._len_torch_dispatch_stack)
        transforms = source.name("transforms", torch._C._functorch.peek_interpreter_stack)
        return [f"not {modes}()", f"{transforms}() is None"]

    def transfer(self, array: torch.Tensor, device: Device) -> torch.Tensor:
        """The tensor itself if it is on the device, else a copy there."""
        return array.to(_place(device))

    def leaves(self, value: Any) -> list[Any]:
        """The leaves of a structure, as PyTorch's pytrees flatten it."""
        return list(pytree.tree_leaves(value))

    def named(self, value: Any) -> dict[str, Any]:
        """Of modules the parameters and buffers, of exported programs those and constants."""
        if isinstance(value, torch.nn.Module):
            return {
                **dict(value.named_parameters(remove_duplicate=False)),
                **dict(value.named_buffers(remove_duplicate=False)),
            }
        if isinstance(value, torch.export.ExportedProgram):
            every = {**value.state_dict, **value.constants}
            return {name: held for name, held in every.items() if self.is_array(held)}
        return super().named(value)

    def with_arrays(self, value: Any, make: Callable[[ArraySpec], Any]) -> Any:
        """Meta and fake tensors become tensors."""

        def concrete(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor) or not (leaf.is_meta or is_fake(leaf)):
                return leaf
            shape = tuple(leaf.shape)
            if any(isinstance(size, torch.SymInt) for size in (*shape, *leaf.stride())):
                raise InputError(
                    f"a fake tensor of shape {shape} has a symbolic size; a program has one size: "
                    "pass a tensor of that size"
                )
            return make(spec_of(leaf))

        return pytree.tree_map(concrete, value)

    def without_gradients(self) -> Any:
        """Inside, autograd records nothing."""
        return torch.no_grad()

    def has_streams(self, device: Device) -> bool:
        """Whether it is a GPU: PyTorch has a current stream there, and its memory follows it."""
        return device.kind == accelerator.kind()

    def allocates(self, device: Device) -> bool:
        """On the host and on GPUs."""
        return device == HOST or device.kind == accelerator.kind()

    def num_threads(self) -> int:
        """The setting of ``torch.set_num_threads`` or ``OMP_NUM_THREADS``."""
        return torch.get_num_threads()

    def stream(self, device: Device) -> int:
        """The handle of PyTorch's current stream on a GPU; 0 on the host."""
        return 0 if device == HOST else accelerator.current_stream()(device.number)


def _place(device: Device) -> torch.device:
    if device == HOST:
        return torch.device("cpu")
    if device.kind != accelerator.kind():
        raise InputError(f"PyTorch makes no tensors here on device {tuple(device)}")
    return torch.device(ACCELERATOR, device.number)
