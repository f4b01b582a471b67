"""Reports: what was compiled, into which kernels, and what fell back to the framework and why."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from polyblocks.artifact import KEPT, code_digest
from polyblocks.events import Event
from polyblocks.explanation import units

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact
    from polyblocks.runtime.executable import Executable


@dataclass(frozen=True)
class Fallback:
    """One op that the framework runs itself.

    Attributes:
        op: the framework's name of the op.
        reason: why it was not compiled, in one line.
        location: ``file:line`` of the user's source; empty if unknown.
    """

    op: str
    reason: str
    location: str = ""

    def __str__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        return f"{self.op}{where}: {self.reason}"


@dataclass(frozen=True)
class Part:
    """One compiled program: an artifact, and where it came from.

    Attributes:
        name: the user's function, as the frontend names it.
        target: the target's name.
        arch: the architecture.
        kernels: rows of the manifest; ``name`` and whatever else the target recorded.
        seconds: what compiling took, at the time when it was compiled.
        cached: it was taken from the cache; None for an artifact that was read from a file.
        key: its key in the cache; empty for one from a file.
        report: the manifest's report: passes with seconds, decisions with numbers, source ops.
        arguments: rows of the manifest.
        workspace_bytes: bytes of all intermediate buffers together.
        kept_bytes: bytes that are computed once of constant arguments, and kept between calls.
        digest: of the code; equal programs have equal ones.
        launches: names of the kernels of a call, in order; empty where a program has no launches.
        profiled: whether the program can time its kernels (option ``profile``).
        profile: time of each kernel call as the loaded program tells it, see
            :meth:`Report.measure`; empty if it was not measured.
    """

    name: str
    target: str
    arch: str
    kernels: tuple[dict[str, Any], ...]
    seconds: float
    cached: bool | None = None
    key: str = ""
    report: dict[str, Any] = field(default_factory=dict)
    arguments: tuple[dict[str, Any], ...] = ()
    workspace_bytes: int = 0
    kept_bytes: int = 0
    digest: str = ""
    launches: tuple[str, ...] = ()
    profiled: bool = False
    profile: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, artifact: Artifact, *, cached: bool | None = None, key: str = "") -> Part:
        """Read the part off an artifact's manifest."""
        manifest = artifact.manifest
        report = manifest.get("report", {})
        return cls(
            name=manifest.get("name", ""),
            target=manifest.get("target", ""),
            arch=manifest.get("arch", ""),
            kernels=tuple(manifest.get("kernels", ())),
            seconds=float(report.get("seconds", 0.0)),
            cached=cached,
            key=key,
            report=report,
            arguments=tuple(manifest.get("arguments", ())),
            workspace_bytes=int(manifest.get("workspace_bytes", 0)),
            kept_bytes=kept_bytes_of(manifest),
            digest=code_digest(manifest),
            launches=tuple(row["kernel"] for row in manifest.get("launches", ())),
            profiled="profile" in manifest,
        )


@dataclass(frozen=True)
class CallTime:
    """Where the time of one call goes.

    Attributes:
        host_seconds: everything but the programs: dispatch, checks, results, copies, and what the
            framework runs itself. Where arrays are on a device, the time until the call returns.
        kernel_seconds: what the programs took.
        predicted_seconds: what their kernels are predicted to take; None if that is unknown.
    """

    host_seconds: float
    kernel_seconds: float
    predicted_seconds: float | None = None

    @property
    def host_is_larger(self) -> bool:
        """Whether most of the call is not what was compiled."""
        return self.host_seconds > self.kernel_seconds

    def __str__(self) -> str:
        told = (
            ""
            if self.predicted_seconds is None
            else f" (predicted {units.seconds(self.predicted_seconds)})"
        )
        text = (
            f"host {units.seconds(self.host_seconds)} of a call, kernels "
            f"{units.seconds(self.kernel_seconds)}{told}"
        )
        if not self.host_is_larger:
            return text
        return (
            f"{text}: the host is the larger; compile more of the program as one function, or call "
            "it with more data"
        )


