"""Launches on a fake driver: order, operands, modules, checks, graphs, threads, memory."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
import tracemalloc

import numpy as np
import pytest
from fake_driver import FakeDriver, artifact, launch, view
from manifest_rows import row

from polyblocks.errors import ArtifactError, ExecutionError
from polyblocks.options import CompileOptions
from polyblocks.runtime.device import holding
from polyblocks.runtime.device.bindings import DeviceWord
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.device.memory import DevicePool, pool_of, size_class
from polyblocks.runtime.device.program import synchronize
from polyblocks.runtime.executable import Executable

N = 6


def double(x: int, out: int) -> None:
    view(out, N)[:] = 2 * view(x, N)


def plus_one(x: int, out: int) -> None:
    view(out, N)[:] = view(x, N) + 1


def fail(status: int) -> None:
    view(status, 1, np.int32)[0] = 1


def guarded(x: int, out: int, status: int) -> None:
    if view(x, N)[0] < 0:
        fail(status)
    view(out, N)[:] = view(x, N)


KERNELS = {"double": double, "plus_one": plus_one, "guarded": guarded}
ROWS = [row("input", "x"), row("output", "o")]
#: o = 2 x + 1 through the workspace.
TWO = artifact(
    ROWS,
    [
        launch("double", 0, {"workspace": 256}, grid=(2, 1, 1)),
        launch("plus_one", {"workspace": 256}, 1, block=(64, 2, 1)),
    ],
    workspace_bytes=1024,
)
GUARDED = artifact(
    [*ROWS, {"role": "status"}],
    [launch("guarded", 0, 1, 2)],
    checks=["index out of range"],
)


class WithDeviceWords(FakeDriver):
    """A driver whose devices do not reach the host's memory."""

    def status_word(self, device: int):
        host = ctypes.c_int32(7)
        self.hosts = [*getattr(self, "hosts", []), host]
        self.words += 1

        def free() -> None:
            self.words -= 1

        return DeviceWord(self, device, ctypes.addressof(host), free)


def loaded(source=TWO, options: dict | None = None, kind=FakeDriver, **settings):
    """A program whose launches are made plainly, if the options say nothing else."""
    driver = kind(KERNELS, **settings)
    executable = DeviceExecutable(source, lambda: driver)
    executable.configure(CompileOptions.from_dict({"use_graph": False, **(options or {})}))
    return driver, executable


def arrays(value: float = 3) -> tuple[np.ndarray, np.ndarray]:
    return np.full((2, 3), value, np.float32), np.zeros((2, 3), np.float32)


def addresses(*values: np.ndarray) -> list[int]:
    return [value.ctypes.data for value in values]


def packed(*values: np.ndarray) -> bytes:
    return struct.pack(f"{len(values)}Q", *addresses(*values))


# --- launches -------------------------------------------------------------------------------------


def test_nothing_is_asked_of_the_driver_before_a_launch():
    executable = DeviceExecutable(TWO, lambda: pytest.fail("connected"))
    assert isinstance(executable, Executable)
    assert [r["name"] for r in executable.manifest["arguments"]] == ["x", "o"]


def test_an_artifact_without_a_plan_is_refused_at_once():
    broken = artifact(ROWS, [])
    del broken.manifest["launches"]
    with pytest.raises(ArtifactError, match="launches must be a list of kernel launches"):
        DeviceExecutable(broken, lambda: None)


def test_one_launch_per_kernel_in_order_and_nothing_else():
    driver, executable = loaded()
    x, out = arrays()
    launcher = executable.launcher(0)
    launcher(5, *addresses(x, out))
    assert (out == 7).all()
    driver.calls.clear()
    launcher(5, *addresses(x, out))
    assert driver.calls == [
        ("launch", "double", 0, 5, (2, 1, 1), (32, 1, 1)),
        ("launch", "plus_one", 0, 5, (1, 1, 1), (64, 2, 1)),
    ]


