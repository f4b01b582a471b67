"""Where in the user's source an operation comes from."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

import tensorflow as tf
from tensorflow.python.util import tf_stack

from polyblocks_tf.tracing.graph import everything


@functools.cache
def _library_prefixes() -> tuple[str, ...]:
    keras = importlib.util.find_spec("keras")
    places = (tf.__file__, keras and keras.origin, __file__)
    return tuple(os.path.dirname(os.path.abspath(place)) + os.sep for place in places if place)


def source_location(op: Any) -> str:
    """``file:line`` of the innermost frame that is not a library's own; empty where unknown."""
    try:
        # None of operations that were loaded: a SavedModel has no source.
        frames = [(frame.filename, frame.lineno) for frame in op.traceback or ()]
    except (AttributeError, ValueError):
        return ""
    return _users(frames)


def call_location() -> str:
    """``file:line`` of the user's frame that is being executed, or empty."""
    return _users([(frame.filename, frame.lineno) for frame in tf_stack.extract_stack()])


def _users(frames: list[tuple[str, int]]) -> str:
    for file, line in reversed(frames):
        if not file.startswith(_library_prefixes()) and not file.startswith("<"):
            return f"{file}:{line}"
    return ""


#: Operations that run a function, whose own operations are the ones to name.
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


class Locations:
    """Operations of a traced function by name; looked up when they are asked for.

    Copies of the function, and what XLA makes of it, keep the names.
    """

    def __init__(self, func_graph: Any) -> None:
        self._graph = func_graph

    @functools.cached_property
    def _operations(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for op in everything(self._graph):
            if op.type not in ("Placeholder", "Const"):
                found.setdefault(op.name, op)
        return found

    def find(self, name: str) -> tuple[str, str]:
        """Type and source line of an operation; empty where unknown.

        Args:
            name: its name; perhaps with those of its callers in front, and behind it that of
                an operation that stands for a part of it.
        """
        parts = name.split("/")
        caller = None
        for first in range(len(parts)):
            for last in range(len(parts), first, -1):
                op = self._operations.get("/".join(parts[first:last]))
                if op is not None and op.type not in _CALLS:
                    return op.type, source_location(op)
                caller = caller or op
        return (caller.type, source_location(caller)) if caller is not None else ("", "")

    def listed(self) -> list[str]:
        """Each operation's type with its source line, for reports."""
        return list(
            dict.fromkeys(
                f"{op.type} {source_location(op)}".strip() for op in self._operations.values()
            )
        )
