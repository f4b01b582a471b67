"""The tables of chips and the model against what others have measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path

from bench.gpu import published
from bench.gpu.published import Attention, Kernel, Library, Rate
from bench.gpu_static import listing
from bench.gpu_static.build import describe
from bench.gpu_static.loops import Parts
from bench.gpu_static.machines import Machine, machine
from bench.gpu_static.model import Estimate, Launch, Problem, predict, sustained

LISTINGS = Path(__file__).parent / "published"
#: How far rates of instructions and times of kernels may be from what was measured.
RATE_TOLERANCE, KERNEL_TOLERANCE = 0.10, 0.25
#: Kernels of a chip whose rates differ by more than this have to be in the right order.
APART = 1.15
#: Bytes of an element of the operands.
OPERAND_BYTES = 2


@dataclass(frozen=True)
class Compared:
    """A number that was measured, and the model's.

    Attributes:
        chip, name: of what.
        measured, predicted: in ``unit``.
        unit: of both.
        tolerance: how far they may be apart, relative to what was measured; 0: any number below
            the predicted one is as it should be.
        source: title of the source.
    """

    chip: str
    name: str
    measured: float
    predicted: float
    unit: str
    tolerance: float
    source: str

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured

    @property
    def holds(self) -> bool:
        """Whether it is within the tolerance."""
        if not self.tolerance:
            return self.measured <= self.predicted
        return abs(self.ratio - 1) <= self.tolerance


def rate(row: Rate) -> Compared:
    """What the description of a chip says of a matrix instruction."""
    target = describe(row.chip)
    found = machine(target)
    products = found.rates[row.operands, row.accumulator]
    parts = 2 if target.name == "amdgpu" else 1
    value = {
        "TFLOP/s": 2e-12 * products * found.multiprocessors * found.hertz,
        # Of a compute unit, of which a multiprocessor has two.
        "FLOP/clk": 2 * products / parts,
        "clocks": 16**3 * found.chip.partitions / products,
    }[row.unit]
    name = f"{row.operands} into {row.accumulator}{' (stated)' if row.stated else ''}"
    return Compared(row.chip, name, row.value, value, row.unit, RATE_TOLERANCE, row.source.title)


def _estimate(
    parts: Parts, launch: Launch, problem: Problem, found: Machine, gigahertz: float
) -> Estimate:
    """At a clock, or, where none was read, at the one that the chip's limit of power leaves."""
    if gigahertz:
        return predict(parts, launch, problem, found.at(gigahertz * 1e9))
    limited = sustained(parts, launch, problem, found)
    return limited[1] if limited else predict(parts, launch, problem, found)


def kernel(row: Kernel) -> Compared:
    """The model's rate of a kernel."""
    target = describe(row.chip)
    found = machine(target)
    m, n, k = row.extents
    parts = listing.load((LISTINGS / f"{row.listing}.txt").read_text())
    floor = (m + n) * k * OPERAND_BYTES + m * n * row.result_bytes
    tiles = -(-m // row.tile[0]) * -(-n // row.tile[1])
    blocks, needs = row.blocks or tiles, (row.threads, row.registers, row.shared_bytes)
    pitch = gcd(k * OPERAND_BYTES, n * row.result_bytes)
    launch = Launch(blocks, *needs, row.boxes, row.leaves, row.cluster, tiles, pitch)
    parts = replace(
        parts,
        boxes=len(row.boxes),
        stored=int(row.leaves > 0),
        shared_boxes=int(row.cluster > 1),
    )
    estimate = _estimate(parts, launch, Problem(m, n, k, floor), found, row.gigahertz)
    name = f"{row.listing} {m}x{n}x{k}{f', {row.blocks} blocks' if row.blocks else ''}"
    seconds = estimate.seconds + target.parallel[0].overhead * row.between_launches
    predicted = 2e-12 * m * n * k / seconds
    return Compared(
        row.chip, name, row.teraflops, predicted, "TFLOP/s", row.tolerance, row.source.title
    )


def attention(row: Attention) -> Compared:
    """The model's rate of attention."""
    found = machine(describe(row.chip))
    parts = listing.load((LISTINGS / f"{row.listing}.txt").read_text())
    parts = replace(parts, boxes=len(row.boxes))
    rows = row.heads * row.length
    problem = Problem(
        rows,
        row.length,
        2 * row.size,
        4 * rows * row.size * OPERAND_BYTES,
        sequence=row.length,
        causal=row.causal,
    )
    blocks = row.heads * -(-row.length // row.rows)
    launch = Launch(blocks, row.threads, row.registers, row.shared_bytes, row.boxes)
    estimate = _estimate(parts, launch, problem, found, row.gigahertz)
    operations = 4 * rows * row.length * row.size / (2 if row.causal else 1)
    predicted = 1e-12 * operations / estimate.seconds
    name = f"{row.listing} {row.heads}x{row.length}x{row.size}"
    return Compared(
        row.chip, name, row.teraflops, predicted, "TFLOP/s", KERNEL_TOLERANCE, row.source.title
    )


def library(row: Library) -> Compared:
    """The described peak, which no library exceeds."""
    found = machine(describe(row.chip))
    peak = found.best[row.operands, row.accumulator]
    name = f"{row.name} {row.operands} {'x'.join(map(str, row.extents))}"
    value = 2e-12 * peak * found.multiprocessors * found.hertz
    return Compared(row.chip, name, row.teraflops, value, "TFLOP/s", 0, row.source.title)


def everything() -> dict[str, list[Compared]]:
    """All rows by what they are."""
    return {
        "instructions": [rate(row) for row in published.RATES],
        "kernels": [kernel(row) for row in published.KERNELS],
        "attention": [attention(row) for row in published.ATTENTION],
        "libraries, against the described peak": [library(row) for row in published.LIBRARIES],
    }


def misordered(rows: Sequence[Compared]) -> list[tuple[Compared, Compared]]:
    """Pairs of kernels of one chip: the second one was measured faster, and is predicted slower."""
    return [
        (slow, fast)
        for slow, fast in itertools.permutations(rows, 2)
        if slow.chip == fast.chip
        and fast.measured >= APART * slow.measured
        and fast.predicted <= slow.predicted
    ]
