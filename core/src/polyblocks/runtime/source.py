"""Python source that is generated, compiled once and called many times.

The code around a launch is generated for one program, without loops or lookups.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from typing import Any

_count = 0


class Source:
    """Lines of one function ``call`` and the objects that they name.

    Args:
        parameters: its parameter list.
    """

    def __init__(self, parameters: str = "args") -> None:
        self.parameters = parameters
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}

    def add(self, line: str, depth: int = 1) -> None:
        """Append one line."""
        self.lines.append("    " * depth + line)

    def name(self, prefix: str, value: Any) -> str:
        """A global name for an object; the same object gets the same name."""
        for known, held in self.names.items():
            if held is value and known.startswith(prefix):
                return known
        made = f"{prefix}{len(self.names)}"
        self.names[made] = value
        return made

    def text(self) -> str:
        """The source text."""
        return "\n".join([f"def call({self.parameters}):", *self.lines, ""])

    def build(self, label: str) -> Callable[..., Any]:
        """Compile it; the text is ``polyblocks_source`` of the function."""
        global _count
        _count += 1
        file = f"<polyblocks {label} {_count}>"
        text = self.text()
        # For tracebacks. A list entry without a time is never checked against the disk.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        scope = dict(self.names)
        exec(compile(text, file, "exec"), scope)
        # A function that is in its own scope would outlive its last reference.
        call: Callable[..., Any] = scope.pop("call")
        weakref.finalize(call, linecache.cache.pop, file, None).atexit = False
        call.polyblocks_source = text  # type: ignore[attr-defined]
        return call
