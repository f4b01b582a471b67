"""Launches that machine code makes by itself, for calls that never enter Python.

A lane is a graph, or launches that are made one by one; one thread at a time uses it, in machine
code or in Python. See :mod:`polyblocks.codegen.device_launcher` for the code.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from polyblocks.codegen import device_launcher as code
from polyblocks.runtime.device.launches.native_launcher import NativeFrame, NativeLauncher
from polyblocks.runtime.device.plan import LaunchPlan
from polyblocks.runtime.native.tables import words

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import StatusWord
    from polyblocks.runtime.device.launches.native_driver import NativeDriver

_Lane: Any = words("Lane", code.LANE)
_Context: Any = words("Context", code.CONTEXT)


class Lanes:
    """The lanes of a program on a device.

    Attributes:
        address: of what machine code must know of the program.
        run: the address of the code; 0: Python launches.
        count: how many lanes there can be.
        status: the address of the status word on the device; 0: the program has none.

    Args:
        launcher: the code; None: Python launches.
        plan: what is launched; None: machine code launches nothing.
        native: the vendor's functions.
        count: see above.
        device: what must be current to a thread.
        word: of the program's checks. If it must be published, only Python uses the lanes.
    """

    def __init__(
        self,
        launcher: NativeLauncher | None,
        plan: LaunchPlan | None = None,
        native: NativeDriver | None = None,
        count: int = 0,
        device: int = 0,
        word: StatusWord | None = None,
    ) -> None:
        self._launcher, self._plan, self._native = launcher, plan, native
        self.status = 0 if word is None else word.address
        self._lanes = (_Lane * max(count, 1))()
        sources = [] if plan is None else _sources(plan)
        code_uses = word is None or word.host != 0
        self._sources = (ctypes.c_int64 * max(len(sources), 1))(*sources)
        self._context = _Context(
            lanes=ctypes.addressof(self._lanes),
            lane_count=count if code_uses else 0,
            current=0 if native is None else native.address(native.names.current),
            device=device,
            word=0 if word is None else word.host,
            sources=ctypes.addressof(self._sources),
            source_count=len(sources) // 3,
        )
        self.count = count
        self.address: int = ctypes.addressof(self._context)
        self.run = 0 if launcher is None else launcher.run

    def lane(self, frame: NativeFrame, graph: int, stream: int) -> Lane | None:
        """A lane for launches, which the caller has taken; None: all are used.

        Args:
            frame: of the launches.
            graph: of them; 0: they are launched one by one.
            stream: of the graph.
        """
        for row in self._lanes[: self.count]:
            lane = Lane(self._launcher, self._context, row)
            if row.table is None and lane.take():
                if row.table is None:
                    row.graph, row.stream, row.table = graph, stream, frame.table
                    lane.kept = frame
                    return lane
                lane.give()
        return None

    def close(self) -> None:
        """Leave everything to Python from now on; machine code may be called, but not be inside."""
        self._context.lane_count = 0

    def failure(self, status: int, number: int) -> Exception:
        """The error for a launch that the driver has refused.

        Args:
            status: the driver's.
            number: of the launch.
        """
        assert self._native is not None
        assert self._plan is not None
        kernel = self._plan.launches[number].kernel
        return self._native.failure(f"{self._native.names.launch} of '{kernel}'", status)


class Lane:
    """One of them, and what keeps its launches alive."""

    def __init__(self, launcher: Any, context: Any, row: Any) -> None:
        self._launcher, self._context, self._row = launcher, context, row
        self._address = ctypes.addressof(row)
        self.kept: Any = None

    def take(self) -> bool:
        """Use it from now on, unless another thread does."""
        return bool(self._launcher.take(self._address))

    def give(self) -> None:
        """Let others use it."""
        self._launcher.give(self._address)

    @property
    def last_use(self) -> int:
        """The later it was used, the larger."""
        return self._row.last_use or 0

    def note_use(self) -> None:
        """It is used now."""
        self._context.clock = clock = (self._context.clock or 0) + 1
        self._row.last_use = clock

    def close(self) -> None:
        """Free it, which the caller has taken, for other launches."""
        self._row.table = None
        self.kept = None
        self.give()


def _sources(plan: LaunchPlan) -> list[int]:
    """The changing slots of the argument block: slot, number of the pointer, bytes behind it."""
    found = []
    for number, slot in enumerate(plan.slots):
        if slot.kind != "value":
            place = len(code.POINTERS) + slot.row
            if slot.kind != "argument":
                place = code.POINTERS.index(slot.kind)
            found += [number, place, slot.number]
    return found
