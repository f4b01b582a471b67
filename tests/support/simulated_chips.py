"""What the frameworks' decorators compile runs on a simulated GPU, whatever the program wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from polyblocks import events
from polyblocks.errors import ExecutionError
from polyblocks.options import overriding
from polyblocks.simulated import SimulatedExecutable

#: Architecture -> target. What the acceptance of a GPU target is checked on.
CHIPS = {"sm_80": "nvgpu", "sm_90a": "nvgpu", "gfx1100": "amdgpu"}


@dataclass
class Seen:
    """What happened while programs ran on a simulated GPU.

    Attributes:
        launches: kernels that were launched.
        findings: what the simulator found wrong, as texts.
        fallbacks: ops that the framework ran itself, with reasons.
    """

    launches: int = 0
    findings: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)


@contextmanager
def on_chip(arch: str) -> Iterator[Seen]:
    """Programs that are compiled inside run on a simulated GPU.

    Args:
        arch: one of :data:`CHIPS`.
    """
    seen = Seen()
    entry = SimulatedExecutable.entry

    def watched(self: Any, pointers: bytes, num_threads: int) -> int:
        try:
            return entry(self, pointers, num_threads)
        except ExecutionError as error:
            # Kept here as well: a program may catch what it raises.
            seen.findings.extend(str(error).splitlines()[1:])
            raise
        finally:
            seen.launches += len(self.results)

    def listen(event: events.Event) -> None:
        if event.kind == "fallback":
            seen.fallbacks.append(f"{event.data.get('op')}: {event.data.get('reason')}")

    SimulatedExecutable.entry = watched  # type: ignore[method-assign]
    try:
        with overriding(target=CHIPS[arch], arch=arch, simulate=True), events.listening(listen):
            yield seen
    finally:
        SimulatedExecutable.entry = entry  # type: ignore[method-assign]
