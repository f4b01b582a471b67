"""Files of the code of plugins: of a plugin's own package, and of the modules that it imports.

Import statements are read from the text of the modules, and looked up without importing anything,
so that the answer is the same in every process, whatever it has loaded.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from itertools import islice

#: Packages whose version is part of the cache key already.
_KNOWN = frozenset({"llvmlite", "torch_mlir"})

#: Most files of an imported package that are looked at on each start: they take 0.1 s.
_MANY = 1000

# Compiled where they are used: a start without plugins of others does not need them.
_IMPORT = (
    r"(?m)^[ \t]*(?:from[ \t]+(?P<origin>\w[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<modules>[^\n]*))"
    r"|import_module\(\s*[\"'](?P<text>\w[\w.]*)[\"']"
)
_NAME = r"(?:^|,)[(\s]*(\w[\w.]*)"


def is_ours(name: str) -> bool:
    """Whether a top-level import name is ``polyblocks`` or ``polyblocks_…``."""
    return name == "polyblocks" or (name.startswith("polyblocks_") and name.isidentifier())


def plugin_files(modules: Iterable[str], installed: Callable[[str], bool]) -> Iterator[str]:
    """Rows of path, date and size of the files of plugins and of the modules that they import.

    Of a plugin these are all files of its package, or that of its module; so of what it imports,
    directly or not, outside of the folders of installed distributions. Of what it imports inside
    of them it is the file that stands for the package, and its own imports are not followed: there
    the version of the distribution tells changes. So of packages of very many files.

    Args:
        modules: import names of the plugins' modules.
        installed: whether a folder is one of installed distributions.
    """
    done: set[str] = set()
    waiting = [(name, True) for name in modules]
    while waiting:
        name, whole = waiting.pop()
        # Modules named ``polyblocks…`` are hashed anyway.
        found = None if not whole and is_ours(name.partition(".")[0]) else _locate(name, done)
        if found is None:
            continue
        entries = list(_entries(found.place, found.name)) if whole else _followed(found, installed)
        if entries is None:
            yield from files(found.file, found.name)
            continue
        for row, path in entries:
            yield row
            if path.endswith(".py"):
                waiting += [(imported, False) for imported in _imports(path)]


def _followed(found: _Found, installed: Callable[[str], bool]) -> list[tuple[str, str]] | None:
    """The files of an imported package; None if one stands for all of them."""
    if installed(os.path.dirname(found.place)):
        return None
    entries = list(islice(_entries(found.place, found.name), _MANY + 1))
    return entries if len(entries) <= _MANY else None


def files(place: str, name: str) -> Iterator[str]:
    """A row of path, date and size for a file, or for each file in a folder and below.

    Args:
        place: the file or folder. In a ZIP file, the row is that of the ZIP file.
        name: what rows call it.
    """
    return (row for row, _ in _entries(place, name))


def _entries(place: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        yield from _entries(entry.path, f"{name}/{entry.name}")
                else:
                    yield _row(f"{name}/{entry.name}", entry.stat()), entry.path
    except NotADirectoryError:
        while not os.path.exists(place):
            place = os.path.dirname(place)
        yield _row(name, os.stat(place)), place
    except OSError:
        yield f"{name} unreadable\n", place


def _row(name: str, stat: os.stat_result) -> str:
    return f"{name} {stat.st_mtime_ns} {stat.st_size}\n"


def _imports(path: str) -> set[str]:
    """Dotted names that a Python file imports, or that it takes from what it imports."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return set()
    names: set[str] = set()
    for match in re.finditer(_IMPORT, text):
        if origin := match["origin"]:
            names |= {f"{origin}.{name}" for name in re.findall(_NAME, match["names"])} or {origin}
        elif match["text"]:
            names.add(match["text"])
        else:
            names.update(re.findall(_NAME, match["modules"]))
    return names


class _Found:
    """Where the code of a name is: of the outermost package on the way to it that has a file."""

    def __init__(self, name: str, spec: ModuleSpec) -> None:
        assert spec.origin is not None
        self.name = name
        self.file = spec.origin
        self.place = spec.origin
        if spec.submodule_search_locations is not None:
            self.place = os.path.dirname(spec.origin)


def _locate(name: str, done: set[str]) -> _Found | None:
    """Find a name; None if it was found before, is known otherwise, or is not there."""
    first, *rest = name.split(".")
    if first in sys.stdlib_module_names or first in _KNOWN or first in done:
        return None
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError, AttributeError):  # such as ``__main__``, which has none
        spec = None
    found = first
    while spec is not None and spec.origin is None and spec.submodule_search_locations:
        if not rest:
            return None
        found, rest = f"{found}.{rest[0]}", rest[1:]
        if found in done:
            return None
        spec = PathFinder.find_spec(found, list(spec.submodule_search_locations))
    done.add(found)
    return _Found(found, spec) if spec is not None and spec.has_location else None
