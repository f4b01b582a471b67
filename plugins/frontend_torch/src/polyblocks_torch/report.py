"""What became of one decorated function: frames, variants, kernels, fallbacks, graph breaks."""

from __future__ import annotations

import logging
import threading
import weakref
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from polyblocks import events
from polyblocks.artifact import Artifact
from polyblocks.report import Report
from polyblocks_torch.partition import RANDOM

logger = logging.getLogger("polyblocks")

_all: weakref.WeakSet[FunctionReport]


@dataclass
class Variant:
    """One graph that was compiled for one set of shapes, dtypes and options.

    Attributes:
        name: the user's function.
        kind: ``inference``, ``forward`` or ``backward``.
        outcome: ``compiled`` (whole), ``partitioned`` (parts of it), ``framework`` (nothing of
            it), or ``trivial`` (nothing to compute).
        arguments: dtype and shape of each argument.
        parts: number of compiled programs.
        kernels: number of kernels in them.
        cached: whether all of them came from the cache.
        seconds: what getting them took, now.
    """

    name: str
    kind: str
    outcome: str = "trivial"
    arguments: list[str] = field(default_factory=list)
    parts: int = 0
    kernels: int = 0
    cached: bool = True
    seconds: float = 0.0


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


class FunctionReport(Report):
    """The report of one decorated function; :meth:`to_json` gives plain values.

    Besides what every Report has: ``variants``, ``frames``, ``graph_breaks``.
    """

    def __init__(self, name: str, target: str) -> None:
        super().__init__()
        self.name = name
        self.target = target
        self.variants: list[Variant] = []
        self.frames: list[Frame] = []
        self.graph_breaks: list[GraphBreak] = []
        self.random_draws: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        _all.add(self)

    def left_to_framework(self, row: dict[str, Any]) -> None:
        """Record, log and announce one op that the framework runs."""
        known = row["cause"] == RANDOM and row in self.random_draws
        with self._lock:
            if row["cause"] == RANDOM:
                if not known:
                    self.random_draws.append(row)
            else:
                known = any(
                    f.op == row["op"] and f.location == row["location"] for f in self.fallbacks
                )
                self.add_fallback(row)
        if known:
            return
        events.emit("fallback", **row)
        where = f" at {row['location']}" if row["location"] else ""
        level = logging.INFO if row["cause"] == RANDOM else logging.WARNING
        logger.log(level, "%s: PyTorch runs %s%s: %s", self.name, row["op"], where, row["reason"])

    def compiled(self, variant: Variant, artifact: Artifact, cached: bool) -> None:
        """Record one compiled program of a variant."""
        with self._lock:
            variant.parts += 1
            variant.kernels += len(artifact.manifest.get("kernels", ()))
            variant.cached = variant.cached and cached
            self.add_artifact(artifact, cached=cached)
            # Equal graphs share an artifact, which has the name of the first.
            self._parts[-1] = replace(self._parts[-1], name=variant.name)

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
            bool(self.variants)
            and not self.fallbacks
            and not self.graph_breaks
            and all(frame.compiled for frame in self.frames)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return super().to_json() | {
            "name": self.name,
            "target": self.target,
            "variants": [asdict(v) for v in self.variants],
            "frames": [asdict(f) for f in self.frames],
            "graph_breaks": [asdict(b) for b in self.graph_breaks],
            "random_draws": list(self.random_draws),
        }

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += [f"graph break at {b.location or '?'}: {b.reason}" for b in self.graph_breaks]
        lines += [
            f"Python runs {f.function} ({f.location}): {f.reason}"
            for f in self.frames
            if not f.compiled
        ]
        if self.random_draws:
            ops = ", ".join(sorted({row["op"] for row in self.random_draws}))
            lines.append(f"drawn by PyTorch's generator: {ops}")
        return "\n".join(lines)


_all = weakref.WeakSet()


def reports() -> list[FunctionReport]:
    """The reports of all functions that are alive."""
    return list(_all)
