"""A device program as a checked function of arrays: of one device, or of the host."""

from __future__ import annotations

import contextlib
import ctypes
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from polyblocks.errors import InputError
from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.device.exported import ExportedMemory
from polyblocks.runtime.device.holding import hold
from polyblocks.runtime.slots import Signature, check_all, check_overlaps

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver
    from polyblocks.runtime.device.executable import DeviceExecutable


class _Accepted(NamedTuple):
    """Arrays that were checked.

    Attributes:
        device: where they are.
        ordered: whether the framework has streams there.
        waits: the streams that write them; None: each array has to be asked.
        addresses: theirs.
        states: see :meth:`ArrayInterface.readings`.
    """

    device: Device
    ordered: bool
    waits: frozenset[int] | None
    addresses: list[int]
    states: Any


#: Key of a manifest that is true if arrays of the host are an error.
ON_DEVICE = "on_gpu_tensors"


def bind_device(
    executable: Any,
    interface: ArrayInterface,
    signature: Signature,
    host_call: Callable[..., Any],
    num_iters: int = 1,
    weights: BoundWeights | None = None,
) -> Callable[..., Any]:
    """Make a Python function of a loaded device program.

    Args:
        executable: a :class:`DeviceExecutable`.
        interface: of the framework whose arrays come and go.
        signature: of the program.
        host_call: what is called if all arrays are on the host.
        num_iters: launch it so many times per call.
        weights: bound to the last inputs; where they are, the others must be.

    Returns:
        ``call(*arrays)``, see :func:`polyblocks.runtime.launch.bind`.
    """
    program: DeviceExecutable = executable
    manifest = program.manifest
    function = manifest.get("name", "main")
    inputs, fresh, written = signature.inputs, signature.fresh, signature.written
    #: For each address its number among those of inputs, fresh results and stored inputs.
    every = (*inputs, *signature.weights)
    first_number = {"input": 0, "fresh": len(every), "stored": len(every) + len(fresh)}
    order = [first_number[kind] + k for kind, k in signature.sources]
    in_order: Callable[[list[int]], Sequence[int]] = (
        operator.itemgetter(*order)  # which gives a tuple of two items or more
        if len(order) > 1
        else lambda addresses: [addresses[k] for k in order]
    )
    names = [slot.name for slot in inputs]
    uploaded: dict[int, list[int]] = {}
    on_device = bool(manifest.get(ON_DEVICE))

    #: The arrays that were accepted last.
    accepted: _Accepted | None = None
    bits = [slot.alignment - 1 for slot in inputs]

    def call(*arrays: Any) -> Any:
        nonlocal accepted
        known = accepted
        read = None
        if known is not None and len(arrays) == len(inputs):
            # Whatever is wrong with an array, the check says it.
            with contextlib.suppress(Exception):
                read = interface.readings(arrays)
            if read is not None and read[1] == known.states:
                addresses = read[0]
                if addresses == known.addresses:
                    return run(known, arrays, moved=False)
                if not any(map(operator.and_, addresses, bits)):
                    known = known._replace(addresses=addresses)
                    result = run(known, arrays, moved=True)
                    accepted = known
                    return result
        device = checked(arrays)
        if device == HOST:
            return host_call(*arrays)
        ordered = interface.has_streams(device)
        addresses = [interface.pointer(array) for array in arrays]
        waits = frozenset() if ordered else interface.waits(arrays)
        known = _Accepted(device, ordered, waits, addresses, None)
        result = run(known, arrays, moved=True)
        accepted = None
        with contextlib.suppress(Exception):
            read = interface.readings(arrays)
            if read is not None and read[0] == addresses:
                accepted = known._replace(states=read[1])
        return result

    def checked(arrays: tuple[Any, ...]) -> Device:
        """Where the arrays are, if they are as the program expects them; else an InputError."""
        places = [
            interface.device(array) if interface.is_array(array) else HOST for array in arrays
        ]
        bound = HOST if weights is None else weights.device
        first = places[0] if places else bound
        if len(arrays) != len(inputs):
            return HOST  # where the number is checked first
        if first == HOST:
            for place in places:
                if place != HOST:
                    raise _mixed(function, names, places)
            if bound != HOST and arrays:
                raise _mixed(function, [*names, "weights"], [*places, bound])
            if on_device:
                raise InputError(
                    f"{function} is built with the option 'on_gpu_tensors' and expects its arrays "
                    f"on a device of target '{manifest['target']}'; '{names[0]}' is on the host; "
                    "copy the arrays there, or build it without the option"
                )
            return HOST
        for place in places:
            if place != first:
                raise _mixed(function, names, places)
        if first.kind not in program.driver.device_kinds:
            raise InputError(
                f"{function} is compiled for target '{manifest['target']}'; its arrays are on "
                f"{_text(first)}, which that target does not support; copy them to the host"
            )
        if weights is not None and bound != first:
            raise _mixed(function, [*names, "weights"], [*places, bound])
        check_all(function, signature, interface, arrays, first)
        return first

    def check(arrays: Sequence[Any]) -> Device:
        place = checked(tuple(arrays))
        if place == HOST:
            check_all(function, signature, interface, arrays)
        return place

    def launcher(device: Device) -> Callable[..., None]:
        if not interface.allocates(device):
            return program.launcher(device.number)
        # The framework's allocator knows who still uses the memory, a graph of its own for example.
        nbytes, with_workspace = program.workspace_launcher(device.number)
        if nbytes == 0:
            return lambda stream, *pointers: with_workspace(stream, 0, *pointers)
        spec = ArraySpec.contiguous((nbytes,), "uint8")

        def launch(stream: int, *pointers: int) -> None:
            workspace = interface.empty(spec, device)
            with_workspace(stream, interface.pointer(workspace), *pointers)

        return launch

    def run(known: _Accepted, arrays: tuple[Any, ...], moved: bool) -> Any:
        """Launch it. Where the addresses have moved, they may overlap."""
        device, ordered, waits = known.device, known.ordered, known.waits
        driver = program.driver
        # A framework without streams of its own: on the default one, and it must be told.
        stream = interface.stream(device) if ordered else driver.default_stream
        addresses = list(known.addresses)
        if weights is not None:
            addresses += weights.addresses()
            arrays = (*arrays, *weights.arrays)
            moved = True
        if moved:
            check_overlaps(function, every, addresses, written)
        if written:
            interface.updating(*(arrays[k] for k in written))
        if waits is None or weights is not None:
            for array in () if ordered else arrays:
                interface.make_ready(array, stream)
        else:
            for theirs in waits:
                if theirs != stream:
                    driver.order(theirs, stream)
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
        launch = launcher(device)
        if signature.stored:
            if device.number not in uploaded:
                contents = [data for _, data in signature.stored]
                uploaded[device.number] = upload(driver, device.number, contents)
            addresses += uploaded[device.number]
        pointers = in_order(addresses)
        for _ in range(num_iters):
            launch(stream, *pointers)
        if not interface.allocates(device):
            results = [interface.adopt(memory) for memory in results]
        if not ordered:
            hold(driver, stream, arrays)
        return signature.returned(results, arrays)

    call.check = check  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = function
    call.__doc__ = host_call.__doc__
    return call


def upload(driver: Driver, device: int, contents: Sequence[bytes]) -> list[int]:
    """Put bytes into memory of a device, for as long as the process lives.

    Returns:
        Their addresses.
    """
    previous = driver.activate(device)
    stream = driver.create_stream(device)
    try:
        addresses = []
        for data in contents:
            addresses.append(driver.allocate(device, max(len(data), 1)))
            if data:
                held = ctypes.c_char_p(data)
                host = ctypes.cast(held, ctypes.c_void_p).value or 0
                driver.copy_in(addresses[-1], host, len(data), stream)
        driver.wait(stream)
        return addresses
    finally:
        driver.destroy_stream(device, stream)
        if previous is not None:
            driver.restore(previous)


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