def test_a_module_is_loaded_once_per_device():
    driver, executable = loaded(archs=("v1", "v1"))
    x, out = arrays()
    for device in (0, 1, 0, 1):
        executable.launcher(device)(5, *addresses(x, out))
        executable.entry(packed(x, out), 1)
    assert driver.named("load_module") == [
        ("load_module", 0, b"code for v1"),
        ("load_module", 1, b"code for v1"),
    ]
    assert {call[2] for call in driver.named("launch")} == {0, 1}
    assert driver.current_device() == 0


def test_a_launch_goes_to_the_stream_that_it_is_given():
    driver, executable = loaded()
    x, out = arrays()
    for stream in (5, 9):
        executable.launcher(0)(stream, *addresses(x, out))
    assert [call[3] for call in driver.named("launch")] == [5, 5, 9, 9]
    # A workspace is used again on its stream, and only there.
    assert len(driver.named("allocate")) == 2


def test_a_launch_waits_for_nothing():
    driver, executable = loaded(eager=False)
    x, out = arrays()
    executable.launcher(0)(5, *addresses(x, out))
    assert (out == 0).all()
    synchronize(driver)
    assert (out == 7).all()
    assert not driver.named("wait")


def test_the_operands_of_a_launch_are_its_own():
    driver, executable = loaded(eager=False)
    first, second = arrays(1), arrays(2)
    executable.launcher(0)(5, *addresses(*first))
    executable.launcher(0)(5, *addresses(*second))
    driver.synchronize()
    assert (first[1] == 3).all()
    assert (second[1] == 5).all()


def test_offsets_and_values():
    def fill(out: int, value: int) -> None:
        view(out, 2)[:] = ctypes.c_int32(value & 0xFFFFFFFF).value

    number = {"value": -3, "dtype": "int32"}
    source = artifact([row("output", "o")], [launch("fill", {"argument": 0, "offset": 8}, number)])
    executable = DeviceExecutable(source, lambda: FakeDriver({"fill": fill}))
    out = np.zeros((2, 3), np.float32)
    executable.launcher(0)(5, out.ctypes.data)
    assert out.ravel().tolist() == [0, 0, -3, -3, 0, 0]


def test_a_kernel_that_is_not_there():
    _, executable = loaded(artifact(ROWS, [launch("triple", 0, 1)]))
    with pytest.raises(ArtifactError, match="the code has no kernel 'triple'"):
        executable.launcher(0)


def test_a_launch_that_the_driver_refuses_leaves_everything_as_it_was():
    def refuse(x, out):
        raise ExecutionError("the launch failed")

    driver = FakeDriver({"double": refuse, "plus_one": plus_one}, ("v1", "v1"))
    executable = DeviceExecutable(TWO, lambda: driver)
    x, out = arrays()
    launcher = executable.launcher(1)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="the launch failed"):
            launcher(5, *addresses(x, out))
    assert driver.current_device() == 0
    assert driver.counts["allocate"] == 1


def test_loading_for_each_call():
    driver, executable = loaded(options={"device_one_time_load": False})
    x, out = arrays()
    for _ in range(2):
        executable.launcher(0)(5, *addresses(x, out))
        assert executable.entry(packed(x, out), 1) == 0
    assert driver.counts["load_module"] == driver.counts["unload_module"] == 4
    assert not driver.modules


# --- arrays of the host ---------------------------------------------------------------------------


def test_arrays_of_the_host_are_copied_there_and_back():
    driver, executable = loaded(eager=False)
    x, out = arrays()
    assert executable.entry(packed(x, out), 4) == 0
    assert (out == 7).all()
    assert [call[0] for call in driver.calls if call[0] != "allocate"] == [
        "load_module", "copy_in", "launch", "launch", "copy_out", "wait",
    ]  # fmt: skip
    assert {call[-1] for call in driver.named("copy_in", "copy_out")} == driver.streams


def test_updates_in_place_of_arrays_of_the_host():
    source = artifact(
        [row("input", "x", updates=0), row("input", "y"), row("output", "o", updates=1)],
        [launch("double", 0, 0), launch("plus_one", 1, 2)],
    )
    driver, executable = loaded(source)
    x, y = arrays(3)[0], arrays(4)[0]
    executable.entry(packed(x, y, y), 1)
    assert (x == 6).all()
    assert (y == 5).all()
    assert driver.named("allocate") == [("allocate", 0, 512)], "one block, with room for two"


