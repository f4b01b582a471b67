"""Finds the OpenMP runtime that generated code calls: a framework's own, or LLVM's.

Threads of two runtimes in one process take the cores from each other: those of one still wait for
work, spinning, when the other one's are to run.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from polyblocks.errors import TargetError
from polyblocks.isolation import forks

#: Lets all threads of a team wait for each other: ``void (void)``. GCC's interface, which LLVM's
#: runtime has as well. It takes 0.23 µs with two threads of libgomp and 0.14 with libiomp5, where a
#: region takes 0.53 and 0.31. A barrier of our own takes 0.08 (Zen 4); where other processes have
#: the cores all of them take from 0.002 to 8 ms, and none was better every time, but a runtime's
#: obeys the user's settings (``OMP_WAIT_POLICY``, ``KMP_BLOCKTIME``).
BARRIER = "GOMP_barrier"
#: Functions of the runtime that generated code calls.
FUNCTIONS = ("GOMP_parallel", BARRIER, "omp_get_num_threads", "omp_get_thread_num")
#: An int32 of this module: no call runs on more threads, whatever its caller says.
LIMIT = "polyblocks_thread_limit"
#: All that is outside of the object.
SYMBOLS = (*FUNCTIONS, LIMIT)

#: Milliseconds that idle threads of LLVM's runtime spin; see :func:`_own`.
BLOCKTIME = "1"

#: Libraries whose operators run on an OpenMP team, of PyTorch. The runtime that they were linked
#: with is found through them: a process may have several copies of one.
FRAMEWORKS = ("libtorch_cpu.so", "libtorch_cpu.dylib")

#: Of LLVM's runtime alone, which makes new threads after a fork.
_LLVM = "__kmpc_fork_call"

_NAMES = {
    "linux": ("libomp.so", "libomp.so.5", "libiomp5.so"),
    "darwin": ("libomp.dylib", "libiomp5.dylib"),
    "win32": ("libiomp5md.dll", "libomp.dll"),
}

#: Distributions that bring it; ours asks for the first, on Windows for the last.
_WHEELS = ("cmeel-libomp", "intel-openmp")

_limit = ctypes.c_int32(2**31 - 1)
#: Whether generated code calls a runtime whose team does not survive a fork.
_dies_with_fork = False


def symbols() -> dict[str, int]:
    """Addresses of :data:`SYMBOLS`, by name.

    Functions of the runtime of a framework that is loaded at this moment, so that its operators and
    generated code run on one team; else of LLVM's. Code that was linked before keeps what it has.

    Raises:
        TargetError: no framework has one, and LLVM's is missing; says how to install it.
    """
    global _dies_with_fork
    # A framework of the parent's has used it, and its threads are not here.
    functions = None if forks.is_child() else _of_framework()
    if functions is None:
        functions = _own()
    elif _LLVM not in functions:
        _dies_with_fork = True
    addresses = {name: functions[name] for name in FUNCTIONS}
    return {**addresses, LIMIT: ctypes.addressof(_limit)}


def _of_framework() -> dict[str, int] | None:
    """Functions of the runtime that a framework in this process calls, if there is one."""
    for name in FRAMEWORKS:
        library = _loaded(name)
        if library is None:
            continue
        # Searches what the library was linked with, too.
        found = {n: address for n in (*FUNCTIONS, _LLVM) if (address := _address(library, n))}
        if found.keys() >= set(FUNCTIONS):
            return found
    return None


def _loaded(name: str) -> ctypes.CDLL | None:
    """A library, if it is in this process."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | ctypes.DEFAULT_MODE)
    except OSError:
        return None


def _address(library: ctypes.CDLL, name: str) -> int | None:
    # Asked from a library and not from the process: there may be several functions of the name.
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


@functools.cache
def _own() -> dict[str, int]:
    """Functions of LLVM's runtime, which is loaded if it is not there."""
    # How long idle threads spin before they sleep, in ms. The default of 200 takes the cores away
    # from whatever the program does next; the gaps between our own regions are microseconds.
    with _default_environment("KMP_BLOCKTIME", BLOCKTIME):
        library = _load()
        # The runtime reads its environment at the first call.
        library.omp_get_max_threads()
    found = {name: address for name in FUNCTIONS if (address := _address(library, name))}
    missing = [name for name in FUNCTIONS if name not in found]
    if missing:
        raise TargetError(
            f"the OpenMP runtime {library._name} has no function {', '.join(missing)}, which "
            "generated code calls; install LLVM's (libomp)"
        )
    return found


@forks.in_child
def _after_fork() -> None:
    """A team of GCC's runtime stays in the parent, and a region would wait for it forever."""
    if _dies_with_fork:
        _limit.value = 1


@contextlib.contextmanager
def _default_environment(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a moment, unless the user has set it."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def _load() -> ctypes.CDLL:
    names = _NAMES.get(sys.platform, _NAMES["linux"])
    # A second copy of this runtime in a process aborts it: use the one that is there.
    for library in map(_loaded, names):
        if library is not None:
            return library
    for path in _candidates(names):
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    wheel = _WHEELS[-1] if sys.platform == "win32" else _WHEELS[0]
    raise TargetError(
        f"target 'cpu' needs LLVM's OpenMP runtime ({' or '.join(names)}); pip install {wheel}"
    )


def library_file() -> Path | None:
    """The file of LLVM's runtime that is installed here; None if only the system's is."""
    found = (path for path in _candidates(_NAMES.get(sys.platform, ())) if path.is_absolute())
    return next(found, None)


def _candidates(names: tuple[str, ...]) -> Iterator[Path]:
    """Where the library may lie: ``lib`` of this environment, else where its package put it."""
    for folder in (Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"):
        for name in names:
            if (folder / name).exists():
                yield folder / name
    for wheel in _WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found = {file.name: Path(str(file.locate())).resolve() for file in files}
        yield from (found[name] for name in names if name in found)
    yield from (Path(name) for name in names)
