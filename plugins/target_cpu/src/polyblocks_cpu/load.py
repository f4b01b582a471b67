"""``load_artifact``: link a cached object file into this process. No MLIR, nothing is compiled."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError
from polyblocks.isolation.isolation import native_lock
from polyblocks.runtime.executable import Executable
from polyblocks_cpu import openmp
from polyblocks_cpu.describe import missing_features
from polyblocks_cpu.elf import machine_of, read_symbols
from polyblocks_cpu.host import family

Entry = Callable[[bytes, int], int]

#: Exported function of a program compiled with the option ``profile``: where its times are.
PROFILE = "polyblocks_profile"
#: What such a program calls, of POSIX; nanoseconds, where the OpenMP runtime's clock has
#: microseconds.
CLOCK = "clock_gettime"

_numbers = itertools.count()
_linker_lock = threading.Lock()
_linker: Any = None


def object_name(index: int) -> str:
    """Name of the artifact's blob with the code of one part; part 0 holds the entry."""
    return "code.o" if index == 0 else f"code-{index}.o"


class CpuExecutable(Executable):
    """Object files, linked.

    Attributes:
        manifest: the artifact's manifest.
        entry: ``entry(packed_pointers, num_threads) -> status``; the pointers are those of
            ``manifest["arguments"]`` in order, packed as native 64-bit integers.
    """

    def __init__(
        self, manifest: dict[str, Any], library: Any, entry: Entry, times: int | None = None
    ) -> None:
        self.manifest = manifest
        self.entry = entry
        self._library = library
        self._times = times

    def profile(self) -> list[dict[str, Any]]:
        """See :class:`polyblocks.runtime.executable.Executable`."""
        names = self.manifest.get("profile", [])
        if self._times is None or self._library is None:
            return []
        # float64: calls, seconds, smallest seconds; see the pass time-kernels.
        table = (ctypes.c_double * (3 * len(names))).from_address(self._times)
        return [
            {
                **name,
                "calls": int(table[3 * i]),
                "seconds": table[3 * i + 1],
                "minimum": table[3 * i + 2] if table[3 * i] else None,
            }
            for i, name in enumerate(names)
        ]

    def close(self) -> None:
        """Unload the code; ``entry`` must not run or be called any more."""
        library, self._library = self._library, None
        if library is not None:
            with native_lock:
                library.close()


def load_artifact(artifact: Artifact) -> CpuExecutable:
    """Link the artifact's object files.

    Raises:
        ArtifactError: it has no object file, or code of another architecture.
        TargetError: the OpenMP runtime is not installed.
    """
    objects = _objects(artifact)
    _check_machine(artifact, objects[0])
    symbol = artifact.manifest["entry"]
    imports = openmp.symbols()
    with native_lock:
        from llvmlite import binding

        builder = binding.JITLibraryBuilder().export_symbol(symbol)
        for data in objects:
            builder.add_object_img(data)
        anchors = _anchors(objects, symbol) if _wants_perf_map() else {}
        for anchor in anchors.values():
            builder.export_symbol(anchor)
        profiled = "profile" in artifact.manifest
        if profiled:
            builder.export_symbol(PROFILE)
        if profiled:
            clock = getattr(ctypes.CDLL(None), CLOCK)
            imports = imports | {CLOCK: ctypes.cast(clock, ctypes.c_void_p).value or 0}
        for name, address in imports.items():
            builder.import_symbol(name, address)
        try:
            library = builder.link(_jit(), f"polyblocks-{next(_numbers)}")
        except RuntimeError as error:
            raise ArtifactError(f"the code cannot be linked: {error}") from error
        address = library[symbol]
        times = ctypes.CFUNCTYPE(ctypes.c_void_p)(library[PROFILE])() if profiled else None
        for data, anchor in anchors.items():
            write_perf_map(data, anchor, library[anchor], artifact.manifest.get("name", "program"))
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32)
    entry = prototype(address)
    # Who keeps only the function keeps its code.
    entry.library = library  # type: ignore[attr-defined]
    return CpuExecutable(artifact.manifest, library, entry, times)


def _wants_perf_map() -> bool:
    return os.environ.get("POLYBLOCKS_PERF_MAP", "") not in ("", "0")


def _anchors(objects: Sequence[bytes], entry: str) -> dict[bytes, str]:
    """For each ELF object a function whose address the linker can tell: it is visible."""
    anchors = {}
    for index, data in enumerate(objects):
        symbols = read_symbols(data)
        if symbols is not None and symbols.functions:
            anchors[data] = entry if index == 0 else min(symbols.functions)
    return anchors


def write_perf_map(data: bytes, anchor: str, address: int, program: str) -> None:
    """Tell ``perf`` the names of the functions in an object, see Linux's ``jit-interface.txt``.

    Args:
        data: an ELF object.
        anchor: a function in it.
        address: where that function was linked.
        program: goes before the names.
    """
    symbols = read_symbols(data)
    if symbols is None:
        return
    base = address - symbols.offsets[anchor]
    lines = [
        f"{base + offset:x} {symbols.functions[name]:x} {program}:{name}\n"
        for name, offset in symbols.offsets.items()
    ]
    with open(f"/tmp/perf-{os.getpid()}.map", "a") as file:
        file.writelines(lines)


def _objects(artifact: Artifact) -> list[bytes]:
    objects: list[bytes] = []
    while (data := artifact.blobs.get(object_name(len(objects)))) is not None:
        objects.append(data)
    if not objects:
        raise ArtifactError("an artifact of target 'cpu' has a blob 'code.o'; this one has none")
    return objects


def _check_machine(artifact: Artifact, data: bytes) -> None:
    """Code of another chip would be linked all the same, and die when it runs."""
    arch = artifact.manifest.get("arch")
    wanted, here = machine_of(data), family()
    if wanted is not None and wanted != here:
        raise ArtifactError(f"the code is for arch '{arch}' ({wanted}); this machine is {here}")
    missing = missing_features(artifact.manifest.get("requires", ()))
    if missing:
        raise ArtifactError(
            f"the code is for arch '{arch}'; this machine lacks {', '.join(missing)}; compile "
            "with arch 'native', or name an older one"
        )


def _jit() -> Any:
    """One linker per process: an own one per artifact would cost memory and 10 ms each."""
    global _linker
    with _linker_lock:
        if _linker is None:
            from llvmlite import binding

            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            _linker = binding.create_lljit_compiler(use_jit_link=True)
        return _linker
