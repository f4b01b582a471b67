"""The generic launch path: an Executable and an ArrayInterface become a checked function.

Frontends generate launch code of their own that assumes what their guards have checked; this one
checks everything at each call. It is for artifacts that are loaded from a file.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from polyblocks.errors import ExecutionError
from polyblocks.program import ArraySpec
from polyblocks.runtime import buffers, threads
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.binding import Binding
from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.kept.memory import Kept
from polyblocks.runtime.kept.preparer import Preparer
from polyblocks.runtime.slots import Signature, check_all, check_overlaps, signature_of

if TYPE_CHECKING:
    from polyblocks.runtime.native.call import NativeCall


def bind(
    executable: Executable,
    interface: ArrayInterface,
    *,
    num_threads: int | None = None,
    num_iters: int = 1,
    blobs: Mapping[str, bytes] | None = None,
    weights: BoundWeights | None = None,
) -> Callable[..., Any]:
    """Make a Python function of a loaded program.

    A program for devices takes arrays of one device and leaves its results there, on the stream
    that is current to the framework and without waiting; or it takes arrays of the host, which
    are copied, and its results come back to the host.

    Args:
        executable: the loaded program.
        interface: of the framework whose arrays come and go.
        num_threads: threads of each call; None: see :mod:`polyblocks.runtime.threads`.
        num_iters: run the program this many times per call, for timing.
        blobs: of the artifact, which may hold inputs.
        weights: arrays for the last inputs, which are then no parameters of the function.

    Returns:
        ``call(*arrays)``, which takes the inputs in order and returns the result, a tuple of them
        if there are several, None if all are in-place updates. It raises
        InputError for arguments that do not fit, ExecutionError for failed run-time checks.
        For programs of the host, its attributes ``native_call`` and ``generated_call``, called with
        the function itself, make the same in machine code, and in Python that is generated for the
        program; or None, where that cannot be. See :mod:`polyblocks.runtime.native.call` and
        :mod:`polyblocks.runtime.generated_call`.
    """
    signature = signature_of(executable.manifest, blobs or {})
    if weights is not None:
        signature = signature.with_weights(len(weights.slots))
    plain = _bind_host(executable, interface, signature, num_threads, num_iters, weights)
    if executable.takes_device_arrays:
        from polyblocks.runtime.device.calls.device_call import bind_device

        plain = bind_device(executable, interface, signature, plain, num_iters, weights)
    own = interface.own_call(
        Binding(executable, signature, plain, num_threads, num_iters, blobs or {}, weights)
    )
    return plain if own is None else own


def _bind_host(
    executable: Executable,
    interface: ArrayInterface,
    signature: Signature,
    num_threads: int | None,
    num_iters: int,
    weights: BoundWeights | None,
) -> Callable[..., Any]:
    """:func:`bind` for arrays of the host."""
    manifest = executable.manifest
    function = manifest.get("name", "main")
    slots, inputs, fresh = signature.slots, signature.inputs, signature.fresh
    written = signature.written
    checks = manifest.get("checks", [])
    pack = struct.Struct(f"{len(slots)}Q").pack
    stored = [_copied(contents) for _, contents in signature.stored]
    last: list[Kept] = []
    prepared = _prepared(executable, signature, last)
    every = (*inputs, *signature.weights)

    def failed(code: int) -> NoReturn:
        known = 0 < code <= len(checks)
        message = checks[code - 1] if known else f"the program returned status {code}"
        raise ExecutionError(f"{function}: {message}")

    def call(*arrays: Any) -> Any:
        check_all(function, signature, interface, arrays)
        addresses = [interface.pointer(array) for array in arrays]
        if weights is not None:
            reading = weights.read()  # keeps their memory alive
            addresses += reading.values
        check_overlaps(function, every, addresses, written)
        if written:
            given = arrays if weights is None else (*arrays, *weights.arrays)
            interface.updating(*(given[k] for k in written))
        results = [interface.empty(slot.spec, HOST) for slot in fresh if slot.spec is not None]
        kept: list[Any] = []  # alive until the program has run
        workspaces = []
        pointers = []
        count = threads.resolve(num_threads, interface.num_threads())
        for slot, (kind, k) in zip(slots, signature.sources, strict=True):
            if kind == "kept":
                memory = prepared(addresses, stored, count)
                kept.append(memory)
                pointers.append(memory.address)
            elif kind == "input":
                pointers.append(addresses[k])
            elif kind == "fresh":
                pointers.append(interface.pointer(results[k]))
            elif kind == "stored":
                pointers.append(ctypes.addressof(stored[k]))
            elif kind == "workspace":
                workspaces.append(buffers.workspaces.acquire(slot.workspace))
                pointers.append(workspaces[-1].address)
            else:
                status = interface.empty(ArraySpec.contiguous((1,), "int32"), HOST)
                kept.append(status)
                pointers.append(interface.pointer(status))
        packed = pack(*pointers)
        code = 0
        for _ in range(num_iters):
            code = code or executable.entry(packed, count)
        for workspace in workspaces:
            workspace.release()
        if code:
            failed(code)
        return signature.returned(
            results, arrays if weights is None else (*arrays, *weights.arrays)
        )

    def bound() -> dict[str, Any]:
        fixed = {("stored", k): ctypes.addressof(each) for k, each in enumerate(stored)}
        fixed |= {("kept", k): memory.address for k, memory in enumerate(last)}
        return {
            "num_threads": num_threads,
            "num_iters": num_iters,
            "fixed": fixed,
            "weights": weights,
        }

    # Attributes of the function that do not refer to it: it is gone with its last reference.
    def native_call(slow: Callable[..., Any]) -> NativeCall | None:
        from polyblocks.runtime.native.call import native

        if executable.takes_device_arrays:
            from polyblocks.runtime.device.calls.native_device_call import native_host_call

            settings = bound()
            del settings["num_threads"]
            return native_host_call(
                executable, interface, signature, slow, failed, **settings, alive=stored
            )
        alive = stored, last
        return native(executable, interface, signature, slow, failed, alive=alive, **bound())

    def generated(slow: Callable[..., Any]) -> Callable[..., Any] | None:
        from polyblocks.runtime.generated_call import generated_call

        return generated_call(executable, interface, signature, slow, failed, **bound())

    call.__name__ = call.__qualname__ = function
    call.__doc__ = f"{function}({signature.text}), compiled for {manifest.get('target', '?')}."

    def check(arrays: Sequence[Any]) -> Device:
        check_all(function, signature, interface, arrays)
        return HOST

    call.native_call = native_call  # type: ignore[attr-defined]
    call.check = check  # type: ignore[attr-defined]
    call.generated_call = generated  # type: ignore[attr-defined]
    return call


def _prepared(
    executable: Executable, signature: Signature, last: list[Kept]
) -> Callable[[list[int], list[Any], int], Kept]:
    """Fills what a program keeps: once if all that it depends on is stored, else at each call.

    Nothing says whether an array of the caller's is still what it was.

    Args:
        executable: the program.
        signature: of it.
        last: gets what is filled once.
    """

    def prepare(addresses: list[int], stored: list[Any], num_threads: int) -> Kept:
        if last:
            return last[0]
        preparer = Preparer(executable)
        sources = [signature.sources[number] for number in preparer.inputs]
        at = [
            addresses[k] if kind == "input" else ctypes.addressof(stored[k]) for kind, k in sources
        ]
        made = preparer(at, num_threads)
        if all(kind == "stored" for kind, _ in sources):
            last.append(made)
        return made

    return prepare


def _copied(contents: bytes) -> Any:
    """Memory with these contents, aligned for every vector."""
    memory = (ctypes.c_uint8 * (len(contents) + 64)).from_buffer(bytearray(len(contents) + 64))
    start = -ctypes.addressof(memory) % 64
    aligned = (ctypes.c_uint8 * max(len(contents), 1)).from_buffer(memory, start)
    ctypes.memmove(aligned, contents, len(contents))
    return aligned
