"""Device programs as functions of arrays: of a device, of the host, of other frameworks."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from c_programs import CountingArrays
from fake_driver import KIND, DeviceArray, FakeArrays, FakeDriver, artifact, launch, view
from manifest_rows import row

from polyblocks.errors import ArtifactError, ExecutionError, InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime.arrays import HOST, Device
from polyblocks.runtime.device import holding
from polyblocks.runtime.device.executable import DeviceExecutable
from polyblocks.runtime.device.exported import ExportedMemory, dlpack_type, dtype_of, tensor_in
from polyblocks.runtime.device.memory import pool_of
from polyblocks.runtime.device.program import synchronize
from polyblocks.runtime.foreign.array_packages import ArrayPackage
from polyblocks.runtime.foreign.protocol_arrays import ProtocolArrays
from polyblocks.runtime.launch import bind
from polyblocks.runtime.native.dispatch import dispatched

N = 6
ONE, OTHER = Device(KIND, 0), Device(KIND, 1)


def add(x: int, y: int, out: int) -> None:
    view(out, N)[:] = view(x, N) + view(y, N)


ADD_ROWS = [row("input", "x"), row("input", "y"), row("output", "o")]
ADD = artifact([*ADD_ROWS, {"role": "workspace", "shape": [9]}], [launch("add", 0, 1, 2)])


def bound(source=ADD, interface=None, archs=("v1", "v1"), eager=True, **settings):
    driver = FakeDriver({"add": add}, archs, eager=eager)
    executable = DeviceExecutable(source, lambda: driver)
    return driver, bind(executable, interface or FakeArrays(), blobs=source.blobs, **settings)


def on(device: Device, value: float) -> DeviceArray:
    return DeviceArray(np.full((2, 3), value, np.float32), device)


@pytest.mark.parametrize("device", [ONE, OTHER])
def test_arrays_of_one_device_are_used_in_place(device):
    driver, call = bound()
    result = call(on(device, 1), on(device, 2))
    assert result.place == device
    assert (result.values == 3).all()
    assert [c[0] for c in driver.calls if c[0] != "allocate"] == ["load_module", "launch"]
    assert driver.named("launch")[0][2:4] == (device.number, FakeArrays.current_stream)


def test_the_workspace_is_the_frameworks():
    """A graph of the framework's keeps it; the process's own pool would hand it out again."""
    asked = []

    class Arrays(FakeArrays):
        def empty(self, spec, device):
            asked.append((spec.shape, spec.dtype))
            return super().empty(spec, device)

    driver, call = bound(interface=Arrays())
    call(on(ONE, 1), on(ONE, 2))
    assert asked == [((2, 3), "float32"), ((256,), "uint8")]
    assert driver.counts["allocate"] == 0


@pytest.mark.parametrize("place", [ONE, HOST])
def test_results_in_the_order_of_the_manifest(place):
    """The same one twice, an argument as it came, and one without elements."""
    source = artifact(ADD_ROWS, [launch("add", 0, 1, 2)])
    source.manifest["results"] = [1, {"dtype": "int32", "shape": [0, 3]}, 2, 2]
    driver, call = bound(source)
    x, y = on(place, 1), on(place, 2)
    given, empty, one, again = call(x, y)
    assert given is y
    assert one is again
    assert (one.values == 3).all()
    assert (empty.values.shape, empty.values.dtype, empty.place) == ((0, 3), np.int32, place)
    assert driver.named("launch")


def test_the_result_is_there_only_after_the_stream():
    driver, call = bound(eager=False)
    result = call(on(ONE, 1), on(ONE, 2))
    driver.wait(FakeArrays.current_stream)
    assert (result.values == 3).all()


def test_arrays_of_the_host_are_transferred():
    driver, call = bound()
    result = call(on(HOST, 1), on(HOST, 2))
    assert result.place == HOST
    assert (result.values == 3).all()
    assert (driver.counts["copy_in"], driver.counts["copy_out"]) == (2, 1)


@pytest.mark.parametrize(
    "places, found",
    [
        ((HOST, ONE), "'x' on the host, 'y' on device 0"),
        ((OTHER, HOST), "'x' on device 1, 'y' on the host"),
        ((ONE, OTHER), "'x' on device 0, 'y' on device 1"),
    ],
)
def test_a_mix_is_an_error_that_names_the_arrays(places, found):
    driver, call = bound()
    with pytest.raises(
        InputError,
        match=rf"^f: the arrays are in several places: {found}; expected all on the host or all on",
    ):
        call(*(on(place, 1) for place in places))
    assert not driver.calls


def test_arrays_of_another_kind_of_device():
    _, call = bound()
    with pytest.raises(
        InputError, match="compiled for target 'fake'; its arrays are on device 3, "
    ):
        call(on(Device(99, 3), 1), on(Device(99, 3), 1))


def test_arrays_that_do_not_fit():
    _, call = bound()
    wrong = DeviceArray(np.zeros((3, 2), np.float32), ONE)
    with pytest.raises(
        InputError, match=r"^argument 2 \('y'\) of f: expected float32\[2, 3\], got"
    ):
        call(on(ONE, 1), wrong)
    with pytest.raises(InputError, match=r"^f\(x, y\) takes 2 arrays, got 1$"):
        call(on(HOST, 1))
    with pytest.raises(InputError, match=r"^f\(x, y\) takes 2 arrays, got 1$"):
        call(on(ONE, 1))


def test_alignment_that_kernels_rely_on():
    source = artifact(
        [row("input", "x") | {"alignment": 16}, row("input", "y"), row("output", "o")],
        [launch("add", 0, 1, 2)],
    )
    _, call = bound(source)
    memory = np.zeros(12, np.float32)
    start = 1 + -(memory.ctypes.data // 4) % 4
    part = memory[start : start + 6].reshape(2, 3)
    with pytest.raises(InputError, match=r"'x'.*address is not aligned to 16 bytes; copy it$"):
        call(DeviceArray(part, ONE), on(ONE, 1))
    call(on(ONE, 1), DeviceArray(part, ONE))


def test_a_library_that_expects_arrays_on_a_device():
    driver, call = bound(artifact([*ADD_ROWS], [launch("add", 0, 1, 2)], on_gpu_tensors=True))
    assert (call(on(ONE, 1), on(ONE, 2)).values == 3).all()
    message = (
        "^f is built with the option 'on_gpu_tensors' and expects its arrays on a device of target "
        "'fake'; 'x' is on the host; copy the arrays there, or build it without the option$"
    )
    with pytest.raises(InputError, match=message):
        call(on(HOST, 1), on(HOST, 2))
    assert not driver.named("copy_in")
    with pytest.raises(InputError, match="the arrays are in several places"):
        call(on(HOST, 1), on(ONE, 2))


def test_iterations():
    driver, call = bound(num_iters=5)
    call(on(ONE, 1), on(ONE, 2))
    assert driver.counts["launch"] == 5


def test_the_order_of_the_call_and_stored_inputs():
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows = [
        {"role": "workspace", "shape": [8]},
        row("input", "w") | {"stored": "weight.bin"},
        row("input", "y"),
        row("input", "x"),
        row("output", "o"),
    ]
    made = artifact(rows, [launch("add", 1, 3, 4)], call=[3, 2])
    made.blobs["weight.bin"] = weight.tobytes()
    driver, call = bound(made)
    for place in (HOST, ONE, ONE, OTHER):
        np.testing.assert_array_equal(call(on(place, 1), on(place, 50)).values, weight + 1)
    # Stored inputs go to a device once.
    assert driver.counts["copy_in"] == 3 + 2
    with pytest.raises(InputError, match=r"^f\(x, y\) takes 2 arrays, got 0"):
        call()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"call": [0]}, r"call must order \[0, 1\], not \[0\]"),
        ({"call": "x"}, r"call must order \[0, 1\], not 'x'"),
    ],
)
def test_a_call_that_does_not_fit(change, message):
    made = artifact([row("input", "x"), row("input", "y")], [], **change)
    with pytest.raises((ArtifactError, ValueError), match=message):
        bound(made)


def test_stored_inputs_that_are_not_there():
    made = artifact([row("input", "x") | {"stored": "w"}], [])
    with pytest.raises(ArtifactError, match="no contents of argument 0 in blob 'w'"):
        bound(made)


# --- memory of ours for frameworks without streams and allocators ---------------------------------


class HostDriver(FakeDriver):
    """Its devices' memory is the host's, also by its name, so that NumPy can take it over."""

    device_kinds = (1,)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_memory_goes_to_a_framework_and_comes_back(dtype):
    driver = HostDriver({})
    spec = ArraySpec((2, 3), dtype, (1, 2))
    memory = ExportedMemory(driver, Device(1, 0), spec, 5)
    address = memory.address
    assert memory.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(memory)
    assert (array.shape, array.dtype.name, array.ctypes.data) == ((2, 3), dtype, address)
    assert array.strides == (array.itemsize, 2 * array.itemsize)
    del memory
    gc.collect()
    assert pool_of(driver, 0).idle_bytes == 0
    del array
    gc.collect()
    assert pool_of(driver, 0).idle_bytes == 512
    assert pool_of(driver, 0).acquire(1, 5) == address


def test_a_consumer_waits_for_the_stream():
    driver = HostDriver({})
    memory = ExportedMemory(driver, Device(1, 0), ArraySpec.contiguous((2,), "float32"), 5)
    for stream, ordered in ((None, 1), (9, 9), (-1, None), (5, None)):
        driver.calls.clear()
        capsule = memory.__dlpack__(stream=stream)
        expected = [("order", 5, ordered)] if ordered else []
        assert driver.named("order") == expected
        assert tensor_in(capsule) == (memory.address, Device(1, 0), memory.spec)
        del capsule  # nobody took it


def test_dlpack_types():
    for dtype in DTYPES:
        assert dtype_of(*dlpack_type(dtype)) == dtype
    assert dtype_of(9, 8) is None


class Owner:
    """An array of a package that nobody knows, with streams of its own."""

    def __init__(self, values: np.ndarray, kind: int = KIND) -> None:
        self.values = values
        self.kind = kind
        self.told: list[int] = []

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        if stream is not None and stream != -1:
            self.told.append(stream)
        return self.values.__dlpack__()


class Shown:
    """An array that speaks a vendor's protocol only."""

    def __init__(self, values: np.ndarray, stream: int | None = None) -> None:
        self.values = values
        self.__fake_array_interface__ = values.__array_interface__ | {"stream": stream}


