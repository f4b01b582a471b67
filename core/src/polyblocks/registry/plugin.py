"""One loaded plugin: what it declared, and callers of its hooks alone."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pluggy

from polyblocks import events, hookspecs
from polyblocks.errors import PluginError
from polyblocks.events import Event

#: Entry-point group -> what a plugin of it is called.
GROUPS: dict[str, str] = {
    "polyblocks.frontends": "frontend",
    "polyblocks.targets": "target",
    "polyblocks.extensions": "extension",
}

#: Kind of plugin -> the hooks that it cannot do without.
REQUIRED_HOOKS: dict[str, tuple[str, ...]] = {
    "frontend": ("fingerprint", "import_program", "array_interface"),
    "target": ("describe_target", "lower_program", "load_artifact"),
    "extension": (),
}


@dataclass(frozen=True)
class Provider:
    """One row of ``polyblocks plugins``: an entry point and what became of it.

    Attributes:
        group: entry-point group, e.g. ``polyblocks.targets``.
        name: entry-point name, e.g. ``cpu``.
        distribution: the installed distribution that brings it; empty if unknown.
        version: that distribution's version; empty if unknown.
        module: the entry point's value.
        api: ``POLYBLOCKS_API`` as declared; empty before it is loaded.
        status: ``available`` (not loaded yet), ``loaded``, ``broken`` (its import failed),
            ``refused`` (loaded, but not fit to be called; or two have this name) or ``disabled``
            (``POLYBLOCKS_PLUGINS`` leaves it out).
        error: one line that says why it is broken or refused.
    """

    group: str
    name: str
    distribution: str
    version: str
    module: str
    api: str = ""
    status: str = "available"
    error: str = ""

    @property
    def kind(self) -> str:
        """``frontend``, ``target`` or ``extension``."""
        return GROUPS[self.group]

    def __str__(self) -> str:
        origin = " ".join(part for part in (self.distribution, self.version) if part)
        return f"{self.kind} '{self.name}' ({origin or self.module})"


class Hooks:
    """Callers of one plugin's hooks: ``plugin.hook.lower_program(module=..., ...)``.

    A hook that the plugin does not implement gives what its specification does. A hook that gives
    a result raises PluginError where that, or the plugin's, is None; one without does nothing.
    """

    def __init__(self, manager: pluggy.PluginManager, label: str) -> None:
        self._manager = manager
        self._label = label

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in hookspecs.INTERFACES[hookspecs.API_VERSION]:
            raise AttributeError(f"no hook '{name}'; {_nearest_hook(name)}")
        caller = getattr(self._manager.hook, name)

        def call(**arguments: Any) -> Any:
            implemented = caller.get_hookimpls()
            result = caller(**arguments) if implemented else caller.spec.function(**arguments)
            if result is None and caller.spec.opts["firstresult"]:
                raise PluginError(f"{self._label} gives no result for the hook '{name}'")
            return result

        return call


@dataclass(frozen=True, eq=False)
class Plugin:
    """A plugin that is loaded and accepted.

    Attributes:
        provider: its row in the list of providers.
        implementation: the module or object that the entry point names.
        hook: callers of its hooks.
        hooks: names of the hooks that it implements.
    """

    provider: Provider
    implementation: Any
    hook: Hooks
    hooks: tuple[str, ...]

    @property
    def name(self) -> str:
        """The entry point's name."""
        return self.provider.name

    def __str__(self) -> str:
        return str(self.provider)


