"""Registry: stevedore finds plugins by their entry-point names, pluggy calls them.

Naming a target or a frontend loads that plugin alone. Extensions concern every compilation and
are loaded before the first. A plugin that cannot be loaded is recorded with its error and stops
only those who ask for it by name.

``POLYBLOCKS_PLUGINS=cpu,torch`` leaves all plugins out that are not on the list;
``POLYBLOCKS_TRACE_HOOKS=1`` prints every hook call to stderr.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.metadata
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from stevedore import NamedExtensionManager

from polyblocks import events, progress
from polyblocks.errors import PluginError, PolyBlocksError, TargetError
from polyblocks.isolation import forks
from polyblocks.registry.plugin import GROUPS, Plugin, Provider, make_plugin, tracing

log = logging.getLogger("polyblocks")

FRONTENDS, TARGETS, EXTENSIONS = GROUPS

#: Names that have an official plugin -> the distribution to install for it.
OFFICIAL: dict[str, dict[str, str]] = {
    FRONTENDS: {"torch": "polyblocks-torch", "tf": "polyblocks-tf", "jax": "polyblocks-jax"},
    TARGETS: {"cpu": "polyblocks-cpu", "nvgpu": "polyblocks-nvgpu", "amdgpu": "polyblocks-amdgpu"},
    EXTENSIONS: {},
}

Observer = Callable[[events.Event], None]


class Registry:
    """The plugins of this process. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = forks.rlock()
        self._found: dict[tuple[str, str], list[Provider]] = {}
        self._loaded: dict[tuple[str, str], Plugin] = {}
        self._failed: dict[tuple[str, str], Provider] = {}
        self._extensions: tuple[Plugin, ...] | None = None
        self._observers: tuple[tuple[str, Observer], ...] = ()
        self._entry_points: dict[tuple[str, str], importlib.metadata.EntryPoint] = {}
        installed = importlib.metadata.entry_points()
        for group in GROUPS:
            for entry_point in installed.select(group=group):
                key = (group, entry_point.name)
                self._entry_points[key] = entry_point
                self._found.setdefault(key, []).append(_provider(group, entry_point))
        if tracing():
            self.watch(_print_hook_call)

    def target(self, name: str) -> Plugin:
        """Load the target called ``name``, if that has not happened, and return it.

        Raises:
            TargetError: no plugin provides it; says what to install or the nearest name.
            PluginError: its plugin is broken or refused, or two distributions provide it.
        """
        return self._get(TARGETS, name)

    def frontend(self, name: str) -> Plugin:
        """Load the frontend called ``name``, if that has not happened, and return it.

        Raises:
            PluginError: no plugin provides it, it is broken or refused, or two provide it.
        """
        return self._get(FRONTENDS, name)

    def extensions(self) -> tuple[Plugin, ...]:
        """All extensions that load, by name; a broken one is logged once and left out."""
        if self._extensions is None:
            with forks.fork_lock, self._lock:
                if self._extensions is None:
                    self._extensions = tuple(self._load_extensions())
        return self._extensions

    def configure(self, pipeline: Any, target: Any, options: Any) -> None:
        """Call ``configure_pipeline`` of the target, then of every extension by name.

        Args:
            pipeline: the Pipeline, changed in place.
            target: the TargetDescription; its name says which target plugin is called.
            options: the CompileOptions.

        Raises:
            PluginError: an extension failed; it must not go unnoticed, since the code would differ.
        """
        arguments = {"pipeline": pipeline, "target": target, "options": options}
        self.target(target.name).hook.configure_pipeline(**arguments)
        for plugin in self.extensions():
            try:
                plugin.hook.configure_pipeline(**arguments)
            except PolyBlocksError:
                raise
            except Exception as error:
                raise PluginError(
                    f"{plugin} failed in configure_pipeline: {_one_line(error)}; "
                    "POLYBLOCKS_PLUGINS can leave it out"
                ) from error

    def observe(self, event: events.Event) -> None:
        """Give an event to every loaded plugin and watcher; what they raise is only logged."""
        for label, observer in self._observers:
            try:
                observer(event)
            except Exception:
                log.warning("%s failed while observing '%s'", label, event.kind, exc_info=True)

    def watch(self, observer: Observer, label: str = "observer") -> Callable[[], None]:
        """Send all later events to ``observer`` as well; returns a function that ends this."""
        entry = (label, observer)
        with self._lock:
            self._observers = (*self._observers, entry)

        def stop() -> None:
            with self._lock:
                self._observers = tuple(o for o in self._observers if o is not entry)

        return stop

    def loaded(self, group: str) -> list[Plugin]:
        """The plugins of a group that are loaded, by name."""
        return [self._loaded[key] for key in sorted(self._loaded) if key[0] == group]

    def names(self, group: str) -> list[str]:
        """The names that installed distributions provide in a group, without loading anything."""
        return sorted(name for found, name in self._found if found == group and _enabled(name))

    def providers(self, load: bool = False) -> list[Provider]:
        """Every entry point found, by group and name.

        Args:
            load: load what is not loaded yet, to learn its API number and whether it works.
        """
        rows = []
        for group in GROUPS:
            for name in sorted(name for found, name in self._found if found == group):
                if load and _enabled(name):
                    self._try(group, name)
                rows += [self._row(provider) for provider in self._found[group, name]]
        return rows

    def versions(self, *plugins: Plugin) -> dict[str, str]:
        """``{"target cpu": "polyblocks-cpu 0.1.0", …}`` of these plugins and all extensions.

        Part of the cache key: whatever may change generated code.
        """
        return {
            f"{p.provider.kind} {p.name}": f"{p.provider.distribution} {p.provider.version}"
            for p in (*plugins, *self.extensions())
        }

    def foreign(self, *plugins: Plugin) -> tuple[tuple[str, str], ...]:
        """Module and distribution of third-party plugins among these and all extensions.

        Those of :data:`OFFICIAL` are left out: the sources of their code are known without this.
        """
        ours = {distribution for names in OFFICIAL.values() for distribution in names.values()}
        rows = (p.provider for p in (*plugins, *self.extensions()))
        found = {(row.module.partition(":")[0].strip(), row.distribution) for row in rows}
        return tuple(sorted(row for row in found if row[1] not in ours))

    # --- loading ---------------------------------------------------------------------------------

    def _get(self, group: str, name: str) -> Plugin:
        plugin = self._loaded.get((group, name))
        if plugin is not None:
            return plugin
        if (group, name) not in self._found:
            raise self._unknown(group, name)
        if not _enabled(name):
            raise PluginError(
                f"{self._found[group, name][0]} is left out by "
                f"POLYBLOCKS_PLUGINS={os.environ['POLYBLOCKS_PLUGINS']}; add '{name}' to it"
            )
        plugin = self._try(group, name)
        if plugin is None:
            raise PluginError(self._failed[group, name].error)
        return plugin

    def _try(self, group: str, name: str) -> Plugin | None:
        """Load a plugin once; on failure record why and return None.

        One whose import failed is tried again by the next caller: what it lacks may have been
        installed.
        """
        key = (group, name)
        # No fork in the middle of an import: it would never end in the child.
        with forks.fork_lock, self._lock:
            failed = self._failed.get(key)
            if key in self._loaded or (failed is not None and failed.status != "broken"):
                return self._loaded.get(key)
            if self._failed.pop(key, None) is not None:
                importlib.invalidate_caches()
            first, *others = self._found[key]
            if others:
                origins = " and ".join(p.distribution or p.module for p in (first, *others))
                error = f"{first.kind} '{name}' is provided by {origins}; uninstall all but one"
                self._failed[key] = dataclasses.replace(first, status="refused", error=error)
                return None
            try:
                implementation = _import(self._entry_points[key])
            except (Exception, SystemExit) as problem:
                error = f"{first} cannot be loaded: {_one_line(problem)}"
                self._failed[key] = dataclasses.replace(first, status="broken", error=error)
                return None
            try:
                plugin = make_plugin(first, implementation)
            except PluginError as problem:
                self._failed[key] = dataclasses.replace(
                    first,
                    status="refused",
                    api=str(getattr(implementation, "POLYBLOCKS_API", "")),
                    error=str(problem),
                )
                return None
            self._loaded[key] = plugin
            if "observe" in plugin.hooks:
                self.watch(lambda event: plugin.hook.observe(event=event), str(plugin))
            return plugin

    def _load_extensions(self) -> list[Plugin]:
        loaded = []
        for name in self.names(EXTENSIONS):
            plugin = self._try(EXTENSIONS, name)
            if plugin is not None:
                loaded.append(plugin)
            else:
                log.warning("%s", self._failed[EXTENSIONS, name].error)
        return loaded

    def _row(self, provider: Provider) -> Provider:
        key = (provider.group, provider.name)
        if key in self._loaded:
            return self._loaded[key].provider
        if key in self._failed:
            failed = self._failed[key]
            return dataclasses.replace(
                provider, status=failed.status, api=failed.api, error=failed.error
            )
        if not _enabled(provider.name):
            return dataclasses.replace(provider, status="disabled")
        return provider

    def _unknown(self, group: str, name: str) -> PolyBlocksError:
        kind, official = GROUPS[group], OFFICIAL[group]
        installed = self.names(group)
        listed = f"installed: {', '.join(installed) or 'none'}"
        if name in official:
            message = f"{kind} '{name}' is not installed; pip install {official[name]} ({listed})"
        else:
            near = difflib.get_close_matches(name, {*installed, *official}, n=1)
            hint = f"did you mean '{near[0]}'? ({listed})" if near else listed
            message = f"unknown {kind} '{name}'; {hint}"
        return TargetError(message) if group == TARGETS else PluginError(message)


