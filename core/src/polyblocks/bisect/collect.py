"""Compile with a dump after each pass: a file, a function, or everything that a script compiles."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyblocks import api, events
from polyblocks.artifact import Artifact
from polyblocks.bisect.steps import Step, has_passes, read_steps
from polyblocks.errors import InputError, PassError, UnsupportedError
from polyblocks.explanation.file_module import file_module, run_module
from polyblocks.explanation.run import compiled, fill, parse_input
from polyblocks.options import CompileOptions
from polyblocks.registry.frontend_choice import chosen_frontend
from polyblocks.registry.registry import get_registry


@dataclass
class Compilation:
    """The stages and passes of one program.

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
    """Take the dumps of a folder; without dumps of passes, compile its first file again.

    Raises:
        InputError: there is no dump in it; and as :func:`collect_file`.
    """
    steps = read_steps(folder)
    if not has_passes(steps):
        compilation = collect_file(steps[0].path, options, work)
        compilation.name = folder.name
        return compilation
    return as_it_is(folder, options)


def as_it_is(folder: Path, options: CompileOptions) -> Compilation:
    """The dumps of a folder, of passes or of stages, and what the code generator makes of the last.

    Raises:
        InputError: there is no dump in it.
    """
    compilation = Compilation(folder.name, read_steps(folder))
    if compilation.steps[-1].stage == "S4":
        with contextlib.suppress(PassError, UnsupportedError):
            compilation.artifact = api.compile_file(compilation.steps[-1].path, options)
    return compilation


def collect_script(path: Path, arguments: Sequence[str], work: Path) -> list[Compilation]:
    """Run a Python script; one entry per program that it compiles.

    Raises:
        InputError: there is no such file, or it compiles nothing.
    """
    with _python(path, [str(path), *arguments]), dumping(work), contextlib.suppress(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    return _collected(work, CompileOptions(), path)


def collect_function(
    path: Path, name: str, inputs: Sequence[str], options: Mapping[str, Any], work: Path
) -> list[Compilation]:
    """Call a function of a Python file with made-up arrays; one entry per program.

    Args:
        path: the file; what runs only as a script in it does not run.
        name: of a function or module in it, decorated or not.
        inputs: of each argument, ``float32[3,224,224]``.
        options: for a function that is not decorated.
        work: an empty folder for the dumps.

    Raises:
        InputError: there is no such file or function, an input is misspelt, or it compiles nothing.
    """
    specs = [parse_input(text) for text in inputs]
    with file_module(path) as module, dumping(work):
        names = run_module(module)
        if not callable(names.get(name)):
            callables = [n for n, v in names.items() if callable(v) and n[:1] != "_"]
            raise InputError(f"{path} has no function '{name}'; it has {', '.join(callables)}")
        arrays = get_registry().frontend(chosen_frontend(names[name])).hook.array_interface()
        compiled(names[name], options)(*(fill(arrays, spec) for spec in specs))
    return _collected(work, CompileOptions.from_dict(options), path)


@contextlib.contextmanager
def _python(path: Path, argv: list[str]) -> Iterator[None]:
    """Arguments and import path as for a script."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    saved = list(sys.argv), list(sys.path)
    sys.argv = argv
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path = saved


def _collected(work: Path, options: CompileOptions, path: Path) -> list[Compilation]:
    found = [as_it_is(folder, options) for folder in folders_of(work)]
    if not found:
        raise InputError(f"{path} compiles nothing")
    return found


@contextlib.contextmanager
def dumping(work: Path, passes: bool = True) -> Iterator[None]:
    """Inside, every compilation of this process dumps into ``work``, and none is cached.

    Args:
        work: an empty folder.
        passes: dump after each pass, not only after each stage.
    """
    cache = work / "cache"
    cache.mkdir(mode=0o700)
    wanted = {
        "POLYBLOCKS_DEBUG": str(work),
        "POLYBLOCKS_DEBUG_PASSES": str(int(passes)),
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
