"""Launches that are recorded, and then replayed as a graph in one call of the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polyblocks.errors import ExecutionError
from polyblocks.isolation import forks
from polyblocks.runtime.device.launches.recorders import Call, Graph, Recorder

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver

#: Graphs that one program keeps. A graph holds the addresses that it was recorded with;
#: frameworks' allocators give the same few again and again.
KEPT = 16
#: Calls whose addresses are remembered, as a hash.
REMEMBERED = 64


class Graphs:
    """A launch function that replays graphs for addresses that it has met before.

    Addresses that come for the first time are launched plainly, or given to the graph of their
    stream that was not used for longest, whichever takes the host less time. On a stream that
    records a graph of the caller's it launches as usual, to become part of that. Graphs that the
    driver refuses are no error: the launches are made plainly from then on, and report errors as
    without graphs.

    A graph is used by one thread at a time, since drivers want that, and on one stream, since
    replays of one graph wait for each other.

    Args:
        driver: of the device.
        device: its number.
        launches: how many a call has.
        plain: ``launch(stream, workspace, status, *pointers)``.
        recorder: makes the graphs.
        at_once: record addresses when they come for the first time.
    """

    def __init__(
        self,
        driver: Driver,
        device: int,
        launches: int,
        plain: Callable[..., None],
        recorder: Recorder,
        *,
        at_once: bool,
    ) -> None:
        self._driver = driver
        self._device = device
        self._launches = launches
        self._plain = plain
        self._recorder = recorder
        self._at_once = at_once
        self._most_updates = recorder.most_updates(launches)
        self._lock = forks.lock()
        #: Hash of a call -> its graph, if no thread has taken it; machine code takes it in place.
        self._idle: dict[int, Graph] = {}
        self._count = 0
        #: Hashes of calls.
        self._met: dict[int, None] = {}
        #: Why there are no graphs any more.
        self.stopped = ""

    def __call__(self, stream: int, workspace: int, status: int, *pointers: int) -> None:
        call = stream, workspace, status, pointers
        number = hash(call)
        previous = self._driver.activate(self._device)
        try:
            graph = self._idle.get(number)
            if graph is not None and not self._take(number, graph):
                graph = None
            if graph is not None and graph.call != call:
                self._put_back(number, graph)
                graph = None
            if graph is not None:
                done = self._use(graph, (number, number), graph.replay, stream)
            else:
                done = not self.stopped and self._run_other(call, number)
        finally:
            if previous is not None:
                self._driver.restore(previous)
        if not done:
            self._plain(stream, workspace, status, *pointers)

    def facts(self) -> dict[str, Any]:
        """The state of now, for reports: ``graphs``, their ``kernels``, ``host_bytes``, and why
        there are none any more (``stopped``).
        """
        idle = list(self._idle.copy().values())
        return {
            "graphs": self._count,
            "kernels": self._count * self._launches,
            "host_bytes": sum(graph.nbytes for graph in idle),
            "stopped": self.stopped,
        }

    def close(self) -> None:
        """Give all graphs up; none may be running, and none may be recorded later."""
        self.stopped = self.stopped or "the program is closed"
        for number, graph in self._idle.copy().items():
            if self._take(number, graph):
                self._drop(graph)
        self._recorder.close()

    def _run_other(self, call: Call, number: int) -> bool:
        """A call for which there is no graph at hand; whether it was done."""
        again = self._at_once or self._is_met(number)
        if self._recorder.moves and (not again or self._count >= KEPT):
            graph = self._take_idle(call[0])
            if graph is not None:
                limit = None if again else self._most_updates
                return self._use(graph, (number, hash(graph.call)), graph.move, call, limit)
        return again and self._record(call, number)

    def _record(self, call: Call, number: int) -> bool:
        try:
            if self._driver.is_capturing(call[0]):
                return False
        except ExecutionError:
            return False  # another stream's recording forbids the question, or the launch tells
        with self._lock:
            room = self._count < KEPT
            self._count += room
        if not room:
            graph = self._take_idle(None)
            if graph is None:
                return False  # other threads use all of them
            self._drop(graph)
            with self._lock:
                self._count += 1
        graph = None
        try:
            graph = self._recorder.record(call)
        except (ExecutionError, MemoryError) as error:
            self.stopped = str(error)
            return False
        finally:
            if graph is None:
                with self._lock:
                    self._count -= 1
        return self._use(graph, (number, number), graph.replay, call[0])

    def _use(
        self, graph: Graph, numbers: tuple[int, int], function: Callable[..., bool], *args: Any
    ) -> bool:
        """Call a method of a graph, which is then known by the first number, if it was done."""
        try:
            done = function(*args)
        except (ExecutionError, MemoryError) as error:
            self.stopped = str(error)
            self._drop(graph)
            return False
        except BaseException:
            self._drop(graph)  # interrupted: what it holds now is not known
            raise
        self._put_back(numbers[not done], graph)
        return done

    def _put_back(self, number: int, graph: Graph) -> None:
        if self._idle.setdefault(number, graph) is graph:
            graph.give()
        else:
            self._drop(graph)  # another thread has recorded the same

    def _take(self, number: int, graph: Graph) -> bool:
        """Use a graph that was idle under a number, unless another thread does."""
        if not graph.take():
            return False
        if self._idle.get(number) is graph:  # only the thread that has taken it changes that
            del self._idle[number]
            return True
        graph.give()
        return False

    def _take_idle(self, stream: int | None) -> Graph | None:
        """The graph that was not used for longest: of a stream, or of all."""
        every = list(self._idle.copy().items())
        for number, graph in sorted(every, key=lambda item: item[1].last_use):
            if stream in (None, graph.call[0]) and self._take(number, graph):
                return graph
        return None

    def _is_met(self, number: int) -> bool:
        with self._lock:
            if number in self._met:
                return True
            self._met[number] = None
            if len(self._met) > REMEMBERED:
                del self._met[next(iter(self._met))]
            return False

    def _drop(self, graph: Graph) -> None:
        with self._lock:
            self._count -= 1
        try:
            graph.close()
        except ExecutionError as error:
            self.stopped = str(error)