def test_arrays_without_elements_are_not_copied():
    source = artifact([row("input", "e", (0, 3)), row("input", "x"), row("output", "o")],
                      [launch("double", 1, 2)])  # fmt: skip
    driver, executable = loaded(source)
    x, out = arrays()
    executable.entry(packed(np.empty((0, 3), np.float32), x, out), 1)
    assert (out == 6).all()
    assert len(driver.named("copy_in")) == 1


def called(native, *values) -> int:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32)
    call = prototype(ctypes.cast(native.function, ctypes.c_void_p).value)
    return call(packed(*values), 1)


def test_a_c_function_for_callers_without_python():
    _, executable = loaded()
    x, out = arrays()
    assert executable.native_entry is executable.native_entry
    assert called(executable.native_entry, x, out) == 0
    assert (out == 7).all()


def test_an_exception_in_a_c_function_is_a_text():
    def refuse(x, out, status):
        raise ExecutionError("the launch failed")

    executable = DeviceExecutable(GUARDED, lambda: FakeDriver({"guarded": refuse}))
    native = executable.native_entry
    assert called(native, *arrays()) == native.failed == 2
    assert ctypes.string_at(native.text) == b"ExecutionError: the launch failed"


def test_a_program_without_kernels_needs_no_code():
    source = artifact([row("input", "x", updates=0)], [])
    source.blobs = {}
    driver, executable = loaded(source)
    x, _ = arrays()
    assert executable.entry(packed(x), 1) == 0
    executable.launcher(0)(5, *addresses(x))
    executable.close()
    assert not driver.named("load_module", "launch", "unload_module")


# --- run-time checks ------------------------------------------------------------------------------


WORDS = pytest.mark.parametrize("kind", [FakeDriver, WithDeviceWords])


@WORDS
def test_a_failed_check_of_a_call_on_the_host_is_told_at_once(kind):
    _, executable = loaded(GUARDED, kind=kind)
    x, out = arrays(-1)
    assert executable.entry(packed(x, out), 1) == 1
    x[:] = 1
    assert executable.entry(packed(x, out), 1) == 0


@WORDS
@pytest.mark.parametrize("how", ["next call", "synchronize"])
def test_a_failed_check_on_a_device_is_told_without_waiting(how, kind):
    driver, executable = loaded(GUARDED, kind=kind, eager=False)
    launcher = executable.launcher(0)
    x, out = arrays(-1)
    launcher(5, *addresses(x, out))
    launcher(5, *addresses(x, out))  # has not run yet, so that nothing is known
    x[:] = 1
    message = r"^f: index out of range \(in an earlier call; a device's checks are read at the next"
    x[:] = -1
    if how == "synchronize":
        with pytest.raises(ExecutionError, match=message):
            synchronize(driver)
    else:
        driver.synchronize()
        with pytest.raises(ExecutionError, match=message):
            launcher(5, *addresses(x, out))
    x[:] = 1
    launcher(5, *addresses(x, out))
    synchronize(driver)
    assert (out == 1).all()


def test_a_failure_is_told_once_also_if_copies_of_it_are_under_way():
    driver, executable = loaded(GUARDED, kind=WithDeviceWords, eager=False)
    launcher = executable.launcher(0)
    x, out = arrays(-1)
    launcher(5, *addresses(x, out))
    driver.synchronize()
    x[:] = 1
    executable.program(0).run(5, 0, executable.program(0)._word.address, *addresses(x, out))
    executable.program(0)._word.publish(5)  # has not run yet, and would bring the old failure
    with pytest.raises(ExecutionError, match="index out of range"):
        launcher(5, *addresses(x, out))
    launcher(5, *addresses(x, out))
    synchronize(driver)
    executable.close()
    assert (driver.words, driver.memory) == (0, {})


# --- times ----------------------------------------------------------------------------------------

NAMES = [("", ""), ("double", "a"), ("plus_one", "b")]
TIMED = artifact(
    ROWS,
    TWO.manifest["launches"],
    workspace_bytes=1024,
    profile=[{"kernel": kernel, "nest": nest} for kernel, nest in NAMES],
)


