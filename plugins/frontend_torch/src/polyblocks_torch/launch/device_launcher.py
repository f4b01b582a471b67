"""The launcher's code for tensors on a GPU: the addresses, the current stream, one call.

Nothing waits. Results and workspace come from PyTorch's allocator, which follows the stream, so
that a call can be recorded into a graph of PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from polyblocks.options import CompileOptions
from polyblocks.runtime.arrays import ArrayInterface, Device
from polyblocks.runtime.device.calls.native_device_call import native_device_call
from polyblocks.runtime.native.call import NativeCall
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.runtime.slots import signature_of
from polyblocks.runtime.source import Source
from polyblocks_torch.capture import FromInput, TorchCapture
from polyblocks_torch.launch import accelerator
from polyblocks_torch.launch.argument_writer import ArgumentWriter
from polyblocks_torch.specs import ACCELERATOR, TORCH_DTYPES

if TYPE_CHECKING:
    from polyblocks.program import ArraySpec


def device_of(capture: TorchCapture) -> torch.device | None:
    """The GPU on which a graph's tensors are; None if they are on the CPU."""
    for node in capture.graph_module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.device.type == ACCELERATOR:
            return torch.device(ACCELERATOR, value.device.index or 0)
    return None


def run_on_device(
    source: Source,
    capture: TorchCapture,
    executable: Any,
    options: CompileOptions,
    device: torch.device,
    arguments: ArgumentWriter,
) -> None:
    """Write the line that launches a program; the results are ``r0``, ``r1``, …

    Tensors that are as the program expects them are read, and kernels launched, by machine code.

    Args:
        source: is appended to.
        capture: what was compiled.
        executable: the loaded program, with ``workspace_launcher``.
        options: ``num_iters`` matters here.
        device: where the tensors are.
        arguments: of the program.
    """
    results = [f"r{i}" for i, result in enumerate(capture.results) if result.updates is None]
    parameters = list(dict.fromkeys(arguments.names))
    plain = Source(", ".join(parameters))
    _launch(plain, capture, executable, options, device, arguments)
    plain.add(f"return {', '.join(results)}")
    function = plain.build(capture.name)
    if parameters == arguments.names:
        function = in_machine_code(function, executable, options, device)
    call = f"{source.name('run', function)}({', '.join(parameters)})"
    source.add(f"{', '.join(results)} = {call}" if results else call)


def in_machine_code(
    plain: Callable[..., Any], executable: Any, options: CompileOptions, device: torch.device
) -> Callable[..., Any]:
    """A function of a program's tensors in machine code, from its third call on.

    Args:
        plain: the same in Python; takes what is not as expected.
        executable: the loaded program.
        options: ``num_iters`` matters here.
        device: where the tensors are.
    """
    from polyblocks_torch.launch.arrays import TorchArrays

    class Tensors(TorchArrays):
        # AOTAutograd counts what is updated.
        updating = ArrayInterface.updating

    place = Device(accelerator.kind(), device.index)

    def native_call(slow: Callable[..., Any]) -> NativeCall | None:
        signature = signature_of(executable.manifest, {})
        iterations = options.num_iters
        return native_device_call(
            executable, Tensors(), signature, slow, place, num_iters=iterations
        )

    plain.native_call = native_call  # type: ignore[attr-defined]
    return dispatched(plain, lambda *_: plain)


def _launch(
    source: Source,
    capture: TorchCapture,
    executable: Any,
    options: CompileOptions,
    device: torch.device,
    arguments: ArgumentWriter,
) -> None:
    """Write the lines of Python that launch a program, see :func:`run_on_device`."""
    addresses: list[str] = []
    copied: list[int] = []
    updated = {result.updates for result in capture.results if result.updates is not None}
    numbers = iter(range(len(capture.sources)))
    of_arguments = arguments.addresses(range(len(capture.sources)), source)
    fresh = iter(i for i, result in enumerate(capture.results) if result.updates is None)
    for row in executable.manifest["arguments"]:
        if row["role"] == "input":
            number = next(numbers)
            address, alignment = of_arguments[number], row.get("alignment", 1)
            if alignment > 1 and isinstance(capture.sources[number], FromInput):
                # A view into the middle of a tensor may begin anywhere.
                name = arguments.names[number]
                fit = source.name("aligned", aligned)
                source.add(f"q{number} = {fit}({name}) if {address} % {alignment} else {name}")
                address = f"q{number}.data_ptr()"
                if number in updated:
                    copied.append(number)
            addresses.append(address)
        else:
            index = next(fresh)
            source.add(f"r{index} = {allocation(source, capture.results[index].spec, device)}")
            addresses.append(f"r{index}.data_ptr()")
    nbytes, launch = executable.workspace_launcher(device.index)
    workspace = "0"
    if nbytes:
        allocate = source.name("allocate", accelerator.allocator(device))
        dtype = source.name("dtype", torch.uint8)
        source.add(f"w = {allocate}(({nbytes},), (1,), {dtype})")
        workspace = "w.data_ptr()"
    stream = f"{source.name('stream', accelerator.current_stream())}({device.index})"
    run = f"{source.name('launch', launch)}({', '.join([stream, workspace, *addresses])})"
    if options.num_iters > 1:
        source.add(f"for _ in range({options.num_iters}):")
    source.add(run, depth=2 if options.num_iters > 1 else 1)
    for number in copied:
        name = arguments.names[number]
        source.add(f"if q{number} is not {name}:")
        source.add(f"{name}.copy_(q{number})", depth=2)


def allocation(source: Source, spec: ArraySpec, device: torch.device) -> str:
    """An expression for a new tensor."""
    allocate = source.name("allocate", accelerator.allocator(device))
    dtype = source.name("dtype", TORCH_DTYPES[spec.dtype])
    return f"{allocate}({spec.shape}, {spec.strides}, {dtype})"


def aligned(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides at the beginning of an allocation."""
    made = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    return made.copy_(tensor)
