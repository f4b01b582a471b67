"""Which operations of a program the framework runs, and in which order; for any frontend.

A frontend numbers the operations of its program from 0, in an order in which they may be executed.
From the set of those that stay with the framework the order of execution follows: every operation
gets a level, even for those that the framework runs, odd for compiled ones, never lower than that
of what it reads. All compiled operations of one level form one part, so that no part can depend on
itself through the framework, and independent work is not split.

Which ones must stay is found by trying, see :mod:`polyblocks.frontends.planner`. The plan is data,
and is cached.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from polyblocks.artifact import TRANSIENT, Artifact
from polyblocks.errors import (
    FallbackError,
    NativeCrashError,
    PluginError,
    PolyBlocksError,
    TargetError,
    UnsupportedError,
    of_machine,
)
from polyblocks.frontends.units import ordered_units
from polyblocks.isolation.isolation import run_isolated
from polyblocks.options import CompileOptions

logger = logging.getLogger("polyblocks")

#: Kinds of fallback. A draw from the framework's generator is no lack of the compiler, and what the
#: machine is to blame for may be otherwise the next time.
UNSUPPORTED, CRASH, RANDOM, MACHINE = "unsupported", "crash", "framework-rng", "machine"

#: Probes that share one process.
BATCH = 32

#: Why an operation stays: the reason in one line, and its kind.
Why = tuple[str, str]
Probe = TypeVar("Probe")


@dataclass(frozen=True)
class FallbackOp:
    """One operation that the framework runs.

    Attributes:
        index: its number.
        op: the framework's name of it.
        reason: why, in one line.
        kind: ``unsupported``, ``crash``, ``framework-rng`` or ``machine``.
    """

    index: int
    op: str
    reason: str
    kind: str

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``FallbackOp(**row)`` is the inverse."""
        return asdict(self)


@dataclass(frozen=True)
class Step:
    """One step of the execution: a compiled part, or one operation run by the framework."""

    compiled: bool
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The operations that stay with the framework, and those that begin a new part."""

    left: tuple[FallbackOp, ...]
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, artifact: Artifact) -> Plan:
        """Read it from an artifact of kind ``plan``."""
        data = artifact.manifest["plan"]
        return cls(tuple(FallbackOp(**row) for row in data["left"]), tuple(data["cuts"]))


class Operations(ABC):
    """A program as the planner sees it: operations numbered from 0 in order of execution."""

    name: str = "program"

    @abstractmethod
    def __len__(self) -> int:
        """How many operations there are."""

    @abstractmethod
    def operands(self, node: int) -> Collection[int]:
        """The operations whose results this one reads."""

    @abstractmethod
    def op_name(self, node: int) -> str:
        """The framework's name of an operation."""

    @abstractmethod
    def location(self, node: int) -> str:
        """``file:line`` of the user's source; empty if unknown."""

    @abstractmethod
    def compile(self, nodes: Sequence[int]) -> None:
        """Compile a part, so that it is in the cache; raises UnsupportedError if that fails."""

    @abstractmethod
    def probe(self, nodes: Sequence[int]) -> dict[int, Why]:
        """Those of the operations that cannot be compiled alone; see :func:`run_probes`."""

    def obvious(self) -> dict[int, Why]:
        """Operations that need no attempt to know that they stay."""
        return {}

    def named(self, error: UnsupportedError, nodes: Sequence[int]) -> list[int]:
        """Those of some operations that an error may be about, by what it says."""
        if error.op is None:
            return []
        alike = [node for node in nodes if self.op_name(node) == error.op]
        there = [node for node in alike if self.location(node) == error.location]
        return there or alike

    def inseparable(self) -> Sequence[tuple[int, ...]]:
        """Groups of operations that share a value which no program takes or gives.

        Each is compiled in one part, or not at all.
        """
        return ()

    def is_ordered(self, node: int) -> bool:
        """Whether it has an effect, and keeps its place among others that have one."""
        del node
        return False


def order(operations: Operations, left: Collection[int], cuts: Collection[int] = ()) -> list[Step]:
    """The order of execution; every operation is in exactly one step.

    Args:
        operations: the program.
        left: what the framework runs.
        cuts: operations that begin a new part, although nothing before them is left.
    """
    left, cuts = set(left), set(cuts)
    level: dict[int, int] = {}
    last_effect = floor = highest = 0
    for unit in ordered_units(operations, left):
        if not cuts.isdisjoint(unit):
            floor = highest + 1
        operands = {n for node in unit for n in operations.operands(node)}
        depth = max((level[n] for n in operands.difference(unit)), default=0)
        ordered = any(operations.is_ordered(node) for node in unit)
        depth = max(depth, floor, last_effect if ordered else 0)
        depth += depth % 2 != (0 if unit[0] in left else 1)
        if ordered:
            last_effect = depth
        level.update(dict.fromkeys(unit, depth))
        highest = max(highest, depth)
    at: dict[int, list[int]] = {}
    for node in range(len(operations)):
        at.setdefault(level[node], []).append(node)
    steps: list[Step] = []
    for depth in sorted(at):
        if depth % 2:
            steps.append(Step(True, tuple(at[depth])))
        else:
            steps += [Step(False, (node,)) for node in at[depth]]
    return steps


def fallback_row(operations: Operations, left: FallbackOp) -> dict[str, Any]:
    """One row of a report."""
    return {
        "op": left.op,
        "reason": left.reason,
        "cause": left.kind,
        "location": operations.location(left.index),
    }


