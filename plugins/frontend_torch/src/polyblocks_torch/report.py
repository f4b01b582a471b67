"""The report of one decorated function: variants, fallbacks, frames and graph breaks."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

from polyblocks import events
from polyblocks.frontends import function_report
from polyblocks.frontends.function_report import Variant

__all__ = ["Frame", "FunctionReport", "GraphBreak", "Variant"]

logger = logging.getLogger("polyblocks")


@dataclass(frozen=True)
class Frame:
    """One Python frame that Dynamo looked at.

    Attributes:
        function: its name.
        location: ``file:line`` of its definition.
        compiled: whether code for it was made; otherwise Python runs it as it is.
        reason: why not; empty if compiled.
    """

    function: str
    location: str
    compiled: bool
    reason: str = ""


@dataclass(frozen=True)
class GraphBreak:
    """A place where Dynamo ended a graph and Python went on.

    Attributes:
        reason: what it could not trace, in one line.
        location: ``file:line`` of the user's source; empty if unknown.
    """

    reason: str
    location: str

    @classmethod
    def of(cls, reason: Any) -> GraphBreak:
        """A graph break from Dynamo's ``GraphCompileReason``."""
        stack = reason.user_stack
        location = f"{stack[-1].filename}:{stack[-1].lineno}" if stack else ""
        return cls(one_line(reason.reason), location)


#: Why PyTorch computes where tensors have tangents; from 2.15 on Dynamo refuses these.
TANGENTS = (
    "tensors may carry tangents, which compiled code does not propagate; call it outside of "
    "dual_level(), or differentiate with torch.func.jvp"
)
_DUAL = "Attempted to wrap a dual tensor"
#: Dynamo's reasons for a branch on a tensor: where it continues behind it, and where it does not.
_BRANCH = ("generic_jump TensorVariable()", "Data-dependent branching")


def one_line(text: str) -> str:
    """Why Dynamo ended a graph, from its message: the kind, and which operation or function."""
    lines = text.strip().splitlines() or ["no reason given"]
    if lines[0].startswith(_BRANCH):
        return "Data-dependent branching: Python asks whether a tensor is true"
    if lines[0].startswith(_DUAL):
        return TANGENTS
    explained = [line.strip().partition("Explanation: ")[2] for line in lines[1:2]]
    return ": ".join([lines[0], *filter(None, explained)])[:300]


class FunctionReport(function_report.FunctionReport):
    """The report of one decorated function; :meth:`to_json` gives plain values.

    Besides what every such report has: ``frames``, ``graph_breaks``.
    """

    def __init__(self, name: str, target: str) -> None:
        super().__init__(name, target, "PyTorch", "torch")
        self.frames: list[Frame] = []
        self.graph_breaks: list[GraphBreak] = []

    def graph_break(self, row: GraphBreak) -> None:
        """Record and log a graph break."""
        with self._lock:
            if row in self.graph_breaks:
                return
            self.graph_breaks.append(row)
        events.emit("fallback", op="graph break", reason=row.reason, location=row.location)
        where = f" at {row.location}" if row.location else ""
        logger.warning("%s: graph break%s: %s", self.name, where, row.reason)

    def frame(self, row: Frame) -> None:
        """Record a frame; log it when Python runs it."""
        with self._lock:
            if row in self.frames:
                return
            self.frames.append(row)
        if not row.compiled:
            events.emit("fallback", op=row.function, reason=row.reason, location=row.location)
            logger.warning(
                "%s: Python runs %s at %s: %s", self.name, row.function, row.location, row.reason
            )

    @property
    def whole(self) -> bool:
        """Whether everything was compiled, random draws aside."""
        return (
            super().whole and not self.graph_breaks and all(frame.compiled for frame in self.frames)
        )

    def _was_called(self) -> bool:
        return super()._was_called() or bool(self.frames or self.graph_breaks)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return super().to_json() | {
            "frames": [asdict(f) for f in self.frames],
            "graph_breaks": [asdict(b) for b in self.graph_breaks],
        }

    def __str__(self) -> str:
        by_python = self.graph_breaks or not all(frame.compiled for frame in self.frames)
        lines = [super().__str__()] if self.parts or self.fallbacks or not by_python else []
        lines += [f"graph break at {b.location or '?'}: {b.reason}" for b in self.graph_breaks]
        lines += [
            f"Python runs {f.function} ({f.location}): {f.reason}"
            for f in self.frames
            if not f.compiled
        ]
        return "\n".join(lines)