_registry: Registry | None = None
_registry_lock = forks.lock()


def get_registry() -> Registry:
    """The registry of this process, made at the first call; it becomes the sink of all events."""
    global _registry
    if _registry is None:
        with _registry_lock:
            if _registry is None:
                made = Registry()
                previous = events.set_sink(made.observe)
                if previous is not events._nobody:
                    # Somebody listens already (an isolated child relays to its parent).
                    events.set_sink(previous)
                if progress.wanted():
                    made.watch(progress.ProgressLine(), "progress line")
                _registry = made
    return _registry


def _print_hook_call(event: events.Event) -> None:
    if event.kind == "hook-call":
        print(f"polyblocks: {event.data['text']}", file=sys.stderr)


def _provider(group: str, entry_point: importlib.metadata.EntryPoint) -> Provider:
    distribution = entry_point.dist
    return Provider(
        group=group,
        name=entry_point.name,
        distribution=(distribution.name if distribution else "") or "",
        version=(distribution.version if distribution else "") or "",
        module=entry_point.value,
    )


class _OneEntryPoint(NamedExtensionManager):
    """stevedore's loader, given the entry point instead of its file cache.

    The cache knows no distributions, and tells changes of one file apart only when they lie
    minutes from each other.
    """

    def __init__(self, entry_point: importlib.metadata.EntryPoint) -> None:
        self._entry_point = entry_point
        self.problem: Exception | None = None
        super().__init__(
            entry_point.group, [entry_point.name], on_load_failure_callback=self._remember
        )

    def list_entry_points(self) -> list[importlib.metadata.EntryPoint]:
        return [self._entry_point]

    @staticmethod
    def _remember(manager: Any, entry_point: Any, error: Exception) -> None:
        del entry_point
        manager.problem = error


def _import(entry_point: importlib.metadata.EntryPoint) -> Any:
    """Load one entry point; whatever its import raises comes out."""
    loader = _OneEntryPoint(entry_point)
    if loader.problem is not None:
        raise loader.problem
    return loader[entry_point.name].plugin


def _enabled(name: str) -> bool:
    wanted = os.environ.get("POLYBLOCKS_PLUGINS")
    return wanted is None or name in {part.strip() for part in wanted.split(",")}


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
