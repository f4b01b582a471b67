"""Programs for GPUs in C: a stand-in for the driver runs their kernels in the simulator."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.c_libraries import Library
from tests.support.stand_in_driver import (
    ILLEGAL_ADDRESS,
    OUT_OF_MEMORY,
    DriverLibrary,
    StandIn,
    for_stand_in,
)
from tests.support.sweeps import sweep

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import join
from polyblocks.errors import InputError, TargetError
from polyblocks.options import CompileOptions
from polyblocks.registry.honoured_options import describe_target
from polyblocks.runtime.device.code import choose
from polyblocks.simt.simulated import chip_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="drivers are built with gcc")

OK, NULL_POINTER, WRONG_SIZE, MISALIGNED, OVERLAP, NO_MEMORY = range(0, -6, -1)
UNSUPPORTED_GPU, NO_DEVICE, DRIVER_ERROR = range(-6, -9, -1)
#: Target -> architectures, and the form of its code.
TARGETS = {"nvgpu": (("sm_80", "sm_90a"), "ptx"), "amdgpu": (("gfx1100", "gfx1201"), "hsaco")}


def built(function: Any, given: list[Any], target: str, arch: str, **more: Any) -> Artifact:
    """A program whose code the stand-in runs."""
    options = {"target": target, "arch": arch, "simulate": True}
    return for_stand_in(polyblocks.aot(function, given, options), TARGETS[target][1], **more)


def chips(target: str, *archs: str) -> dict[str, Any]:
    """What the simulator must know of them."""
    return {
        arch: chip_of(describe_target(CompileOptions(target=target, arch=arch))) for arch in archs
    }


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DriverLibrary]:
    return {target: DriverLibrary(target, tmp_path_factory.mktemp(target)) for target in TARGETS}


@pytest.fixture
def connect(drivers: dict[str, DriverLibrary]) -> Iterator[Callable[..., StandIn]]:
    """Let a target's driver have devices of these architectures."""

    def make(target: str, *archs: str, **more: Any) -> StandIn:
        import importlib

        semantics = importlib.import_module(f"polyblocks_{target}.simt").SEMANTICS
        known = chips(target, *[arch for arch in archs if arch in TARGETS[target][0]])
        described = {arch: known.get(arch) for arch in archs}
        drivers[target].stand_in = StandIn(semantics, described, **more)
        return drivers[target].stand_in

    yield make
    for driver in drivers.values():
        errors, DriverLibrary.errors[:] = list(DriverLibrary.errors), []
        assert errors == []
        driver.stand_in = None


#: Tests without it take one target, and both where ``slow`` is selected.
FOR_BOTH = pytest.mark.parametrize("target", TARGETS, indirect=True)


@pytest.fixture(params=sweep(TARGETS, "nvgpu"))
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- arrays of the host ------------------------------------------------------------------------


def double_and_more(x, y):
    return torch.tanh(x * 2) + y


@pytest.fixture(scope="module")
def pointwise() -> Callable[[str], Artifact]:
    made: dict[str, Artifact] = {}

    def build(target: str) -> Artifact:
        if target not in made:
            given = [torch.rand(33, 5), torch.rand(5)]
            made[target] = built(double_and_more, given, target, TARGETS[target][0][0])
        return made[target]

    return build


@FOR_BOTH
def test_gpu_pointwise(target, pointwise, connect, tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)  # with optimizations
    arch = TARGETS[target][0][0]
    stand_in = connect(target, arch)
    library = Library(pointwise(target), tmp_path)
    assert f"compiled by PolyBlocks {polyblocks.__version__} for {arch}" in library.header
    x, y = torch.rand(33, 5), torch.rand(5)
    out = np.zeros((33, 5), np.float32)
    for factor in (1, 3):
        assert library((x * factor).numpy(), y.numpy(), out) == OK, library.error()
        np.testing.assert_allclose(out, double_and_more(x * factor, y), rtol=1e-5, atol=1e-6)
    assert library.error() == ""
    assert library.arch() == arch
    launch = pointwise(target).manifest["launches"][0]
    assert stand_in.launches[0] == (
        launch["kernel"], tuple(launch["grid"]), tuple(launch["block"]), launch["shared_bytes"]
    )  # fmt: skip
    assert stand_in.current is None or target == "amdgpu", "the thread's device is as before"
    # Loaded once, and one block of memory and one stream for calls one after another.
    assert len(stand_in.modules) == len(stand_in.memory) == len(stand_in.streams) == 1
    assert library.release() == OK
    assert not stand_in.modules and not stand_in.memory and not stand_in.streams  # noqa: PT018
    assert library(x.numpy(), y.numpy(), out) == OK, "it is loaded again"
    np.testing.assert_allclose(out, double_and_more(x, y), rtol=1e-5, atol=1e-6)


