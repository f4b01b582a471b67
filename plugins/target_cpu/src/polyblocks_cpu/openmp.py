"""Finds and loads the OpenMP runtime of LLVM (``libiomp5``), which generated code calls."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from polyblocks.errors import TargetError

#: Every function outside of the object that generated code may call.
SYMBOLS = (
    "__kmpc_fork_call",
    "__kmpc_global_thread_num",
    "__kmpc_push_num_threads",
    "omp_get_num_threads",
    "omp_get_thread_num",
)

#: Milliseconds that idle threads spin; see :func:`symbols`.
BLOCKTIME = "1"

_NAMES = {
    "linux": ("libiomp5.so", "libomp.so.5", "libomp.so"),
    "darwin": ("libiomp5.dylib", "libomp.dylib"),
    "win32": ("libiomp5md.dll", "libomp.dll"),
}


@functools.cache
def symbols() -> dict[str, int]:
    """Addresses of :data:`SYMBOLS`, by name.

    Asked from the library itself and not from the process: a program that has loaded another
    OpenMP runtime (PyTorch brings GCC's) has two functions called ``omp_get_thread_num``.

    Raises:
        TargetError: there is no such library; says how to install it.
    """
    # How long idle threads spin before they sleep, in ms. The default of 200 takes the cores away
    # from whatever the program does next; the gaps between our own regions are microseconds.
    with _default_environment("KMP_BLOCKTIME", BLOCKTIME):
        library = _load()
        # The runtime reads its environment at the first call.
        library.omp_get_max_threads()
    return {
        name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in SYMBOLS
    }


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
    for name in names:
        try:
            return ctypes.CDLL(name, mode=getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE)
        except OSError:
            continue
    for path in _candidates(names):
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    # The wheel exists for x86-64 only.
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    how = "pip install intel-openmp" if x86 else "LLVM's, e.g. apt install libomp5"
    raise TargetError(f"target 'cpu' needs the OpenMP runtime {names[0]}; install it: {how}")


def _candidates(names: tuple[str, ...]) -> Iterator[Path]:
    """Where the library may lie: ``lib`` of this environment, else where its package put it."""
    for folder in (Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"):
        for name in names:
            if (folder / name).exists():
                yield folder / name
    try:
        files = importlib.metadata.files("intel-openmp") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in names:
            yield Path(str(file.locate())).resolve()
    yield from (Path(name) for name in names)
