"""What kernels are to reach, by size and kind of chip, and which of it does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from bench.gpu_static.machines import Machine

Json = dict[str, Any]

#: Extents of products of 16-bit numbers -> least reach: of NVIDIA's chips, of AMD's, and of
#: NVIDIA's whose warps call instructions together.
REACH = {
    "8192x8192x8192": (0.85, 0.80, 0.80),
    "4096x4096x4096": (0.80, 0.75, 0.75),
    "4096x4096x1024": (0.70, 0.70, 0.65),
    "1000x1000x1000": (0.50, 0.50, 0.40),
}
#: Of attention: all pairs of a row and a column, and those up to the diagonal.
ATTENTION = {"full": (0.60, 0.50, 0.60), "causal": (0.50, 0.40, 0.50)}
#: Time of attention of few rows over that of moving every argument and result once, at most, beside
#: two launches; its kernels, at most: parts of the keys, and what joins them.
DECODE, DECODE_KERNELS = 1.15, 2
#: The geometric mean over the convolutions of ResNet-50.
RESNET = (0.60, 0.55, 0.55)
#: Matrix instructions over all of the main loop, of chips that issue one instruction per cycle.
MATRIX_SLOTS = 0.45
#: Cycles of matrix instructions that several warps call, and other instructions for each of them.
LONG, OTHERS = 32, 12
#: Other vector instructions for each matrix one where they share a pipe, by their cycles.
VECTOR_PER_MATRIX = {32: 3.0, 16: 2.0, 8: 2.0}
#: Multiply-adds over all of the main loop of a product without matrix units.
FLOAT_SLOTS = 0.75
#: Bits of the widest access of a thread.
WIDE = 128
#: Seconds for which the copies that are on their way have to keep the memory busy.
IN_FLIGHT = 0.8e-6
#: How far apart the mapping's prediction and this model may be, as a factor.
MAPPING = 1.25
#: int8 over float16 at the same size, by how much more the units do.
INTEGER = 0.95
INTEGER_OF_TWICE = 1.7


@dataclass(frozen=True)
class Miss:
    """What does not hold."""

    case: str
    arch: str
    what: str

    def __str__(self) -> str:
        return f"{self.case} for {self.arch}: {self.what}"


def bar(row: Json, machine: Machine) -> float | None:
    """The least reach of a case; None if it has none."""
    known = {"products": REACH, "attention": ATTENTION}
    if row["dtype"] == "int8" or row["group"] not in known:
        return None
    every = known[row["group"]].get(row["size"])
    return every[_kind(machine)] if every else None


def _kind(machine: Machine) -> int:
    return 1 if machine.one_pipe else 2 if machine.has_groups else 0


def misses(row: Json, machine: Machine) -> list[Miss]:
    """What one row does not hold of what stands for it alone."""
    found = []

    def check(holds: bool, what: str) -> None:
        if not holds:
            found.append(Miss(row["case"], row["arch"], what))

    least = bar(row, machine)
    if least is not None:
        check(row["reach"] >= least, f"reach {row['reach']:.2f}, at least {least}")
    check(not row["spill_bytes"], f"{row['spill_bytes']} bytes of registers are spilled")
    check(not row["stack_bytes"], f"{row['stack_bytes']} bytes are on the stack")
    check(
        row["resident"] >= row["assumed"],
        f"{row['resident']} blocks at once, the mapping assumes {row['assumed']}",
    )
    if row["group"].startswith("resnet-50") or row["group"] == "attention":
        most = DECODE_KERNELS if row["size"] == "decode" else 1
        check(row["kernels"] <= most, f"{row['kernels']} kernels, at most {most}")
    if row["size"] == "decode":
        launched = row["kernels"] * machine.launch_seconds
        ratio = (row["seconds"] - launched) / row["memory_seconds"]
        check(ratio <= DECODE, f"{ratio:.2f} times as long as memory takes, at most {DECODE}")
    if row["conflicts"] is not None:
        check(not row["conflicts"], f"{row['conflicts']} simulated bank conflicts")
    if row["group"] == "products" and row["bytes_in_flight"] is not None:
        needed = machine.bandwidth * IN_FLIGHT
        check(
            row["bytes_in_flight"] >= needed,
            f"{row['bytes_in_flight'] / 1e6:.2f} MB in flight, at least {needed / 1e6:.2f}",
        )
    if row["matrix_slots"] is None:
        check(row["group"] not in ("products", "attention"), "no matrix unit computes it")
    elif row["group"] == "attention":
        # What is between the products takes slots, too.
        pass
    elif not machine.one_pipe and row["matrix_cycles"] >= LONG:
        others = 1 / row["matrix_slots"] - 1
        check(
            others <= OTHERS,
            f"{others:.0f} other instructions for each of several warps, at most {OTHERS}",
        )
    elif not machine.one_pipe:
        check(
            row["matrix_slots"] >= MATRIX_SLOTS,
            f"{row['matrix_slots']:.0%} of the loop's instructions are matrix ones, at least "
            f"{MATRIX_SLOTS:.0%}",
        )
    else:
        most = VECTOR_PER_MATRIX[round(row["matrix_cycles"])]
        check(
            row["vector_per_matrix"] <= most,
            f"{row['vector_per_matrix']:.1f} vector instructions for each matrix one, at most "
            f"{most:.0f}",
        )
    if row["mapping_seconds"] is not None:
        ratio = row["mapping_seconds"] / row["seconds"]
        check(
            1 / MAPPING <= ratio <= MAPPING,
            f"the mapping predicts {ratio:.2f} times as much",
        )
    return found


def vector_misses(row: Json) -> list[Miss]:
    """What a row of :mod:`bench.gpu_static.vector` does not hold."""
    found = []

    def check(holds: bool, what: str) -> None:
        if not holds:
            found.append(Miss(row["case"], row["arch"], what))

    if row["float_slots"] is not None:
        check(
            row["float_slots"] >= FLOAT_SLOTS,
            f"{row['float_slots']:.0%} of the loop's instructions are multiply-adds, at least "
            f"{FLOAT_SLOTS:.0%}",
        )
        narrow = _narrow(row["operands"])
        check(not narrow, f"{narrow} narrow reads of shared memory in the main loop")
    moved = (row["loads"], row["stores"])
    if not row["narrow"]:
        check(not any(map(_narrow, moved)), f"{sum(map(_narrow, moved))} narrow accesses of memory")
    if row["wide"]:
        check(any(WIDE in widths for widths in moved), "no wide accesses of memory")
    check(not row["spill_bytes"], f"{row['spill_bytes']} bytes of registers are spilled")
    check(not row["stack_bytes"], f"{row['stack_bytes']} bytes are on the stack")
    if row["conflicts"] is not None:
        check(not row["conflicts"], f"{row['conflicts']} simulated bank conflicts")
    return found


def _narrow(widths: Mapping[int, int]) -> int:
    return sum(count for bits, count in widths.items() if bits < WIDE)


def together(rows: Sequence[Json], machine: Machine) -> list[Miss]:
    """What the rows of one chip do not hold together."""
    found = []
    convolutions = [row["reach"] for row in rows if row["group"] == "resnet-50"]
    if convolutions:
        mean, least = geometric_mean(convolutions), RESNET[_kind(machine)]
        if mean < least:
            text = f"geometric mean of the reach {mean:.2f}, at least {least}"
            found.append(Miss("convolutions of ResNet-50", rows[0]["arch"], text))
    halves = {row["shape"]: row["seconds"] for row in rows if row["dtype"] == "float16"}
    for row in rows:
        if row["dtype"] != "int8" or row["shape"] not in halves:
            continue
        rates = machine.rates
        twice = rates["int8", "int32"] > rates["float16", "float32"]
        least = INTEGER_OF_TWICE if twice else INTEGER
        ratio = halves[row["shape"]] / row["seconds"]
        if ratio < least:
            text = f"{ratio:.2f} times as fast as float16, at least {least}"
            found.append(Miss(row["case"], row["arch"], text))
    return found
