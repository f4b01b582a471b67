"""The generic launch path: an Executable and an ArrayInterface become a checked function.

Frontends generate launch code of their own that assumes what their guards have checked; this one
checks everything at each call. It is for artifacts that are loaded from a file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from polyblocks.errors import ExecutionError, InputError
from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import HOST, ArrayInterface
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.slots import check, check_overlaps, slot_of


def bind(
    executable: Executable,
    interface: ArrayInterface,
    *,
    num_threads: int | None = None,
    num_iters: int = 1,
) -> Callable[..., Any]:
    """Make a Python function of a loaded program.

    A program for devices takes arrays of one device and leaves its results there, on the stream
    that is current to the framework and without waiting; or it takes arrays of the host, which
    are copied, and its results come back to the host.

    Args:
        executable: the loaded program.
        interface: of the framework whose arrays come and go.
        num_threads: threads of each call; None: from the environment.
        num_iters: run the program this many times per call, for timing.

    Returns:
        ``call(*arrays)``, which takes the inputs in order and returns the fresh result, a tuple
        of them if there are several, None if all results are in-place updates. It raises
        InputError for arguments that do not fit, ExecutionError for failed run-time checks.
    """
    host_call = _bind_host(executable, interface, num_threads, num_iters)
    if not hasattr(executable, "launcher"):
        return host_call
    from polyblocks.runtime.device.call import bind_device

    return bind_device(executable, interface, host_call, num_iters)


def _bind_host(
    executable: Executable, interface: ArrayInterface, num_threads: int | None, num_iters: int
) -> Callable[..., Any]:
    """:func:`bind` for arrays of the host."""
    manifest = executable.manifest
    function = manifest.get("name", "main")
    slots = [slot_of(index, row) for index, row in enumerate(manifest["arguments"])]
    inputs = [slot for slot in slots if slot.role == "input"]
    fresh = [slot for slot in slots if slot.role == "output" and slot.updates is None]
    updated = {slot.updates for slot in slots if slot.updates is not None}
    position = {slot.index: k for k, slot in enumerate(inputs)}
    written = [k for k, slot in enumerate(inputs) if slot.index in updated]
    checks = manifest.get("checks", [])
    pack = struct.Struct(f"{len(slots)}Q").pack
    signature = ", ".join(slot.name for slot in inputs)

    def call(*arrays: Any) -> Any:
        if len(arrays) != len(inputs):
            raise InputError(
                f"{function}({signature}) takes {_count(len(inputs), 'array')}, got {len(arrays)}"
            )
        for k, (slot, array) in enumerate(zip(inputs, arrays, strict=True)):
            try:
                check(interface, slot, array, k in written)
            except InputError as error:
                raise InputError(
                    f"argument {k + 1} ('{slot.name}') of {function}: {error}"
                ) from None
        addresses = [interface.pointer(array) for array in arrays]
        check_overlaps(function, inputs, addresses, written)
        results = [interface.empty(slot.spec, HOST) for slot in fresh if slot.spec is not None]
        rest = iter(results)
        kept: list[Any] = []  # alive until the program has run
        workspaces = []
        pointers = []
        for slot in slots:
            if slot.role == "input":
                pointers.append(addresses[position[slot.index]])
            elif slot.role == "output":
                if slot.updates is None:
                    pointers.append(interface.pointer(next(rest)))
                else:
                    pointers.append(addresses[position[slot.updates]])
            elif slot.role == "workspace":
                workspaces.append(buffers.workspaces.acquire(slot.workspace))
                pointers.append(workspaces[-1].address)
            else:
                status = interface.empty(ArraySpec.contiguous((1,), "int32"), HOST)
                kept.append(status)
                pointers.append(interface.pointer(status))
        packed = pack(*pointers)
        count = threads.resolve(num_threads)
        code = 0
        for _ in range(num_iters):
            code = code or executable.entry(packed, count)
        for workspace in workspaces:
            workspace.release()
        if code:
            known = 0 < code <= len(checks)
            message = checks[code - 1] if known else f"the program returned status {code}"
            raise ExecutionError(f"{function}: {message}")
        if len(results) == 1:
            return results[0]
        return tuple(results) if results else None

    call.__name__ = call.__qualname__ = function
    call.__doc__ = f"{function}({signature}), compiled for {manifest.get('target', '?')}."
    return call


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
