"""The logs of Dynamo: work that only they show is left out where they do not; and their errors.

PyTorch times the guards of every frame that it has compiled, once, and before that it clears the
caches of the chip by writing 32 MiB, on fresh pages: a tenth of the time of a small function's
first call. For the line of each call it looks up the function around it, for which it takes all of
the file apart into tokens: 15 ms for a thousand lines.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch._dynamo import convert_frame, guards, output_graph, symbolic_convert

_thread = threading.local()


@contextmanager
def without_logs() -> Iterator[None]:
    """Let this thread compile frames inside the block without that work.

    It is done where a log of Dynamo's shows it.
    """
    _install()
    before = getattr(_thread, "silent", (False, False))
    _thread.silent = not _shows(guards.guards_log), not _shows(*_logs_of_lines())
    try:
        yield
    finally:
        _thread.silent = before


@contextmanager
def suppressed_errors() -> Iterator[list[Exception]]:
    """The errors for which Dynamo leaves frames of this thread to Python inside the block.

    It writes them to its log, and gives no reason elsewhere.
    """
    _install()
    before = getattr(_thread, "suppressed", None)
    found: list[Exception] = []
    _thread.suppressed = found
    try:
        yield found
    finally:
        _thread.suppressed = before


@functools.cache
def _install() -> None:
    """Ask in PyTorch's functions whether to do the work; other versions lack some."""
    _replace(guards, "profile_guard_manager", _unless_silent(0, 0.0))
    _replace(symbolic_convert, "get_funcname", _unless_silent(1, None))
    _replace(convert_frame, "format_error_msg", _noted)


def _replace(module: Any, name: str, wrapper: Callable[[Callable[..., Any]], Any]) -> None:
    original: Callable[..., Any] | None = getattr(module, name, None)
    if original is not None:
        setattr(module, name, wrapper(original))


def _unless_silent(which: int, instead: Any) -> Callable[[Callable[..., Any]], Any]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            if getattr(_thread, "silent", (False, False))[which]:
                return instead
            return original(*args)

        return asked

    return wrap


def _noted(original: Callable[..., Any]) -> Callable[..., Any]:
    def noted(error: Exception, *args: Any) -> Any:
        found = getattr(_thread, "suppressed", None)
        if found is not None:
            found.append(error)
        return original(error, *args)

    return noted


def _logs_of_lines() -> list[logging.Logger]:
    names = ("trace_call_log", "trace_source_log")
    modules = (output_graph, symbolic_convert)
    logs = (getattr(module, name, None) for module in modules for name in names)
    return [log for log in logs if log is not None]


def _shows(*logs: logging.Logger) -> bool:
    return any(log.isEnabledFor(logging.DEBUG) for log in logs)
