"""Linking objects into the process: threads, forks, unloading, and what is refused."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_kernels import compile_text, elementwise, load, pack

from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError, TargetError
from polyblocks_cpu import describe, openmp
from polyblocks_cpu.host import Host, identify
from polyblocks_cpu.load import load_artifact

N = 10_000


def doubling() -> Artifact:
    x = np.zeros(N, np.float32)
    return compile_text(elementwise("%r0 = arith.addf %a0, %a0 : f32", [x], [x]))


def test_many_artifacts_do_not_see_each_other() -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    executables = []
    for k in range(5):
        body = f"%c = arith.constant {k}.0 : f32\n%r0 = arith.mulf %a0, %c : f32"
        executables.append(load(compile_text(elementwise(body, [x], [y]))))
    for k, executable in enumerate(executables):
        assert executable.entry(pack([x, y]), 2) == 0
        assert (y == k).all()


def test_closing_unloads_and_twice_is_fine() -> None:
    artifact = doubling()
    for _ in range(3):
        executable = load(artifact)
        x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
        assert executable.entry(pack([x, y]), 2) == 0
        executable.close()
        executable.close()


def test_loading_and_closing_leaks_little() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    artifact = doubling()
    for _ in range(20):
        load(artifact).close()
    before = resident()
    for _ in range(200):
        load(artifact).close()
    assert resident() - before < 200 * 16_384


def test_many_python_threads_call_one_executable() -> None:
    executable = load(doubling())
    x = np.random.default_rng(0).random(N, dtype=np.float32)
    wrong: list[int] = []

    def work(number: int) -> None:
        y = np.zeros(N, np.float32)
        for _ in range(20):
            y[:] = 0
            if executable.entry(pack([x, y]), 2) != 0 or not (y == x + x).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


FORK = """
import os, numpy as np
from cpu_kernels import elementwise, compile_text, load, pack
x, y = np.ones(100000, np.float32), np.zeros(100000, np.float32)
executable = load(compile_text(elementwise("%r0 = arith.addf %a0, %a0 : f32", [x], [y])))
assert executable.entry(pack([x, y]), 2) == 0
child = os.fork()
y[:] = 0
ok = executable.entry(pack([x, y]), 2) == 0 and (y == 2).all()
if child == 0:
    os._exit(0 if ok else 1)
assert ok
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("both worked")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_threads_work_after_a_fork(run_python: Callable[..., Any]) -> None:
    support = Path(__file__).resolve().parents[1] / "support"
    done = run_python(FORK, path=support)
    assert done.stdout.strip() == "both worked", done.stderr


LIMITED = """
import numpy as np
from cpu_kernels import elementwise, run
x, y = np.ones(100000, np.float32), np.zeros(100000, np.float32)
assert run(elementwise("%r0 = arith.addf %a0, %a0 : f32", [x], [y]), x, y, threads=4) == 0
assert (y == 2).all()
print("all of it")
"""


@pytest.mark.parametrize(
    "limit",
    [
        "OMP_THREAD_LIMIT",
        "OMP_NUM_THREADS",
        pytest.param("KMP_DEVICE_THREAD_LIMIT", marks=pytest.mark.extended),
    ],
)
def test_fewer_threads_than_asked_for_do_all_of_the_work(
    run_python: Callable[..., Any], limit: str
) -> None:
    support = Path(__file__).resolve().parents[1] / "support"
    done = run_python(LIMITED, path=support, **{limit: 1})
    assert done.stdout.strip() == "all of it", done.stderr


