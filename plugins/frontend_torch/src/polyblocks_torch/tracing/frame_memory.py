"""Dynamo's memory of a frame from one variant to the next: sizes and numbers.

Dynamo makes changed values symbols of the next variant. Sizes shall not: there is one variant per
shape. Numbers shall, where the program computes with them: arguments, and those of modules,
closures and globals, as counters are. An integer as a symbol ends the graph where Python reads it
(a text that it stands in, a key): then it is a constant again.

Dynamo keeps this by the code that reads a number, for the whole process. Here each decorated
function has its own: integers that differ between two models of one class are constants of both.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any

from torch._dynamo import pgo
from torch._dynamo.convert_frame import compile_lock
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.source import is_from_defaults
from torch._dynamo.utils import ExactWeakKeyDictionary, counters, graph_break_reasons
from torch._dynamo.variables import builder

from polyblocks.errors import PolyBlocksError

logger = logging.getLogger("polyblocks")

_may_break: ContextVar[bool] = ContextVar("polyblocks_integers_may_break", default=True)


class IntegersBreakGraph(Exception):
    """A graph ends early in a frame that has integers as symbols."""


def check_breaks_are_allowed() -> None:
    """Called where a graph ends early, before it is compiled.

    Raises:
        IntegersBreakGraph: the frame shall be tried with constants first.
    """
    if not _may_break.get():
        raise IntegersBreakGraph


class FrameMemory:
    """The memory of the frames of one decorated function."""

    def __init__(self) -> None:
        # By identity: code that Dynamo generates may hold constants without a hash.
        #: Code whose integers are constants.
        self._constant = ExactWeakKeyDictionary()
        #: Code whose graph ends early anyway.
        self._broken = ExactWeakKeyDictionary()
        #: Of each frame's code, what Dynamo knows of the code that is traced in it.
        self._states = ExactWeakKeyDictionary()
        #: Dynamo's own memory, which is another one after a reset.
        self._theirs: Any = None

    def converted(self, frame: Any, convert: Callable[[], Any]) -> Any:
        """Dynamo's code for a frame; changed integers are symbols if that is no loss.

        Args:
            frame: which is compiled.
            convert: lets Dynamo compile it.
        """
        with self._own_state(frame.f_code) as state:
            return self._converted(frame, convert, state)

    def _converted(self, frame: Any, convert: Callable[[], Any], state: dict[Any, Any]) -> Any:
        for entries in _entries(state):
            for name in [name for name, entry in entries.items() if isinstance(entry.size, tuple)]:
                del entries[name]
        integers = [(entries, _integers(frame, entries)) for entries in _entries(state)]
        code = frame.f_code
        known, reasons = set(counters["graph_break"]), len(graph_break_reasons)
        if any(
            entries[name].scalar != value
            for entries, found in integers
            for name, value in found.items()
        ):
            if code in self._broken:
                return convert()
            if code not in self._constant:
                try:
                    with _breaks_are_forbidden():
                        result = convert()
                    compiled = getattr(result, "guarded_code", None) is not None
                    if compiled and not set(counters["graph_break"]) - known:
                        return result
                except PolyBlocksError:
                    raise
                except Exception as error:
                    # An error that symbols did not cause comes again with constants.
                    inner = getattr(error, "inner_exception", None)
                    if isinstance(error, BackendCompilerFailed) and isinstance(
                        inner, PolyBlocksError
                    ):
                        raise
                self._constant[code] = True
                logger.debug("%s: its integers are constants", code.co_name)
                for reason in set(counters["graph_break"]) - known:
                    del counters["graph_break"][reason]
                del graph_break_reasons[reasons:]
        for entries in _entries(state):
            # Also of code that was traced in it just now.
            for name in _integers(frame, entries):
                entries.pop(name, None)
        result = convert()
        if len(graph_break_reasons) > reasons:
            self._broken[code] = True
        return result

    @contextmanager
    def _own_state(self, code: CodeType) -> Iterator[dict[Any, Any]]:
        """While this is open, Dynamo's memory is that of one frame of this function."""
        # Dynamo reads its memory under this lock alone.
        with compile_lock:
            theirs = pgo.get_code_state()
            if theirs is not self._theirs:
                self._states.clear()
                self._theirs = theirs
            if code not in self._states:
                self._states[code] = defaultdict(pgo.CodeState)
            own = self._states[code]
            pgo._CODE_STATE = own
            token = _unspecialized.set(True)
            try:
                yield own
            finally:
                _unspecialized.reset(token)
                pgo._CODE_STATE = theirs


@contextmanager
def _breaks_are_forbidden() -> Iterator[None]:
    token = _may_break.set(False)
    try:
        yield
    finally:
        _may_break.reset(token)


def _entries(state: dict[Any, Any]) -> list[dict[str, Any]]:
    """By the code that reads them: names of sources (``L['x']``), and what was seen of them."""
    return [code.automatic_dynamic for code in list(state.values())]


def _integers(frame: Any, state: dict[str, Any]) -> dict[str, int]:
    """The integers among the numbers that Dynamo remembers, and what they are now."""
    found = {}
    for name in state:
        try:
            value = eval(name, {"L": frame.f_locals, "G": frame.f_globals})
        except Exception:
            # Dynamo's name of it is no expression.
            continue
        if type(value) is int:
            found[name] = value
    return found


_unspecialized: ContextVar[bool] = ContextVar("polyblocks_integers_change", default=False)
_theirs_specialize = builder.is_int_specialization_case


def _is_specialized(value: Any, source: Any) -> bool:
    """Whether an integer is a constant for ever: not that of a module or a global.

    In PyTorch these are, so that a counter compiles at every call.
    """
    if _unspecialized.get() and not is_from_defaults(source):
        return False
    return _theirs_specialize(value, source)


builder.is_int_specialization_case = _is_specialized
