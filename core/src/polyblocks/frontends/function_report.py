"""The report of one decorated function: variants, kernels, fallbacks."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from polyblocks import events
from polyblocks.artifact import Artifact
from polyblocks.errors import FallbackError
from polyblocks.frontends import sizes
from polyblocks.frontends.partition import RANDOM, UNSUPPORTED
from polyblocks.isolation import forks
from polyblocks.reports.report import Report, kept_bytes_of

logger = logging.getLogger("polyblocks")


@dataclass
class Variant:
    """One graph that was compiled for one set of shapes, dtypes and options.

    Attributes:
        name: the user's function.
        kind: ``inference``, ``forward`` or ``backward``; what a transformation of JAX made of the
            function is also ``tangents`` (a derivative that is linear in them), ``jvp`` (both
            value and derivative), ``batched``, ``checked``, ``taylor`` or ``sparse``.
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

    Besides what every Report has: ``variants``, ``random_draws``, ``callers`` (compiled functions
    that this one was compiled as a part of, whose reports say what became of it), and ``waits``:
    why calls wait until what they take has been computed.

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
        self.callers: list[str] = []
        self.waits: list[str] = []
        self._lock = forks.lock()
        self._told_of_sizes: set[tuple[Any, ...]] = set()

    def add_variant(self, variant: Variant) -> None:
        """Record a variant; say once what to do where many sizes of one dimension are compiled."""
        with self._lock:
            self.variants.append(variant)
            kind = (variant.kind, sizes.kind_of(variant.arguments))
            if kind in self._told_of_sizes:
                return
            alike = [
                v.arguments for v in self.variants if (v.kind, sizes.kind_of(v.arguments)) == kind
            ]
            many = sizes.many_sizes(alike)
            if not many:
                return
            self._told_of_sizes.add(kind)
        (argument, dimension), found = next(iter(many.items()))
        others = f", and as many of {len(many) - 1} other dimensions" if len(many) > 1 else ""
        logger.warning(
            "%s: compiled for %d sizes of dimension %d of argument %d (%s)%s; every size is "
            "compiled when it is first met: pad to a few sizes, or run all of them once in "
            "advance, since the cache keeps them",
            self.name, len(found), dimension, argument, ", ".join(map(str, found)), others,
        )  # fmt: skip

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

    def not_compiled(
        self, how: str, reason: str, location: str = "", *, strict: bool = False
    ) -> None:
        """Record, log and announce that the framework runs all of it, for a way of calling.

        Args:
            how: the way of calling, as the user would say it (``fit``, ``call in tf.data.map``);
                the row's op is ``name (how)``. Equal rows are logged once.
            reason: why, and what to do, in one line.
            location: ``file:line`` of the user's source; empty if unknown.
            strict: the function's option ``strict_target``.

        Raises:
            FallbackError: instead, where ``strict``.
        """
        if strict:
            raise FallbackError(
                f"{reason}; strict_target forbids that {self.framework} runs it",
                op=f"{self.name} ({how})",
                location=location or None,
            )
        self.left_to_framework(
            {
                "op": f"{self.name} ({how})",
                "reason": reason,
                "location": location,
                "cause": UNSUPPORTED,
            }
        )

    def part_of(self, caller: str) -> None:
        """Record that it was traced as a part of another compiled function."""
        with self._lock:
            if caller not in self.callers:
                self.callers.append(caller)

    def waits_for_arguments(self, reason: str) -> None:
        """Record, and log once, that calls wait until what they take has been computed.

        Args:
            reason: why they cannot follow the framework's own work on the device, in one line.
        """
        with self._lock:
            known = reason in self.waits
            if not known:
                self.waits.append(reason)
        if not known:
            logger.warning(
                "%s: each call waits for its %s arguments: %s", self.name, self.framework, reason
            )

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

    def _was_called(self) -> bool:
        """Whether the function was called, as far as is known."""
        return bool(self.variants or self.random_draws)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return super().to_json() | {
            "name": self.name,
            "target": self.target,
            "variants": [asdict(v) for v in self.variants],
            "random_draws": list(self.random_draws),
            "callers": list(self.callers),
            "waits": list(self.waits),
        }

    def __str__(self) -> str:
        if self.parts or self.fallbacks:
            lines = [super().__str__()]
        elif self.callers and not self._was_called():
            lines = []
        else:
            lines = [
                f"{self.name}: {'nothing to compute' if self._was_called() else 'not called yet'}"
            ]
        if self.callers:
            lines.append(f"{self.name}: compiled as a part of {', '.join(self.callers)}")
        if self.random_draws:
            ops = ", ".join(sorted({row["op"] for row in self.random_draws}))
            lines.append(f"drawn by {self.framework}'s generator: {ops}")
        lines += [f"each call waits for its {self.framework} arguments: {w}" for w in self.waits]
        return "\n".join(lines)