_without_framework: ContextVar[bool] = ContextVar("polyblocks_without_framework", default=False)


@contextmanager
def without_framework() -> Iterator[None]:
    """Compile for a process without a framework inside of the block: no fallbacks."""
    token = _without_framework.set(True)
    try:
        yield
    finally:
        _without_framework.reset(token)


def is_without_framework() -> bool:
    """Whether this is inside :func:`without_framework`."""
    return _without_framework.get()


def check_may_stay(
    left: FallbackOp, location: str, options: CompileOptions, framework: str, whose: str = ""
) -> None:
    """Check that the framework may run an operation of a plan.

    Args:
        left: the operation.
        location: ``file:line`` of the user's source; empty if unknown.
        options: the checked options.
        framework: its name, for the message.
        whose: name of the function with these options, if it is part of another one.

    Raises:
        FallbackError: ``strict_target`` is set, and it is no draw of random numbers; or it is one,
            and there will be no framework to make it.
    """
    if left.kind == RANDOM:
        if not is_without_framework():
            return
        reason = (
            f"it draws random numbers from {framework}'s generator, which a program that is "
            "compiled ahead of time does not have; make the numbers an argument of the function, "
            "or switch the draw off (dropout: outside of training)"
        )
    elif options.strict_target:
        option = f"strict_target of {whose}" if whose else "strict_target"
        reason = f"{left.reason}; {option} forbids that {framework} runs it"
    else:
        return
    raise FallbackError(reason, op=left.op, location=location or None)


def plan_artifact(
    name: str,
    left: Sequence[FallbackOp],
    cuts: Sequence[int],
    rows: Sequence[Mapping[str, Any]],
    failures: Iterable[UnsupportedError | None],
) -> Artifact:
    """A plan as an artifact.

    Args:
        name: of the program.
        left: the operations that stay with the framework.
        cuts: operations that begin a new part.
        rows: of the report, one for each of ``left``.
        failures: what was met on the way. If the machine is to blame for one of them, the
            artifact is marked so that it is not kept.
    """
    met = [error for error in failures if error is not None]
    if cuts:
        logger.warning(
            "%s does not compile whole: it is cut in %d places, over which arrays are passed in "
            "memory; the first error: %s",
            name, len(cuts), one_line(met[0].reason) if met else "unknown",
        )  # fmt: skip
    manifest: dict[str, Any] = {
        "kind": "plan",
        "name": name,
        "plan": {"left": [item.to_json() for item in left], "cuts": list(cuts)},
        "report": {
            "fallbacks": [
                dict(row) for item, row in zip(left, rows, strict=True) if item.kind != RANDOM
            ]
        },
    }
    by_machine = any(item.kind == MACHINE for item in left)
    if by_machine or any(error.transient for error in met):
        manifest[TRANSIENT] = True
    return Artifact(manifest)


def left_operations(operations: Operations, reasons: Mapping[int, Why]) -> list[FallbackOp]:
    """The fallbacks, in order."""
    return [
        FallbackOp(node, operations.op_name(node), one_line(reasons[node][0]), reasons[node][1])
        for node in sorted(reasons)
    ]


def one_line(reason: str, width: int = 300) -> str:
    """A reason without line breaks, cut to a width."""
    line = " ".join(reason.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def run_probes(probes: Sequence[Probe], attempt: Callable[[Probe], object]) -> list[Why | None]:
    """Try things that may fail or crash, in isolated processes.

    Many share one process; when that dies, its probes are repeated one by one to learn which one
    was fatal.

    Args:
        probes: what to try.
        attempt: raises when it cannot be compiled.

    Returns:
        For each probe why it failed, or None.

    Raises:
        TargetError, PluginError: nothing can be compiled, whatever the probe.
    """
    outcomes: list[Why | None] = []
    for start in range(0, len(probes), BATCH):
        outcomes += _run_batch(probes[start : start + BATCH], attempt)
    return outcomes


def _run_batch(batch: Sequence[Probe], attempt: Callable[[Probe], object]) -> list[Why | None]:
    def job() -> bytes:
        return json.dumps([_outcome(probe, attempt) for probe in batch]).encode()

    try:
        rows = json.loads(run_isolated(job, label="probes"))
    except NativeCrashError as error:
        if len(batch) == 1:
            return [why(error)]
        return [outcome for probe in batch for outcome in _run_batch([probe], attempt)]
    except UnsupportedError as error:
        return [why(error)] * len(batch)
    return [None if row is None else (row[0], row[1]) for row in rows]


def _outcome(probe: Probe, attempt: Callable[[Probe], object]) -> Why | None:
    try:
        attempt(probe)
    except (TargetError, PluginError):
        raise
    except Exception as error:
        return why(error)
    return None


def why(error: Exception) -> Why:
    """The reason that an error is for an operation to stay, and its kind."""
    by_machine = of_machine(error)
    if by_machine is not None:
        return by_machine.reason, MACHINE
    if isinstance(error, UnsupportedError):
        crash = isinstance(error, NativeCrashError)
        kind = MACHINE if error.transient else CRASH if crash else UNSUPPORTED
        return error.reason, kind
    if isinstance(error, PolyBlocksError):
        return str(error), UNSUPPORTED
    return f"{type(error).__name__}: {error}", UNSUPPORTED
