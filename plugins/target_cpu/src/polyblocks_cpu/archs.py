"""Facts about CPU microarchitectures, by name; what can be said without the machine at hand.

Names are LLVM's ``-mcpu`` names, plus the four x86-64 psABI levels and ``armv8-a``. Cache sizes and
rates are one common configuration of each, rounded: the mid-level's cost model wants the order of
magnitude. Sources: vendors' optimization manuals (Intel 248966, AMD 57647 and its predecessors, Arm
Neoverse software optimization guides), the x86-64 psABI 1.0 for the levels. Load ports and widths
give the rates of L1; those of L2 and L3 are below the manuals' peaks, as streaming reads see them.
``python -m bench.ceilings`` measures all of them on the machine at hand (znver4 is from there).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from polyblocks.target import Issue
from polyblocks.targets.target_choice import unknown_arch

KIB = 1024
MIB = 1024 * KIB

X86 = "x86_64"
ARM = "aarch64"


@dataclass(frozen=True)
class Arch:
    """One microarchitecture.

    Attributes:
        name: the name users write.
        family: ``x86_64`` or ``aarch64``, the first part of the LLVM triple.
        cpu: LLVM's ``target-cpu``.
        vector_bits: width of the vectors to generate.
        vector_registers: number of architectural vector registers.
        fma_units: full-width multiply-add instructions started per cycle.
        fma_latency: cycles from a multiply-add to its result.
        loads: load instructions started per cycle.
        l1, l2: bytes of one core's data caches.
        l3: bytes of one last-level cache; 0 without one.
        l3_cores: cores that share it.
        ghz: sustained clock under vector load.
        threads: hardware threads of a common part, when the machine is not at hand.
        bandwidth: bytes per second of the main memory of that part.
        core_bandwidth: bytes per second that one core alone gets from the main memory.
        rates: bytes per cycle that one core gets from L1, L2 and L3, sustained.
        lacks: which of ``fma``, ``half`` (conversion of f16) and ``rounding`` (to integers in
            floating point) it has no vector instruction for.
        dots: dot products that it has (:data:`polyblocks_cpu.instructions.dots.DOTS`), and how many
        of each it
            starts in the time of a full-width multiply-add.
        tiles: LLVM's features that bring units of tiles (:mod:`polyblocks_cpu.instructions.tiles`).
        writes: bytes that are written to a level of memory while one is read from it, as
            :attr:`polyblocks.target.MemoryLevel.writes`.
        lowers_clock: whether arithmetic on full-width vectors lowers the clock for a while, see
            :mod:`polyblocks_cpu.brief`.
        issue: what a core starts beside multiply-adds of its vectors.
        features: LLVM's features that it has beyond those of its x86-64 level, or of ``armv8-a``;
            as far as hosts tell theirs (:data:`polyblocks_cpu.host.X86_FEATURES`).
    """

    name: str
    family: str
    cpu: str
    vector_bits: int
    vector_registers: int
    fma_units: int = 2
    fma_latency: int = 4
    loads: int = 2
    l1: int = 32 * KIB
    l2: int = 1 * MIB
    l3: int = 32 * MIB
    l3_cores: int = 8
    ghz: float = 3.0
    threads: int = 8
    bandwidth: float = 40e9
    core_bandwidth: float = 20e9
    rates: tuple[float, float, float] = (64.0, 32.0, 16.0)
    lacks: tuple[str, ...] = ()
    dots: Mapping[str, float] = field(default_factory=dict)
    tiles: tuple[str, ...] = ()
    writes: float = 0.0
    lowers_clock: bool = False
    issue: Issue = field(default_factory=Issue)
    features: tuple[str, ...] = ()


def _x86(
    name: str, bits: int, registers: int = 16, cpu: str | None = None, **facts: object
) -> Arch:
    return Arch(name, X86, cpu or name, bits, registers, **facts)  # type: ignore[arg-type]


def _arm(name: str, bits: int = 128, cpu: str | None = None, **facts: object) -> Arch:
    facts.setdefault("l1", 64 * KIB)
    return Arch(name, ARM, cpu or name, bits, 32, **facts)  # type: ignore[arg-type]


#: Features that came together: dot products of bytes; the same and those of bfloat16, at full rate
#: or, in Intel's chips that have units for whole tiles as well, at half of it.
_BYTES = {"vpdpbusd": 1.0}
_BYTES_AND_FLOATS = {**_BYTES, "vdpbf16ps": 1.0}
_BYTES_AND_SLOW_FLOATS = {**_BYTES, "vdpbf16ps": 0.5}
_TILES = ("amx-bf16", "amx-int8", "amx-tile")
_ICELAKE = (
    *("avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq"),
    "gfni",
)
_SAPPHIRE = (*_ICELAKE, "avx512bf16", "avx512fp16", "avxvnni")
_ZEN4 = (*_ICELAKE, "avx512bf16", "sse4a")
_ARM_82 = ("dotprod", "fullfp16", "lse")
_ARM_SVE = (*_ARM_82, "bf16", "fp16fml", "i8mm", "sve")
_ARM_BYTES = {"sdot": 1.0, "udot": 1.0}
_ARM_BYTES_AND_FLOATS = {**_ARM_BYTES, "usdot": 1.0, "bfdot": 1.0}

#: Multiplications and additions have units of their own; integers and logic use all of them (AMD
#: 57647, and the guides before it).
_ZEN_ISSUE = Issue(vectors=2.0, sums_apart=True)
#: Of 512-bit vectors, which take both halves of a unit's time: latencies and divisions from
#: uops.info; a gather of 16 lanes measured at 17 cycles where its table is in the first cache.
_ZEN4_ISSUE = Issue(
    vectors=2.0,
    sums_apart=True,
    shuffles=1.0,
    instructions=6.0,
    quotient=7.0,
    root=10.0,
    inverse_root=7.0,
    lane=1.0,
    narrow=0.5,
    forwarding=8.0,
)

_TABLE = (
    # psABI levels: SSE2, SSE4.2, AVX2+FMA, AVX-512.
    _x86(
        "x86-64",
        128,
        fma_units=1,
        l2=256 * KIB,
        l3=8 * MIB,
        threads=4,
        bandwidth=20e9,
        lacks=("fma", "half", "rounding"),
        rates=(32.0, 32.0, 16.0),
    ),
    _x86(
        "x86-64-v2",
        128,
        fma_units=1,
        l2=256 * KIB,
        l3=8 * MIB,
        threads=4,
        bandwidth=20e9,
        lacks=("fma", "half"),
        rates=(32.0, 32.0, 16.0),
    ),
    _x86("x86-64-v3", 256, l2=256 * KIB, l3=16 * MIB),
    _x86("x86-64-v4", 512, 32),
    _x86(
        "sandybridge",
        256,
        fma_units=1,
        l2=256 * KIB,
        l3=8 * MIB,
        l3_cores=4,
        lacks=("fma", "half"),
        rates=(32.0, 20.0, 12.0),
        features=("avx",),
    ),
    _x86(
        "ivybridge",
        256,
        fma_units=1,
        l2=256 * KIB,
        l3=8 * MIB,
        l3_cores=4,
        lacks=("fma",),
        rates=(32.0, 20.0, 12.0),
        features=("avx", "f16c"),
    ),
    _x86("haswell", 256, l2=256 * KIB, l3=8 * MIB, l3_cores=4, rates=(64.0, 32.0, 12.0)),
    _x86("broadwell", 256, l2=256 * KIB, l3=8 * MIB, l3_cores=4, rates=(64.0, 32.0, 12.0)),
    _x86("skylake", 256, l2=256 * KIB, l3=8 * MIB, l3_cores=4, rates=(64.0, 32.0, 12.0)),
    # Half-width vectors: full-width ones cost these two generations a lower clock.
    _x86(
        "skylake-avx512",
        256,
        32,
        l3=24 * MIB,
        l3_cores=16,
        ghz=2.5,
        threads=32,
        bandwidth=100e9,
        rates=(64.0, 48.0, 8.0),
        core_bandwidth=13e9,
    ),
    _x86(
        "cascadelake",
        256,
        32,
        l3=24 * MIB,
        l3_cores=16,
        ghz=2.5,
        threads=32,
        bandwidth=110e9,
        rates=(64.0, 48.0, 8.0),
        core_bandwidth=13e9,
        dots=_BYTES,
        features=("avx512vnni",),
    ),
    _x86(
        "icelake-client",
        512,
        32,
        fma_units=1,
        l1=48 * KIB,
        l2=512 * KIB,
        l3=8 * MIB,
        rates=(128.0, 48.0, 16.0),
        dots=_BYTES,
        lowers_clock=True,
        features=_ICELAKE,
    ),
    _x86(
        "tigerlake",
        512,
        32,
        fma_units=1,
        l1=48 * KIB,
        l2=1280 * KIB,
        l3=12 * MIB,
        rates=(128.0, 48.0, 16.0),
        dots=_BYTES,
        lowers_clock=True,
        features=_ICELAKE,
    ),
    _x86(
        "icelake-server",
        512,
        32,
        l1=48 * KIB,
        l2=1280 * KIB,
        l3=48 * MIB,
        l3_cores=32,
        ghz=2.6,
        threads=64,
        bandwidth=160e9,
        rates=(128.0, 48.0, 10.0),
        core_bandwidth=13e9,
        dots=_BYTES,
        lowers_clock=True,
        features=_ICELAKE,
    ),
    _x86(
        "sapphirerapids",
        512,
        32,
        l1=48 * KIB,
        l2=2 * MIB,
        l3=96 * MIB,
        l3_cores=48,
        ghz=2.6,
        threads=96,
        bandwidth=250e9,
        rates=(128.0, 48.0, 10.0),
        core_bandwidth=13e9,
        dots=_BYTES_AND_SLOW_FLOATS,
        tiles=_TILES,
        lowers_clock=True,
        features=_SAPPHIRE,
    ),
    _x86(
        "emeraldrapids",
        512,
        32,
        l1=48 * KIB,
        l2=2 * MIB,
        l3=256 * MIB,
        l3_cores=56,
        ghz=2.6,
        threads=112,
        bandwidth=290e9,
        rates=(128.0, 48.0, 10.0),
        core_bandwidth=13e9,
        dots=_BYTES_AND_SLOW_FLOATS,
        tiles=_TILES,
        lowers_clock=True,
        features=_SAPPHIRE,
    ),
    _x86(
        "graniterapids",
        512,
        32,
        l1=48 * KIB,
        l2=2 * MIB,
        l3=288 * MIB,
        l3_cores=64,
        ghz=2.6,
        threads=128,
        bandwidth=450e9,
        rates=(128.0, 48.0, 10.0),
        core_bandwidth=13e9,
        dots=_BYTES_AND_SLOW_FLOATS,
        tiles=_TILES,
        lowers_clock=True,
        features=_SAPPHIRE,
    ),
    _x86(
        "alderlake",
        256,
        l1=48 * KIB,
        l2=1280 * KIB,
        l3=30 * MIB,
        threads=16,
        bandwidth=60e9,
        rates=(96.0, 48.0, 16.0),
        core_bandwidth=35e9,
        dots=_BYTES,
        features=("avxvnni", "gfni"),
    ),
    _x86(
        "raptorlake",
        256,
        l1=48 * KIB,
        l2=2 * MIB,
        l3=36 * MIB,
        threads=16,
        bandwidth=70e9,
        rates=(96.0, 48.0, 16.0),
        core_bandwidth=35e9,
        dots=_BYTES,
        features=("avxvnni", "gfni"),
    ),
    _x86(
        "znver1",
        256,
        fma_units=1,
        l2=512 * KIB,
        l3=8 * MIB,
        l3_cores=4,
        rates=(32.0, 24.0, 16.0),
        issue=_ZEN_ISSUE,
        features=("sse4a",),
    ),
    _x86(
        "znver2",
        256,
        l2=512 * KIB,
        l3=16 * MIB,
        l3_cores=4,
        rates=(64.0, 32.0, 20.0),
        issue=_ZEN_ISSUE,
        features=("sse4a",),
    ),
    _x86(
        "znver3",
        256,
        l2=512 * KIB,
        rates=(64.0, 32.0, 24.0),
        core_bandwidth=25e9,
        issue=_ZEN_ISSUE,
        features=("sse4a",),
    ),
    # 512-bit instructions on 256-bit units: one full-width multiply-add per cycle.
    _x86(
        "znver4",
        512,
        32,
        fma_units=1,
        ghz=3.5,
        threads=16,
        bandwidth=60e9,
        rates=(64.0, 32.0, 28.0),
        core_bandwidth=32e9,
        dots=_BYTES_AND_FLOATS,
        writes=0.5,
        issue=_ZEN4_ISSUE,
        features=_ZEN4,
    ),
    _x86(
        "znver5",
        512,
        32,
        l1=48 * KIB,
        ghz=4.2,
        threads=16,
        bandwidth=70e9,
        rates=(128.0, 56.0, 30.0),
        core_bandwidth=35e9,
        dots=_BYTES_AND_FLOATS,
        issue=_ZEN_ISSUE,
        features=(*_ZEN4, "avxvnni"),
    ),
    _arm(
        "armv8-a",
        cpu="generic",
        l1=32 * KIB,
        l2=512 * KIB,
        l3=4 * MIB,
        ghz=2.0,
        bandwidth=20e9,
        rates=(32.0, 16.0, 8.0),
        core_bandwidth=8e9,
    ),
    _arm(
        "cortex-a72",
        fma_units=1,
        l1=32 * KIB,
        l2=1 * MIB,
        l3=0,
        ghz=1.8,
        threads=4,
        bandwidth=8e9,
        rates=(16.0, 12.0, 8.0),
        core_bandwidth=5e9,
    ),
    _arm(
        "cortex-a76",
        l2=512 * KIB,
        l3=2 * MIB,
        l3_cores=4,
        ghz=2.4,
        threads=4,
        bandwidth=15e9,
        rates=(32.0, 16.0, 8.0),
        core_bandwidth=12e9,
        dots=_ARM_BYTES,
        features=_ARM_82,
    ),
    _arm(
        "neoverse-n1",
        l3=32 * MIB,
        l3_cores=64,
        ghz=2.8,
        threads=64,
        bandwidth=180e9,
        rates=(32.0, 24.0, 12.0),
        dots=_ARM_BYTES,
        features=_ARM_82,
    ),
    _arm(
        "neoverse-n2",
        l3=64 * MIB,
        l3_cores=64,
        ghz=3.0,
        threads=64,
        bandwidth=200e9,
        rates=(32.0, 24.0, 12.0),
        dots=_ARM_BYTES_AND_FLOATS,
        features=(*_ARM_SVE, "sve2"),
    ),
    _arm(
        "neoverse-v1",
        256,
        l3=32 * MIB,
        l3_cores=64,
        ghz=2.6,
        threads=64,
        bandwidth=300e9,
        rates=(64.0, 32.0, 12.0),
        core_bandwidth=25e9,
        dots=_ARM_BYTES_AND_FLOATS,
        features=_ARM_SVE,
    ),
    _arm(
        "neoverse-v2",
        fma_units=4,
        l2=2 * MIB,
        l3=114 * MIB,
        l3_cores=72,
        ghz=3.1,
        threads=72,
        bandwidth=450e9,
        rates=(48.0, 32.0, 14.0),
        core_bandwidth=30e9,
        dots=_ARM_BYTES_AND_FLOATS,
        features=(*_ARM_SVE, "sve2"),
    ),
    _arm(
        "ampere1",
        l2=2 * MIB,
        l3=64 * MIB,
        l3_cores=192,
        ghz=3.0,
        threads=192,
        bandwidth=300e9,
        rates=(32.0, 24.0, 10.0),
        dots=_ARM_BYTES_AND_FLOATS,
        features=(*_ARM_82, "bf16", "i8mm"),
    ),
    _arm(
        "a64fx",
        512,
        l2=8 * MIB,
        l3=0,
        ghz=2.2,
        threads=48,
        bandwidth=900e9,
        rates=(128.0, 48.0, 16.0),
        core_bandwidth=30e9,
        features=("fullfp16", "lse", "sve"),
    ),
    _arm(
        "apple-m1",
        fma_units=4,
        l1=128 * KIB,
        l2=12 * MIB,
        l3=8 * MIB,
        ghz=3.2,
        bandwidth=60e9,
        rates=(48.0, 32.0, 24.0),
        core_bandwidth=60e9,
        dots=_ARM_BYTES,
        features=(*_ARM_82, "fp16fml"),
    ),
    _arm(
        "apple-m2",
        fma_units=4,
        l1=128 * KIB,
        l2=16 * MIB,
        l3=8 * MIB,
        ghz=3.5,
        bandwidth=90e9,
        rates=(48.0, 32.0, 24.0),
        core_bandwidth=60e9,
        dots=_ARM_BYTES_AND_FLOATS,
        features=(*_ARM_82, "bf16", "fp16fml", "i8mm"),
    ),
    _arm(
        "apple-m3",
        fma_units=4,
        l1=128 * KIB,
        l2=16 * MIB,
        l3=8 * MIB,
        ghz=4.0,
        bandwidth=90e9,
        rates=(48.0, 32.0, 24.0),
        core_bandwidth=60e9,
        dots=_ARM_BYTES_AND_FLOATS,
        features=(*_ARM_82, "bf16", "fp16fml", "i8mm"),
    ),
    _arm(
        "apple-m4",
        fma_units=4,
        l1=128 * KIB,
        l2=16 * MIB,
        l3=8 * MIB,
        ghz=4.4,
        bandwidth=110e9,
        rates=(48.0, 32.0, 24.0),
        core_bandwidth=60e9,
        dots=_ARM_BYTES_AND_FLOATS,
        features=(*_ARM_82, "bf16", "fp16fml", "i8mm"),
    ),
)

ARCHS: dict[str, Arch] = {arch.name: arch for arch in _TABLE}


def lookup(name: str) -> Arch:
    """The facts about the architecture called ``name``.

    Raises:
        TargetError: unknown; the message names the nearest ones.
    """
    if name in ARCHS:
        return ARCHS[name]
    raise unknown_arch("cpu", name, ARCHS, ", ".join(ARCHS))
