"""Where an operation comes from: the framework's name of it and the user's line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from polyblocks.mlir import ir

_FILE = re.compile(r'"([^"\n]+)":(\d+):(\d+)')
_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')


class Sources:
    """Locations in the form that reports read: ``loc("op"("file":line:column))``."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str | None, str | None, Any]] = {}
        self._outer: list[tuple[str | None, str | None, Any]] = []
        self._hidden = 0

    @property
    def current(self) -> tuple[str | None, str | None]:
        """The framework's name of the operation at work and ``file:line``; None if not known."""
        name, where, _ = self._outer[-1]
        return name, where

    @contextmanager
    def location(self, op: Any) -> Iterator[None]:
        """Give operations created inside of the block the location of ``op``.

        An operation without a line of its own (a helper function's) has that of its caller.
        """
        found = self._find(op)
        if self._outer and (self._hidden or found[1] is None):
            name, where, location = self._outer[-1]
            found = name if self._hidden else found[0], where, location
        self._outer.append(found)
        try:
            with found[2]:
                yield
        finally:
            self._outer.pop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Operations inside the block come from the one outside."""
        self._hidden += 1
        try:
            yield
        finally:
            self._hidden -= 1

    def _find(self, op: Any) -> tuple[str | None, str | None, Any]:
        text = str(op.location)
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._read(text, op)
        return found

    @staticmethod
    def _read(text: str, op: Any) -> tuple[str | None, str | None, Any]:
        named, file = _NAME.match(text), _FILE.search(text)
        name = None
        if named is not None and not text.startswith('loc("' + named[1] + '":'):
            # "jit(f)/while/body/add" and "add": the last part names the operation.
            name = named[1].rstrip(":").rsplit("/", 1)[-1] or None
        context = op.context
        if file is None:
            return name, None, ir.Location.name(name or op.name, context=context)
        place = ir.Location.file(file[1], int(file[2]), int(file[3]), context=context)
        location = ir.Location.name(name or op.name, place, context=context)
        return name, f"{file[1]}:{file[2]}", location
