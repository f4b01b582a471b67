"""A device program as a checked function of arrays: of one device, or of the host."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from polyblocks.program import ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device
from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.device.calls.places import PlaceCheck
from polyblocks.runtime.device.exported import ExportedMemory
from polyblocks.runtime.device.holding import hold
from polyblocks.runtime.device.stored import StoredArrays
from polyblocks.runtime.native.builtin import Chain
from polyblocks.runtime.slots import Signature, check_all, check_overlaps

if TYPE_CHECKING:
    from polyblocks.runtime.device.executable import DeviceExecutable
    from polyblocks.runtime.native.call import NativeCall


class _Accepted(NamedTuple):
    """Arrays that were checked.

    Attributes:
        device: where they are.
        ordered: whether the framework has streams there.
        waits: the streams that write them; None: each array has to be asked.
        addresses: theirs.
        states: see :meth:`ArrayInterface.readings`; None: they have to be checked each time.
    """

    device: Device
    ordered: bool
    waits: frozenset[int] | None
    addresses: list[int]
    states: Any


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
        num_iters: launches per call.
        weights: bound to the last inputs; where they are, the others must be.

    Returns:
        ``call(*arrays)``, see :func:`polyblocks.runtime.launch.bind`.
    """
    made = _DeviceCall(executable, interface, signature, host_call, num_iters, weights)

    def call(*arrays: Any) -> Any:
        return made(arrays)

    call.check = made.check  # type: ignore[attr-defined]
    call.native_call = made.native_call  # type: ignore[attr-defined]
    call.several_places = True  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = str(executable.manifest.get("name", "main"))
    call.__doc__ = host_call.__doc__
    return call


