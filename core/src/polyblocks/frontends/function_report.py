"""What became of one decorated function: variants, kernels, what the framework runs itself."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from polyblocks import events
from polyblocks.artifact import Artifact
from polyblocks.frontends.partition import RANDOM
from polyblocks.reports.report import Report, kept_bytes_of

logger = logging.getLogger("polyblocks")


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
        kept_bytes: what a call leaves for the next ones, for each set of constant arguments.
        cached: whether all of them came from the cache.
        seconds: what getting them took, now.
    """

    name: str
    kind: str = "inference"
    outcome: str = "trivial"
    arguments: list[str] = field(default_factory=list)
    parts: int = 0
    kernels: int = 0
    kept_bytes: int = 0
    cached: bool = True
    seconds: float = 0.0


class FunctionReport(Report):
    """The report of one decorated function; :meth:`to_json` gives plain values.

    Besides what every Report has: ``variants``, ``random_draws``.

    Args:
        name: of the function.
        target: the target's name.
        framework: what to call the framework in messages.
        frontend: name of the frontend, for tools that compile the function once more.
    """

    def __init__(self, name: str, target: str, framework: str, frontend: str | None = None) -> None:
        super().__init__()
        self.name = name
        self.target = target
        self.framework = framework
        self.frontend = frontend
        self.variants: list[Variant] = []
        self.random_draws: list[dict[str, Any]] = []
        self._lock = threading.Lock()

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
        logger.log(
            level, "%s: %s runs %s%s: %s", self.name, self.framework, row["op"], where,
            row["reason"],
        )  # fmt: skip

    def compiled(self, variant: Variant, artifact: Artifact, cached: bool) -> None:
        """Record one compiled program of a variant."""
        with self._lock:
            variant.parts += 1
            variant.kernels += len(artifact.manifest.get("kernels", ()))
            variant.kept_bytes += kept_bytes_of(artifact.manifest)
            variant.cached = variant.cached and cached
            self.add_artifact(artifact, cached=cached)
            # Equal graphs share an artifact, which has the name of the first.
            self._parts[-1] = replace(self._parts[-1], name=variant.name)

    @property
    def whole(self) -> bool:
        """Whether everything was compiled, random draws aside."""
        return bool(self.variants) and not self.fallbacks

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return super().to_json() | {
            "name": self.name,
            "target": self.target,
            "variants": [asdict(v) for v in self.variants],
            "random_draws": list(self.random_draws),
        }

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.random_draws:
            ops = ", ".join(sorted({row["op"] for row in self.random_draws}))
            lines.append(f"drawn by {self.framework}'s generator: {ops}")
        return "\n".join(lines)
