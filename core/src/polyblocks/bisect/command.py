"""The command ``polyblocks bisect``, without its options of the compiler."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from polyblocks.bisect.collect import (
    Compilation,
    collect_file,
    collect_folder,
    collect_function,
    collect_script,
)
from polyblocks.bisect.search import Result, Settings, search
from polyblocks.errors import InputError
from polyblocks.options import CompileOptions

#: Of the JSON output.
SCHEMA = 1
_COLOURS = {"ok": "green", "reference": "green", "unchanged": "dim", "not runnable": "yellow"}


def run(
    what: str,
    arguments: Sequence[str],
    options: Mapping[str, Any],
    settings: Settings,
    after: str | None = None,
    inputs: Sequence[str] = (),
) -> list[Result]:
    """Search in a file, a folder, a function or all that a script compiles; see the command's help.

    Raises:
        InputError: there is nothing to search in, or nothing that can be run.
        OptionError, TargetError, PluginError: an option or the target cannot be used.
    """
    if settings.rounds < 1:
        raise InputError(f"--rounds is at least 1, not {settings.rounds}")
    collect: Callable[[Path], list[Compilation]]
    file, _, function = what.rpartition(":")
    if file.endswith(".py"):
        collect = partial(collect_function, Path(file), function, inputs, options)
    elif inputs:
        raise InputError(f"--input is for FILE.py:FUNCTION, not for {what}")
    elif what.endswith(".py"):
        collect = partial(collect_script, Path(what), arguments)
    else:
        collect = partial(_collect_modules, Path(what), CompileOptions.from_dict(options), after)
    if arguments and not what.endswith(".py"):
        raise InputError(f"only a script takes arguments, not {what}: {' '.join(arguments)}")
    with tempfile.TemporaryDirectory(prefix="polyblocks-bisect-") as folder:
        return [search(compilation, settings) for compilation in collect(Path(folder))]


def _collect_modules(
    path: Path, options: CompileOptions, after: str | None, work: Path
) -> list[Compilation]:
    if path.is_dir():
        return [collect_folder(path, options, work)]
    return [collect_file(path, options, work, after)]


def to_json(results: Sequence[Result]) -> dict[str, Any]:
    """The output of ``--json``."""
    return {"schema": SCHEMA, "programs": [dataclasses.asdict(result) for result in results]}


def table_of(result: Result) -> Table:
    """One row per pass."""
    table = Table("pass", "result", "ms", "", box=None)
    for row in result.rows:
        colour = _COLOURS.get(row.status, "red")
        status = f"[{colour}]{row.status}[/]" if row.status else ""
        detail = f"{row.reason} [{row.kind} inputs]" if row.kind else row.reason
        if row.error is not None:
            detail = f"off by {row.error:.3g}; {detail}"
        seconds = f"{row.seconds * 1e3:.0f}" if row.seconds else ""
        # Text, not markup: messages hold brackets.
        table.add_row(row.label, status, seconds, _plain(detail))
    return table


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def verdict(result: Result) -> str:
    """The outcome of a search in words, one fact per line."""
    inputs = f"{len(result.kinds)} rounds ({', '.join(result.kinds)}), seed {result.seed}"
    if not result.suspects:
        return f"{result.name}: no pass changes what is computed; {inputs}"
    bad = result.bad
    assert bad is not None
    does = {"differs": "changes what is computed", "fails": "breaks the program"}
    first = " or ".join(f"'{label}'" for label in result.suspects)
    what = does.get(bad.status, "cannot be run itself")
    lines = [f"{result.name}: the first pass that {what} is {first}; {inputs}"]
    if result.reproducer is not None:
        lines.append(f"before it: {result.reproducer}")
        lines.append(f"it alone:  {result.command}")
    return "\n".join(lines)
