"""A device program on arrays of the host: copied there, run, copied back."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polyblocks.runtime.device.memory import pool_of
from polyblocks.runtime.device.plan import ALIGNMENT

if TYPE_CHECKING:
    from polyblocks.runtime.device.driver import Driver, StatusWord
    from polyblocks.runtime.device.program import DeviceProgram


@dataclass(frozen=True)
class _Lane:
    """The stream of one call, and a word for its checks."""

    stream: int
    word: StatusWord | None


class HostCall:
    """``call(pointers) -> status`` with packed host addresses; waits for the result.

    Calls of several threads run side by side, each on a stream of its own.

    Args:
        driver: of the program's device.
        program: the loaded program.
    """

    def __init__(self, driver: Driver, program: DeviceProgram) -> None:
        self._driver = driver
        self._program = program
        plan = program.plan
        self._unpack = struct.Struct(f"{len(plan.rows)}Q").unpack
        self._sizes = plan.sizes
        #: Row -> the row whose memory it is.
        self._home = [
            index if row["updates"] is None else row["updates"]
            for index, row in enumerate(plan.rows)
        ]
        self._read = [i for i, row in enumerate(plan.rows) if row["role"] == "input"]
        self._written = [
            i
            for i, row in enumerate(plan.rows)
            if row["role"] == "output" or row["updates"] is not None
        ]
        #: Where each row's own memory begins in the memory of a call, and the workspace.
        self._offsets: list[int] = []
        end = 0
        for row, (home, size) in enumerate(zip(self._home, self._sizes, strict=True)):
            self._offsets.append(end)
            if home == row:
                end += -(-size // ALIGNMENT) * ALIGNMENT
        self._workspace = end
        self._bytes = end + plan.workspace_bytes
        self._lanes: list[_Lane] = []

    def __call__(self, pointers: bytes) -> int:
        driver, program = self._driver, self._program
        device = program.device
        hosts = self._unpack(pointers)
        pool = pool_of(driver, device)
        previous = driver.activate(device)
        memory = 0
        try:
            lane = self._lane()
            stream, word = lane.stream, lane.word
            try:
                # One block: the next call gets it again, and a graph finds its addresses.
                memory = pool.acquire(self._bytes, stream) if self._bytes else 0
                own = [memory + offset for offset in self._offsets]
                addresses = [own[home] for home in self._home]
                workspace = memory + self._workspace
                for row in self._read:
                    if size := self._sizes[row]:
                        driver.copy_in(addresses[row], hosts[row], size, stream)
                program.run(stream, workspace, word.address if word else 0, *addresses)
                if word is not None:
                    word.publish(stream)
                for row in self._written:
                    if size := self._sizes[row]:
                        driver.copy_out(hosts[row], addresses[row], size, stream)
            finally:
                driver.wait(stream)
                status = 0
                if word is not None:
                    status, word.value = word.value, 0
                if memory:
                    pool.release(memory, self._bytes, stream)
                self._lanes.append(lane)
            return status
        finally:
            if previous is not None:
                driver.restore(previous)

    def close(self) -> None:
        """Give the streams up; no call may be under way."""
        while self._lanes:
            lane = self._lanes.pop()
            self._driver.destroy_stream(self._program.device, lane.stream)
            if lane.word is not None:
                lane.word.close()

    def _lane(self) -> _Lane:
        try:
            return self._lanes.pop()
        except IndexError:
            driver, device = self._driver, self._program.device
            word = driver.status_word(device) if self._program.plan.has_status else None
            return _Lane(driver.create_stream(device), word)