class Adopting(ProtocolArrays):
    """Takes memory as NumPy would if the fake device were the host."""

    def adopt(self, memory):
        memory.device = Device(1, 0)
        return np.from_dlpack(memory)


@pytest.mark.parametrize("kind", [Owner, Shown])
def test_arrays_that_are_known_by_protocols(kind):
    driver = FakeDriver({"add": add}, eager=False)
    executable = DeviceExecutable(ADD, lambda: driver)
    interface = Adopting(ArrayPackage("numpy", None), driver.array_protocols, executable)
    call = bind(executable, interface)
    x, y = (np.full((2, 3), n, np.float32) for n in (1, 2))
    given = (Owner(x), Owner(y)) if kind is Owner else (Shown(x, 8), Shown(y))
    result = call(*given)
    assert driver.named("launch")[0][3] == driver.default_stream
    if kind is Owner:
        assert [each.told for each in given] == [[1], [1]]
    else:
        assert ("order", 8, 1) in driver.calls
    # What is read lives until the stream has passed.
    assert holding.held_count() == 1
    synchronize(driver)
    assert holding.held_count() == 0
    assert (result == 3).all()


class Both(Shown):
    """An array that also says where it is."""

    def __init__(self, values: np.ndarray, stream: int | None = None, **more) -> None:
        super().__init__(values, stream)
        self.place = KIND, 0
        self.__fake_array_interface__ |= {"version": 3, **more}

    def __dlpack_device__(self):
        return self.place


