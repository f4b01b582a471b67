"""DeviceProgram: a launch plan on one device, ready to be launched."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from polyblocks.errors import ExecutionError
from polyblocks.isolation import forks
from polyblocks.runtime.device import holding
from polyblocks.runtime.device.graphs import Replayed
from polyblocks.runtime.source import Source

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver, StatusWord
    from polyblocks.runtime.device.plan import LaunchPlan
    from polyblocks.runtime.device.times import KernelTimes

#: ``(memory of the argument block, one function of a stream per launch, what they point to)``.
Frame = tuple[Any, tuple[Callable[[int], None], ...], list[Any]]


class DeviceProgram:
    """A plan whose code is loaded on one device.

    A launch writes the addresses into an argument block, which all kernels of the plan share, and
    calls the driver once per kernel. The driver copies the operands when it is called, so that
    the block can be used again at once; there are as many as threads were inside together.

    A failed run-time check sets a word that the host sees. It is looked at without waiting: by
    the next launch of the program on this device, and by ``synchronize`` of its target. Which of
    the earlier launches failed is not known, and what they computed is not to be used.

    Attributes:
        launch: ``launch(stream, workspace, *pointers)``; the address of ``workspace_bytes`` bytes
            and those of the arrays of ``plan.rows``. Puts the kernels on the stream, and waits
            for nothing. Raises ExecutionError if a check of an earlier launch has failed, or the
            driver refuses.
        plan: what is launched.
        device: the device's number.
        driver: the vendor's.
    """

    def __init__(
        self,
        driver: Driver,
        device: int,
        plan: LaunchPlan,
        image: bytes,
        *,
        use_graph: bool,
        times: KernelTimes | None = None,
    ) -> None:
        self.plan = plan
        self.device = device
        self.driver = driver
        #: A program that computes nothing has no code.
        self._module = driver.load_module(device, image) if plan.launches else None
        self._closed = False
        self._word: StatusWord | None = driver.status_word(device) if plan.has_status else None
        self._frames: list[Frame] = []
        self._times = times
        self._lock = forks.lock()
        self._graphs: Replayed | None = None
        self._make_frame(keep=True)  # says now if the module lacks a kernel
        self.run: Callable[..., None] = self._write()
        plain = self._checking() if self._word is not None else self._unchecked()
        self.launch: Callable[..., None] = plain
        # Kernels inside of a graph have no times.
        if use_graph and len(plan.launches) > 1 and times is None:
            self._graphs = Replayed(driver, device, plain, self.check)
            self.launch = self._graphs
        if self._word is not None:
            _reporting.add(self)

    def check(self) -> None:
        """Raise if a launch that has run by now failed a check; once.

        Raises:
            ExecutionError: says which check.
        """
        word = self._word
        if word is not None and word.value:
            with self._lock:
                code, word.value = word.value, 0
            if code:
                raise ExecutionError(
                    f"{self.plan.name}: {self.plan.failure(code)} (in an earlier call; a device's "
                    "checks are read at the next call, or when it is synchronized)"
                )

    def close(self) -> None:
        """Unload the code; nothing of it may be running."""
        if self._closed:
            return
        self._closed = True
        _reporting.discard(self)
        if self._graphs is not None:
            self._graphs.close()
        self._frames.clear()
        if self._module is not None:
            self.driver.unload_module(self.device, self._module)
        if self._word is not None:
            self._word.close()

    def _make_frame(self, keep: bool = False) -> Frame:
        """An argument block, and its launches."""
        slots = self.plan.slots
        fixed = [slot.number if slot.kind == "value" else 0 for slot in slots]
        memory = (ctypes.c_uint64 * max(len(slots), 1))(*fixed)
        base = ctypes.addressof(memory)
        launches = []
        if self._closed:
            raise ExecutionError(f"{self.plan.name} is closed; load it again")
        tables = []
        for launch in self.plan.launches:
            assert self._module is not None
            operands = [base + 8 * slot for slot in launch.slots]
            table = (ctypes.c_uint64 * max(len(operands), 1))(*operands)
            tables.append(table)
            launches.append(
                self.driver.prepare(self.device, self._module, launch, ctypes.addressof(table))
            )
        if self._times is not None:
            launches = [self._times.around(launches)]
        frame = memory, tuple(launches), tables
        if keep:
            self._frames.append(frame)
        return frame

    def _write(self) -> Callable[..., None]:
        """``run(stream, workspace, status, *pointers)``, spelled out for the plan."""
        plan, driver = self.plan, self.driver
        pointers = [f"p{i}" for i in range(len(plan.rows))]
        values = []
        for slot in plan.slots:
            if slot.kind != "value":
                name = pointers[slot.row] if slot.kind == "argument" else slot.kind
                values.append(f"{name} + {slot.number}" if slot.number else name)
        source = Source(", ".join(["stream", "workspace", "status", *pointers]))
        frames = source.name("frames", self._frames)
        make = source.name("make", weakref.WeakMethod(self._make_frame))
        source.add("try:")
        source.add(f"frame = {frames}.pop()", depth=2)
        source.add("except IndexError:")
        source.add(f"frame = {make}()()", depth=2)
        count = len(plan.launches) if self._times is None else 1
        launches = [f"launch{i}" for i in range(count)]
        source.add("memory, launches, _ = frame")
        if values:
            pack = source.name("pack", struct.Struct(f"{len(values)}Q").pack_into)
            source.add(f"{pack}(memory, 0, {', '.join(values)})")
        activate = source.name("activate", driver.activate)
        restore = source.name("restore", driver.restore)
        source.add(f"previous = {activate}({self.device})")
        source.add("try:")
        if launches:
            source.add(f"{', '.join(launches)}, = launches", depth=2)
        for name in launches:
            source.add(f"{name}(stream)", depth=2)
        if not launches:
            source.add("pass", depth=2)
        source.add("finally:")
        source.add("if previous is not None:", depth=2)
        source.add(f"{restore}(previous)", depth=3)
        source.add(f"{frames}.append(frame)", depth=2)
        return source.build(plan.name)

    def _unchecked(self) -> Callable[..., None]:
        run = self.run
        return lambda stream, workspace, *pointers: run(stream, workspace, 0, *pointers)

    def _checking(self) -> Callable[..., None]:
        run, word, check = self.run, self._word, weakref.WeakMethod(self.check)
        assert word is not None
        address, publish = word.address, word.publish

        def launch(stream: int, workspace: int, *pointers: int) -> None:
            if word.value and (look := check()) is not None:
                look()
            run(stream, workspace, address, *pointers)
            publish(stream)

        return launch


#: The programs that may have something to report.
_reporting: weakref.WeakSet[DeviceProgram] = weakref.WeakSet()
#: Programs that have no caller any more, with code that may still be running.
_retired: deque[DeviceProgram] = deque()


def retire(programs: Iterable[DeviceProgram]) -> None:
    """Unload these programs when that waits for nothing."""
    _retired.extend(programs)


def unload_retired(driver: Driver) -> None:
    """Unload the retired programs of a driver, after the work of their devices."""
    mine = [program for program in _retired if program.driver is driver]
    for device in {program.device for program in mine}:
        driver.synchronize(device)
    for program in mine:
        _retired.remove(program)
        program.close()


def synchronize(driver: Driver) -> None:
    """Wait for all work on a driver's devices; what a target's ``synchronize`` calls.

    Raises:
        ExecutionError: a run-time check of a program has failed. Of several programs the others
            are told by later calls.
    """
    driver.synchronize()
    holding.release()
    unload_retired(driver)
    for program in list(_reporting):
        if program.driver is driver:
            program.check()
