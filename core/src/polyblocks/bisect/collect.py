"""Compile with a dump after each pass: of a file, or of everything that a script compiles."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyblocks import api, events
from polyblocks.artifact import Artifact
from polyblocks.bisect.steps import Step, has_passes, read_steps
from polyblocks.errors import InputError, PassError, UnsupportedError
from polyblocks.options import CompileOptions


@dataclass
class Compilation:
    """What one program went through.

    Attributes:
        name: of the program.
        steps: its modules, the first one as it was given.
        artifact: what came out; None if it was not compiled to the end here.
        failed: ``stage:pass`` at which the compiler itself failed; empty if it did not.
        reason: why.
    """

    name: str
    steps: list[Step]
    artifact: Artifact | None = None
    failed: str = ""
    reason: str = ""


def collect_file(
    path: Path, options: CompileOptions, work: Path, after: str | None = None
) -> Compilation:
    """Compile an MLIR file, or go on from a dump.

    Args:
        path: the file.
        options: the checked options; ``debug`` is replaced.
        work: an empty folder for the dumps.
        after: see :func:`polyblocks.api.compile_file`.

    Raises:
        InputError, TargetError, PluginError: as :func:`polyblocks.api.compile_file`.
    """
    done = after or api.stage_of_file(path) or ""
    compilation = Compilation(path.stem, [Step(done.partition(":")[0], "", path)])
    last = ""

    def watch(event: events.Event) -> None:
        nonlocal last
        if event.kind == "pass-begin":
            last = f"{event.data['stage']}:{event.data['name']}"

    try:
        with dumping(work), events.listening(watch):
            artifact = api.compile_file(path, dataclasses.replace(options, debug=str(work)), after)
            compilation.artifact = artifact
    except (PassError, UnsupportedError) as error:
        compilation.failed, compilation.reason = last, str(error)
    for folder in folders_of(work):
        compilation.steps += [s for s in read_steps(folder) if s.stage != "S0"]
    return compilation


def collect_folder(folder: Path, options: CompileOptions, work: Path) -> Compilation:
    """Take the dumps of a folder; if there are none of passes, compile its first file again.

    Raises:
        InputError: there is no dump in it; and as :func:`collect_file`.
    """
    steps = read_steps(folder)
    if not has_passes(steps):
        compilation = collect_file(steps[0].path, options, work)
        compilation.name = folder.name
        return compilation
    compilation = Compilation(folder.name, steps)
    if steps[-1].stage == "S4":
        # Only the code generator is left to run.
        with contextlib.suppress(PassError, UnsupportedError):
            compilation.artifact = api.compile_file(steps[-1].path, options)
    return compilation


def collect_script(path: Path, arguments: Sequence[str], work: Path) -> list[Compilation]:
    """Run a Python script; one entry per program that it compiles.

    Raises:
        InputError: there is no such file, or it compiles nothing.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    saved = list(sys.argv), list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with dumping(work), contextlib.suppress(SystemExit):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.path = saved
    found = [collect_folder(f, CompileOptions(), f) for f in folders_of(work)]
    if not found:
        raise InputError(f"{path} compiles nothing")
    return found


@contextlib.contextmanager
def dumping(work: Path) -> Iterator[None]:
    """Inside, every compilation of this process dumps after each pass, and none is cached."""
    cache = work / "cache"
    cache.mkdir(mode=0o700)
    wanted = {
        "POLYBLOCKS_DEBUG": str(work),
        "POLYBLOCKS_DEBUG_PASSES": "1",
        # An empty one: what comes from a cache is not compiled.
        "POLYBLOCKS_CACHE_DIR": str(cache),
    }
    saved = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def folders_of(work: Path) -> list[Path]:
    """The folders of dumps below ``work``, in the order in which they were made."""
    folders = [f for f in work.iterdir() if f.is_dir() and f.name != "cache"]
    return sorted(folders, key=lambda f: f.stat().st_mtime_ns)