@pytest.fixture
def checks(monkeypatch) -> list[str]:
    """Names of the arguments that were checked."""
    from polyblocks.runtime import slots

    seen: list[str] = []
    plain = slots.check

    def check(interface, slot, *rest):
        seen.append(slot.name)
        plain(interface, slot, *rest)

    monkeypatch.setattr(slots, "check", check)
    return seen


def of_protocols(source=ADD, **settings):
    driver = FakeDriver({"add": add}, ("v1", "v1"), **settings)
    executable = DeviceExecutable(source, lambda: driver)
    return driver, bind(
        executable,
        Adopting(ArrayPackage("numpy", None), driver.array_protocols, executable),
        blobs=source.blobs,
    )


def full(value: float, shape=(2, 3), dtype=np.float32) -> np.ndarray:
    return np.full(shape, value, dtype)


def test_arrays_are_checked_when_something_of_them_has_changed(checks):
    driver, call = of_protocols()
    x, y = Both(full(1)), Both(full(2))
    for _ in range(3):
        assert (call(x, y) == 3).all()
    assert checks == ["x", "y"]
    other = Both(full(5))
    assert (call(other, y) == 7).all(), "at another address"
    assert checks == ["x", "y"]
    elsewhere = Both(full(1))
    elsewhere.place = KIND, 1
    wrong = {
        r"\('x'\).*expected float32\[2, 3\], got float32\[3, 2\]": Both(full(1, (3, 2))),
        r"\('x'\).*got int32\[2, 3\]; convert": Both(full(1, dtype=np.int32)),
        r"\('x'\).*expected contiguous elements, got strides \[1, 2\]": Both(full(1, (3, 2)).T),
        r"\('x'\).*not aligned to its elements": Both(
            np.frombuffer(bytearray(25), np.float32, 6, offset=1).reshape(2, 3)
        ),
        "several places: 'x' on device 1, 'y' on device 0": elsewhere,
    }
    for message, array in wrong.items():
        with pytest.raises(InputError, match=message):
            call(array, y)
    with pytest.raises(InputError, match="takes 2 arrays, got 1"):
        call(y)
    x.__fake_array_interface__ = Both(full(1, (3, 2))).__fake_array_interface__
    with pytest.raises(InputError, match=r"got float32\[3, 2\]"):
        call(x, y)
    assert (call(other, y) == 7).all()
    assert len(driver.named("launch")) + 2 * len(driver.named("replay")) >= 5


