"""Versions of everything that generates code, for the cache key and for reports.

Read from the names of metadata folders and from file dates, without importing anything: this is
on the way of every warm start.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterator

#: Distributions whose version changes the generated code, besides our own.
GENERATORS = ("torch-mlir", "llvmlite")

_METADATA = re.compile(r"(?P<name>[\w.]+)-(?P<version>[^-]+)(-.*)?\.(dist|egg)-info")


def toolchain_versions(packages: tuple[str, ...] = ()) -> dict[str, str]:
    """Versions by distribution name, and a digest of our own sources.

    Covered are all installed distributions called ``polyblocks-…``, the libraries of
    :data:`GENERATORS`, and the Python interpreter. ``sources`` is a digest of path, date and size
    of the files of the ``polyblocks…`` packages, so that an edited pass is not served from the
    cache. Computed once per process.

    Args:
        packages: import names of further packages that generate code (plugins of others), loaded
            already.
    """
    return dict(_versions(tuple(sorted(set(packages)))))


@functools.cache
def _versions(more: tuple[str, ...]) -> dict[str, str]:
    versions = {"python": f"{sys.implementation.cache_tag}-{sys.platform}"}
    packages = {}
    for name, module in list(sys.modules.items()):
        if _is_ours(name) or name in more:
            for place in getattr(module, "__path__", [])[:1]:
                packages[name] = place
    for folder in dict.fromkeys(sys.path):
        for name in _names(folder or os.curdir):
            if match := _METADATA.fullmatch(name):
                dist = re.sub(r"[-_.]+", "-", match["name"]).lower()
                if dist in GENERATORS or dist.startswith("polyblocks-"):
                    versions.setdefault(dist, match["version"])
            elif _is_ours(name):
                place = os.path.join(folder or os.curdir, name)
                if name not in packages and os.path.isfile(os.path.join(place, "__init__.py")):
                    packages[name] = place
    digest = hashlib.sha256()
    for name, place in sorted(packages.items()):
        for row in sorted(_files(place, name)):
            digest.update(row.encode())
    versions["sources"] = digest.hexdigest()[:32]
    return dict(sorted(versions.items()))


def _is_ours(name: str) -> bool:
    return name == "polyblocks" or (name.startswith("polyblocks_") and name.isidentifier())


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # a ZIP file, or a folder that is not there
        return []


def _files(place: str, name: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        yield from _files(entry.path, f"{name}/{entry.name}")
                else:
                    stat = entry.stat()
                    yield f"{name}/{entry.name} {stat.st_mtime_ns} {stat.st_size}\n"
    except OSError:
        yield f"{name} unreadable\n"