@pytest.mark.parametrize("options", [{}, {"use_graph": True}, {"device_one_time_load": False}])
def test_kernels_are_timed_between_events(options):
    driver, executable = loaded(TIMED, options, eager=False)
    assert executable.profile() == []
    launcher = executable.launcher(0)
    x, out = arrays(1)
    for _ in range(3):
        launcher(5, *addresses(x, out))
    rows = executable.profile()
    assert [(row["kernel"], row["nest"]) for row in rows] == NAMES
    assert [row["calls"] for row in rows] == [3, 3, 3]
    assert [row["seconds"] for row in rows] == pytest.approx([0.006, 0.003, 0.003])
    assert [row["minimum"] for row in rows] == pytest.approx([0.002, 0.001, 0.001])
    assert (out == 3).all()
    assert driver.counts["timed"] == 9
    assert driver.events == {}


def test_times_do_not_pile_up():
    driver, executable = loaded(TIMED)
    x, out = arrays(1)
    for _ in range(600):
        executable.launcher(0)(5, *addresses(x, out))
    assert len(driver.events) <= 3 * 258
    assert executable.profile()[0]["calls"] == 600


def test_a_recording_is_not_timed():
    driver, executable = loaded(TIMED)
    launcher = executable.launcher(0)
    x, out = arrays(1)
    graph = driver.capture(0, lambda stream: launcher(stream, *addresses(x, out)))
    driver.replay(graph, 5)
    assert (out == 3).all()
    assert driver.counts["timed"] == 0
    assert executable.profile()[0]["minimum"] is None


def test_a_profile_that_does_not_fit_its_launches():
    names = [{"kernel": "", "nest": ""}]
    wrong = artifact(ROWS, TWO.manifest["launches"], workspace_bytes=1024, profile=names)
    with pytest.raises(ArtifactError, match="profile must be a row for the program and one for"):
        loaded(wrong)


# --- graphs ---------------------------------------------------------------------------------------


def test_a_graph_is_recorded_once_for_the_same_addresses():
    driver, executable = loaded(options={"use_graph": True})
    launcher = executable.launcher(0)
    x, out = arrays()
    for value in (1, 2, 3):
        x[:] = value
        launcher(5, *addresses(x, out))
        assert (out == 2 * value + 1).all()
    assert driver.counts["capture"] == 1
    assert driver.named("replay") == [("replay", 5)] * 3
    other, result = arrays(4)
    launcher(5, *addresses(other, result))
    assert (result == 9).all()
    assert driver.counts["capture"] == 2
    many = [arrays(k) for k in range(40)]
    for pair in many:
        launcher(5, *addresses(*pair))
    assert len(driver.graphs) == 16
    executable.close()
    assert not driver.graphs


def test_graphs_of_the_caller_get_plain_launches():
    x, out = arrays()
    for options in ({}, {"use_graph": True}):
        driver, executable = loaded(options=options)
        launcher = executable.launcher(0)
        launcher(5, *addresses(x, out))
        before = driver.counts["capture"]
        graph = driver.capture(0, lambda stream, f=launcher: f(stream, *addresses(x, out)))
        assert driver.counts["capture"] == before + 1
        x[:], out[:] = 5, 0
        driver.replay(graph, 5)
        assert (out == 11).all()


def test_a_single_kernel_is_no_graph():
    driver, executable = loaded(GUARDED, {"use_graph": True})
    executable.launcher(0)(5, *addresses(*arrays()))
    assert not driver.counts["capture"]


def test_a_failed_check_before_a_replay():
    source = artifact(
        [*ROWS, {"role": "status"}],
        [launch("guarded", 0, 1, 2), launch("double", 0, 1)],
        checks=["index out of range"],
    )
    driver, executable = loaded(source, {"use_graph": True})
    x, out = arrays(-1)
    launcher = executable.launcher(0)
    launcher(5, *addresses(x, out))
    with pytest.raises(ExecutionError, match="index out of range"):
        launcher(5, *addresses(x, out))
    assert driver.counts["replay"] == 1


# --- threads, memory, the end ---------------------------------------------------------------------


