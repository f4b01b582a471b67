"""Versions of everything that generates code, for the cache key and for reports.

Read from the names of metadata folders and from file dates, without importing anything: every warm
start computes them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping

from polyblocks.cache.sources import files, is_ours, plugin_files

#: Distributions whose version changes the generated code, besides our own.
GENERATORS = ("torch-mlir", "llvmlite")

_METADATA = re.compile(r"(?P<name>[\w.]+)-(?P<version>[^-]+)(-.*)?\.(dist|egg)-info")

_REQUIRES = r"(?m)^Requires-Dist:\s*(?P<name>[A-Za-z0-9][\w.-]*)[^;\n]*;?(?P<marker>[^\n]*)$"


def toolchain_versions(plugins: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Versions by distribution name, and a digest of the sources of compiler and plugins.

    Covered are all installed distributions called ``polyblocks-…``, the libraries of
    :data:`GENERATORS`, and the Python interpreter; of the plugins of others, their distributions
    and those that these require, directly or not. ``sources`` is a digest of path, date and size of
    the files of the ``polyblocks…`` packages, and of the plugins of others with what they import
    (:func:`polyblocks.cache.sources.plugin_files`), so that what was made by code that has changed
    since is not served from the cache. Computed once per process.

    Args:
        plugins: module and distribution of each plugin of others that may change generated code.
    """
    return dict(_versions(tuple(sorted(set(plugins)))))


@functools.cache
def _versions(plugins: tuple[tuple[str, str], ...]) -> dict[str, str]:
    versions = {"python": f"{sys.implementation.cache_tag}-{sys.platform}"}
    packages = {}
    for name, module in list(sys.modules.items()):
        if is_ours(name) and (file := getattr(module, "__file__", None)):
            whole = hasattr(module, "__path__")
            packages[name] = os.path.dirname(file) if whole else file
    installed: dict[str, tuple[str, str]] = {}
    folders = set()
    for folder in dict.fromkeys(sys.path):
        for name in _names(folder or os.curdir):
            if match := _METADATA.fullmatch(name):
                dist = _normal(match["name"])
                place = os.path.join(folder, name)
                installed.setdefault(dist, (match["version"], place))
                if name.endswith(".dist-info"):
                    folders.add(folder)
            elif is_ours(name.removesuffix(".py")) and name.removesuffix(".py") not in packages:
                place = os.path.join(folder or os.curdir, name)
                if name.endswith(".py") or os.path.isfile(os.path.join(place, "__init__.py")):
                    packages[name.removesuffix(".py")] = place
    wanted = {dist for dist in installed if dist in GENERATORS or dist.startswith("polyblocks-")}
    wanted |= _required((_normal(dist) for _, dist in plugins), installed)
    versions |= {dist: installed[dist][0] for dist in wanted}
    digest = hashlib.sha256()
    for name, place in sorted(packages.items()):
        for row in sorted(files(place, name)):
            digest.update(row.encode())
    for row in sorted(plugin_files([module for module, _ in plugins], folders.__contains__)):
        digest.update(row.encode())
    versions["sources"] = digest.hexdigest()[:32]
    return dict(sorted(versions.items()))


def _required(roots: Iterable[str], installed: Mapping[str, tuple[str, str]]) -> set[str]:
    """These distributions and all that they require, as far as they are installed."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in installed and name not in found:
            found.add(name)
            required = _requirements(installed[name][1])
            # Other requirements of the compiler do not affect generated code.
            waiting += [other for other in required if not other.startswith("polyblocks-")]
    return found


def _requirements(metadata: str) -> list[str]:
    """Names of the distributions that a distribution requires, those of its extras left out."""
    try:
        with open(os.path.join(metadata, "METADATA"), encoding="utf-8", errors="replace") as file:
            header = file.read().partition("\n\n")[0]
    except OSError:  # installed by a tool that wrote none
        return []
    found = re.finditer(_REQUIRES, header)
    return [_normal(row["name"]) for row in found if "extra" not in row["marker"]]


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # a ZIP file, or a folder that is not there
        return []