def test_loading_needs_no_mlir(run_python: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "f.pbz"
    artifact = doubling()
    Artifact({**artifact.manifest, **HEADER}, artifact.blobs).write(path)
    done = run_python(
        f"""
        import struct, sys, ctypes
        from polyblocks.artifact import Artifact
        from polyblocks_cpu import plugin
        executable = plugin.load_artifact(artifact=Artifact.read({str(path)!r}))
        x, y = (ctypes.c_float * {N})(*[3.0] * {N}), (ctypes.c_float * {N})()
        packed = struct.pack("2Q", ctypes.addressof(x), ctypes.addressof(y))
        assert executable.entry(packed, 2) == 0
        assert set(y) == {{6.0}}
        print([m for m in ("torch_mlir", "torch", "numpy") if m in sys.modules])
        """
    )
    assert done.stdout.strip() == "[]", done.stderr


HEADER = {
    "target": "cpu",
    "arch": "test",
    "name": "f",
    "workspace_bytes": 0,
    "versions": {},
    "report": {},
}


def test_perf_map_names_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    path.unlink(missing_ok=True)
    artifact = doubling()
    load(artifact)
    assert not path.exists()
    monkeypatch.setenv("POLYBLOCKS_PERF_MAP", "1")
    executable = load(artifact)
    rows = [line.split() for line in path.read_text().splitlines()]
    path.unlink()
    ranges = {name: (int(begin, 16), int(size, 16)) for begin, size, name in rows}
    code = artifact.manifest["kernels"][0]["code_bytes"]
    assert ranges["program:elementwise"][1] == code
    entry = ctypes.cast(executable.entry, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert ranges["program:polyblocks_main"][0] == entry
    # The machine code of the kernel really lies there.
    begin, size = ranges["program:elementwise"]
    assert ctypes.string_at(begin, size) in artifact.blobs["code.o"]


def test_artifact_without_code() -> None:
    with pytest.raises(ArtifactError, match=r"an artifact of target 'cpu' has a blob 'code\.o'"):
        load_artifact(Artifact({"entry": "polyblocks_main"}, {}))


def test_artifact_of_another_family() -> None:
    x = np.zeros(8, np.float32)
    other = "x86-64" if platform.machine() in ("aarch64", "arm64") else "neoverse-n1"
    artifact = compile_text(elementwise("%r0 = arith.negf %a0 : f32", [x], [x]), other)
    artifact.manifest["arch"] = other
    with pytest.raises(
        ArtifactError, match=f"for arch '{other}'; it is for .*, and this machine is"
    ):
        load_artifact(artifact)


def test_artifact_of_a_newer_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(8, np.float32)
    artifact = compile_text(elementwise("%r0 = arith.negf %a0 : f32", [x], [x]), "x86-64-v4")
    assert {"avx512f", "avx2", "sse4.1"} <= set(artifact.manifest["requires"])
    older = identify("flags : fma avx avx2\n")
    monkeypatch.setattr(describe, "host", lambda: Host(older[0], older[1], {}, 1))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(ArtifactError, match=r"this machine lacks avx512bw, avx512cd, .*; compile"):
        load(artifact)


def test_damaged_object() -> None:
    with pytest.raises(ArtifactError, match="the code cannot be linked"):
        load_artifact(Artifact({"entry": "polyblocks_main"}, {"code.o": b"noise" * 99}))


def test_missing_runtime_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[Any]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(openmp, "FRAMEWORKS", ())
    monkeypatch.setattr(openmp, "_NAMES", {"linux": ("libnothing.so",), "darwin": ("x.dylib",)})
    monkeypatch.setattr(importlib.metadata, "files", absent)
    openmp._own.cache_clear()
    try:
        for system, wheel in {"linux": "cmeel-libomp", "win32": "intel-openmp"}.items():
            monkeypatch.setattr(sys, "platform", system)
            with pytest.raises(TargetError, match=f"LLVM's OpenMP .*; pip install {wheel}"):
                openmp.symbols()
    finally:
        monkeypatch.undo()
        openmp._own.cache_clear()


def test_runtime_without_a_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp, "FRAMEWORKS", ())
    monkeypatch.setattr(openmp, "FUNCTIONS", ("omp_get_thread_num", "omp_of_tomorrow"))
    openmp._own.cache_clear()
    try:
        with pytest.raises(TargetError, match=r"libi?omp.* has no function omp_of_tomorrow"):
            openmp.symbols()
    finally:
        openmp._own.cache_clear()


def test_environment_of_the_user_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp, "FRAMEWORKS", ())
    monkeypatch.delenv("KMP_BLOCKTIME", raising=False)
    openmp._own.cache_clear()
    assert set(openmp.symbols()) == set(openmp.SYMBOLS)
    assert "KMP_BLOCKTIME" not in os.environ
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    openmp._own.cache_clear()
    openmp.symbols()
    assert os.environ["KMP_BLOCKTIME"] == "7"
