"""Which frontend is meant, where a program does not say so."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from polyblocks.errors import InputError, PluginError
from polyblocks.hookspecs import CompiledFunction
from polyblocks.registry.registry import FRONTENDS, get_registry


def chosen_frontend(function: Any = None) -> str:
    """The frontend for a function.

    The only one that is installed; else the one that compiled it already; else the only one whose
    framework the function's module uses; else the only one whose framework the program has
    imported.

    Args:
        function: the function or module to be compiled, if there is one yet.

    Raises:
        PluginError: no frontend is installed.
        InputError: it is not clear which one is meant.
    """
    installed = get_registry().names(FRONTENDS)
    if not installed:
        raise PluginError("no frontend is installed; pip install polyblocks-torch")
    if len(installed) == 1:
        return installed[0]
    if isinstance(function, CompiledFunction):
        name = function.polyblocks_report().frontend
        if name in installed:
            return str(name)
    frameworks = {name: framework_of(name) for name in installed}
    for known in (_packages_used_by(function), sys.modules):
        candidates = [name for name, used in frameworks.items() if used and used in known]
        if len(candidates) == 1:
            return candidates[0]
    raise InputError(
        f"several frontends are installed ({', '.join(installed)}); "
        f"say which with frontend={installed[0]!r}, or import its framework where the function is"
    )


def framework_of(frontend: str) -> str:
    """Import name of the framework that a frontend is for; empty if it does not say so, or fails.

    Plugins load no framework themselves.
    """
    try:
        return str(get_registry().frontend(frontend).hook.framework())
    except PluginError:
        return ""


def _packages_used_by(function: Any) -> set[str]:
    """Packages of the classes of an object, and of what a function's module has imported."""
    while isinstance(function, functools.partial):
        function = function.func
    found = {each.__module__ for each in type(function).__mro__}
    for value in getattr(function, "__globals__", {}).values():
        if isinstance(value, ModuleType):
            found.add(value.__name__)
        else:
            found.add(str(getattr(value, "__module__", "")))
    return {name.partition(".")[0] for name in found}