class Report:
    """The programs and fallbacks while it watched; also the contents of one artifact.

    Attributes:
        failures: what went wrong, in sentences.
        call: where the time of a call goes, if a function was called to see that.
        loaded: while it watches with times: the programs that were loaded so far.

    Example::

        with polyblocks.explain() as report:
            f(x)
        print(report)
    """

    def __init__(self) -> None:
        self._keys: dict[str, bool] = {}
        self._parts: list[Part] = []
        self._fallbacks: dict[Fallback, int] = {}
        self.failures: list[str] = []
        self.call: CallTime | None = None
        self.loaded: Sequence[Executable] = ()

    def add(self, event: Event) -> None:
        """Take one event of the compiler."""
        if event.kind in ("cache-hit", "cache-miss"):
            # A miss followed by a hit of the same key in this process was compiled here.
            self._keys.setdefault(event.data["key"], event.kind == "cache-hit")
        elif event.kind == "fallback":
            self.add_fallback(event.data)

    def add_fallback(self, data: dict[str, Any]) -> None:
        """Take one fallback: a dictionary with ``op``, ``reason`` and ``location``."""
        fallback = Fallback(
            str(data.get("op") or "?"),
            str(data.get("reason") or ""),
            str(data.get("location") or ""),
        )
        self._fallbacks[fallback] = self._fallbacks.get(fallback, 0) + 1

    def add_artifact(
        self, artifact: Artifact, *, cached: bool | None = None, key: str = ""
    ) -> None:
        """Take an artifact: a compiled program, or a frontend's plan with its fallbacks."""
        if artifact.manifest.get("kind") == "plan":
            for data in artifact.manifest.get("report", {}).get("fallbacks", ()):
                self.add_fallback(data)
        else:
            self._parts.append(Part.of(artifact, cached=cached, key=key))

    def measure(self, executables: Iterable[Executable]) -> None:
        """Take the times that loaded programs measured so far.

        Args:
            executables: as :func:`polyblocks.driver.load` returns them.
        """
        profiles: dict[str, list[dict[str, Any]]] = {}
        for executable in executables:
            rows = executable.profile()
            ran = rows and rows[0]["calls"]
            digest = code_digest(executable.manifest)
            # Several loaded copies of one program: that which ran most.
            if ran and ran > (profiles[digest][0]["calls"] if digest in profiles else 0):
                profiles[digest] = rows
        self._parts = [
            replace(part, profile=tuple(profiles.get(part.digest, part.profile)))
            for part in self.parts
        ]

    @property
    def parts(self) -> list[Part]:
        """The programs that were compiled, or taken from the cache, in order."""
        self._resolve()
        return list(self._parts)

    def simulation(self) -> list[dict[str, Any]]:
        """The simulator's counts of the last calls of the programs: one row per launch.

        Nothing for programs that were not built with the option ``simulate``, or have not run. See
        :meth:`polyblocks.simt.simulated.SimulatedExecutable.counts` for the keys.
        """
        simulated = sys.modules.get("polyblocks.simt.simulated")
        if simulated is None:
            return []
        # Programs without code have no digest, and are all alike.
        digests = dict.fromkeys(part.digest for part in self.parts if part.digest)
        return [row for digest in digests for row in simulated.counts_of(digest)]

    def graphs(self) -> list[dict[str, Any]]:
        """The graphs of launches that GPUs' drivers hold for the programs now, one row per device.

        Returns:
            Per row: ``program``, ``device``, the number of ``graphs``, of ``kernels`` in all of
            them, ``host_bytes`` of their tables, and why there are none any more (``stopped``,
            empty by default). Nothing for programs that have no graph.
        """
        devices = sys.modules.get("polyblocks.runtime.device.executable")
        if devices is None:
            return []
        # Programs without code have no digest, and are all alike.
        digests = dict.fromkeys(part.digest for part in self.parts if part.digest)
        return [row for digest in digests for row in devices.graphs_of(digest)]

    @property
    def fallbacks(self) -> dict[Fallback, int]:
        """Fallback -> how often it was reported."""
        return dict(self._fallbacks)

    @property
    def whole(self) -> bool:
        """Whether something was compiled and nothing fell back."""
        return bool(self.parts) and not self._fallbacks

    def document(self) -> dict[str, Any]:
        """JSON values for ``polyblocks explain --json``, see ``explanation/schema.json``."""
        from polyblocks.explanation.document import document

        return document(self)

    def html(self) -> str:
        """A page with kernels, costs and decisions; needs no other file."""
        from polyblocks.explanation.page import page

        return page(self.document())

    def to_json(self) -> dict[str, Any]:
        """JSON values: ``parts``, ``fallbacks``, ``failures`` and ``call``."""
        return {
            "parts": [asdict(part) for part in self.parts],
            "fallbacks": [vars(f) | {"count": n} for f, n in self._fallbacks.items()],
            "failures": list(self.failures),
            "call": None if self.call is None else asdict(self.call),
        }

    def __str__(self) -> str:
        lines = []
        for part in self.parts:
            origin = {True: ", from the cache", False: ", compiled", None: ""}[part.cached]
            lines.append(
                f"{part.name}: {_count(part.kernels, 'kernel')} for {part.target} ({part.arch})"
                f"{origin}, {part.seconds:.2f} s to compile"
            )
            lines += [f"  {describe_kernel(kernel)}" for kernel in part.kernels]
            if part.kept_bytes:
                lines.append(
                    f"  made of constant arguments and kept between calls: "
                    f"{units.nbytes(part.kept_bytes)}"
                )
        if not lines:
            lines.append("nothing was compiled")
        if self.call is not None:
            lines.append(str(self.call))
        lines += [f"simulated {_describe_launch(row)}" for row in self.simulation()]
        lines += [_describe_graphs(row) for row in self.graphs()]
        if self._fallbacks:
            lines.append(f"{_count(self._fallbacks, 'fallback')} to the framework:")
            lines += [
                f"  {fallback}" + (f" ({n} times)" if n > 1 else "")
                for fallback, n in self._fallbacks.items()
            ]
        else:
            lines.append("no fallbacks")
        lines += [f"failed: {failure}" for failure in self.failures]
        return "\n".join(lines)

    def _resolve(self) -> None:
        """Look the keys up that were reported since the last time."""
        if not self._keys:
            return
        from polyblocks.cache.cache import default_cache

        cache = default_cache()
        keys, self._keys = self._keys, {}
        known = {part.key for part in self._parts}
        for key, cached in keys.items():
            artifact = cache.get(key) if key not in known else None
            if artifact is not None and artifact.manifest.get("kind") == "program":
                self.add_artifact(artifact, cached=cached, key=key)


