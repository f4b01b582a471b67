"""The call of a program for devices in machine code: arrays are read and launches are made.

Python is entered only to record a graph or to give it other addresses, where the stream
records a graph of the caller's, and for errors. See :mod:`polyblocks.codegen.native_call` for the
call and :mod:`polyblocks.codegen.device_launcher` for what it enters.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polyblocks.codegen.device_launcher import REFUSED
from polyblocks.codegen.native_call import ARRAY, FIXED, STREAM
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import ArrayInterface, Device
from polyblocks.runtime.device.launches.lanes import Lanes
from polyblocks.runtime.device.launches.native_launcher import native_launcher
from polyblocks.runtime.native.call import Entry, NativeCall, native_call_of, rows_of, slots_of

if TYPE_CHECKING:
    from polyblocks.runtime.bound_weights import BoundWeights
    from polyblocks.runtime.device.executable import DeviceExecutable
    from polyblocks.runtime.executable import Executable
    from polyblocks.runtime.slots import Signature


def native_device_call(
    executable: DeviceExecutable,
    interface: ArrayInterface,
    signature: Signature,
    slow: Callable[..., Any],
    device: Device,
    *,
    num_iters: int,
    stored: Sequence[int] = (),
    weights: BoundWeights | None = None,
) -> NativeCall | None:
    """Make the machine code's table for a program on one device.

    Args:
        executable: the loaded program.
        interface: of the arrays, whose framework has streams and an allocator there.
        signature: of the program.
        slow: is called for all that the code does not take, as for arrays of other devices.
        device: where the arrays are.
        num_iters: launch the program this many times per call.
        stored: address of each stored input on the device.
        weights: what is bound to the last inputs.

    Returns:
        None if the frontend has no reader for arrays of the device, or the process may have no
        machine code.
    """
    reader = interface.device_reader(device)
    lanes = executable.lanes(device.number)
    if reader is None or not lanes.run:
        return None
    nbytes, launch = executable.workspace_launcher(device.number)
    # The framework's allocator knows who still uses the memory, a graph of its own for example.
    workspace = [ArraySpec.contiguous((nbytes,), "uint8")] if nbytes else []
    rows = rows_of(reader, signature, *workspace)
    specs = [slot.spec for slot in signature.fresh if slot.spec is not None]
    inputs = len(signature.inputs) + len(signature.weights)
    fixed = {("stored", k): address for k, address in enumerate(stored)}
    program = slots_of(signature, fixed)
    if rows is None or program is None:
        return None
    # In the order of ``device_launcher.POINTERS``.
    slots = [(FIXED, lanes.address, 1), (STREAM, 0, 1), (FIXED, 0, 1), (FIXED, 0, 1)]
    slots.append((ARRAY, inputs + len(specs), 1) if nbytes else (FIXED, 0, 1))
    slots.append((FIXED, lanes.status, 1))
    slots += program[0]
    count = sum(each for _, _, each in slots)
    entry = Entry(
        address=lanes.run,
        slots=slots,
        rows=rows,
        makers=[interface.device_allocation(spec, device) for spec in (*specs, *workspace)],
        threads=1,
        stream=interface.stream_getter(device),
        instead=_instead(lanes, launch, count),
        alive=(executable, lanes),
    )
    return native_call_of(
        entry, reader, interface, signature, slow, slow, num_iters=num_iters, weights=weights
    )


def native_host_call(
    executable: Executable,
    interface: ArrayInterface,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[[int], Any],
    *,
    num_iters: int,
    fixed: Mapping[tuple[str, int], int],
    weights: BoundWeights | None,
    alive: Any,
) -> NativeCall | None:
    """Make the machine code's table for arrays of the host, which Python copies to a device.

    See :func:`polyblocks.runtime.native.call.native` for the arguments and the result.
    """
    reader = interface.native_reader()
    lanes = Lanes(native_launcher())  # without any: all is left to Python
    if reader is None or not lanes.run:
        return None
    rows = rows_of(reader, signature)
    program = slots_of(signature, fixed)
    if rows is None or program is None:
        return None
    nbytes = 8 * sum(count for _, _, count in program[0])
    context = [(FIXED, lanes.address, 1), (FIXED, 0, 1)]

    def instead(place: int, status: int, iterations: int) -> None:
        del status
        pointers = ctypes.string_at(place + 8 * len(context), nbytes)
        for _ in range(iterations):
            code = executable.entry(pointers, 1)
            if code:
                failed(code)

    entry = Entry(
        address=lanes.run,
        slots=[*context, *program[0]],
        rows=rows,
        makers=[
            interface.allocation(slot.spec) for slot in signature.fresh if slot.spec is not None
        ],
        threads=1,
        instead=instead,
        alive=(executable, lanes, alive),
    )
    return native_call_of(
        entry, reader, interface, signature, slow, failed, num_iters=num_iters, weights=weights
    )


def _instead(
    lanes: Lanes, launch: Callable[..., None], count: int
) -> Callable[[int, int, int], None]:
    """Makes the launches that machine code has not made.

    Args:
        lanes: where it looked for them.
        launch: ``launch(stream, workspace, *pointers)``.
        count: of the pointers that the code was called with.
    """
    unpack = struct.Struct(f"{count}Q").unpack
    nbytes = 8 * count

    def instead(place: int, status: int, iterations: int) -> None:
        # In the order of ``device_launcher.POINTERS``.
        values = unpack(ctypes.string_at(place, nbytes))
        _, stream, refusal, refused, workspace, _, *pointers = values
        if status == REFUSED:
            raise lanes.failure(refusal, refused)
        for _ in range(iterations):
            launch(stream, workspace, *pointers)

    return instead
