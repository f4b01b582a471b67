"""What the frameworks' decorators compile runs on a simulated GPU, whatever the program wants."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from polyblocks import events
from polyblocks.errors import ExecutionError
from polyblocks.frontends import partition
from polyblocks.options import overriding
from polyblocks.simt.simulated import SimulatedExecutable

#: Architecture -> target. What the acceptance of a GPU target is checked on.
CHIPS = {"sm_80": "nvgpu", "sm_90a": "nvgpu", "gfx1100": "amdgpu"}
#: And those that whole models are checked on besides.
ALL_CHIPS = {**CHIPS, "sm_86": "nvgpu"}


@dataclass(eq=False)
class Seen:
    """What happened while programs ran on a simulated GPU.

    Attributes:
        launches: kernels that were launched.
        findings: what the simulator found wrong, as texts.
        fallbacks: ops that the framework ran itself, with reasons.
        cuts: warnings of programs that did not compile whole.
        instructions: that subgroups issued, by kind, see :mod:`polyblocks.simt.counts`.
    """

    launches: int = 0
    findings: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    instructions: Counter[str] = field(default_factory=Counter)


def options_of(arch: str) -> dict[str, Any]:
    """The options of a program that runs on a simulated GPU.

    Args:
        arch: one of :data:`ALL_CHIPS`.
    """
    return {"target": ALL_CHIPS[arch], "arch": arch, "simulate": True}


@contextmanager
def on_chip(arch: str) -> Iterator[Seen]:
    """Programs that are compiled inside run on a simulated GPU.

    Args:
        arch: one of :data:`ALL_CHIPS`.
    """
    seen = Seen()

    def listen(event: events.Event) -> None:
        if event.kind == "fallback":
            seen.fallbacks.append(f"{event.data.get('op')}: {event.data.get('reason')}")

    class Warnings(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "does not compile whole" in record.getMessage():
                seen.cuts.append(record.getMessage())

    warnings = Warnings()
    partition.logger.addHandler(warnings)
    # For good: whoever calls without Python keeps the method of its first call.
    SimulatedExecutable.entry = _watched  # type: ignore[method-assign]
    _watching.append(seen)
    try:
        with overriding(**options_of(arch)), events.listening(listen):
            yield seen
    finally:
        _watching.remove(seen)
        partition.logger.removeHandler(warnings)


_entry = SimulatedExecutable.entry
_watching: list[Seen] = []


def _watched(self: Any, pointers: bytes, num_threads: int) -> int:
    try:
        return _entry(self, pointers, num_threads)
    except ExecutionError as error:
        # Kept here as well: a program may catch what it raises.
        for seen in _watching:
            seen.findings.extend(str(error).splitlines()[1:])
        raise
    finally:
        for seen in _watching:
            seen.launches += len(self.results)
            for launch in self.results:
                seen.instructions.update(launch.counts.instructions)
