"""CPUs that do not exist: descriptions whose code runs here all the same.

What passes decide hangs on the description alone; LLVM makes vectors of any width from what the
machine has, and a team may have more threads than cores. Caches are tiny and memory is slow, so
that tiles, strips, threads and split reductions pay in programs of a few thousand elements.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import polyblocks_cpu.describe
from polyblocks.options import CompileOptions, overriding
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

sys.path.append(str(Path(__file__).parents[1] / "plugin_toy" / "src"))

from polyblocks_toy.target import describe_target as describe_toy

#: As this machine describes itself.
_describe = polyblocks_cpu.describe.describe


@dataclasses.dataclass(frozen=True)
class Chip:
    """What a description says.

    Attributes:
        lanes: float32 lanes of a vector; 0 for no vectors.
        team: threads.
        caches: bytes of each level, the fastest first.
        registers: number of vector registers.
        masked: whether vectors may be loaded and stored under a mask.
        overhead: seconds to start the team.
    """

    lanes: int
    team: int
    caches: tuple[int, ...]
    registers: int = 16
    masked: bool = False
    overhead: float = 0.0

    def describe(self, options: CompileOptions) -> TargetDescription:
        """The description, with what the lowering for this machine reads of its own."""
        simd = (ParallelLevel("simd", self.lanes),) if self.lanes else ()
        rates = [1e11 / 4**i for i in range(len(self.caches) + 1)]
        memory = [
            # The last of several caches is shared by all.
            MemoryLevel(f"L{i + 1}", size, rates[i], shared_by=self.team if i > 1 else 1)
            for i, size in enumerate(self.caches)
        ]
        return dataclasses.replace(
            _describe(options),
            parallel=(ParallelLevel("team", self.team, self.overhead), *simd),
            memory=(*memory, MemoryLevel("main", 0, rates[-1] / 16, shared_by=self.team)),
            vector_bits=32 * self.lanes,
            vector_registers=self.registers if self.lanes else 0,
            masked_vectors=self.masked,
            flops={"float32": 1e10 * max(self.lanes, 1) * self.team},
        )


CHIPS = {
    "scalar": Chip(0, 1, (1 << 10, 8 << 10)),
    "scalar-one-cache-team": Chip(0, 4, (2 << 10,)),
    "lanes-4": Chip(4, 1, (1 << 10, 8 << 10, 64 << 10)),
    "lanes-4-one-cache-team": Chip(4, 4, (1 << 10,), masked=True),
    "lanes-8": Chip(8, 1, (1 << 10,), registers=8),
    "lanes-8-team": Chip(8, 4, (512, 4 << 10)),
    "lanes-8-large-team": Chip(8, 4, (32 << 10, 1 << 20, 16 << 20), overhead=3e-6),
    "lanes-16": Chip(16, 1, (2 << 10, 16 << 10), registers=32),
    "lanes-16-team": Chip(16, 4, (1 << 10, 8 << 10, 64 << 10), registers=32, masked=True),
    "lanes-16-one-cache-team": Chip(16, 4, (4 << 10,), registers=32),
}
#: All names that :func:`described_as` takes; ``toy`` is what the out-of-tree target says.
NAMES = ("toy", *CHIPS)


def described(name: str, options: CompileOptions) -> TargetDescription:
    """The description of one of :data:`NAMES`, with this machine's own properties."""
    if name in CHIPS:
        return CHIPS[name].describe(options)
    here = _describe(options)
    return dataclasses.replace(
        describe_toy(options), name=here.name, arch=here.arch, properties=here.properties
    )


@contextmanager
def described_as(name: str) -> Iterator[None]:
    """What is compiled inside takes this machine's CPU for another one, and runs on it.

    Args:
        name: one of :data:`NAMES`.
    """

    def describe(options: CompileOptions) -> TargetDescription:
        return described(name, options)

    team = described(name, CompileOptions()).parallel[0].size
    with (
        mock.patch.object(polyblocks_cpu.describe, "describe", describe),
        overriding(num_threads=team),
    ):
        yield
