"""TargetDescription: typed, frozen facts about a chip.

It is the only thing that the mid-level may know of a target. Sizes are bytes, rates are per
second, widths are bits; a rate that is not known is 0.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MemoryLevel:
    """One level of the memory hierarchy, from the fastest to the main memory.

    Attributes:
        name: e.g. ``L1``, ``L2``, ``main``.
        size: bytes; 0 for the main memory.
        bandwidth: bytes per second of one sharing group; 0 if unknown.
        line: transfer granule in bytes.
        shared_by: how many hardware threads share one instance.
        associativity: ways; 0 if unknown.
    """

    name: str
    size: int
    bandwidth: float = 0.0
    line: int = 64
    shared_by: int = 1
    associativity: int = 0


@dataclass(frozen=True)
class ParallelLevel:
    """One level of parallelism, outermost first: ``team``/``simd`` or ``grid``/``block``/….

    Attributes:
        name: the value of the ``polyblocks.level`` attribute on an ``affine.parallel``.
        size: how many instances run at once.
        overhead: seconds to start and join one region at this level.
    """

    name: str
    size: int
    overhead: float = 0.0


@dataclass(frozen=True)
class MatrixUnit:
    """One matrix-multiply primitive: ``m x n x k``, operand and accumulator types.

    Attributes:
        name: the name by which the target's lowering knows it.
        shape: (m, n, k) of one call.
        operands: dtype of both operands, e.g. ``float16``.
        accumulator: dtype of the accumulator.
        flops: peak operations per second of the whole chip with it.
    """

    name: str
    shape: tuple[int, int, int]
    operands: str
    accumulator: str
    flops: float = 0.0


@dataclass(frozen=True)
class TargetDescription:
    """Facts about one chip, as far as the mid-level needs them.

    Attributes:
        name: the target's entry-point name (``cpu``, …).
        arch: the architecture that code is generated for, never ``native`` (that is resolved).
        parallel: levels of parallelism, outermost first.
        memory: levels of memory, fastest first, main memory last.
        vector_bits: width of one vector register; 0 for a target without SIMD registers.
        vector_registers: number of vector registers.
        masked_vectors: whether loads and stores of any element type work under a mask of lanes.
        flops: peak operations per second by dtype, all units together, without matrix units.
        matrix_units: matrix primitives, best first.
        properties: further facts that only the target's own lowering reads; JSON values.
    """

    name: str
    arch: str
    parallel: tuple[ParallelLevel, ...]
    memory: tuple[MemoryLevel, ...]
    vector_bits: int = 0
    vector_registers: int = 0
    masked_vectors: bool = False
    flops: Mapping[str, float] = field(default_factory=dict)
    matrix_units: tuple[MatrixUnit, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)

    def parallel_level(self, name: str) -> ParallelLevel | None:
        """The parallel level called ``name``, or None."""
        return next((level for level in self.parallel if level.name == name), None)

    @property
    def shared_level(self) -> ParallelLevel:
        """The level over which the outer iterations of a nest are shared out."""
        return self.parallel_level("team") or self.parallel[0]

    def to_json(self) -> str:
        """Canonical JSON, equal for equal descriptions."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, default=list)

    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical JSON; part of the cache key."""
        return hashlib.sha256(self.to_json().encode()).digest()
