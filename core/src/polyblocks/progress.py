"""The progress line: which stage and pass runs, once a compilation takes longer than a second.

Drawn on stderr, only where that is a terminal; ``POLYBLOCKS_PROGRESS=0`` turns it off.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any, TextIO

from polyblocks.events import Event
from polyblocks.isolation import forks

#: Seconds that a compilation may take without a word.
PATIENCE_S = 1.0


class ProgressLine:
    """Watches events; shows a line from ``patience`` seconds after a compilation began.

    Args:
        stream: where to draw.
        patience: seconds before the line appears.
    """

    def __init__(self, stream: TextIO | None = None, patience: float = PATIENCE_S) -> None:
        self._stream = stream
        self._patience = patience
        self._lock = forks.lock()
        self._running = 0
        self._text = ""
        self._timer: threading.Timer | None = None
        self._status: Any = None
        _lines.add(self)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.kind == "compile-begin":
            self._begin(event.data.get("name", ""), event.data.get("target", ""))
        elif event.kind == "compile-end":
            self._end()
        elif event.kind == "stage-begin":
            self._say(f"stage {event.data.get('stage', '')}")
        elif event.kind == "pass-begin":
            self._say(f"stage {event.data.get('stage', '')}, pass {event.data.get('name', '')}")

    def _begin(self, name: str, target: str) -> None:
        with self._lock:
            self._running += 1
            self._name = f"compiling {name} for {target}"
            self._text = self._name
            if self._timer is None:
                self._timer = threading.Timer(self._patience, self._show)
                self._timer.daemon = True
                self._timer.start()

    def _say(self, what: str) -> None:
        with self._lock:
            if self._running:
                self._text = f"{self._name}: {what}"
                if self._status is not None:
                    self._status.update(self._text)

    def _end(self) -> None:
        with self._lock:
            self._running = max(0, self._running - 1)
            if self._running:
                return
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._status is not None:
                self._status.stop()
                self._status = None

    def _show(self) -> None:
        # In the timer's thread, so that a compilation of less than a second never imports rich.
        from rich.console import Console

        with self._lock:
            if self._running and self._status is None:
                console = Console(file=self._stream or sys.stderr)
                self._status = console.status(self._text)
                self._status.start()


_lines: weakref.WeakSet[ProgressLine] = weakref.WeakSet()


@forks.in_child
def _forget() -> None:
    """The compilations of other threads, and the threads that draw, are in the parent alone."""
    for line in list(_lines):
        line._running, line._timer, line._status = 0, None, None


def wanted(stream: TextIO | None = None) -> bool:
    """Whether to draw: the stream (stderr) is a terminal and the user did not turn it off."""
    stream = stream or sys.stderr
    on = os.environ.get("POLYBLOCKS_PROGRESS", "1") not in ("", "0")
    return on and stream is not None and stream.isatty()