@pytest.mark.parametrize("host", [True, False])
def test_32_threads_at_once(host):
    driver, executable = loaded(keep_calls=False)
    start, wrong = threading.Barrier(32), []

    def work(number: int) -> None:
        start.wait()
        for k in range(20):
            x, out = arrays(number + k)
            if host:
                executable.entry(packed(x, out), 1)
            else:
                executable.launcher(0)(number % 4, *addresses(x, out))
            if not (out == 2 * (number + k) + 1).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert driver.counts["load_module"] == 1
    assert driver.counts["launch"] == 32 * 20 * 2
    executable.close()
    assert not driver.modules
    assert not driver.streams


class Quick(FakeDriver):
    """Counts launches, and nothing else."""

    launched = 0

    def prepare(self, *args):
        def run(stream):
            self.launched += 1

        return run


def test_10000_calls_keep_no_memory():
    driver = Quick({}, keep_calls=False)
    executable = DeviceExecutable(TWO, lambda: driver)
    executable.configure(CompileOptions(use_graph=False))
    launcher, (x, out) = executable.launcher(0), arrays()
    given = addresses(x, out)
    gc.collect()
    tracemalloc.start()
    try:
        launcher(5, *given)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10_000):
            launcher(5, *given)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 4096
    assert driver.launched == 2 * 10_001
    assert driver.counts["allocate"] == 1


def test_closing():
    driver, executable = loaded(GUARDED)
    x, out = arrays()
    executable.entry(packed(x, out), 1)
    executable.launcher(0)(5, *addresses(x, out))
    assert (driver.words, len(driver.streams)) == (2, 1)
    executable.close()
    executable.close()
    assert not driver.modules
    assert not driver.streams
    assert driver.words == 0
    # Whoever calls again gets the program again.
    executable.launcher(0)(5, *addresses(x, out))
    assert driver.counts["load_module"] == 2


def test_a_program_that_dies_is_unloaded_at_the_next_occasion():
    driver, executable = loaded(eager=False)
    executable.launcher(0)(5, *addresses(*arrays()))
    del executable
    gc.collect()
    assert driver.modules  # its kernels may be running
    synchronize(driver)
    assert not driver.modules


def test_a_pool_gives_blocks_again_on_their_stream():
    driver = FakeDriver({})
    pool = DevicePool(driver, 0, max_idle_bytes=4096)
    first = pool.acquire(1000, 5)
    assert first % 256 == 0
    pool.release(first, 1000, 5)
    assert pool.acquire(1000, 6) != first
    assert pool.acquire(900, 5) == first
    pool.release(first, 900, 5)
    blocks = [pool.acquire(2048, 5) for _ in range(3)]
    for block in blocks:
        pool.release(block, 2048, 5)
    assert pool.idle_bytes <= 4096
    assert driver.counts["free"] == 2
    pool.trim()
    assert pool.idle_bytes == 0


def test_a_pool_without_room_frees_what_is_idle():
    driver = FakeDriver({}, room=8192)
    pool = DevicePool(driver, 0)
    pool.release(pool.acquire(8192, 5), 8192, 5)
    pool.acquire(4096, 6)
    assert driver.counts["free"] == 1
    with pytest.raises(MemoryError, match="no room for 8192 bytes"):
        pool.acquire(8192, 5)


def test_sizes_of_blocks():
    assert [size_class(n) for n in (0, 1, 512, 513, 4096, 4097, 1 << 20, (1 << 20) + 1)] == [
        512, 512, 512, 1024, 4096, 4608, 1 << 20, (1 << 20) + (1 << 17),
    ]  # fmt: skip


def test_one_pool_per_device():
    driver = FakeDriver({}, ("v1", "v1"))
    assert pool_of(driver, 0) is pool_of(driver, 0)
    assert pool_of(driver, 0) is not pool_of(driver, 1)


def test_things_are_held_until_their_stream_has_passed():
    driver = FakeDriver({}, eager=False)
    synchronize(driver)
    driver._put(5, lambda: None)
    holding.hold(driver, 5, object())
    holding.release()
    assert holding.held_count() == 1
    synchronize(driver)
    assert holding.held_count() == 0
    assert not driver.events
