"""Launches that are recorded once and then replayed as a graph, in one call of the driver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from polyblocks.isolation import forks

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver

#: Graphs that one program keeps. A graph holds the addresses that it was recorded with;
#: frameworks' allocators give the same few again and again.
KEPT = 16


class Replayed:
    """A launch function that replays a graph for addresses that it has met before.

    On a stream that records a graph of the caller's it launches as usual, to become part of that.

    Args:
        driver: of the device.
        device: its number.
        launch: ``launch(stream, workspace, *pointers)``.
        check: raises if an earlier launch has failed.
    """

    def __init__(
        self,
        driver: Driver,
        device: int,
        launch: Callable[..., None],
        check: Callable[[], None],
    ) -> None:
        self._driver = driver
        self._device = device
        self._launch = launch
        self._check = check
        # The driver wants one thread at a time for a graph.
        self._lock = forks.lock()
        self._graphs: OrderedDict[tuple[int, ...], int] = OrderedDict()

    def __call__(self, stream: int, workspace: int, *pointers: int) -> None:
        driver = self._driver
        if driver.is_capturing(stream):
            self._launch(stream, workspace, *pointers)
            return
        self._check()
        key = (workspace, *pointers)
        previous = driver.activate(self._device)
        try:
            with self._lock:
                graph = self._graphs.get(key)
                if graph is None:
                    graph = self._graphs[key] = driver.capture(
                        self._device, lambda recording: self._launch(recording, *key)
                    )
                    if len(self._graphs) > KEPT:
                        driver.destroy_graph(self._graphs.popitem(last=False)[1])
                else:
                    self._graphs.move_to_end(key)
                driver.replay(graph, stream)
        finally:
            if previous is not None:
                driver.restore(previous)

    def close(self) -> None:
        """Give all graphs up; none may be running."""
        with self._lock:
            for graph in self._graphs.values():
                self._driver.destroy_graph(graph)
            self._graphs.clear()
