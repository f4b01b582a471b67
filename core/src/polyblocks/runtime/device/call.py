"""A device program as a checked function of arrays: of one device, or of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polyblocks.errors import InputError
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.device.exported import ExportedMemory
from polyblocks.runtime.device.holding import hold
from polyblocks.runtime.slots import check, check_overlaps, slot_of

if TYPE_CHECKING:
    from polyblocks.runtime.device.executable import DeviceExecutable


def bind_device(
    executable: Any,
    interface: ArrayInterface,
    host_call: Callable[..., Any],
    num_iters: int = 1,
) -> Callable[..., Any]:
    """Make a Python function of a loaded device program.

    Args:
        executable: a :class:`DeviceExecutable`.
        interface: of the framework whose arrays come and go.
        host_call: what is called if all arrays are on the host.
        num_iters: launch it so many times per call.

    Returns:
        ``call(*arrays)``, see :func:`polyblocks.runtime.launch.bind`.
    """
    program: DeviceExecutable = executable
    manifest = program.manifest
    function = manifest.get("name", "main")
    slots = [slot_of(index, row) for index, row in enumerate(manifest["arguments"])]
    inputs = [slot for slot in slots if slot.role == "input"]
    fresh = [slot for slot in slots if slot.role == "output" and slot.updates is None]
    updated = {slot.updates for slot in slots if slot.updates is not None}
    position = {slot.index: k for k, slot in enumerate(inputs)}
    written = [k for k, slot in enumerate(inputs) if slot.index in updated]
    #: For each address: the number of an input, or that of a fresh output less their count.
    order: list[int] = []
    for slot in slots:
        if slot.role == "input":
            order.append(position[slot.index])
        elif slot.updates is not None:
            order.append(position[slot.updates])
        else:
            order.append(len(inputs) + fresh.index(slot))

    def call(*arrays: Any) -> Any:
        places = [
            interface.device(array) if interface.is_array(array) else HOST for array in arrays
        ]
        first = places[0] if places else HOST
        if first == HOST or len(arrays) != len(inputs):
            for place in places:
                if place != HOST:
                    raise _mixed(function, [slot.name for slot in inputs], places)
            return host_call(*arrays)
        for place in places:
            if place != first:
                raise _mixed(function, [slot.name for slot in inputs], places)
        if first.kind not in program.driver.device_kinds:
            raise InputError(
                f"{function} is compiled for target '{manifest['target']}'; its arrays are on "
                f"{_text(first)}, which is none of that target's devices; copy them to the host"
            )
        for k, (slot, array) in enumerate(zip(inputs, arrays, strict=True)):
            try:
                check(interface, slot, array, k in written, first)
            except InputError as error:
                raise InputError(
                    f"argument {k + 1} ('{slot.name}') of {function}: {error}"
                ) from None
        return run(first, arrays)

    def run(device: Device, arrays: tuple[Any, ...]) -> Any:
        driver = program.driver
        # A framework without streams of its own: on the default one, and it must be told.
        ordered = interface.has_streams(device)
        stream = interface.stream(device) if ordered else driver.default_stream
        addresses = [interface.pointer(array) for array in arrays]
        check_overlaps(function, inputs, addresses, written)
        if not ordered:
            for array in arrays:
                interface.make_ready(array, stream)
        results: list[Any] = []
        for slot in fresh:
            assert slot.spec is not None
            if interface.allocates(device):
                results.append(interface.empty(slot.spec, device))
                addresses.append(interface.pointer(results[-1]))
            else:
                made = ExportedMemory(driver, device, slot.spec, stream)
                results.append(made)
                addresses.append(made.address)
        launch = program.launcher(device.number)
        pointers = [addresses[k] for k in order]
        for _ in range(num_iters):
            launch(stream, *pointers)
        if not interface.allocates(device):
            results = [interface.adopt(memory) for memory in results]
        if not ordered:
            hold(driver, stream, arrays)
        if len(results) == 1:
            return results[0]
        return tuple(results) if results else None

    call.__name__ = call.__qualname__ = function
    call.__doc__ = host_call.__doc__
    return call


def _mixed(function: str, names: list[str], places: list[Device]) -> InputError:
    found = ", ".join(
        f"'{names[k] if k < len(names) else k + 1}' on {_text(place)}"
        for k, place in enumerate(places)
    )
    return InputError(
        f"{function}: the arrays are in several places: {found}; expected all on the host or all "
        "on one device; copy them to one place"
    )


def _text(place: Device) -> str:
    return "the host" if place == HOST else f"device {place.number}"
