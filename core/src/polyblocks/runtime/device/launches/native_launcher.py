"""A plan's launches in a loop of machine code, with the interpreter's lock released.

See :mod:`polyblocks.codegen.device_launcher` for the code, which is compiled once per machine.
Where that was not done and LLVM is not installed, Python calls the driver once per kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from polyblocks.codegen import device_launcher as code
from polyblocks.isolation import forks
from polyblocks.runtime.device.launches.native_driver import NativeDriver
from polyblocks.runtime.device.plan import LaunchPlan
from polyblocks.runtime.native import native_code
from polyblocks.runtime.native.tables import words

_Kernel: Any = words("Kernel", code.KERNEL)
_Launches: Any = words("Launches", code.LAUNCHES)


class NativeLauncher:
    """The functions of the machine code; see :mod:`polyblocks.codegen.device_launcher`.

    Attributes:
        launch: ``(table, stream, failed) -> status``.
        replay: ``(table, graph, stream) -> status``.
        move: ``(table, graph, stream, values, marks, failed) -> status``.
        take: ``(lane) -> bool``.
        give: ``(lane) -> 0``.
        run: the address of what a call in machine code enters.

    Args:
        functions: name -> address.
    """

    def __init__(self, functions: Mapping[str, int]) -> None:
        # These release the interpreter's lock.
        self.launch, self.replay, self.move = (
            ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * count)(functions[name])
            for name, count in ((code.LAUNCH, 3), (code.REPLAY, 3), (code.MOVE, 6))
        )
        # These take less time than that.
        self.take, self.give = (
            ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(functions[name])
            for name in (code.TAKE, code.GIVE)
        )
        self.run = functions[code.RUN]


_lock = forks.lock()
_launcher: list[NativeLauncher | None] = []


def native_launcher() -> NativeLauncher | None:
    """The process's; None: it can have none, see :func:`native_code.place`."""
    with _lock:
        if not _launcher:
            names = code.LAUNCH, code.REPLAY, code.MOVE, code.RUN, code.TAKE, code.GIVE
            functions = native_code.place(code.launcher_text(), *names)
            _launcher.append(None if functions is None else NativeLauncher(functions))
        return _launcher[0]


class NativeFrame:
    """An argument block, and a table of the launches that read it; for one thread at a time.

    Attributes:
        block: the argument block.
        plan: whose launches they are.
        table: its address.
        limit: of the launches that may change when a graph is moved.

    Args:
        launcher: the code.
        driver: the vendor's functions.
        plan: what is launched.
        functions: the handle of each launch's kernel.
        nodes: of a graph of these launches; empty: no graph.
    """

    def __init__(
        self,
        launcher: NativeLauncher,
        driver: NativeDriver,
        plan: LaunchPlan,
        functions: Sequence[int],
        nodes: Sequence[int] = (),
    ) -> None:
        self.plan = plan
        self._launcher, self._driver = launcher, driver
        self.block = argument_block(plan)
        count = len(plan.launches)
        self._rows = (_Kernel * max(count, 1))()
        self._kept: list[Any] = []
        #: Of each launch the vendor's structure for a node, where there is a graph.
        self._parameters: list[ctypes.Structure] = []
        base = ctypes.addressof(self.block)
        for number, (row, launch) in enumerate(zip(self._rows, plan.launches, strict=False)):
            operands = operand_table(base, launch.slots)
            slots = (ctypes.c_int32 * max(len(launch.slots), 1))(*launch.slots)
            self._kept += operands, slots
            row.function = functions[number]
            row.grid_x, row.grid_y, row.grid_z = launch.grid
            row.block_x, row.block_y, row.block_z = launch.block
            row.shared = launch.shared_bytes
            row.operands, row.slots = ctypes.addressof(operands), ctypes.addressof(slots)
            row.count = len(launch.slots)
            if nodes:
                row.node = nodes[number]
        names, address = driver.names, driver.address
        self._table = _Launches(
            address(names.launch),
            address(names.is_capturing),
            address(names.replay),
            address(names.update_node),
            ctypes.addressof(self._rows),
            base,
            count,
            len(plan.slots),
            count,
        )
        self._failed = ctypes.c_int32(-1)
        self._failed_address = ctypes.addressof(self._failed)
        self.table = ctypes.addressof(self._table)

    def launch(self, stream: int) -> None:
        """Put all kernels on a stream, with what the argument block holds.

        Raises:
            ExecutionError: the driver refuses one, which is named; MemoryError: there is no room.
        """
        status = self._launcher.launch(self.table, stream, self._failed_address)
        if status:
            kernel = self.plan.launches[self._failed.value].kernel
            raise self._driver.failure(f"{self._driver.names.launch} of '{kernel}'", status)

    def replay(self, graph: int, stream: int) -> int:
        """Run a graph: the driver's status, or one of the code's own (``RECORDING``)."""
        status: int = self._launcher.replay(self.table, graph, stream)
        return status

    def move(self, graph: int, stream: int, values: int, marks: int, limit: int) -> int:
        """Run a graph with other values in the argument block.

        Args:
            graph: whose nodes have what the argument block holds.
            stream: where it is put.
            values: the address of what the argument block is to hold.
            marks: the address of a byte for each slot.
            limit: launches that may change; if there are more, nothing is done.

        Returns:
            See :meth:`replay`; other than those of our own, the graph is not to be used any more.
        """
        self._table.limit = limit
        status: int = self._launcher.move(
            self.table, graph, stream, values, marks, self._failed_address
        )
        return status

    def failure(self, status: int) -> Exception:
        """The error for a status of :meth:`move`."""
        names, number = self._driver.names, self._failed.value
        if number < 0:
            return self._driver.failure(names.replay, status)
        kernel = self.plan.launches[number].kernel
        return self._driver.failure(f"{names.update_node} of '{kernel}'", status)

    def node_parameters(self) -> list[int]:
        """The address of the vendor's structure for each launch, which the frame keeps."""
        if not self._parameters:
            for row, launch in zip(self._rows, self.plan.launches, strict=False):
                made = self._driver.node_parameters(row.function, launch, row.operands)
                self._parameters.append(made)
                row.parameters = ctypes.addressof(made)
        return [ctypes.addressof(each) for each in self._parameters]

    @property
    def nbytes(self) -> int:
        """Bytes of the host that it takes, besides Python's objects."""
        held = [self.block, self._rows, self._table, *self._kept, *self._parameters]
        return sum(ctypes.sizeof(each) for each in held)


def argument_block(plan: LaunchPlan) -> Any:
    """The memory of an argument block, with the values that never change."""
    fixed = [slot.number if slot.kind == "value" else 0 for slot in plan.slots]
    return (ctypes.c_uint64 * max(len(fixed), 1))(*fixed)


def operand_table(block: int, slots: Sequence[int]) -> Any:
    """The addresses of a kernel's operands in the argument block that begins at ``block``."""
    operands = [block + 8 * slot for slot in slots]
    return (ctypes.c_uint64 * max(len(operands), 1))(*operands)
