"""A vendor's driver in C: the functions that launch, called by their addresses.

Python bindings of drivers take microseconds for each call. Calls once per kernel therefore go
through this where the driver's library can be opened, see
:mod:`polyblocks.runtime.device.launches.native_launcher`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from polyblocks.runtime.device.plan import Launch

_Int, _Unsigned, _Pointer = ctypes.c_int32, ctypes.c_uint32, ctypes.c_void_p


@dataclass(frozen=True)
class Names:
    """Names of a library's functions. All return an int that is 0 for success.

    Attributes:
        launch: ``(function, unsigned grid[3], unsigned block[3], unsigned shared, stream,
            void **operands, void **extra)``, the extents one by one.
        is_capturing: ``(stream, int *state)``, which is 0 if the stream records no graph.
        create_graph: ``(graph *, unsigned flags)``.
        add_node: ``(node *, graph, const node *after, size_t count, const void *parameters)``
            adds a kernel.
        instantiate: ``(executable *, graph, unsigned long long flags)``.
        update_node: ``(executable, node, const void *parameters)``; launches that are under way
            keep the old ones.
        replay: ``(executable, stream)``.
        destroy_executable: ``(executable)``; it lives on until it has run.
        destroy_graph: ``(graph)``.
        current: ``(handle *)``, what is current to the thread: a device or a context.
    """

    launch: str
    is_capturing: str
    create_graph: str
    add_node: str
    instantiate: str
    update_node: str
    replay: str
    destroy_executable: str
    destroy_graph: str
    current: str


@dataclass(frozen=True)
class Costs:
    """Host time of a driver's calls, in seconds, without this project's own code.

    Attributes:
        launch: of a kernel.
        replay: of a graph of kernels that run one behind the other.
        replayed_node: what each kernel adds to that.
        update_node: setting the operands of a kernel in a graph.
    """

    launch: float
    replay: float
    replayed_node: float
    update_node: float

    def most_updates(self, launches: int) -> int:
        """How many kernels of a graph may change before plain launches of all are cheaper."""
        saved = launches * (self.launch - self.replayed_node) - self.replay
        return min(launches, max(0, int(saved / self.update_node)))


class NativeDriver:
    """Functions of a driver's library. Handles and addresses are integers.

    Args:
        library: that the driver's bindings use, too.
        names: of its functions.
        costs: of its functions.
        node_parameters: makes the vendor's structure for a kernel of a graph, of a function, a
            launch, and the address of its table of operands.
        failure: makes the error for a function's name and status.

    Attributes:
        names: see above.
        costs: see above.
        has_graphs: whether the library has all that graphs need.
    """

    def __init__(
        self,
        library: Any,
        names: Names,
        costs: Costs,
        node_parameters: Callable[[int, Launch, int], ctypes.Structure],
        failure: Callable[[str, int], Exception],
    ) -> None:
        self.names = names
        self.costs = costs
        self.node_parameters = node_parameters
        self.failure = failure
        self._addresses = {
            name: _address_of(library, name)
            for name in (getattr(names, field.name) for field in fields(names))
        }
        graphs = self._addresses.keys() - {names.launch, names.current}
        # Keeps the interpreter's lock: it takes less time than letting go of that.
        self._current = ctypes.PYFUNCTYPE(_Int, _Pointer)(self._addresses[names.current])
        self.has_graphs = all(self._addresses[name] for name in graphs)

    @classmethod
    def of(cls, library: Any, names: Names, *more: Any) -> NativeDriver | None:
        """A driver's functions; None: there is no library, or it lacks what launches need."""
        needed = names.launch, names.current, names.is_capturing
        if library is None or not all(_address_of(library, name) for name in needed):
            return None
        return cls(library, names, *more)

    def address(self, name: str) -> int:
        """The address of a function; 0: the library has none of this name."""
        return self._addresses[name]

    def current(self) -> int:
        """The device or context that is current to this thread."""
        handle = ctypes.c_uint64()
        status = self._current(ctypes.addressof(handle))
        if status:
            raise self.failure(self.names.current, status)
        return handle.value

    def build_graph(self, parameters: Sequence[int]) -> tuple[int, list[int]]:
        """A graph of kernels that run one behind the other, and its nodes.

        Args:
            parameters: the address of each kernel's structure.

        Raises:
            ExecutionError: the driver refuses; MemoryError: there is no room.
        """
        names = self.names
        graph, node = ctypes.c_uint64(), ctypes.c_uint64()
        self._call(names.create_graph, (_Pointer, _Unsigned), ctypes.addressof(graph), 0)
        nodes: list[int] = []
        try:
            for each in parameters:
                previous = ctypes.c_uint64(nodes[-1] if nodes else 0)
                self._call(
                    names.add_node,
                    (_Pointer, _Pointer, _Pointer, ctypes.c_size_t, _Pointer),
                    ctypes.addressof(node),
                    graph.value,
                    ctypes.addressof(previous) if nodes else None,
                    1 if nodes else 0,
                    each,
                )
                nodes.append(node.value)
        except BaseException:
            self.destroy_graph(graph.value)
            raise
        return graph.value, nodes

    def instantiate(self, graph: int) -> int:
        """A graph's executable form.

        Raises:
            ExecutionError: the driver refuses; MemoryError: there is no room.
        """
        made = ctypes.c_uint64()
        types = _Pointer, _Pointer, ctypes.c_uint64
        self._call(self.names.instantiate, types, ctypes.addressof(made), graph, 0)
        return made.value

    def destroy_executable(self, executable: int) -> None:
        """Give it up, once it has run."""
        self._call(self.names.destroy_executable, (_Pointer,), executable)

    def destroy_graph(self, graph: int) -> None:
        """Give up a graph whose executable forms are not used any more."""
        self._call(self.names.destroy_graph, (_Pointer,), graph)

    def _call(self, name: str, types: tuple[Any, ...], *arguments: int | None) -> None:
        status = ctypes.CFUNCTYPE(_Int, *types)(self._addresses[name])(*arguments)
        if status:
            raise self.failure(name, status)


def open_loaded(*names: str) -> Any:
    """The library of one of these names, if this process has loaded it already; else None.

    Only libraries that bindings have loaded are found: a second copy of a driver would not know the
    first one's handles.
    """
    mode = getattr(os, "RTLD_NOLOAD", None)
    if mode is None:
        return None
    for name in names:
        try:
            return ctypes.CDLL(name, mode=mode | os.RTLD_NOW)
        except OSError:
            continue
    return None


def _address_of(library: Any, name: str) -> int:
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
