"""The one place where an option that cannot take effect is refused.

Options of :data:`polyblocks.options.FRONTEND_OPTIONS` concern the frontend alone, those of
:data:`polyblocks.options.TARGET_OPTIONS` the target. Each plugin says which of them it honours; the
core acts on all others itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyblocks.errors import OptionError, PluginError
from polyblocks.options import (
    DEFAULTS,
    EVERYWHERE,
    FRONTEND_OPTIONS,
    TARGET_OPTIONS,
    CompileOptions,
)
from polyblocks.registry.registry import get_registry
from polyblocks.target import TargetDescription


def checked_options(given: Mapping[str, Any] | None, frontend: str) -> CompileOptions:
    """Check the options that a user gives to a frontend, and that their target is installed.

    Raises:
        OptionError: unknown name, wrong value, or an option that the frontend does not honour.
        TargetError: the target is unknown or not installed; says what to install.
        PluginError: a plugin is broken, or the frontend honours an option that does not exist.
    """
    options = CompileOptions.from_dict(given)
    plugin = get_registry().frontend(frontend)
    honoured = plugin.hook.frontend_options()
    _check_names(str(plugin), honoured, FRONTEND_OPTIONS)
    for name in FRONTEND_OPTIONS:
        value = getattr(options, name)
        if value != DEFAULTS[name] and name not in honoured:
            raise _not_available(name, value, f"frontend '{frontend}'", ())
    get_registry().target(options.target)
    return options


def describe_target(options: CompileOptions) -> TargetDescription:
    """The description of the target that the options name, which honours all of them.

    Raises:
        OptionError: the target does not honour the value of an option.
        TargetError: it is unknown, its architecture is, or there is no device.
        PluginError: its plugin is broken, or honours an option that does not exist.
    """
    plugin = get_registry().target(options.target)
    description: TargetDescription = plugin.hook.describe_target(options=options)
    _check_names(str(plugin), description.options, TARGET_OPTIONS)
    for name in TARGET_OPTIONS:
        value = getattr(options, name)
        honoured = description.options.get(name, ())
        values = (*honoured, *(v for v in EVERYWHERE.get(name, ()) if v not in honoured))
        if value != DEFAULTS[name] and value not in values:
            raise _not_available(name, value, f"target '{options.target}'", values)
    return description


def _check_names(
    plugin: str, names: Mapping[str, Any] | Sequence[str], known: tuple[str, ...]
) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PluginError(
            f"{plugin} says that it honours the option '{unknown[0]}'; it can say that of "
            f"{', '.join(known)}"
        )


def _not_available(name: str, value: Any, owner: str, values: Sequence[Any]) -> OptionError:
    takes = " or ".join(repr(each) for each in (DEFAULTS[name], *values))
    return OptionError(
        f"{name}={value!r} is not available for {owner}; it takes {takes} (the default is "
        f"{DEFAULTS[name]!r}): leave the option out, or give one of these"
    )
