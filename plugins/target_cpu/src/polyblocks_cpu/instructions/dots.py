"""Dot products of CPUs: which there are, what they compute, and their instructions.

Each adds to the lanes of a vector the products of a few neighbouring narrow numbers. Latencies are
those of vendors' optimization guides and of uops.info, of the slowest chip that has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyblocks.target import MatrixUnit, VectorDot

#: Bits of a lane's accumulator, and of its operands.
LANE = 32


@dataclass(frozen=True)
class Dot:
    """One instruction.

    Attributes:
        features: LLVM's names of the features; each of them provides it.
        operands: dtypes of the first and of the second operand.
        accumulator: dtype of the accumulator.
        latency: cycles from the accumulator to the result.
        intrinsics: lanes of a register -> LLVM's intrinsic.
        element: MLIR type of the operands' elements, as the intrinsic takes them.
    """

    features: tuple[str, ...]
    operands: tuple[str, str]
    accumulator: str
    latency: int
    intrinsics: Mapping[int, str]
    element: str

    @property
    def steps(self) -> int:
        """Products of one lane."""
        return {"bf16": 2, "i8": 4}[self.element]


def _x86(name: str, widths: Sequence[int] = (128, 256, 512)) -> dict[int, str]:
    return {bits // LANE: f"llvm.x86.{name}.{bits}" for bits in widths}


_FLOATS = ("bfloat16", "bfloat16")

#: By name, best first. Dot products of bfloat16 round sums of two products as two sums, and take
#: numbers below the normal ones for zero, as these instructions of both families do.
DOTS: dict[str, Dot] = {
    "vdpbf16ps": Dot(("avx512bf16",), _FLOATS, "float32", 6, _x86("avx512bf16.dpbf16ps"), "bf16"),
    "vpdpbssd": Dot(
        ("avxvnniint8",), ("int8", "int8"), "int32", 5, _x86("avx2.vpdpbssd", (128, 256)), "i8"
    ),
    "vpdpbuud": Dot(
        ("avxvnniint8",), ("uint8", "uint8"), "int32", 5, _x86("avx2.vpdpbuud", (128, 256)), "i8"
    ),
    "vpdpbusd": Dot(
        ("avx512vnni", "avxvnni"), ("uint8", "int8"), "int32", 5, _x86("avx512.vpdpbusd"), "i8"
    ),
    "bfdot": Dot(
        ("bf16",), _FLOATS, "float32", 5, {4: "llvm.aarch64.neon.bfdot.v4f32.v8bf16"}, "bf16"
    ),
    "sdot": Dot(
        ("dotprod",), ("int8", "int8"), "int32", 3, {4: "llvm.aarch64.neon.sdot.v4i32.v16i8"}, "i8"
    ),
    "udot": Dot(
        ("dotprod",),
        ("uint8", "uint8"),
        "int32",
        3,
        {4: "llvm.aarch64.neon.udot.v4i32.v16i8"},
        "i8",
    ),
    "usdot": Dot(
        ("i8mm",), ("uint8", "int8"), "int32", 3, {4: "llvm.aarch64.neon.usdot.v4i32.v16i8"}, "i8"
    ),
}


def available(known: Mapping[str, float], features: Sequence[str]) -> dict[str, float]:
    """The dot products of a chip, and how many of each start in the time of a multiply-add.

    Args:
        known: those of its microarchitecture.
        features: LLVM's features of a machine at hand, ``+x`` or ``-x``; none for a chip that is
            only named. Units missing in the table have the rate of multiply-adds.
    """
    if not features:
        return {name: known[name] for name in DOTS if name in known}
    return {
        name: known.get(name, 1.0)
        for name, dot in DOTS.items()
        if any(f"+{feature}" in features for feature in dot.features)
    }


def matrix_units(
    rates: Mapping[str, float], vector_bits: int, multiply_adds: float, units: int
) -> tuple[MatrixUnit, ...]:
    """The units that a description names.

    Args:
        rates: from :func:`available`.
        vector_bits: bits of the vectors that code is generated with.
        multiply_adds: multiply-adds of a vector of float32 that the whole chip starts per second.
        units: that one core starts per cycle.
    """
    found = []
    for name, rate in rates.items():
        dot = DOTS[name]
        lanes = min(vector_bits // LANE, max(dot.intrinsics))
        share = rate * lanes / (vector_bits // LANE)
        first, second = dot.operands
        found.append(
            VectorDot(
                name,
                (1, lanes, dot.steps),
                first,
                dot.accumulator,
                flops=2.0 * dot.steps * (vector_bits // LANE) * multiply_adds * share,
                second="" if first == second else second,
                in_flight=max(1, round(dot.latency * units * rate)),
            )
        )
    return tuple(found)
