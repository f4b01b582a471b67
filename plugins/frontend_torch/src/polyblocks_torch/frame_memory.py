"""What Dynamo remembers of a frame from one variant to the next: sizes and numbers.

What has changed becomes a symbol of the next variant. Sizes shall not: there is one variant per
shape. Numbers shall, where the program computes with them. An integer as a symbol ends the graph
where Python reads it (a text that it stands in, a key): then it is a constant again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any

from torch._dynamo import pgo
from torch._dynamo.exc import BackendCompilerFailed, TorchDynamoException
from torch._dynamo.utils import counters, graph_break_reasons

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
    """What is kept of the frames of one decorated function."""

    def __init__(self) -> None:
        #: Code whose integers are constants.
        self._constant: set[CodeType] = set()
        #: Code whose graph ends early anyway.
        self._broken: set[CodeType] = set()

    def converted(self, frame: Any, convert: Callable[[], Any]) -> Any:
        """What Dynamo makes of a frame; integers that have changed are symbols if that is no loss.

        Args:
            frame: which is compiled.
            convert: lets Dynamo compile it.
        """
        state = _state_of(frame)
        for name in [name for name, entry in state.items() if isinstance(entry.size, tuple)]:
            del state[name]
        integers = _integers(frame, state)
        code = frame.f_code
        known, reasons = set(counters["graph_break"]), len(graph_break_reasons)
        if any(state[name].scalar != value for name, value in integers.items()):
            if code in self._broken:
                return convert()
            if code not in self._constant:
                try:
                    with _breaks_are_forbidden():
                        result = convert()
                    compiled = getattr(result, "guarded_code", None) is not None
                    if compiled and not set(counters["graph_break"]) - known:
                        return result
                except TorchDynamoException as error:
                    inner = getattr(error, "inner_exception", None)
                    ended = isinstance(inner, IntegersBreakGraph)
                    if isinstance(error, BackendCompilerFailed) and not ended:
                        raise
                self._constant.add(code)
                logger.debug("%s: its integers are constants", code.co_name)
                for reason in set(counters["graph_break"]) - known:
                    del counters["graph_break"][reason]
                del graph_break_reasons[reasons:]
        for name in integers:
            state.pop(name, None)
        result = convert()
        if len(graph_break_reasons) > reasons:
            self._broken.add(code)
        return result


@contextmanager
def _breaks_are_forbidden() -> Iterator[None]:
    token = _may_break.set(False)
    try:
        yield
    finally:
        _may_break.reset(token)


def _state_of(frame: Any) -> dict[str, Any]:
    """Names of sources (``L['x']``) and what was seen of them; changes count."""
    try:
        code = pgo.CodeId.make(frame.f_code, frame.closure)
        state: dict[str, Any] = pgo.get_code_state()[code].automatic_dynamic
        return state
    except (AttributeError, KeyError, TypeError):
        logger.debug("this PyTorch keeps its frame state elsewhere", exc_info=True)
        return {}


def _integers(frame: Any, state: dict[str, Any]) -> dict[str, int]:
    """The integers among the numbers that Dynamo remembers, and what they are now."""
    found = {}
    for name in state:
        try:
            value = eval(name, {"L": frame.f_locals, "G": frame.f_globals})
        except Exception:
            # What Dynamo calls it is no expression.
            continue
        if type(value) is int:
            found[name] = value
    return found
