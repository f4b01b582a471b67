"""DeviceProgram: a launch plan on one device, ready to be launched."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from polyblocks.errors import ExecutionError
from polyblocks.isolation import forks
from polyblocks.runtime.device import holding
from polyblocks.runtime.device.launches.graphs import KEPT, Graphs
from polyblocks.runtime.device.launches.lanes import Lane, Lanes
from polyblocks.runtime.device.launches.native_launcher import (
    NativeFrame,
    NativeLauncher,
    argument_block,
    native_launcher,
    operand_table,
)
from polyblocks.runtime.device.launches.recorders import CapturingRecorder, NodeRecorder, Recorder
from polyblocks.runtime.source import Source

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver, StatusWord
    from polyblocks.runtime.device.plan import LaunchPlan
    from polyblocks.runtime.device.times import KernelTimes

#: Lanes of a program that has graphs: a lane whose graph was given up may still be looked at.
GRAPH_LANES = 2 * KEPT
#: Calls in machine code that may be inside together, of a program whose launches are no graph.
PLAIN_LANES = 2

#: ``(memory of the argument block, one function of a stream per launch, what they point to)``.
Frame = tuple[Any, tuple[Callable[[int], None], ...], list[Any]]


class DeviceProgram:
    """A plan whose code is loaded on one device.

    A launch writes the addresses into an argument block, which all kernels of the plan share, and
    calls the driver once per kernel: in a loop of machine code, or from Python where LLVM or the
    addresses of the driver's functions are missing. The driver copies the operands when it is
    called, so that the block can be used again at once; there are as many as threads were inside
    together. Programs of several kernels become graphs, see :class:`Graphs`.

    A failed run-time check sets a word that the host sees. It is looked at without waiting: by
    the next launch of the program on this device, and by ``synchronize`` of its target. Which of
    the earlier launches failed is not known, and what they computed is not to be used.

    Attributes:
        launch: ``launch(stream, workspace, *pointers)``; the address of ``workspace_bytes`` bytes
            and those of the arrays of ``plan.rows``. Puts the kernels on the stream, and waits
            for nothing. Raises ExecutionError if a check of an earlier launch has failed, or the
            driver refuses.
        run: ``run(stream, workspace, status, *pointers)``, the same without looking at the checks;
            ``status`` is the address of the word that they write to.
        plan: what is launched.
        device: the device's number.
        driver: the vendor's.
        lanes: launches that machine code makes by itself.

    Args:
        driver: see above.
        device: see above.
        plan: see above.
        image: the plan's code.
        use_graph: record launches when their addresses come again (``auto``), at once, or never.
        times: of the kernels, if they are measured; they are then launched one by one.
    """

    def __init__(
        self,
        driver: Driver,
        device: int,
        plan: LaunchPlan,
        image: bytes,
        *,
        use_graph: bool | str,
        times: KernelTimes | None = None,
    ) -> None:
        self.device = device
        self.driver = driver
        self.plan = plan = plan.with_maps(lambda each: driver.encode_map(device, each))
        #: A program that computes nothing has no code.
        self._module = driver.load_module(device, image) if plan.launches else None
        self._closed = False
        self._word: StatusWord | None = driver.status_word(device) if plan.has_status else None
        self._frames: list[Frame] = []
        self._times = times
        self._lock = forks.lock()
        self._native: NativeLauncher | None = None
        self._functions: list[int] = []
        self._find_kernels()
        self._graphs: Graphs | None = None
        self._make_frame(keep=True)  # says now if the module lacks a kernel
        self.run: Callable[..., None] = self._write()
        # Kernels inside of a graph have no times.
        has_graphs = bool(use_graph) and len(plan.launches) > 1 and times is None
        self.lanes = self._make_lanes(GRAPH_LANES if has_graphs else PLAIN_LANES)
        self._plain_lanes: list[Lane] = []
        if has_graphs:
            self._graphs = self._make_graphs(at_once=use_graph is True)
            self.run = self._graphs
        else:
            self._fill_lanes()
        self.launch: Callable[..., None] = (
            self._checking() if self._word is not None else self._unchecked()
        )
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
        self.lanes.close()
        if self._graphs is not None:
            self._graphs.close()
        for lane in self._plain_lanes:
            if lane.take():
                lane.close()
        self._frames.clear()
        if self._module is not None:
            self.driver.unload_module(self.device, self._module)
        if self._word is not None:
            self._word.close()

    def graph_facts(self) -> dict[str, Any]:
        """The graphs that the program holds now, see :meth:`Graphs.facts`; empty if it has none."""
        return {} if self._graphs is None else self._graphs.facts()

    def _find_kernels(self) -> None:
        """Look the kernels up for launches without Python, if there can be any."""
        if self._times is None and self.plan.launches and self.driver.native is not None:
            self._native = native_launcher()
        if self._native is not None and self._module is not None:
            find = self.driver.find_kernel
            self._functions = [
                find(self.device, self._module, launch) for launch in self.plan.launches
            ]

    def _make_graphs(self, at_once: bool) -> Graphs:
        driver, device, plain = self.driver, self.device, self.run
        native = driver.native
        recorder: Recorder
        if self._native is not None and native is not None and native.has_graphs:
            frame = weakref.WeakMethod(self._native_frame)
            recorder = NodeRecorder(
                native, lambda *nodes: _alive(frame)(*nodes), self._write_pack(), self.lanes
            )
        else:
            recorder = CapturingRecorder(driver, device, plain)
        count = len(self.plan.launches)
        return Graphs(driver, device, count, plain, recorder, at_once=at_once)

    def _make_lanes(self, count: int) -> Lanes:
        native = self.driver.native
        if self._native is None or native is None:
            return Lanes(native_launcher(), self.plan)
        previous = self.driver.activate(self.device)
        try:
            device = native.current()
        finally:
            if previous is not None:
                self.driver.restore(previous)
        return Lanes(self._native, self.plan, native, count, device, self._word)

    def _fill_lanes(self) -> None:
        """Launches one by one, where there are no graphs."""
        for _ in range(self.lanes.count):
            lane = self.lanes.lane(self._native_frame(), 0, 0)
            if lane is not None:
                self._plain_lanes.append(lane)
                lane.give()

    def _native_frame(self, nodes: Sequence[int] = ()) -> NativeFrame:
        native = self.driver.native
        assert self._native is not None
        assert native is not None
        self._expect_open()
        return NativeFrame(self._native, native, self.plan, self._functions, nodes)

    def _expect_open(self) -> None:
        if self._closed:
            raise ExecutionError(f"{self.plan.name} is closed; load it again")

    def _make_frame(self, keep: bool = False) -> Frame:
        """An argument block, and its launches."""
        self._expect_open()
        if self._native is not None:
            native = self._native_frame()
            frame: Frame = native.block, (native.launch,), []
        else:
            frame = self._python_frame()
        if keep:
            self._frames.append(frame)
        return frame

    def _python_frame(self) -> Frame:
        memory = argument_block(self.plan)
        launches = []
        tables = []
        for launch in self.plan.launches:
            assert self._module is not None
            table = operand_table(ctypes.addressof(memory), launch.slots)
            tables.append(table)
            launches.append(
                self.driver.prepare(self.device, self._module, launch, ctypes.addressof(table))
            )
        if self._times is not None:
            launches = [self._times.around(launches)]
        return memory, tuple(launches), tables

    def _packed(self, source: Source, block: str) -> None:
        """Write the lines that put the addresses of a call into an argument block."""
        runs: dict[int, list[str]] = {}
        begin = end = -1
        for number, slot in enumerate(self.plan.slots):
            if slot.kind != "value":
                begin, end = begin if end == number else number, number + 1
                name = f"p{slot.row}" if slot.kind == "argument" else slot.kind
                text = f"{name} + {slot.number}" if slot.number else name
                runs.setdefault(begin, []).append(text)
        for begin, values in runs.items():
            pack = source.name(f"pack{begin}", struct.Struct(f"{len(values)}Q").pack_into)
            source.add(f"{pack}({block}, {8 * begin}, {', '.join(values)})")

    def _pointers(self) -> list[str]:
        return [f"p{i}" for i in range(len(self.plan.rows))]

    def _write_pack(self) -> Callable[..., None]:
        """``pack(block, workspace, status, *pointers)``."""
        source = Source(", ".join(["block", "workspace", "status", *self._pointers()]))
        self._packed(source, "block")
        source.add("return")
        return source.build(self.plan.name)

    def _write(self) -> Callable[..., None]:
        """``run(stream, workspace, status, *pointers)``, spelled out for the plan."""
        plan, driver = self.plan, self.driver
        source = Source(", ".join(["stream", "workspace", "status", *self._pointers()]))
        frames = source.name("frames", self._frames)
        make = source.name("make", weakref.WeakMethod(self._make_frame))
        source.add("try:")
        source.add(f"frame = {frames}.pop()", depth=2)
        source.add("except IndexError:")
        source.add(f"frame = {source.name('alive', _alive)}({make})()", depth=2)
        in_one = self._native is not None or self._times is not None
        count = 1 if in_one else len(plan.launches)
        launches = [f"launch{i}" for i in range(count)]
        source.add("memory, launches, _ = frame")
        self._packed(source, "memory")
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


def _alive(method: weakref.WeakMethod[Any]) -> Any:
    """A method of a program that is not retired."""
    found = method()
    if found is None:
        raise ExecutionError("the program is closed; load it again")
    return found


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
            are reported by later calls.
    """
    driver.synchronize()
    holding.release()
    unload_retired(driver)
    for program in list(_reporting):
        if program.driver is driver:
            program.check()