def test_arrays_that_speak_dlpack_alone_are_read_once_a_call(checks):
    driver, call = of_protocols()
    reads: list[int] = []

    class Counted(Owner):
        def __dlpack__(self, stream=None):
            reads.append(stream)
            return super().__dlpack__(stream)

    x, y = Counted(full(1)), Counted(full(2))
    for _ in range(3):
        reads.clear()
        assert (call(x, y) == 3).all()
    assert checks == ["x", "y"]
    assert reads == [-1, -1, driver.default_stream, driver.default_stream]
    assert (call(Counted(full(4)), y) == 6).all()
    assert checks == ["x", "y"]
    for wrong in (
        Counted(full(1, (3, 2))),
        Counted(full(1, dtype=np.int32)),
        Counted(full(1, (3, 2)).T),
    ):
        with pytest.raises(InputError, match=r"argument 1 \('x'\) of f: expected"):
            call(wrong, y)
    assert (call(x, y) == 3).all()


def test_what_is_updated_is_checked_at_new_addresses(checks):
    source = artifact(
        [row("input", "x", updates=0), row("input", "y"), row("output", "o")],
        [launch("add", 0, 1, 2)],
    )
    _, call = of_protocols(source)
    x, y = full(1), full(2)
    for _ in range(2):
        call(Both(x), Both(y))
    assert checks == ["x", "y"]
    with pytest.raises(InputError, match="'x' is updated in place and shares memory with 'y'"):
        call(Both(x), Both(x))
    frozen = full(3)
    frozen.flags.writeable = False
    with pytest.raises(InputError, match="updated in place, but cannot be written"):
        call(Both(frozen), Both(y))


