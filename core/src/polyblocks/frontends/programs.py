"""Frontends' common handling of a captured program: get its artifact, load it once."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from polyblocks import driver, events
from polyblocks.artifact import Artifact
from polyblocks.errors import UnsupportedError
from polyblocks.isolation import forks
from polyblocks.options import CompileOptions

if TYPE_CHECKING:
    from polyblocks.runtime.executable import Executable

#: Programs that are loaded in this process, so that equal functions share one.
_loaded: weakref.WeakValueDictionary[tuple[Any, ...], Executable] = weakref.WeakValueDictionary()
_load_lock = forks.lock()


def obtain(capture: Any, frontend: str, options: CompileOptions) -> tuple[Artifact, bool]:
    """The artifact of a capture, and whether the cache had it.

    Raises:
        UnsupportedError, TargetError, PluginError: see :func:`polyblocks.driver.compile_capture`.
    """
    hits: list[bool] = []

    def watch(event: events.Event) -> None:
        if event.kind in ("cache-hit", "cache-miss"):
            hits.append(event.kind == "cache-hit")

    with events.listening(watch):
        artifact = driver.compile_capture(capture, frontend, options)
    return artifact, all(hits)


def obtain_part(capture: Any, frontend: str, options: CompileOptions) -> tuple[Artifact, bool]:
    """As :func:`obtain`, for a part of a larger capture, which is not partitioned again.

    Raises:
        UnsupportedError: also where a capture that is equal to the part was met alone before, and
            is compiled in parts.
    """
    artifact, hit = obtain(capture, frontend, options)
    if artifact.manifest["kind"] != "program":
        rows = [*artifact.manifest["plan"]["left"], {"op": "", "reason": "it compiles in parts"}]
        raise UnsupportedError(rows[0]["reason"], op=rows[0]["op"] or None)
    return artifact, hit


def load(digest: bytes, artifact: Artifact, options: CompileOptions) -> Executable:
    """The program, loaded once per process; with ``options.debug`` anew.

    Args:
        digest: identifies the captured program, see the hook ``fingerprint``.
        artifact: of that program, for these options.
        options: the checked options.
    """
    key = (digest, options.cache_key(), options.use_graph, options.device_one_time_load)
    if not driver.loads_really():
        return driver.load(artifact, options=options)
    with _load_lock:
        executable = None if options.debug else _loaded.get(key)
        if executable is None:
            executable = driver.load(artifact, options=options)
            _loaded[key] = executable
    return executable
