"""Calls of one program by several threads: streams, addresses, graphs and failures at random."""

from __future__ import annotations

import importlib
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.driver_bindings import Bindings
from tests.support.stand_in_driver import DriverLibrary, StandIn, for_stand_in

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.errors import ExecutionError
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.launch import bind
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.simt.simulated import chip_of

#: Target -> its architecture here, the form of its code, and the class of its driver.
TARGETS = {"nvgpu": ("sm_80", "ptx", "CudaDriver"), "amdgpu": ("gfx1100", "hsaco", "HipDriver")}
ROWS, COLUMNS = 3, 5
#: What a launch that is refused returns.
REFUSED = 700


def steps(x: Any) -> Any:
    """Several kernels, with a workspace between them."""
    return x - x.sum(dim=0).sum() / 4


def wanted(x: np.ndarray) -> np.ndarray:
    """:func:`steps` of an array of NumPy."""
    return x - x.sum() / np.float32(4)


def program(
    target: str, function: Callable[..., Any] = steps, given: list[Any] | None = None
) -> Artifact:
    """The program of a function, whose kernels a stand-in runs."""
    import torch

    given = [torch.rand(ROWS, COLUMNS)] if given is None else given
    arch, form, _ = TARGETS[target]
    options = {
        "target": target, "arch": arch, "simulate": True, "polyblocks_disable_affine_fusion": True,
        "polyblocks_disable_reduce_reduce_fusion": True,
    }  # fmt: skip
    made = polyblocks.aot(function, given, options, frontend="torch")
    assert len(made.manifest["launches"]) > 1
    return for_stand_in(made, form)


class Bench:
    """A program on the devices of a stand-in.

    Args:
        target: ``nvgpu`` or ``amdgpu``.
        artifact: of :func:`program`.
        folder: where the driver's library is built.
        devices: how many there are.
        native: the driver's functions are known by their addresses.
    """

    def __init__(
        self, target: str, artifact: Artifact, folder: Path, devices: int = 2, native: bool = True
    ) -> None:
        arch, _, name = TARGETS[target]
        chip = chip_of(describe_target(CompileOptions(target=target, arch=arch)))
        semantics = importlib.import_module(f"polyblocks_{target}.simt").SEMANTICS
        self.library = DriverLibrary(target, folder, private=True)
        self.stand_in = self.library.stand_in = StandIn(semantics, {arch: chip})
        self.stand_in.archs = [arch] * devices
        module = importlib.import_module(f"polyblocks_{target}.driver")
        code = self.library.code if native else None
        self.driver = getattr(module, name)(Bindings(target, self.library), code)
        self.artifact = artifact

    def load(self, use_graph: bool | str = "auto") -> DeviceExecutable:
        """The program, loaded anew."""
        executable = DeviceExecutable(self.artifact, lambda: self.driver)
        executable.configure(CompileOptions(use_graph=use_graph))
        return executable

    def upload(self, array: np.ndarray, device: int = 0) -> int:
        """The address of a copy on a device."""
        previous = self.driver.activate(device)
        try:
            with self.stand_in._lock:
                return self.stand_in.upload(array)
        finally:
            if previous is not None:
                self.driver.restore(previous)

    def check(self) -> None:
        """What went wrong in the stand-in itself."""
        errors, DriverLibrary.errors[:] = list(DriverLibrary.errors), []
        assert errors == []


def message_of(call: Callable[..., Any], *arguments: int) -> str:
    """What the error of a call says; empty if there is none."""
    try:
        call(*arguments)
    except ExecutionError as error:
        return str(error)
    return ""


class Current(threading.local):
    """A framework's state of a thread.

    Attributes:
        streams: the current stream of each device.
        result: address of the memory that its allocator gives next.
        workspace: the same of workspaces.
    """

    def __init__(self) -> None:
        self.streams: dict[int, int] = {}
        self.result = 0
        self.workspace: dict[tuple[int, int], Any] = {}


