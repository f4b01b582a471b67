"""A loaded program as a checked function of arrays of the host."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from polyblocks.errors import ExecutionError
from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.kept.memory import Kept
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.slots import Signature, check_all, check_overlaps

if TYPE_CHECKING:
    from polyblocks.runtime.native.call import NativeCall


def bind_host(
    executable: Executable,
    interface: ArrayInterface,
    signature: Signature,
    num_threads: int | None,
    num_iters: int,
    weights: BoundWeights | None,
) -> Callable[..., Any]:
    """:func:`polyblocks.runtime.launch.bind` for arrays of the host."""
    program = HostProgram(executable, interface, signature, num_threads, num_iters, weights)
    call = program.call()
    call.__name__ = call.__qualname__ = program.name
    target = executable.manifest.get("target", "?")
    call.__doc__ = f"{program.name}({signature.text}), compiled for {target}."
    # They refer to the program and not to the function, which is gone with its last reference.
    call.native_call = program.native_call  # type: ignore[attr-defined]
    call.check = program.check  # type: ignore[attr-defined]
    call.generated_call = program.generated_call  # type: ignore[attr-defined]
    return call


@dataclass
class _Arguments:
    """Addresses for one run.

    Attributes:
        pointers: of the entry's arguments.
        workspaces: to release after the run.
        alive: arrays and memory that the run needs.
    """

    pointers: list[int]
    workspaces: list[Any]
    alive: list[Any]


class HostProgram:
    """A program with the settings of its calls; see :func:`polyblocks.runtime.launch.bind`."""

    def __init__(
        self,
        executable: Executable,
        interface: ArrayInterface,
        signature: Signature,
        num_threads: int | None,
        num_iters: int,
        weights: BoundWeights | None,
    ) -> None:
        self.name: str = executable.manifest.get("name", "main")
        self._executable = executable
        self._interface = interface
        self._signature = signature
        self._num_threads = num_threads
        self._num_iters = num_iters
        self._weights = weights
        self._checks: list[str] = executable.manifest.get("checks", [])
        self._pack = struct.Struct(f"{len(signature.slots)}Q").pack
        self._stored = [_aligned_copy(contents) for _, contents in signature.stored]
        self._prepared = _PreparedData(executable, signature)

    def call(self) -> Callable[..., Any]:
        """The function of the inputs."""
        name, interface, signature = self.name, self._interface, self._signature
        weights, written = self._weights, signature.written
        inputs = (*signature.inputs, *signature.weights)
        fresh = [slot.spec for slot in signature.fresh if slot.spec is not None]

        def call(*arrays: Any) -> Any:
            check_all(name, signature, interface, arrays)
            addresses = [interface.pointer(array) for array in arrays]
            passed = arrays
            if weights is not None:
                reading = weights.read()  # keeps their memory alive
                addresses += reading.values
                passed = (*arrays, *weights.arrays)
            check_overlaps(name, inputs, addresses, written)
            if written:
                interface.updating(*(passed[k] for k in written))
            results = [interface.empty(spec, HOST) for spec in fresh]
            self._run(addresses, results)
            return signature.returned(results, passed)

        return call

    def check(self, arrays: Sequence[Any]) -> Device:
        """Check arrays as a call does; the device that they must be on."""
        check_all(self.name, self._signature, self._interface, arrays)
        return HOST

    def native_call(self, slow: Callable[..., Any]) -> NativeCall | None:
        """The call in machine code; None where that cannot be.

        Args:
            slow: is called for all that the code does not take.
        """
        from polyblocks.runtime.native.call import native

        program = self._executable, self._interface, self._signature
        bound = self._bound()
        if self._executable.takes_device_arrays:
            from polyblocks.runtime.device.calls.native_device_call import native_host_call

            return native_host_call(*program, slow, self._failed, **bound, alive=self._stored)
        return native(
            *(*program, slow, self._failed),
            num_threads=self._num_threads,
            **bound,
            alive=(self._stored, self._prepared),
        )

    def generated_call(self, slow: Callable[..., Any]) -> Callable[..., Any] | None:
        """The call in Python that is generated for the program; None where that cannot be.

        Args:
            slow: is called for all that the code does not take.
        """
        from polyblocks.runtime.generated_call import generated_call

        return generated_call(
            *(self._executable, self._interface, self._signature, slow, self._failed),
            num_threads=self._num_threads,
            **self._bound(),
        )

    def _bound(self) -> dict[str, Any]:
        """Arguments that calls of all kinds share."""
        fixed = {("stored", k): ctypes.addressof(each) for k, each in enumerate(self._stored)}
        if self._prepared.memory is not None:
            fixed["kept", 0] = self._prepared.memory.address
        return {"num_iters": self._num_iters, "fixed": fixed, "weights": self._weights}

    def _run(self, addresses: list[int], results: list[Any]) -> None:
        """Run the program; raises ExecutionError if one of its checks fails."""
        count = threads.resolve(self._num_threads, self._interface.num_threads())
        arguments = self._arguments(addresses, results, count)
        packed = self._pack(*arguments.pointers)
        entry, code = self._executable.entry, 0
        for _ in range(self._num_iters):
            code = code or entry(packed, count)
        for workspace in arguments.workspaces:
            workspace.release()
        if code:
            self._failed(code)

    def _arguments(self, addresses: list[int], results: list[Any], num_threads: int) -> _Arguments:
        """Addresses of all slots, of memory that is made where it is no input or result."""
        signature, interface = self._signature, self._interface
        pointers: list[int] = []
        arguments = _Arguments(pointers, [], [])
        for slot, (kind, k) in zip(signature.slots, signature.sources, strict=True):
            if kind == "input":
                pointers.append(addresses[k])
            elif kind == "fresh":
                pointers.append(interface.pointer(results[k]))
            elif kind == "stored":
                pointers.append(ctypes.addressof(self._stored[k]))
            elif kind == "workspace":
                workspace = buffers.workspaces.acquire(slot.workspace)
                arguments.workspaces.append(workspace)
                pointers.append(workspace.address)
            elif kind == "kept":
                memory = self._prepared(addresses, self._stored, num_threads)
                arguments.alive.append(memory)
                pointers.append(memory.address)
            else:
                status = interface.empty(ArraySpec.contiguous((1,), "int32"), HOST)
                arguments.alive.append(status)
                pointers.append(interface.pointer(status))
        return arguments

    def _failed(self, code: int) -> NoReturn:
        known = 0 < code <= len(self._checks)
        message = self._checks[code - 1] if known else f"the program returned status {code}"
        raise ExecutionError(f"{self.name}: {message}")


class _PreparedData:
    """Fills what a program keeps: once if all that it depends on is stored, else at each call.

    Nothing says whether an array of the caller's is still what it was.

    Attributes:
        memory: what was filled once; None so far, or if it is filled at each call.
    """

    def __init__(self, executable: Executable, signature: Signature) -> None:
        self.memory: Kept | None = None
        self._executable = executable
        self._signature = signature

    def __call__(self, addresses: list[int], stored: list[Any], num_threads: int) -> Kept:
        if self.memory is not None:
            return self.memory
        preparer = Preparer(self._executable)
        sources = [self._signature.sources[number] for number in preparer.inputs]
        inputs = [
            addresses[k] if kind == "input" else ctypes.addressof(stored[k]) for kind, k in sources
        ]
        memory = preparer(inputs, num_threads)
        if all(kind == "stored" for kind, _ in sources):
            self.memory = memory
        return memory


def _aligned_copy(contents: bytes) -> Any:
    """Memory with these contents, aligned for every vector."""
    memory = (ctypes.c_uint8 * (len(contents) + 64)).from_buffer(bytearray(len(contents) + 64))
    start = -ctypes.addressof(memory) % 64
    aligned = (ctypes.c_uint8 * max(len(contents), 1)).from_buffer(memory, start)
    ctypes.memmove(aligned, contents, len(contents))
    return aligned
