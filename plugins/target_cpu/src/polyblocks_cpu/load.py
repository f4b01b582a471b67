"""``load_artifact``: link a cached object file into this process. No MLIR, nothing is compiled."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.errors import ArtifactError, TargetError
from polyblocks.isolation.forks import fork_lock
from polyblocks.runtime.executable import Executable
from polyblocks_cpu import openmp
from polyblocks_cpu.describe import missing_features
from polyblocks_cpu.host import family, host
from polyblocks_cpu.objects import link
from polyblocks_cpu.objects.elf import machine_of

Entry = Callable[[bytes, int], int]

#: Exported function of a program compiled with the option ``profile``: where its times are.
PROFILE = "polyblocks_profile"
#: POSIX's clock, which such a program calls; nanoseconds, where the OpenMP runtime's clock has
#: microseconds.
CLOCK = "clock_gettime"


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
            with fork_lock:
                library.close()


def choose_variant(artifact: Artifact) -> Artifact:
    """The part of an artifact that is for this machine: the best of those that it can run.

    Code for this very chip is best, then the code that uses most of its instructions; or the
    fewest, if the system does not tell which it has.

    Raises:
        ArtifactError: it runs none of them; says what is there and what this machine lacks.
    """
    archs = archs_of(artifact)
    if len(archs) == 1:
        return artifact
    variants = {arch: variant(artifact, arch) for arch in archs}
    problems = {arch: _problem(each) for arch, each in variants.items()}
    fitting = [arch for arch in archs if problems[arch] is None]
    if not fitting:
        there = "; ".join(f"{arch} ({problem})" for arch, problem in problems.items())
        raise ArtifactError(
            f"the artifact has code for {', '.join(archs)}, and this machine ({host().arch.name}) "
            f"runs none of it: {there}; compile it with an arch that this machine has, or an older "
            "one"
        )
    needed = {arch: len(variants[arch].manifest.get("requires", ())) for arch in fitting}
    sign = 1 if host().features else -1
    best = max(fitting, key=lambda arch: (arch == host().arch.name, sign * needed[arch], arch))
    return variants[best]


def load_artifact(artifact: Artifact) -> CpuExecutable:
    """Link the artifact's object files.

    Raises:
        ArtifactError: it has no object file, or code of another architecture.
        TargetError: the OpenMP runtime is not installed.
    """
    objects = objects_of(artifact)
    problem = _problem(artifact)
    if problem is not None:
        raise ArtifactError(
            f"the code is for arch '{artifact.manifest.get('arch')}'; {problem}; compile with arch "
            "'native', or name an older one"
        )
    symbol = artifact.manifest["entry"]
    imports = openmp.symbols()
    profiled = "profile" in artifact.manifest
    if profiled:
        clock = getattr(ctypes.CDLL(None), CLOCK)
        imports = imports | {CLOCK: ctypes.cast(clock, ctypes.c_void_p).value or 0}
    library = _linked(objects, [symbol, *([PROFILE] if profiled else [])], imports)
    times = ctypes.CFUNCTYPE(ctypes.c_void_p)(library[PROFILE])() if profiled else None
    if os.environ.get("POLYBLOCKS_PERF_MAP", "") not in ("", "0"):
        write_perf_map(library, artifact.manifest.get("name", "program"))
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32)
    entry = prototype(library[symbol])
    # Who keeps only the function keeps its code.
    entry.library = library  # type: ignore[attr-defined]
    return CpuExecutable(artifact.manifest, library, entry, times)


def _linked(objects: list[bytes], exports: list[str], imports: dict[str, int]) -> Any:
    try:
        if machine_of(objects[0]) is not None:
            return link.link(objects, imports)
        from polyblocks_cpu.objects import jit_link

        return jit_link.link(objects, exports, imports)
    except ImportError as error:
        raise TargetError(
            f"the code is an object file of another format than ELF, and what links it is missing "
            f"({error}); pip install 'polyblocks-compiler[compile]'"
        ) from error
    except ValueError as error:
        raise ArtifactError(f"the code cannot be linked: {error}") from error


def write_perf_map(library: Any, program: str) -> None:
    """Tell ``perf`` the names of functions, see Linux's ``jit-interface.txt``.

    Args:
        library: the linked code; only ELF is registered.
        program: goes before the names.
    """
    if isinstance(library, link.Linked):
        with open(f"/tmp/perf-{os.getpid()}.map", "a") as file:
            for name, (address, size) in library.functions.items():
                file.write(f"{address:x} {size:x} {program}:{name}\n")


def objects_of(artifact: Artifact) -> list[bytes]:
    """The object files in an artifact, that with the entry first.

    Raises:
        ArtifactError: it holds no object file.
    """
    objects: list[bytes] = []
    while (data := artifact.blobs.get(object_name(len(objects)))) is not None:
        objects.append(data)
    if not objects:
        raise ArtifactError("an artifact of target 'cpu' has a blob 'code.o'; this one has none")
    return objects


def _problem(artifact: Artifact) -> str | None:
    """Why this machine cannot run the code, which would be linked all the same; None if it can."""
    wanted, here = machine_of(artifact.blobs.get(object_name(0), b"")), family()
    if wanted is not None and wanted != here:
        return f"it is for {wanted}, and this machine is {here}"
    missing = missing_features(artifact.manifest.get("requires", ()))
    return f"this machine lacks {', '.join(missing)}" if missing else None