def test_streams_of_arrays_are_waited_for_once_each():
    driver, call = of_protocols(eager=False)
    x, y = full(1), full(2)
    for _ in range(2):
        driver.calls.clear()
        call(Both(x, 8), Both(y, 8))
        assert driver.named("order") == [("order", 8, 1)]
    driver.calls.clear()
    call(Both(x, 8), Both(y, 9))
    assert sorted(driver.named("order")) == [("order", 8, 1), ("order", 9, 1)]
    driver.calls.clear()
    call(Both(x), Both(y, driver.default_stream))
    assert driver.named("order") == []
    synchronize(driver)


def test_tensors_are_equal_to_what_was_checked():
    torch = pytest.importorskip("torch")
    from polyblocks_torch.launch.arrays import TorchArrays

    arrays = TorchArrays()
    x = torch.ones(4, 4)

    def state(tensor):
        addresses, states = arrays.readings([tensor])
        assert addresses == [tensor.data_ptr()]
        return states

    assert state(x) == state(torch.zeros(4, 4)) == state(x.clone())
    graded = torch.ones(4, 4, requires_grad=True)
    with torch.no_grad():
        assert state(x) == state(graded)
    conjugate = torch.ones(4, 4, dtype=torch.complex64)
    others = [
        x.T, x[:, ::2], x.double(), x[:2], graded, conjugate, conjugate.conj(),
        conjugate.conj().imag,
    ]  # fmt: skip
    every = [state(each) for each in [x, *others]]
    assert all(one != other for k, one in enumerate(every) for other in every[:k])
    x.untyped_storage().resize_(0)
    assert arrays.readings([x]) is None


def test_protocols_that_do_not_fit():
    driver = FakeDriver({})
    executable = DeviceExecutable(ADD, lambda: driver)
    arrays = ProtocolArrays(ArrayPackage("numpy", None), driver.array_protocols, executable)
    big = np.ones(2, ">f4")
    with pytest.raises(
        InputError, match="expected one of the dtypes float64, .*no negative strides"
    ):
        arrays.describe(Shown(big))
    assert arrays.describe(Shown(np.ones((2, 3), bool).T)) == ArraySpec((3, 2), "bool", (1, 3))
    with pytest.raises(InputError, match="no negative strides"):
        arrays.describe(Shown(np.ones(4)[::-1]))
    with pytest.raises(InputError, match="float is no array that speaks DLPack"):
        arrays.describe(1.0)
    assert not arrays.is_array(1.0)
    frozen = np.ones(2)
    frozen.flags.writeable = False
    assert not arrays.is_writable(Shown(frozen))
    assert arrays.is_writable(Shown(np.ones(2)))
    with pytest.raises(InputError, match=r"Shown cannot be copied to device \(1, 0\)"):
        arrays.transfer(Shown(frozen), HOST)


def test_an_interface_without_devices():
    class Plain(FakeArrays):
        def allocates(self, device):
            return device == HOST

    _, call = bound(interface=Plain())
    with pytest.raises(InputError, match=r"Plain has no arrays on device \(12, 0\)"):
        call(on(ONE, 1), on(ONE, 1))


def test_an_error_of_the_driver_reaches_the_caller():
    def refuse(*args):
        raise ExecutionError("the launch failed")

    executable = DeviceExecutable(ADD, lambda: FakeDriver({"add": refuse}))
    call = bind(executable, FakeArrays())
    for place in (HOST, ONE):
        with pytest.raises(ExecutionError, match="the launch failed"):
            call(on(place, 1), on(place, 1))


