"""DeviceExecutable: an artifact with a launch plan, on whatever device it is asked for."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polyblocks.artifact import Artifact, code_digest
from polyblocks.isolation import forks
from polyblocks.runtime.device.calls.host_call import HostCall
from polyblocks.runtime.device.code import choose, code_of
from polyblocks.runtime.device.launches.lanes import Lanes
from polyblocks.runtime.device.launches.native_launcher import native_launcher
from polyblocks.runtime.device.memory import pool_of
from polyblocks.runtime.device.plan import read_plan, without_own
from polyblocks.runtime.device.program import DeviceProgram, retire, unload_retired
from polyblocks.runtime.device.times import KernelTimes
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.native_entry import NativeEntry

if TYPE_CHECKING:
    from polyblocks.options import CompileOptions
    from polyblocks.runtime.device.driver import Driver


class DeviceExecutable(Executable):
    """A program for devices. Making one loads nothing; its code is loaded once per device.

    Attributes:
        manifest: the artifact's manifest. Its ``arguments`` are the inputs and outputs alone;
            workspace and status are this object's business.
    """

    takes_device_arrays = True

    def __init__(self, artifact: Artifact, connect: Callable[[], Driver]) -> None:
        """Check the artifact.

        Args:
            artifact: with a launch plan and code, see :mod:`polyblocks.runtime.device.code`.
            connect: gives the driver, always the same one; called at the first launch.

        Raises:
            ArtifactError: it has no plan, a wrong one, or no code.
        """
        plan = read_plan(artifact.manifest)
        if plan.launches:
            code_of(artifact)
        self.manifest: dict[str, Any] = without_own(artifact.manifest, plan)
        self._artifact = artifact
        self._connect = connect
        self._lock = forks.lock()
        self._programs: dict[int, DeviceProgram] = {}
        self._launches: dict[int, Callable[..., None]] = {}
        self._host_calls: dict[int, HostCall] = {}
        self._times: dict[int, KernelTimes] = {}
        self._use_graph: bool | str = "auto"
        self._keep = True
        _alive.add(self)

    def configure(self, options: CompileOptions) -> None:
        """Take the options of the run: ``use_graph``, ``device_one_time_load``."""
        self._use_graph = options.use_graph
        self._keep = options.device_one_time_load

    @functools.cached_property
    def driver(self) -> Driver:
        """The vendor's driver.

        Raises:
            TargetError: it is not installed, or there is no device; says what to do.
        """
        return self._connect()

    def program(self, device: int) -> DeviceProgram:
        """The program on a device, where it is loaded now if it was not.

        Raises:
            TargetError: the device does not run the code, or does not exist.
        """
        program = self._programs.get(device)
        if program is None:
            with self._lock:
                program = self._programs.get(device)
                if program is None:
                    program = self._programs[device] = self._load(device)
        return program

    def launcher(self, device: int) -> Callable[..., None]:
        """``launch(stream, *pointers)`` on a device, for arrays that are there.

        The pointers are those of ``manifest["arguments"]``. It waits for nothing; the workspace
        comes from the device's pool. See :class:`DeviceProgram` for failed checks.
        """
        known = self._launches.get(device)
        if known is None:
            known = self._launches[device] = self._launcher(device)
        return known

    def workspace_launcher(self, device: int) -> tuple[int, Callable[..., None]]:
        """The same with a workspace of the caller's: its bytes, ``launch(stream, workspace, …)``.

        Callers that record graphs of their own, as frameworks do, own the memory of these.
        """
        program = self.program(device)
        if not self._keep:
            return 0, lambda stream, _, *pointers: self._launch_once(device, stream, pointers)
        return program.plan.workspace_bytes, program.launch

    def lanes(self, device: int) -> Lanes:
        """The launches on a device that machine code makes by itself."""
        return self.program(device).lanes if self._keep else Lanes(native_launcher())

    def entry(self, pointers: bytes, num_threads: int) -> int:
        """Run it on arrays of the host: copies them in, runs, waits, copies results out.

        The arrays go to the device that is current to the thread.

        Args:
            pointers: host addresses of ``manifest["arguments"]``, packed as on a CPU.
            num_threads: means nothing here.

        Returns:
            0, or the failed run-time check, see the protocol Executable.
        """
        del num_threads
        device = self.driver.current_device()
        call = self._host_calls.get(device)
        if call is None:
            program = self.program(device)
            with self._lock:
                call = self._host_calls.setdefault(device, HostCall(self.driver, program))
        status = call(pointers)
        if not self._keep:
            self._unload(device)
        return status

    def profile(self) -> list[dict[str, Any]]:
        """See :class:`polyblocks.runtime.executable.Executable`; of the device that ran it most.

        Nothing if the program was compiled without the option ``profile``, or has not run. Kernels
        that a graph of the caller's replays are not timed.
        """
        measured = [times.rows() for times in self._times.values()]
        return max(measured, key=lambda rows: rows[0]["calls"], default=[])

    @functools.cached_property
    def native_entry(self) -> NativeEntry:
        """:meth:`entry` for callers without Python."""
        return NativeEntry(
            self.entry, len(self.manifest["arguments"]), len(self.manifest.get("checks", ()))
        )

    def close(self) -> None:
        """Wait for the devices and unload the code; must not be called any more."""
        for device in list(self._programs):
            self._unload(device)

    def __del__(self) -> None:
        # Kernels may be running, and this thread may be anywhere: unloaded at the next occasion.
        retire(self.__dict__.get("_programs", {}).values())

    def graphs(self) -> list[dict[str, Any]]:
        """The graphs of launches that the driver holds now, a row for each device that has some.

        Returns:
            Per row: ``program``, ``device``, and the keys of
            :meth:`polyblocks.runtime.device.launches.graphs.Graphs.facts`.
        """
        name = self.manifest.get("name", "main")
        every = [(device, program.graph_facts()) for device, program in self._programs.items()]
        return [
            {"program": name, "device": device, **facts}
            for device, facts in every
            if facts.get("graphs") or facts.get("stopped")
        ]

    def _load(self, device: int) -> DeviceProgram:
        unload_retired(self.driver)
        plan, image = choose(self._artifact, self.driver, device)
        times = None
        if plan.profile:
            times = self._times.get(device) or KernelTimes(self.driver, device, plan.profile)
            self._times[device] = times
        return DeviceProgram(
            self.driver, device, plan, image, use_graph=self._use_graph, times=times
        )

    def _launcher(self, device: int) -> Callable[..., None]:
        if not self._keep:
            return lambda stream, *pointers: self._launch_once(device, stream, pointers)
        program = self.program(device)
        launch, nbytes = program.launch, program.plan.workspace_bytes
        if nbytes == 0:
            return lambda stream, *pointers: launch(stream, 0, *pointers)
        pool = pool_of(self.driver, device)

        def with_workspace(stream: int, *pointers: int) -> None:
            workspace = pool.acquire(nbytes, stream)
            try:
                launch(stream, workspace, *pointers)
            finally:
                pool.release(workspace, nbytes, stream)

        return with_workspace

    def _launch_once(self, device: int, stream: int, pointers: tuple[int, ...]) -> None:
        """With ``device_one_time_load=False``: load, launch, wait, unload."""
        program = self._load(device)
        nbytes = program.plan.workspace_bytes
        pool = pool_of(self.driver, device)
        workspace = pool.acquire(nbytes, stream)
        try:
            program.launch(stream, workspace, *pointers)
            self.driver.wait(stream)
            program.check()
        finally:
            pool.release(workspace, nbytes, stream)
            program.close()

    def _unload(self, device: int) -> None:
        with self._lock:
            program = self._programs.pop(device, None)
            call = self._host_calls.pop(device, None)
            self._launches.pop(device, None)
        if program is not None:
            self.driver.synchronize(device)
            if call is not None:
                call.close()
            program.close()


_alive: weakref.WeakSet[DeviceExecutable] = weakref.WeakSet()


def graphs_of(digest: str) -> list[dict[str, Any]]:
    """The graphs of all loaded copies of a program, see :meth:`DeviceExecutable.graphs`.

    Args:
        digest: of its code, as reports have it: the digests of its blobs, in order.
    """
    alive = [executable for executable in _alive if code_digest(executable.manifest) == digest]
    return [row for executable in alive for row in executable.graphs()]