def make_plugin(provider: Provider, implementation: Any) -> Plugin:
    """Check what an entry point named and make callers of its hooks.

    Each plugin has a pluggy manager to itself, so that calling one plugin never reaches another
    and loading one never disturbs a call that runs in another thread.

    Raises:
        PluginError: no ``POLYBLOCKS_API`` or one that this core does not speak, an unknown hook, a
            function named like a hook that is not marked as one, a hook with arguments that it
            does not have, or one missing that this kind needs.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    hooks = implemented_hooks(manager, implementation)
    current = hookspecs.INTERFACES[hookspecs.API_VERSION]
    unknown = [hook for hook in hooks if hook not in current]
    if unknown:
        raise PluginError(
            f"{provider} implements an unknown hook '{unknown[0]}'; {_nearest_hook(unknown[0])}"
        )
    unmarked = [hook for hook in current if hook not in hooks and _defines(implementation, hook)]
    if unmarked:
        raise PluginError(
            f"{provider} has a function '{unmarked[0]}' that would never be called; mark it with "
            "@polyblocks.hookimpl, or call it otherwise if it is not meant as the hook"
        )
    try:
        manager.register(implementation, provider.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        detail = " ".join(str(error).split())
        raise PluginError(f"{provider} does not fit the hooks: {detail}") from None
    missing = [hook for hook in REQUIRED_HOOKS[provider.kind] if hook not in hooks]
    if missing:
        raise PluginError(
            f"{provider} lacks the hook '{missing[0]}', which every {provider.kind} implements"
        )
    _check_versions(provider, implementation, hooks)
    if tracing():
        _trace(manager, provider)
    row = dataclasses.replace(
        provider, status="loaded", api=str(getattr(implementation, "POLYBLOCKS_API", ""))
    )
    return Plugin(row, implementation, Hooks(manager, str(provider)), tuple(hooks))


def _defines(implementation: Any, name: str) -> bool:
    """Whether a plugin has a function of its own of this name, one that it imports left out."""
    value = getattr(implementation, name, None)
    own = implementation.__name__ if isinstance(implementation, ModuleType) else None
    return inspect.isroutine(value) and own in (None, value.__module__)


def implemented_hooks(manager: pluggy.PluginManager, implementation: Any) -> list[str]:
    """Names of the hooks, known or not, that a module or object marks as implemented."""
    found = []
    for attribute in dir(implementation):
        options = manager.parse_hookimpl_opts(implementation, attribute)
        if options is not None:
            found.append(options.get("specname") or attribute)
    return found


def _check_versions(provider: Provider, implementation: Any, hooks: list[str]) -> None:
    current = hookspecs.INTERFACES[hookspecs.API_VERSION]
    declared = getattr(implementation, "POLYBLOCKS_API", None)
    for hook, version in _declared_versions(provider, declared, hooks).items():
        if version != current[hook]:
            older = str(provider) if version < current[hook] else "polyblocks"
            raise PluginError(
                f"{provider} was written for version {version} of the hook '{hook}', "
                f"this is version {current[hook]}; upgrade {older}"
            )


def tracing() -> bool:
    """Whether ``POLYBLOCKS_TRACE_HOOKS`` asks for a line per hook call."""
    return os.environ.get("POLYBLOCKS_TRACE_HOOKS", "") not in ("", "0")


def _trace(manager: pluggy.PluginManager, provider: Provider) -> None:
    """Make an event of every call, since most happen in a child whose output is not shown."""

    def say(hook: str, arguments: Mapping[str, Any], what: str) -> None:
        event = arguments.get("event")
        if not isinstance(event, Event) or event.kind != "hook-call":
            events.emit("hook-call", text=f"{provider.kind} '{provider.name}': {hook}{what}")

    def before(hook: str, implementations: Any, arguments: Mapping[str, Any]) -> None:
        del implementations
        listed = ", ".join(f"{name}={_brief(value)}" for name, value in arguments.items())
        say(hook, arguments, f"({listed})")

    def after(outcome: Any, hook: str, implementations: Any, arguments: Mapping[str, Any]) -> None:
        del implementations
        error = outcome.exception
        ending = " done" if error is None else f" raised {type(error).__name__}: {error}"
        say(hook, arguments, ending)

    manager.add_hookcall_monitoring(before, after)


def _brief(value: Any) -> str:
    """Events are short and worth reading; of everything else the type is enough."""
    if isinstance(value, Event):
        return f"{value.kind} {value.data}"
    return repr(value) if isinstance(value, (int, str, type(None))) else type(value).__name__


def _declared_versions(provider: Provider, declared: Any, hooks: list[str]) -> dict[str, int]:
    """The version that the plugin declared for each hook that it implements."""
    if declared is None:
        raise PluginError(
            f"{provider} does not say which interface it was written for; "
            f"add POLYBLOCKS_API = {hookspecs.API_VERSION} to it"
        )
    if isinstance(declared, Mapping):
        unsaid = [hook for hook in hooks if not isinstance(declared.get(hook), int)]
        if unsaid:
            raise PluginError(
                f"{provider} implements the hook '{unsaid[0]}' but its POLYBLOCKS_API "
                "says no version for it"
            )
        return {hook: declared[hook] for hook in hooks}
    interface = hookspecs.INTERFACES.get(declared) if isinstance(declared, int) else None
    if interface is None:
        known = ", ".join(str(n) for n in hookspecs.INTERFACES)
        raise PluginError(
            f"{provider} was written for POLYBLOCKS_API {declared!r}, this polyblocks speaks "
            f"{known}; install versions of the two that fit"
        )
    # A hook that its interface did not have yet can only be a mistake: version 0 fits nothing.
    return {hook: interface.get(hook, 0) for hook in hooks}


def _nearest_hook(name: str) -> str:
    known = hookspecs.INTERFACES[hookspecs.API_VERSION]
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"the hooks are {', '.join(known)}"