def test_gpu_matmul_with_a_stored_array(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    stand_in = connect(target, arch)
    torch.manual_seed(0)
    layer = torch.nn.Linear(24, 40).eval()
    x = torch.rand(16, 24)
    library = Library(built(layer, [x], target, arch), tmp_path)
    out = np.zeros((16, 40), np.float32)
    with torch.no_grad():
        for factor in (1, 2):
            assert library((x * factor).numpy(), out) == OK, library.error()
            np.testing.assert_allclose(out, layer(x * factor).numpy(), rtol=1e-4, atol=1e-5)
    # The weights were put there once, and what a call needs once as well.
    assert stand_in.calls.count("allocate") == 2 + 1


# What the sources of a library have for themselves.
@pytest.mark.each_choice
@pytest.mark.parametrize(
    "name",
    sweep(["stored", "arrays", "slots_0", "ROW", "run", "check"], "slots_0", "ROW", "run"),
)
def test_gpu_program_of_any_name(target, pointwise, connect, tmp_path, name):
    connect(target, TARGETS[target][0][0])
    library = Library(pointwise(target), tmp_path, name)
    x, y = torch.rand(33, 5), torch.rand(5)
    out = np.zeros((33, 5), np.float32)
    assert library(x.numpy(), y.numpy(), out) == OK, library.error()
    np.testing.assert_allclose(out, double_and_more(x, y), rtol=1e-5, atol=1e-6)


#: A matrix for which these steps are not one kernel, and its elements.
STEPS = (128, 64)
COUNT = 8192


def several_steps(x):
    return torch.cumsum((x @ x.T).sum(0), 0)[:, None] + x, x.sum()


def test_gpu_reductions_with_a_workspace(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    stand_in = connect(target, arch)
    x = torch.rand(*STEPS)
    artifact = built(several_steps, [x], target, arch)
    assert artifact.manifest["workspace_bytes"]
    library = Library(artifact, tmp_path)
    one, two = np.zeros(STEPS, np.float32), np.zeros((), np.float32)
    assert library(x.numpy(), one, two) == OK, library.error()
    for got, wanted in zip((one, two), several_steps(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4)
    assert [each[0] for each in stand_in.launches] == [
        launch["kernel"] for launch in artifact.manifest["launches"]
    ]


def updating(x, y):
    x.mul_(2)
    return x, y + 1, y[:0]


def test_gpu_updates_in_place(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    connect(target, arch)
    artifact = built(updating, [torch.rand(8), torch.rand(3)], target, arch)
    library = Library(artifact, tmp_path)
    x, y, out = np.arange(8, dtype=np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
    assert library(x, y, out) == OK, library.error()
    np.testing.assert_array_equal(x, 2 * np.arange(8))
    np.testing.assert_array_equal(out, y + 1)


class Counting(torch.nn.Module):
    """Two weights that are read, and one that is updated."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(self.linear(x)) * self.calls[0]


def with_weights(target: str, **more: Any) -> Artifact:
    options = {"target": target, "arch": TARGETS[target][0][0], "simulate": True}
    artifact = polyblocks.aot(Counting().eval(), [torch.rand(5, 8)], options, weights="arguments")
    return for_stand_in(artifact, TARGETS[target][1], **more)


@FOR_BOTH
def test_gpu_weights_are_bound_once(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    stand_in = connect(target, arch)
    library = Library(with_weights(target), tmp_path)
    names = [str(name) for name in library.weight_names(3)]
    assert sorted(names) == ["calls", "linear.bias", "linear.weight"]
    model, x, out = Counting(), torch.rand(5, 8), np.zeros((5, 8), np.float32)
    weights = {name: held.detach().numpy() for name, held in model.state_dict().items()}
    given = [weights[name] for name in names]
    status, bound = library.bind(given)
    assert status == OK, library.error()
    assert not stand_in.memory, "nothing is copied before the first call"

    def run() -> None:
        assert library.run(bound, x.numpy(), out) == OK, library.error()
        inner = np.tanh(x.numpy() @ weights["linear.weight"].T + weights["linear.bias"])
        np.testing.assert_allclose(out, inner * weights["calls"][0], rtol=1e-4, atol=1e-5)

    for turn in range(3):
        before = stand_in.calls.count("copy_in")
        run()
        # The argument, and what the program updates; the other weights in the first call.
        assert stand_in.calls.count("copy_in") - before == (4 if turn == 0 else 2)
    assert (weights["calls"] == 3).all()
    assert library.release() == OK
    assert not stand_in.memory, "copies are given up, too"
    run()
    assert library.unbind(bound) == OK
    # What calls with all arrays need is there besides.
    assert library(x.numpy(), *given, out) == OK, library.error()
    assert library.run(None, x.numpy(), out) == NULL_POINTER
    assert library.bind(given, [1, 2, 3])[0] == WRONG_SIZE
    assert library.release() == OK
    assert not stand_in.memory


def test_gpu_weights_without_memory(target, connect, tmp_path):
    stand_in = connect(target, TARGETS[target][0][0], room=300)
    library = Library(with_weights(target), tmp_path)
    weights = {name: held.detach().numpy() for name, held in Counting().state_dict().items()}
    given = [weights[str(name)] for name in library.weight_names(3)]
    status, bound = library.bind(given)
    assert status == OK
    x, out = np.ones((5, 8), np.float32), np.zeros((5, 8), np.float32)
    assert library.run(bound, x, out) == NO_MEMORY
    stand_in.room = 100000
    assert library.run(bound, x, out) == OK, library.error()
    assert library.unbind(bound) == OK


def test_gpu_bound_weights_on_the_device(target, connect, tmp_path):
    stand_in = connect(target, TARGETS[target][0][0])
    stand_in.current = 0
    library = Library(with_weights(target, on_gpu_tensors=True), tmp_path)
    assert library.arch()
    model, x, out = Counting(), torch.rand(5, 8), np.zeros((5, 8), np.float32)
    weights = {name: held.detach().numpy() for name, held in model.state_dict().items()}
    given = [weights[str(name)] for name in library.weight_names(3)]
    places = [stand_in.upload(each) for each in given]
    status, bound = library.bind(places, [each.size for each in given])
    assert status == OK, library.error()
    addresses = [stand_in.upload(x.numpy()), stand_in.upload(out)]
    with torch.no_grad():
        for _ in range(2):
            assert library.run_on_stream(bound, 0, addresses, [40, 40]) == OK, library.error()
            assert library.synchronize() == OK
            got = stand_in.download(addresses[1], out)
            np.testing.assert_allclose(got, model(x).numpy(), rtol=1e-4, atol=1e-5)
    updated = places[[str(name) for name in library.weight_names(3)].index("calls")]
    assert library.run_on_stream(bound, 0, [updated, addresses[1]], [40, 40]) == OVERLAP
    assert library.unbind(bound) == OK


TABLE = torch.arange(21, dtype=torch.float32).reshape(7, 3)


def looked_up(i):
    return TABLE[i]


@FOR_BOTH
def test_gpu_checks_of_the_program(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    connect(target, arch)
    library = Library(built(looked_up, [torch.zeros(4, dtype=torch.int64)], target, arch), tmp_path)
    out = np.zeros((4, 3), np.float32)
    for wrong in (False, True, False):
        indices = np.array([0, 7 if wrong else 6, 2, 2])
        assert library(indices, out) == (1 if wrong else OK), library.error()
        if wrong:
            assert "out of" in library.error() or "index" in library.error()
            assert f" *   1: {library.error()}" in library.header
        else:
            np.testing.assert_array_equal(out, TABLE.numpy()[indices])
            assert library.error() == ""


def test_gpu_calls_of_several_threads_at_once(pointwise, connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    library = Library(pointwise("nvgpu"), tmp_path)
    x, y = torch.rand(33, 5), torch.rand(5)
    failed: list[Any] = []
    start = threading.Barrier(3)

    def work(factor: int) -> None:
        own, expected = (x * factor).numpy(), double_and_more(x * factor, y).numpy()
        start.wait()
        for _ in range(8):
            out = np.zeros((33, 5), np.float32)
            status = library(own, y.numpy(), out)
            if status or not np.allclose(out, expected, rtol=1e-5, atol=1e-6):
                failed.append((factor, status, library.error()))
        if library(own, y.numpy(), out, counts=[165, 5, 7]) != WRONG_SIZE:
            failed.append("size")
        if "got 7" not in library.error():
            failed.append(library.error())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert library.error() == "", "what one thread does wrong, others do not see"
    assert len(stand_in.modules) == 1
    assert 1 <= len(stand_in.streams) == len(stand_in.memory) <= 3


# --- arrays on the device ----------------------------------------------------------------------


@FOR_BOTH
def test_gpu_arrays_on_the_device(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    stand_in = connect(target, arch)
    stand_in.current = 0
    x = torch.rand(*STEPS)
    library = Library(built(several_steps, [x], target, arch, on_gpu_tensors=True), tmp_path)
    assert "program(\n    void *stream,\n    const float *x,\n    size_t x_count," in library.header
    for named in (True, False):
        place = ctypes.c_uint64()
        if named:
            stand_in.create_stream(ctypes.addressof(place), 1)
        stream = place.value
        one, two = np.zeros(STEPS, np.float32), np.zeros((), np.float32)
        addresses = [stand_in.upload(a) for a in (x.numpy(), one, two)]
        before = set(stand_in.memory)
        assert library.arch() == arch, "it is loaded"
        waits = stand_in.calls.count("wait")
        assert library.on_stream(stream, addresses, [COUNT, COUNT, 1]) == OK, library.error()
        assert stand_in.calls.count("wait") == waits, "a call waits for nothing"
        np.testing.assert_array_equal(stand_in.download(addresses[1], one), one)
        assert set(stand_in.memory) > before, "its workspace"
        assert library.synchronize(stream) == OK, library.error()
        assert set(stand_in.memory) == before
        for got, wanted, like in zip(addresses[1:], several_steps(x), (one, two), strict=True):
            np.testing.assert_allclose(stand_in.download(got, like), wanted, rtol=1e-4)
    assert "copy_out" not in stand_in.calls
    assert stand_in.current == 0


def test_gpu_checks_are_told_later_where_arrays_are_on_the_device(target, connect, tmp_path):
    arch = TARGETS[target][0][0]
    stand_in = connect(target, arch)
    stand_in.current = 0
    artifact = built(
        looked_up, [torch.zeros(4, dtype=torch.int64)], target, arch, on_gpu_tensors=True
    )
    library = Library(artifact, tmp_path)
    out = np.zeros((4, 3), np.float32)
    right, wrong = (np.array([0, last, 2, 2]) for last in (6, 7))
    addresses = {key: stand_in.upload(a) for key, a in (("r", right), ("w", wrong), ("o", out))}

    def call(which: str) -> int:
        return library.on_stream(0, [addresses[which], addresses["o"]], [4, 12])

    # By the function that waits.
    assert call("w") == OK, library.error()
    assert library.synchronize() == 1
    assert library.error().endswith("(in an earlier call)")
    assert "index" in library.error() or "out of" in library.error()
    assert library.synchronize() == OK
    # By the next call, which runs nothing; the one behind it does.
    assert call("w") == OK
    stand_in.wait(0)
    launches = len(stand_in.launches)
    assert call("r") == 1
    assert len(stand_in.launches) == launches
    assert call("r") == OK, library.error()
    assert library.synchronize() == OK
    np.testing.assert_array_equal(stand_in.download(addresses["o"], out), TABLE.numpy()[right])
    assert library.release() == OK
    assert not stand_in.pinned
    assert len(stand_in.memory) == 3, "what the caller has"


def test_gpu_alignment_of_arrays(connect, tmp_path):
    """On the device as kernels want it; of arrays of the host as C aligns them."""
    x = torch.rand(1024)
    artifact = built(lambda x: x + 1, [x], "nvgpu", "sm_80")
    artifact.manifest["arguments"][0]["alignment"] = 16
    stand_in = connect("nvgpu", "sm_80")
    there = for_stand_in(artifact, "ptx", on_gpu_tensors=True)
    library = Library(there, tmp_path, "there")
    address = stand_in.upload(np.zeros(1025, np.float32)), stand_in.upload(x.numpy())
    assert library.on_stream(0, [address[0] + 4, address[1]], [1024, 1024]) == MISALIGNED
    assert library.error() == "there: argument 'x' must be aligned to 16 bytes"
    here = Library(artifact, tmp_path, "here")
    given, out = np.arange(1025, dtype=np.float32)[1:], np.zeros(1024, np.float32)
    assert here(given, out) == OK, here.error()
    np.testing.assert_array_equal(out, given + 1)


# --- which code --------------------------------------------------------------------------------


class Ranking:
    """As much of a driver as chooses code."""

    def __init__(self, target: str, arch: str) -> None:
        import importlib

        module = importlib.import_module(f"polyblocks_{target}.driver")
        made = module.CudaDriver if target == "nvgpu" else module.HipDriver
        self.driver = made.__new__(made)
        number = arch.removeprefix("sm_").rstrip("af")
        if target == "nvgpu":
            self.driver._capability = lambda device: (int(number[:-1]), int(number[-1]))
        else:
            self.driver._properties = lambda device: ("Chip", arch)

    def rank(self, arch: str, form: str, device: int) -> int | None:
        found: int | None = self.driver.rank(arch, form, device)
        return found

    def device_name(self, device: int) -> str:
        return "Chip"


def test_gpu_picks_the_best_code(connect, tmp_path):
    """Device by device as ``polyblocks.load`` does, and tells where there is none."""
    given = [torch.rand(9)]
    every = {arch: built(torch.neg, given, "nvgpu", arch) for arch in TARGETS["nvgpu"][0]}
    base = every["sm_80"]
    text = base.blobs["kernels.sm_80.ptx"]

    def like(arch: str, *forms: str) -> Artifact:
        blobs = {name: data for name, data in base.blobs.items() if "kernels" not in name}
        code = {f"kernels.{arch}.{form}": text for form in forms}
        return Artifact({**base.manifest, "arch": arch}, {**blobs, **code})

    devices = ["sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"]
    for number, files in enumerate(
        (
            {"sm_80": ("ptx", "cubin"), "sm_86": ("cubin",), "sm_90a": ("ptx",)},
            {"sm_75": ("cubin",), "sm_89": ("ptx",), "sm_100f": ("ptx",), "sm_100a": ("cubin",)},
            {"sm_100f": ("cubin",), "sm_103a": ("ptx",)},
        )
    ):
        artifact = join([like(arch, *forms) for arch, forms in files.items()])
        stand_in = connect("nvgpu", *devices)
        for arch in devices:
            stand_in.chips[arch] = chips("nvgpu", "sm_80")["sm_80"]
        library = Library(artifact, tmp_path / str(number))
        for device, arch in enumerate(devices):
            stand_in.current = device
            try:
                choose(artifact, Ranking("nvgpu", arch), device)  # type: ignore[arg-type]
            except TargetError:
                assert library.arch() is None
                x, out = np.ones(9, np.float32), np.zeros(9, np.float32)
                assert library(x, out) == UNSUPPORTED_GPU
                assert library.error() == (
                    f"program: the library has code for {', '.join(files)}; device {device} is "
                    f"Chip {device} ({arch}); compile it for that"
                )
                continue
            ranks = {
                (found, each): code
                for each, forms in files.items()
                for code in forms
                if (found := Ranking("nvgpu", arch).rank(each, code, 0)) is not None
            }
            assert library.arch() == min(ranks)[1], (arch, ranks)


@FOR_BOTH
def test_gpu_code_of_each_architecture(target, connect, tmp_path):
    """Two devices of one process, each with its own code and plan."""
    archs = TARGETS[target][0]
    x = torch.rand(*STEPS)
    artifact = join([built(several_steps, [x], target, arch) for arch in archs])
    stand_in = connect(target, *archs)
    library = Library(artifact, tmp_path)
    for device, arch in enumerate(archs):
        stand_in.current = device
        one, two = np.zeros(STEPS, np.float32), np.zeros((), np.float32)
        assert library(x.numpy(), one, two) == OK, library.error()
        np.testing.assert_allclose(one, several_steps(x)[0], rtol=1e-4)
        assert library.arch() == arch
        assert stand_in.current == device
    assert sorted(device for device, _ in stand_in.modules.values()) == [0, 1]


def test_gpu_machine_code_is_in_the_library(tmp_path):
    options = {"target": "amdgpu", "arch": "gfx1100", "on_gpu_tensors": True}
    artifact = polyblocks.aot(torch.neg, [torch.rand(9)], options)
    library, header, _ = polyblocks.write_library(artifact, tmp_path)
    assert artifact.blobs["kernels.gfx1100.hsaco"] in library.read_bytes()
    assert "Put the program on a stream (hipStream_t; NULL: the default" in header.read_text()


# --- errors ------------------------------------------------------------------------------------


def test_gpu_wrong_calls_give_an_error_code(pointwise, connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    library = Library(pointwise("nvgpu"), tmp_path)
    x, y, out = np.ones(165, np.float32), np.ones(5, np.float32), np.ones(166, np.float32)
    at = [a.ctypes.data for a in (x, y, out)]
    sizes = [165, 5, 165]
    for arguments, counts, status, text in (
        (at, [164, 5, 165], WRONG_SIZE, "argument 'x' is float32[33, 5], 165 elements; got 164"),
        ([0, *at[1:]], sizes, NULL_POINTER, "argument 'x' is NULL"),
        ([*at[:2], at[2] + 2], sizes, MISALIGNED, "argument 'result' must be aligned to 4 bytes"),
        ([at[0], at[1], at[0]], sizes, OVERLAP, "'result' is written and shares memory with 'x'"),
    ):
        assert library(*arguments, counts=counts) == status
        assert text in library.error()
    assert stand_in.calls == [], "nothing was run"


@FOR_BOTH
def test_gpu_without_memory(target, pointwise, connect, tmp_path):
    stand_in = connect(target, TARGETS[target][0][0], room=1000)
    library = Library(pointwise(target), tmp_path)
    x, y, out = (np.ones(size, np.float32) for size in (165, 5, 165))
    assert library(x, y, out) == NO_MEMORY
    function = {"nvgpu": "cuMemAlloc_v2", "amdgpu": "hipMalloc"}[target]
    assert library.error() == (
        f"program: {function} failed: out of memory (ERROR_OUT_OF_MEMORY, 2)"
    )
    assert not stand_in.streams, "what was made before is given up"
    stand_in.room = 10000
    assert library(x, y, out) == OK


def test_gpu_without_memory_on_a_stream(connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    library = Library(
        built(several_steps, [torch.rand(*STEPS)], "nvgpu", "sm_80", on_gpu_tensors=True), tmp_path
    )
    addresses = [stand_in.upload(np.zeros(COUNT, np.float32)) for _ in range(3)]
    stand_in.failing["allocate_on_stream"] = OUT_OF_MEMORY
    assert library.on_stream(0, addresses, [COUNT, COUNT, 1]) == NO_MEMORY
    assert "cuMemAllocAsync failed: out of memory" in library.error()
    assert stand_in.launches == []


@pytest.mark.parametrize(
    "method, status, text",
    [
        ("initialize", NO_DEVICE, "the CUDA driver finds no device (ERROR_NO_DEVICE); see CUDA_VI"),
        ("load_module_with_options", DRIVER_ERROR, "cuModuleLoadDataEx failed: illegal address"),
        ("find_function", DRIVER_ERROR, "cuModuleGetFunction failed: illegal address (ERROR_I"),
        ("launch", DRIVER_ERROR, "cuLaunchKernel of '"),
        ("wait", DRIVER_ERROR, "cuStreamSynchronize failed: illegal address (ERROR_ILLEG"),
        ("copy_in", DRIVER_ERROR, "cuMemcpyHtoDAsync_v2 failed: illegal address"),
        ("retain_context", DRIVER_ERROR, "using the device failed: illegal address"),
        ("get_context", DRIVER_ERROR, "asking for the device failed: illegal address"),
        ("set_context", DRIVER_ERROR, "making the device current failed: illegal address"),
        ("device_attribute", DRIVER_ERROR, "asking for the device's architecture failed: illegal"),
    ],
)
def test_gpu_errors_of_the_driver(method, status, text, pointwise, connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    library = Library(pointwise("nvgpu"), tmp_path)
    x, y, out = (np.ones(size, np.float32) for size in (165, 5, 165))
    stand_in.failing[method] = 100 if method == "initialize" else ILLEGAL_ADDRESS
    assert library(x, y, out) == status
    assert library.error().startswith("program: ")
    assert text in library.error()
    # A later call tries again.
    del stand_in.failing[method]
    assert library(x, y, out) == OK, library.error()
    assert library.error() == ""


def test_gpu_shared_memory_that_is_asked_for(connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    artifact = built(torch.neg, [torch.rand(9)], "nvgpu", "sm_80")
    artifact.manifest["launches"][0]["shared_bytes"] = 65536
    library = Library(artifact, tmp_path)
    x, out = np.ones(9, np.float32), np.zeros(9, np.float32)
    stand_in.failing["set_function_attribute"] = ILLEGAL_ADDRESS
    assert library(x, out) == DRIVER_ERROR
    assert "program: asking for shared memory failed: illegal address" in library.error()
    del stand_in.failing["set_function_attribute"]
    assert library(x, out) == OK, library.error()
    assert stand_in.launches[0][3] == 65536
    np.testing.assert_array_equal(out, -1)


def test_gpu_errors_of_an_unknown_kind(pointwise, connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    library = Library(pointwise("nvgpu"), tmp_path)
    stand_in.failing["create_stream"] = 12345
    x, y, out = (np.ones(size, np.float32) for size in (165, 5, 165))
    assert library(x, y, out) == DRIVER_ERROR
    assert library.error() == "program: cuStreamCreate failed: unknown error (unknown, 12345)"


def test_gpu_code_that_the_driver_cannot_load(connect, tmp_path):
    stand_in = connect("nvgpu", "sm_80")
    artifact = built(torch.neg, [torch.rand(9)], "nvgpu", "sm_80")
    library = Library(artifact, tmp_path, "refused")
    x, out = np.ones(9, np.float32), np.ones(9, np.float32)
    stand_in.log = "ptxas fatal: Unresolved extern"
    assert library(x, out) == DRIVER_ERROR
    assert library.error() == (
        "refused: cuModuleLoadDataEx failed: invalid image (ERROR_INVALID_IMAGE, 200): ptxas "
        "fatal: Unresolved extern"
    )
    stand_in.log = ""
    artifact.manifest["launches"][0]["kernel"] = "absent"
    library = Library(artifact, tmp_path, "other")
    assert library(x, out) == DRIVER_ERROR
    assert library.error() == "other: the code has no kernel 'absent'"
    assert stand_in.modules == {}


@FOR_BOTH
def test_gpu_without_a_device(target, pointwise, connect, tmp_path):
    stand_in = connect(target)
    library = Library(pointwise(target), tmp_path)
    x, y, out = (np.ones(size, np.float32) for size in (165, 5, 165))
    assert library(x, y, out) == NO_DEVICE
    what = {
        "nvgpu": "CUDA driver finds no device (none is visible); see CUDA_VISIBLE_DEVICES and",
        "amdgpu": "HIP runtime finds no device (none is visible); see HIP_VISIBLE_DEVICES and rocm",
    }[target]
    assert what in library.error()
    assert library.arch() is None
    assert what in library.error()
    assert stand_in.archs == []


USE = """
#include "program.h"
#include <stdio.h>
int main(void) {
  float x[PROGRAM_X_COUNT] = {0}, y[PROGRAM_Y_COUNT] = {0}, out[PROGRAM_RESULT_COUNT];
  int32_t status = program(x, PROGRAM_X_COUNT, y, PROGRAM_Y_COUNT, out, PROGRAM_RESULT_COUNT);
  printf("%d %s\\n%d\\n", (int)status, program_error(), program_arch() == NULL);
  return status != PROGRAM_NO_DEVICE;
}
"""


@pytest.mark.each_choice
@FOR_BOTH
@pytest.mark.parametrize("on_device", [False, True])
def test_gpu_header_and_a_machine_without_a_driver(target, on_device, pointwise, tmp_path):
    """In processes that know of no Python, and no stand-in."""
    artifact = pointwise(target)
    artifact = Artifact({**artifact.manifest, "on_gpu_tensors": on_device}, artifact.blobs)
    library, *_ = polyblocks.write_library(artifact, tmp_path, "program")
    source = USE.replace("program(x", "program(NULL, x") if on_device else USE
    (tmp_path / "main.c").write_text(source)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    link = ["-L.", "-lprogram", "-Wl,-rpath,$ORIGIN", "-o", "main"]
    subprocess.run(["gcc", "-std=c11", *strict, "main.c", *link], cwd=tmp_path, check=True)
    if shutil.which("g++"):
        command = ["g++", "-std=c++11", *strict, "-x", "c++", "-c", "main.c", "-o", "main.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], env={}, capture_output=True, text=True)
    file, driver = {
        "nvgpu": ("libcuda.so.1", "CUDA driver"),
        "amdgpu": ("libamdhip64.so.7", "HIP runtime"),
    }[target]
    if done.returncode == 0:  # a machine with such a GPU runs it
        assert f"{NO_DEVICE} program: there is no {driver}: {file}: " in done.stdout
        assert done.stdout.endswith("; install NVIDIA's driver on a machine with a GPU\n1\n") or (
            target == "amdgpu"
        )
    listed = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
    needed = {line.split()[0].rpartition("/")[2] for line in listed.splitlines()}
    allowed = ("linux-vdso", "libc.", "libdl.", "libpthread.", "ld-linux")
    assert all(name.startswith(allowed) for name in needed), listed


@FOR_BOTH
def test_gpu_driver_that_is_too_old(target, pointwise, tmp_path):
    """It lacks a function; in a process of its own, where it is the first one."""
    polyblocks.write_library(pointwise(target), tmp_path, "program")
    soname = {"nvgpu": "libcuda.so.1", "amdgpu": "libamdhip64.so.7"}[target]
    first = {"nvgpu": "cuDeviceGetCount", "amdgpu": "hipGetDeviceCount"}[target]
    start = {"nvgpu": "cuInit", "amdgpu": "hipInit"}[target]
    (tmp_path / "driver.c").write_text(f"int {start}(unsigned f) {{ return (int)f; }}")
    driver = ["-shared", f"-Wl,-soname,{soname}", "-o", soname, "driver.c"]
    subprocess.run(["gcc", *driver], cwd=tmp_path, check=True)
    (tmp_path / "main.c").write_text(USE)
    link = ["-Wl,--no-as-needed", f"./{soname}", "-L.", "-lprogram", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(["gcc", "main.c", *link, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert f"has no function {first}; install a newer one" in done.stdout, done.stderr


# --- what is refused ---------------------------------------------------------------------------


def test_gpu_library_of_a_simulated_program(target, tmp_path):
    options = {"target": target, "arch": TARGETS[target][0][0], "simulate": True}
    artifact = polyblocks.aot(torch.neg, [torch.rand(9)], options)
    with pytest.raises(InputError, match="neg is built for the simulator; leave out the option 's"):
        polyblocks.write_library(artifact, tmp_path, "neg")


def test_gpu_library_that_measures(target, tmp_path):
    options = {"target": target, "arch": TARGETS[target][0][0], "profile": True}
    artifact = polyblocks.aot(torch.neg, [torch.rand(9)], options)
    with pytest.raises(InputError, match="a library does not measure its kernels; leave out the"):
        polyblocks.write_library(artifact, tmp_path)


def test_gpu_library_without_a_compiler(pointwise, monkeypatch, tmp_path):
    from polyblocks.c_library import c_compiler

    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(c_compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        TargetError, match="linking a library needs a C compiler, and none was found: install"
    ):
        polyblocks.write_library(pointwise("nvgpu"), tmp_path)


def test_gpu_library_with_a_compiler_that_fails(pointwise, monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(TargetError, match="cannot link the library: ; the command was: .*false "):
        polyblocks.write_library(pointwise("nvgpu"), tmp_path)
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    with pytest.raises(TargetError, match=r"the C compiler .*absent does not run: .*No such file"):
        polyblocks.write_library(pointwise("nvgpu"), tmp_path)