class _DeviceCall:
    """The function's state; see :func:`bind_device` for the arguments."""

    def __init__(
        self,
        executable: DeviceExecutable,
        interface: ArrayInterface,
        signature: Signature,
        host_call: Callable[..., Any],
        num_iters: int,
        weights: BoundWeights | None,
    ) -> None:
        self._executable = executable
        self._interface = interface
        self._signature = signature
        self._host_call = host_call
        self._num_iters = num_iters
        self._weights = weights
        self._function = str(executable.manifest.get("name", "main"))
        self._place_of = PlaceCheck(executable, interface, signature, weights)
        contents = [data for _, data in signature.stored]
        self._stored = StoredArrays(lambda: executable.driver, contents)
        #: All inputs, as far as they are arrays of the caller's.
        self._every = (*signature.inputs, *signature.weights)
        self._masks = [slot.alignment - 1 for slot in signature.inputs]
        self._in_order = self._make_order()
        #: The arrays of a device that were accepted last.
        self._accepted: _Accepted | None = None
        #: Where the arrays of the last call were.
        self._place = HOST
        #: Machine code for the devices where arrays have been.
        self._native = Chain()

    def __call__(self, arrays: tuple[Any, ...]) -> Any:
        known = self._as_before(arrays)
        if known is not None:
            result = self._run(known, arrays, moved=known is not self._accepted)
            self._accepted, self._place = known, known.device
            return result
        device = self._place_of(arrays)
        if device == HOST:
            result = self._host_call(*arrays)
            self._place = HOST
            return result
        ordered = self._interface.has_streams(device)
        addresses = [self._interface.pointer(array) for array in arrays]
        waits = frozenset() if ordered else self._interface.waits(arrays)
        known = _Accepted(device, ordered, waits, addresses, None)
        result = self._run(known, arrays, moved=True)
        self._accepted, self._place = known, device
        with contextlib.suppress(Exception):
            read = self._interface.readings(arrays)
            if read is not None and read[0] == addresses:
                self._accepted = known._replace(states=read[1])
        return result

    def check(self, arrays: Sequence[Any]) -> Device:
        """Where the arrays are, if they are as the program expects them; else an InputError."""
        place = self._place_of(arrays)
        if place == HOST:
            check_all(self._function, self._signature, self._interface, arrays)
        return place

    def native_call(self, slow: Callable[..., Any]) -> NativeCall | None:
        """Machine code for arrays where the last ones were; None: impossible, or it was given
        before.

        Args:
            slow: is called for all that it does not take.
        """
        device, interface = self._place, self._interface
        if device == HOST:
            return self._native.extended(HOST, slow, self._host_call.native_call)  # type: ignore[attr-defined]
        if not (interface.has_streams(device) and interface.allocates(device)):
            return None

        def make(after: Callable[..., Any]) -> NativeCall | None:
            from polyblocks.runtime.device.calls.native_device_call import native_device_call

            return native_device_call(
                self._executable,
                interface,
                self._signature,
                after,
                device,
                num_iters=self._num_iters,
                stored=self._stored.addresses(device.number),
                weights=self._weights,
            )

        return self._native.extended(device, slow, make)

    def _make_order(self) -> Callable[[list[int]], Sequence[int]]:
        """Brings addresses (of inputs, fresh results, stored inputs) into the program's order."""
        inputs, fresh = len(self._every), len(self._signature.fresh)
        first = {"input": 0, "fresh": inputs, "stored": inputs + fresh}
        order = [first[kind] + k for kind, k in self._signature.sources]
        if len(order) > 1:
            return operator.itemgetter(*order)  # which gives a tuple of two items or more
        return lambda addresses: [addresses[k] for k in order]

    def _as_before(self, arrays: tuple[Any, ...]) -> _Accepted | None:
        """The arrays, if they are like those that were accepted last; their addresses may differ.

        None: check them, which says what is wrong with one.
        """
        known = self._accepted
        if known is None or known.states is None or len(arrays) != len(self._masks):
            return None
        read = None
        with contextlib.suppress(Exception):
            read = self._interface.readings(arrays)
        if read is None or read[1] != known.states:
            return None
        addresses = read[0]
        if addresses == known.addresses:
            return known
        if any(map(operator.and_, addresses, self._masks)):
            return None
        return known._replace(addresses=addresses)

    def _run(self, known: _Accepted, arrays: tuple[Any, ...], moved: bool) -> Any:
        """Launch it. Where the addresses have moved, they may overlap."""
        signature, interface, device = self._signature, self._interface, known.device
        driver = self._executable.driver
        # A framework without streams of its own: on the default one, and it must be told.
        stream = interface.stream(device) if known.ordered else driver.default_stream
        addresses = list(known.addresses)
        # Held until it is launched: another thread may bind other memory in the meantime.
        reading = None if self._weights is None else self._weights.read()
        if self._weights is not None and reading is not None:
            addresses += reading.values
            arrays = (*arrays, *self._weights.arrays)
            moved = True
        if moved:
            check_overlaps(self._function, self._every, addresses, signature.written)
        if signature.written:
            interface.updating(*(arrays[k] for k in signature.written))
        if not known.ordered:
            self._wait(known, arrays, stream)
        results = self._allocate(device, stream, addresses)
        launch = self._launcher(device)
        addresses += self._stored.addresses(device.number)
        pointers = self._in_order(addresses)
        for _ in range(self._num_iters):
            launch(stream, *pointers)
        if not interface.allocates(device):
            results = [interface.adopt(memory) for memory in results]
        if not known.ordered:
            hold(driver, stream, arrays)
        return signature.returned(results, arrays)

    def _wait(self, known: _Accepted, arrays: tuple[Any, ...], stream: int) -> None:
        """Let the stream wait for those that write the arrays."""
        if known.waits is None or self._weights is not None:
            for array in arrays:
                self._interface.make_ready(array, stream)
            return
        for theirs in known.waits:
            if theirs != stream:
                self._executable.driver.order(theirs, stream)

    def _allocate(self, device: Device, stream: int, addresses: list[int]) -> list[Any]:
        """Make the results, whose addresses are appended."""
        interface = self._interface
        results: list[Any] = []
        for slot in self._signature.fresh:
            assert slot.spec is not None
            if interface.allocates(device):
                results.append(interface.empty(slot.spec, device))
                addresses.append(interface.pointer(results[-1]))
            else:
                made = ExportedMemory(self._executable.driver, device, slot.spec, stream)
                results.append(made)
                addresses.append(made.address)
        return results

    def _launcher(self, device: Device) -> Callable[..., None]:
        interface = self._interface
        if not interface.allocates(device):
            return self._executable.launcher(device.number)
        # The framework's allocator knows who still uses the memory, a graph of its own for example.
        nbytes, with_workspace = self._executable.workspace_launcher(device.number)
        if nbytes == 0:
            return lambda stream, *pointers: with_workspace(stream, 0, *pointers)
        spec = ArraySpec.contiguous((nbytes,), "uint8")

        def launch(stream: int, *pointers: int) -> None:
            workspace = interface.empty(spec, device)
            with_workspace(stream, interface.pointer(workspace), *pointers)

        return launch