# --- arrays of the host, in machine code ----------------------------------------------------------


def both(source=ADD, kernels=None, **settings):
    """The driver, the interface, and the program in Python and in machine code."""
    driver = FakeDriver(kernels or {"add": add})
    executable = DeviceExecutable(source, lambda: driver)
    interface = CountingArrays()
    slow = bind(executable, interface, blobs=source.blobs, **settings)
    return driver, interface, slow, dispatched(slow, lambda *_: slow)


def outcome(call, *arrays, **named):
    try:
        return call(*arrays, **named).tobytes()
    except Exception as error:
        return type(error), str(error)


def test_numpy_arrays_are_read_in_machine_code():
    driver, interface, slow, call = both(num_iters=2)
    y = full(2)
    for number in range(5):
        described = interface.described
        assert (call(full(number), y) == number + 2).all()
        assert (interface.described == described) == (number > 1)
    assert driver.counts["launch"] + driver.counts["replay"] == 10
    frozen = full(1)
    frozen.flags.writeable = False
    for wrong in (
        (y,), (y, full(1, (3, 2))), (full(1, dtype=np.int32), y), (full(1, (3, 2)).T, y), (y, None),
    ):  # fmt: skip
        assert outcome(call, *wrong) == outcome(slow, *wrong)
        assert outcome(call, *wrong)[0] is InputError
    described = interface.described
    assert (call(frozen, y) == 3).all()
    assert interface.described == described


def test_errors_on_the_way_to_a_device_reach_the_caller_of_machine_code():
    answers = iter([None] * 3 + [ExecutionError("the launch failed"), MemoryError("no room"), None])

    def kernel(*operands):
        error = next(answers)
        if error is not None:
            raise error
        add(*operands)

    _, interface, _, call = both(kernels={"add": kernel})
    x, y = full(1), full(2)
    for _ in range(3):
        call(x, y)
    described = interface.described
    with pytest.raises(ExecutionError, match="^the launch failed$"):
        call(x, y)
    with pytest.raises(MemoryError, match="^no room$"):
        call(x, y)
    assert (call(x, y) == 3).all()
    assert interface.described == described


def test_failed_checks_of_host_arrays_in_machine_code():
    def guarded(x: int, out: int, status: int) -> None:
        view(out, N)[:] = view(x, N)
        if view(x, N)[0] < 0:
            view(status, 1, np.int32)[0] = 1

    source = artifact(
        [row("input", "x"), row("output", "o"), {"role": "status"}],
        [launch("guarded", 0, 1, 2)],
        checks=["x is negative"],
    )
    _, interface, _, call = both(source, {"guarded": guarded})
    for _ in range(3):
        call(full(1))
    described = interface.described
    with pytest.raises(ExecutionError, match="^f: x is negative$"):
        call(full(-1))
    assert (call(full(4)) == 4).all()
    assert interface.described == described


def test_updates_of_host_arrays_in_machine_code():
    source = artifact(
        [row("input", "x", updates=0), row("input", "y"), row("output", "o")],
        [launch("add", 0, 1, 2)],
    )
    _, _, slow, call = both(source)
    for _ in range(3):
        call(full(1), full(2))
    x = full(1)
    assert "shares memory" in outcome(slow, x, x)[1]
    assert outcome(call, x, x) == outcome(slow, x, x)
    x.flags.writeable = False
    assert outcome(call, x, full(2)) == outcome(slow, x, full(2))


def test_stored_inputs_with_host_arrays_in_machine_code():
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = artifact(
        [row("input", "w") | {"stored": "weight.bin"}, row("input", "x"), row("output", "o")],
        [launch("add", 0, 1, 2)],
    )
    made.blobs["weight.bin"] = weight.tobytes()
    _, interface, _, call = both(made)
    for number in range(4):
        described = interface.described
        np.testing.assert_array_equal(call(full(number)), weight + number)
    assert interface.described == described
