"""Graphs of one program: how they are made, replayed, and given other addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from polyblocks.errors import ExecutionError
from polyblocks.isolation import forks

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver
    from polyblocks.runtime.device.launches.lanes import Lane, Lanes
    from polyblocks.runtime.device.launches.native_driver import NativeDriver
    from polyblocks.runtime.device.launches.native_launcher import NativeFrame

#: Stream, workspace, status word, arrays.
Call = tuple[int, int, int, tuple[int, ...]]


class Graph(Protocol):
    """A graph of a program's launches.

    Attributes:
        call: with what it was recorded.
        nbytes: of the host's memory that it takes, as far as that is known.
    """

    call: Call
    nbytes: int

    @property
    def last_use(self) -> int:
        """The later it was used, the larger; 0 where it is not known."""

    def replay(self, stream: int) -> bool:
        """Run it. False, and nothing is done: the stream records a graph of the caller's."""

    def move(self, call: Call, limit: int | None) -> bool:
        """Run it with other addresses from now on.

        Args:
            call: on the same stream.
            limit: kernels that may change; None: all.

        Returns:
            Whether it was done.
        """

    def take(self) -> bool:
        """Use it from now on; False: another thread does, or it is closed. A new one is taken."""

    def give(self) -> None:
        """Let others use it."""

    def close(self) -> None:
        """Give it up, once it has run; the caller has taken it."""


class Recorder(Protocol):
    """Makes graphs of one program.

    Attributes:
        moves: whether its graphs take other addresses.
    """

    moves: bool

    def most_updates(self, launches: int) -> int:
        """How many of the kernels may change before plain launches of all are cheaper."""

    def record(self, call: Call) -> Graph:
        """A graph for a call, which is not run yet."""

    def close(self) -> None:
        """Give up what graphs share; all of them are closed."""


class CapturedGraph:
    """A graph that the driver records; it keeps its addresses. See :class:`Graph`."""

    nbytes = 0
    last_use = 0

    def __init__(self, driver: Driver, device: int, plain: Callable[..., None], call: Call) -> None:
        self.call = call
        self._lock = forks.lock()
        self._lock.acquire()
        self._driver = driver
        _, workspace, status, pointers = call
        self._graph = driver.capture(
            device, lambda recording: plain(recording, workspace, status, *pointers)
        )

    def replay(self, stream: int) -> bool:
        """See Graph."""
        if self._driver.is_capturing(stream):
            return False
        self._driver.replay(self._graph, stream)
        return True

    def move(self, call: Call, limit: int | None) -> bool:
        """See Graph; it never is."""
        raise NotImplementedError("captured graphs keep their addresses")

    def take(self) -> bool:
        """See Graph."""
        return self._lock.acquire(False)

    def give(self) -> None:
        """See Graph."""
        self._lock.release()

    def close(self) -> None:
        """See Graph."""
        self._driver.destroy_graph(self._graph)


class CapturingRecorder:
    """Graphs of a driver whose functions have no known addresses. See :class:`Recorder`."""

    moves = False

    def __init__(self, driver: Driver, device: int, plain: Callable[..., None]) -> None:
        self._driver, self._device, self._plain = driver, device, plain

    def most_updates(self, launches: int) -> int:
        """See Recorder."""
        return 0

    def record(self, call: Call) -> CapturedGraph:
        """See Recorder."""
        return CapturedGraph(self._driver, self._device, self._plain, call)

    def close(self) -> None:
        """See Recorder."""


class NodeGraph:
    """A graph whose kernels take other operands. See :class:`Graph`.

    Args:
        driver: the vendor's functions.
        frame: with the graph's nodes, and with what they hold.
        executable: of the graph.
        pack: writes the addresses of a call to an argument block.
        call: with what it is run first.
        lanes: of the program.
    """

    def __init__(
        self,
        driver: NativeDriver,
        frame: NativeFrame,
        executable: int,
        pack: Callable[..., None],
        call: Call,
        lanes: Lanes,
    ) -> None:
        self._driver, self._frame, self._pack = driver, frame, pack
        self._executable = executable
        # The values are those of the block at first: what never changes is in there.
        self._values = type(frame.block).from_buffer_copy(frame.block)
        self._marks = ctypes.create_string_buffer(len(frame.block))
        self._values_address = ctypes.addressof(self._values)
        self._marks_address = ctypes.addressof(self._marks)
        self.call = call
        self._is_new = True
        self.nbytes = frame.nbytes + 9 * len(frame.block)
        lane = lanes.lane(frame, executable, call[0])
        if lane is None:
            driver.destroy_executable(executable)
            raise ExecutionError("the program has more graphs than lanes")
        self._lane: Lane = lane
        self._is_closed = False

    @property
    def last_use(self) -> int:
        """See Graph."""
        return self._lane.last_use

    def take(self) -> bool:
        """See Graph. Machine code may use it, too."""
        if self._is_closed or not self._lane.take():
            return False
        if self._is_closed:
            self._lane.give()  # of another graph by now
            return False
        return True

    def give(self) -> None:
        """See Graph."""
        self._lane.give()

    def replay(self, stream: int) -> bool:
        """See Graph."""
        if self._is_new:
            return self.move(self.call, None)
        return self._is_done(self._frame.replay(self._executable, stream))

    def move(self, call: Call, limit: int | None) -> bool:
        """See Graph."""
        stream, workspace, status, pointers = call
        self._pack(self._values, workspace, status, *pointers)
        most = len(self._frame.plan.launches) if limit is None else limit
        done = self._is_done(
            self._frame.move(
                self._executable, stream, self._values_address, self._marks_address, most
            )
        )
        if done:
            self.call = call
            self._is_new = False
        return done

    def close(self) -> None:
        """See Graph."""
        self._is_closed = True
        self._lane.close()
        self._driver.destroy_executable(self._executable)

    def _is_done(self, status: int) -> bool:
        if status > 0:
            raise self._frame.failure(status)
        if status == 0:
            self._lane.note_use()
        return status == 0


class NodeRecorder:
    """Graphs that are built from a plan. See :class:`Recorder`.

    Args:
        driver: the vendor's functions.
        frame: makes a frame for nodes.
        pack: ``pack(block, workspace, status, *pointers)``.
        lanes: of the program; one for each graph.
    """

    moves = True

    def __init__(
        self,
        driver: NativeDriver,
        frame: Callable[..., NativeFrame],
        pack: Callable[..., None],
        lanes: Lanes,
    ) -> None:
        self._driver, self._frame, self._pack = driver, frame, pack
        self._lanes = lanes
        self._lock = forks.lock()
        #: The graph that all executable ones are made of, its nodes, and what they hold.
        self._template: tuple[int, list[int], NativeFrame] | None = None

    def most_updates(self, launches: int) -> int:
        """See Recorder."""
        return self._driver.costs.most_updates(launches)

    def record(self, call: Call) -> NodeGraph:
        """See Recorder."""
        with self._lock:
            if self._template is None:
                held = self._frame()
                self._pack(held.block, *call[1:3], *call[3])
                self._template = *self._driver.build_graph(held.node_parameters()), held
            graph, nodes, held = self._template
            frame = self._frame(nodes)
            frame.node_parameters()
            ctypes.memmove(frame.block, held.block, ctypes.sizeof(held.block))
            executable = self._driver.instantiate(graph)
            return NodeGraph(self._driver, frame, executable, self._pack, call, self._lanes)

    def close(self) -> None:
        """See Recorder."""
        template, self._template = self._template, None
        if template is not None:
            self._driver.destroy_graph(template[0])
