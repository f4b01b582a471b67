"""Driver: what the runtime needs of a vendor's driver. Every target with devices has one.

Handles (modules, functions, streams, events, graphs) and addresses are integers. All methods are
safe among threads. A method that takes a device may be called whatever device is current to the
thread; those that take a stream want its device to be current, see :meth:`Driver.activate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from polyblocks.runtime.device.launches.native_driver import NativeDriver
from polyblocks.runtime.device.plan import Launch
from polyblocks.runtime.device.tensor_map import TensorMap


class StatusWord(Protocol):
    """A 32-bit word that kernels can write, and the host can read.

    Attributes:
        value: what the host sees of it now; reading it waits for nothing.
        address: its address on the device.
        host: where the host sees it without being told; 0: only what was published is seen.
    """

    value: int
    address: int
    host: int

    def publish(self, stream: int) -> None:
        """Let the host see what the kernels write that are on a stream by now, once they end."""

    def close(self) -> None:
        """Free it; no kernel may write to it any more."""


class Driver(Protocol):
    """A vendor's driver. Errors of the driver are ExecutionErrors that say what failed and why.

    Attributes:
        device_kinds: the ``DLDeviceType`` of memory on its devices (dlpack.h), the usual one first.
        array_protocols: names of attributes through which arrays of this vendor tell their
            address and shape, besides DLPack; in order of preference.
        default_stream: the stream that a thread uses if it says nothing, as DLPack numbers it.
        native: functions of the driver for launches without Python; None: their addresses are not
            known.
    """

    device_kinds: tuple[int, ...]
    array_protocols: tuple[str, ...]
    default_stream: int
    native: NativeDriver | None

    # --- devices ---------------------------------------------------------------------------------

    def device_count(self) -> int:
        """Devices that this process may use, as the driver numbers them."""

    def current_device(self) -> int:
        """The device that is current to this thread; 0 if none is."""

    def device_name(self, device: int) -> str:
        """The vendor's name of a device, with its architecture, for messages.

        Raises:
            TargetError: there is no such device.
        """

    def rank(self, arch: str, form: str, device: int) -> int | None:
        """How well a device runs code: the less the better, None if not at all.

        Args:
            arch: what the code was generated for.
            form: the suffix of the blob, which says what it is.
            device: the device's number.
        """

    def activate(self, device: int) -> int | None:
        """Make a device current to this thread.

        Returns:
            The argument of :meth:`restore`; None if the device was current.
        """

    def restore(self, previous: int) -> None:
        """Undo :meth:`activate`."""

    def synchronize(self, device: int | None = None) -> None:
        """Wait for all work on a device; None: on all devices that were used so far."""

    # --- code ------------------------------------------------------------------------------------

    def load_module(self, device: int, image: bytes) -> int:
        """Load code; it may be finished by the driver's own compiler."""

    def unload_module(self, device: int, module: int) -> None:
        """Unload code; no kernel of it may be running."""

    def find_kernel(self, device: int, module: int, launch: Launch) -> int:
        """The handle of a launch's kernel, ready for what the launch asks for.

        Raises:
            ArtifactError: the module has no such kernel.
        """

    def prepare(
        self, device: int, module: int, launch: Launch, parameters: int
    ) -> Callable[[int], None]:
        """A function of a stream that launches a kernel, in one call of the driver.

        Args:
            device: where the module is.
            module: that has the kernel.
            launch: what to launch.
            parameters: the address of an array with, per operand of the kernel, the address
                where the operand is when the kernel is launched. It lives longer than the result.

        Raises:
            ArtifactError: the module has no such kernel.
        """

    def encode_map(self, device: int, described: TensorMap) -> Sequence[int]:
        """The words of a tensor map, whatever the address of its array, which is the first one.

        Raises:
            ExecutionError: the driver makes none, or none of this form.
        """

    # --- memory ----------------------------------------------------------------------------------

    def allocate(self, device: int, nbytes: int) -> int:
        """Memory of a device, aligned to 256 bytes.

        Raises:
            MemoryError: there is no room.
        """

    def free(self, device: int, address: int) -> None:
        """Free memory, after the work that uses it."""

    def status_word(self, device: int) -> StatusWord:
        """A new word that is 0."""

    def copy_in(self, address: int, host: int, nbytes: int, stream: int) -> None:
        """Copy from the host's memory, in the order of the stream."""

    def copy_out(self, host: int, address: int, nbytes: int, stream: int) -> None:
        """Copy to the host's memory, in the order of the stream."""

    # --- streams, events, graphs -----------------------------------------------------------------

    def create_stream(self, device: int) -> int:
        """A new stream, which does not wait for others."""

    def destroy_stream(self, device: int, stream: int) -> None:
        """Give a stream up, once its work is done."""

    def wait(self, stream: int) -> None:
        """Wait on the host until the work of a stream is done."""

    def order(self, first: int, then: int) -> None:
        """Work put on stream ``then`` from now on waits for the work now on ``first``."""

    def record(self, stream: int, timed: bool = False) -> int:
        """A new event, which is passed when what is on the stream by now is done.

        Args:
            stream: where it is put.
            timed: it knows when it was passed, which costs a little.
        """

    def elapsed(self, first: int, then: int) -> float:
        """Seconds between two timed events that are passed."""

    def has_passed(self, event: int) -> bool:
        """Whether an event is passed; does not wait."""

    def destroy_event(self, event: int) -> None:
        """Give an event up."""

    def is_capturing(self, stream: int) -> bool:
        """Whether the stream records a graph instead of running."""

    def capture(self, device: int, record: Callable[[int], None]) -> int:
        """A graph of what ``record`` puts on the stream that it is called with."""

    def replay(self, graph: int, stream: int) -> None:
        """Run a graph."""

    def destroy_graph(self, graph: int) -> None:
        """Give a graph up, once it has run."""