def native_call(
    bench: Bench, executable: DeviceExecutable, current: Current
) -> Callable[[int, int], None]:
    """``call(device, address)`` by way of tensors, in machine code from the second one on.

    Args:
        bench: has the devices.
        executable: the loaded program.
        current: of the thread that calls.
    """
    from tests.support.gpu_tensors import GpuTensors

    class Tensors(GpuTensors):
        def empty(self, spec: Any, device: Any) -> Any:
            if spec.dtype == "float32":
                return self.at(current.result, (ROWS, COLUMNS), device.number)
            # On a stream a workspace can be used again at once.
            key = current.streams[device.number], device.number
            if key not in current.workspace:
                current.workspace[key] = super().empty(spec, device)
            return current.workspace[key]

    interface = Tensors(bench)
    interface.stream_of = current.streams
    plain = bind(executable, interface)
    call = dispatched(plain, lambda *_: plain)

    def called(device: int, address: int) -> None:
        # A framework's device is current where its tensors are used.
        previous = bench.driver.activate(device)
        call(interface.at(address, (ROWS, COLUMNS), device))
        if previous is not None:
            bench.driver.restore(previous)

    return called


def run(bench: Bench, calls: int, threads: int = 4, seed: int = 0) -> dict[str, int]:
    """Call the program ``calls`` times, check each result, and that nothing is left over.

    Returns:
        How often the driver did what.
    """
    executable, driver, stand_in = bench.load(), bench.driver, bench.stand_in
    stand_in.keep_calls = False
    devices = range(len(stand_in.archs))
    shared = {device: driver.create_stream(device) for device in devices}
    current = Current()
    wrong: list[BaseException] = []
    refusing = threading.local()

    def refuse(name: str, count: int) -> int:
        if name == "launch" and getattr(refusing, "left", None) is not None:
            refusing.left -= 1
            return REFUSED if refusing.left < 0 else 0
        return 0

    stand_in.refuse = refuse

    def work(number: int) -> None:
        try:
            _work(number)
        except BaseException as error:
            wrong.append(error)

    def _work(number: int) -> None:
        pick = random.Random(f"{seed} {number}")
        own = {device: driver.create_stream(device) for device in devices}
        call = native_call(bench, executable, current)
        held: dict[int, list[list[int]]] = {device: [] for device in devices}
        x = np.zeros((ROWS, COLUMNS), np.float32)

        def fill(address: int, values: np.ndarray) -> None:
            with stand_in._lock:
                stand_in.view(address)[:] = np.frombuffer(values.tobytes(), np.uint8)

        for step in range(calls // threads):
            if wrong:
                return
            device = pick.choice(devices)
            stream = pick.choice([own[device], own[device], shared[device]])
            if len(held[device]) > 3 or (held[device] and pick.random() < 0.2):
                for address in held[device].pop(pick.randrange(len(held[device]))):
                    driver.free(device, address)
            if len(held[device]) < 2 or pick.random() < 0.2:
                held[device].append([bench.upload(x, device), bench.upload(x, device)])
            given, out = pick.choice(held[device])
            x = np.float32(step % 97 + 1) * np.linspace(-1, 2, x.size, dtype=np.float32)
            x = x.reshape(ROWS, COLUMNS)
            fill(given, x)
            if pick.random() < 0.05:
                refusing.left = 1
                # Where a graph is replayed nothing is refused.
                told = message_of(executable.launcher(device), stream, given, out)
                assert not told or "aunchKernel of '" in told, told
                refusing.left = None
            if pick.random() < 0.05:
                nbytes, launch = executable.workspace_launcher(device)
                workspace = driver.allocate(device, max(nbytes, 1))
                graph = driver.capture(
                    device, lambda s, f=launch, w=workspace, a=given, b=out: f(s, w, a, b)
                )
                previous = driver.activate(device)
                driver.replay(graph, stream)
                if previous is not None:
                    driver.restore(previous)
                driver.wait(stream)
                driver.destroy_graph(graph)
                driver.free(device, workspace)
            elif pick.random() < 0.6:
                current.streams[device] = stream
                current.result = out
                call(device, given)
                driver.wait(stream)
            else:
                executable.launcher(device)(stream, given, out)
                driver.wait(stream)
            with stand_in._lock:
                got = stand_in.download(out, x)
            np.testing.assert_allclose(got, wanted(x), rtol=1e-4, atol=1e-3)
        for device in devices:
            driver.wait(own[device])
            driver.destroy_stream(device, own[device])
            for address in [each for pair in held[device] for each in pair]:
                driver.free(device, address)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    bench.check()
    if wrong:
        raise wrong[0]
    for device in devices:
        facts = executable.program(device).graph_facts()
        assert facts["graphs"] <= 16
        assert facts["stopped"] == ""
        driver.destroy_stream(device, shared[device])
    assert len(stand_in.executables) <= 16 * len(devices)
    executable.close()
    assert not stand_in.executables
    assert not stand_in.graphs
    assert not stand_in.modules
    return dict(stand_in.counts)
