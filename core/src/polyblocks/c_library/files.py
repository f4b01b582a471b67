"""The files of a library: the shared object, its header, and what CMake needs."""

from __future__ import annotations

import contextlib
import ctypes
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from polyblocks.c_library.c_compiler import CCompiler
from polyblocks.c_library.header import Status, cmake_text
from polyblocks.c_library.interface import Interface
from polyblocks.c_library.source import statuses_text
from polyblocks.errors import InputError
from polyblocks.files import write_atomically

#: The folder, in that of the sources, in which the library and its header are made.
MADE = "made"


def write_files(
    interface: Interface,
    header: str,
    statuses: Iterable[Status],
    compiler: CCompiler,
    write_sources: Callable[[Path], Sequence[str]],
    folder: Path,
) -> list[Path]:
    """Write ``libNAME.so``, ``NAME.h`` and ``NAME-config.cmake``.

    Args:
        interface: of the program, with the name.
        header: text of the header.
        statuses: what the target adds.
        compiler: that links it.
        write_sources: called with a folder that has ``made/NAME.h`` and ``checks.h``; writes
            sources and objects there, and returns the compiler's arguments.
        folder: where the files go; made if it is not there.

    Raises:
        InputError: the C library has a function of that name.
        TargetError: the compiler fails.
    """
    name = interface.name
    _check_is_free(name)
    library = f"lib{name}.so"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="polyblocks-library-") as work:
        place = Path(work)
        # Apart from the sources, one of which may be called like the program.
        made = place / MADE
        made.mkdir()
        (made / f"{name}.h").write_text(header, encoding="utf-8")
        (made / f"{name}-config.cmake").write_text(cmake_text(name), encoding="utf-8")
        (place / "statuses.h").write_text(statuses_text(statuses), encoding="utf-8")
        for file in ("checks.h", "expected.h"):
            data = (files("polyblocks.c_library") / file).read_bytes()
            (place / file).write_bytes(data)
        compiler.run(
            [
                *("-shared", "-fPIC", "-O2", "-std=gnu11", "-pthread", "-fvisibility=hidden"),
                *(f"-Wl,-soname,{library}", "-Wl,-z,noexecstack", "-Wl,-Bsymbolic"),
                *("-o", f"{MADE}/{library}", *write_sources(place)),
            ],
            place,
        )
        written = []
        for file in (library, f"{name}.h", f"{name}-config.cmake"):
            # Who has the former one loaded keeps that.
            mode = 0o777 if file == library else 0o666
            write_atomically(folder / file, (made / file).read_bytes(), folder, mode)
            written.append(folder / file)
        return written


def _check_is_free(name: str) -> None:
    """Linked programs would call the library's function in place of the system's."""
    taken = False
    for system in ("libc.so.6", "libm.so.6"):
        with contextlib.suppress(OSError):  # missing on other systems
            taken |= hasattr(ctypes.CDLL(system), name)
    if taken:
        raise InputError(f"the C library has a function '{name}'; pass another name")


def write_stored(place: Path, contents: Iterable[bytes]) -> list[str]:
    """Write what is stored into files; their names, for :func:`~source.embedded`."""
    names = []
    for number, data in enumerate(contents):
        names.append(f"stored-{number}.bin")
        (place / names[-1]).write_bytes(data)
    return names