def kept_bytes_of(manifest: dict[str, Any]) -> int:
    """Bytes that a program keeps between calls."""
    return sum(row["shape"][0] for row in manifest.get("arguments", ()) if row["role"] == KEPT)


def describe_kernel(kernel: dict[str, Any]) -> str:
    """One line on a kernel: name, kind, how it is run, size, then the ops and lines in it."""
    facts = [kernel.get("kind") or ""]
    if kernel.get("unit"):
        facts.append(f"matrix unit {kernel['unit']}")
    if (parallel := kernel.get("parallel")) is not None:
        facts.append(f"parallel over {parallel}" if parallel > 1 else "serial")
    if kernel.get("calls", 1) > 1:
        facts.append(f"called {kernel['calls']} times")
    if kernel.get("code_bytes") is not None:
        facts.append(f"{kernel['code_bytes']} bytes of code")
    predicted = (kernel.get("estimate") or {}).get("predicted_seconds")
    if predicted is not None:
        facts.append(f"predicted {units.seconds(predicted)}")
    known = {
        *("name", "kind", "unit", "parallel", "calls", "code_bytes"),
        *("sources", "nests", "estimate"),
    }
    facts += [f"{k}={v}" for k, v in kernel.items() if k not in known and v is not None]
    line = f"{kernel.get('name', '?')}: {', '.join(f for f in facts if f)}".removesuffix(": ")
    sources = kernel.get("sources") or []
    return line + (f"; from {', '.join(sources)}" if sources else "")


def _describe_launch(row: dict[str, Any]) -> str:
    counts = row["counts"]
    read, written = counts["global_read_floor"], counts["global_write_floor"]
    found = len(row["findings"])
    return (
        f"{row['kernel']} on {row['grid']} x {row['block']}: reads {read} bytes, writes {written}, "
        f"{counts['sectors']} sectors where {counts['ideal_sectors']} would do, "
        f"{counts['bank_conflicts']} bank conflicts, {_count(range(found), 'finding')}"
    )


def _describe_graphs(row: dict[str, Any]) -> str:
    text = (
        f"{row['program']} on device {row['device']}: {row['graphs']} recorded as graphs, "
        f"{row['kernels']} kernels, {units.nbytes(row['host_bytes'])} of tables"
    )
    return text + (f"; no more are recorded: {row['stopped']}" if row["stopped"] else "")


def _count(things: Any, noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")
