"""A kernel decoded for execution: numbered segments of straight-line closures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polyblocks.simt.address_space import Region, Window

#: Closure of one op: (machine, registers).
Step = Callable[[Any, list[Any]], None]


@dataclass
class Segment:
    """Straight-line code of a kernel, up to a branch, a barrier or a call.

    Attributes:
        steps: closures of its ops.
        end: moves the lanes to the next segment.
        counts: what one thread adds to the counts by running it.
        site: an op of it, for findings.
    """

    steps: list[Step] = field(default_factory=list)
    end: Step | None = None
    counts: dict[str, int] = field(default_factory=dict)
    site: int = 0


@dataclass(frozen=True)
class Site:
    """One op of a kernel, for findings.

    Attributes:
        op: the MLIR operation; its text and location are read when needed.
        name: e.g. ``llvm.load``.
    """

    op: Any
    name: str


@dataclass
class Kernel:
    """A decoded kernel.

    Attributes:
        name: its symbol.
        segments: in the order in which waiting lanes are served: the loops of the control flow are
            contiguous, and what both sides of a branch reach comes after both.
        registers: initial values; None where an op defines the value.
        arguments: register of each argument.
        argument_types: their types.
        sites: every op that a finding may name.
        granule: bytes of the smallest access, the granularity of races.
        shared, private: its arrays in these memories.
        shared_bytes: of the shared arrays of fixed size.
        dynamic: the shared array whose size a launch gives; None if the kernel has none.
    """

    name: str
    segments: list[Segment]
    registers: list[Any]
    arguments: list[int]
    argument_types: list[Any]
    sites: list[Site]
    granule: int
    shared: Window
    private: Window
    shared_bytes: int
    dynamic: Region | None
