"""Facts about this machine, read from the operating system; no LLVM, since a warm start needs them.

Volatile facts (clock now, load, affinity, cgroup limits) are left out: the description is part of
the cache key. Where the files of Linux are missing, LLVM is asked for the name and the features.
"""

from __future__ import annotations

import functools
import os
import platform
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from polyblocks.errors import TargetError
from polyblocks_cpu.archs import ARCHS, ARM, X86, Arch
from polyblocks_cpu.instructions.tiles import TILE_FEATURE, permitted

#: Linux's name of a CPU flag -> LLVM's name of the feature, for what code generation can use.
X86_FEATURES = {
    "pni": "sse3",
    "ssse3": "ssse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "popcnt": "popcnt",
    "cx16": "cx16",
    "lahf_lm": "sahf",
    "abm": "lzcnt",
    "bmi1": "bmi",
    "bmi2": "bmi2",
    "movbe": "movbe",
    "avx": "avx",
    "avx2": "avx2",
    "f16c": "f16c",
    "fma": "fma",
    "avx512f": "avx512f",
    "avx512cd": "avx512cd",
    "avx512bw": "avx512bw",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx_vnni": "avxvnni",
    "avx_vnni_int8": "avxvnniint8",
    "gfni": "gfni",
    "sse4a": "sse4a",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
}

ARM_FEATURES = {
    "asimdhp": "fullfp16",
    "asimddp": "dotprod",
    "atomics": "lse",
    "asimdfhm": "fp16fml",
    "sve": "sve",
    "sve2": "sve2",
    "bf16": "bf16",
    "i8mm": "i8mm",
}

#: Features of the psABI levels, best first.
X86_LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x86-64-v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma")),
    ("x86-64-v3", ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")),
    ("x86-64-v2", ("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3")),
    ("x86-64", ()),
)

_INTEL_MODELS = {
    0x2A: "sandybridge", 0x2D: "sandybridge",
    0x3A: "ivybridge", 0x3E: "ivybridge",
    0x3C: "haswell", 0x3F: "haswell", 0x45: "haswell", 0x46: "haswell",
    0x3D: "broadwell", 0x47: "broadwell", 0x4F: "broadwell", 0x56: "broadwell",
    0x4E: "skylake", 0x5E: "skylake", 0x8E: "skylake", 0x9E: "skylake",
    0xA5: "skylake", 0xA6: "skylake",
    0x55: "skylake-avx512",
    0x6A: "icelake-server", 0x6C: "icelake-server",
    0x7D: "icelake-client", 0x7E: "icelake-client",
    0x8C: "tigerlake", 0x8D: "tigerlake",
    0x8F: "sapphirerapids", 0xCF: "emeraldrapids",
    0xAD: "graniterapids", 0xAE: "graniterapids",
    0x97: "alderlake", 0x9A: "alderlake", 0xBF: "alderlake",
    0xB7: "raptorlake", 0xBA: "raptorlake",
}  # fmt: skip

_ARM_PARTS = {
    (0x41, 0xD08): "cortex-a72",
    (0x41, 0xD0B): "cortex-a76",
    (0x41, 0xD0C): "neoverse-n1",
    (0x41, 0xD40): "neoverse-v1",
    (0x41, 0xD49): "neoverse-n2",
    (0x41, 0xD4F): "neoverse-v2",
    (0x46, 0x001): "a64fx",
    (0xC0, 0xAC3): "ampere1",
    (0x61, 0x022): "apple-m1",
    (0x61, 0x032): "apple-m2",
}


@dataclass(frozen=True)
class CacheLevel:
    """One data cache: bytes, bytes of a line, ways, hardware threads that share it."""

    size: int
    line: int
    ways: int
    shared_by: int


@dataclass(frozen=True)
class Host:
    """This machine.

    Attributes:
        arch: the facts of its microarchitecture, or of the best generic level.
        features: LLVM features, ``+x`` or ``-x``, sorted; none if the system does not tell them.
        caches: level -> data cache, as far as the system tells.
        threads: hardware threads of the machine, rounded down to a power of two.
    """

    arch: Arch
    features: tuple[str, ...]
    caches: Mapping[int, CacheLevel]
    threads: int


@functools.cache
def host() -> Host:
    """Read this machine's facts, once per process, which may use the chip's tiles from then on.

    Raises:
        TargetError: it is of a family that this target makes no code for.
    """
    family()
    threads = power_of_two(os.cpu_count() or 1)
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        arch, features = _ask_llvm()
    else:
        arch, features = identify(text)
    if f"+{TILE_FEATURE}" in features and not permitted():
        features = tuple("-" + f[1:] if f.startswith("+amx") else f for f in features)
    return Host(arch, features, read_caches(Path("/sys/devices/system/cpu/cpu0/cache")), threads)


def family() -> str:
    """``x86_64`` or ``aarch64``: what this machine is.

    Raises:
        TargetError: neither.
    """
    names = {"x86_64": X86, "amd64": X86, "arm64": ARM, "aarch64": ARM}
    machine = platform.machine().lower()
    if machine not in names:
        raise TargetError(
            f"target 'cpu' makes code for {X86} and {ARM}; this machine is '{machine}'; name "
            "another chip with the option arch"
        )
    return names[machine]


def identify(cpuinfo: str) -> tuple[Arch, tuple[str, ...]]:
    """The microarchitecture and the LLVM features that a ``/proc/cpuinfo`` tells.

    A named part that lacks an instruction set of its generation (a virtual machine may mask them)
    is taken for the best generic level that it has.
    """
    first = cpuinfo.split("\n\n", 1)[0]
    fields = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in first.splitlines())
    }
    if "flags" in fields:
        return _identify_x86(fields)
    return _identify_arm(fields)


def _identify_x86(fields: Mapping[str, str]) -> tuple[Arch, tuple[str, ...]]:
    flags = set(fields["flags"].split())
    features = _features(X86_FEATURES, flags)
    level = next(name for name, needed in X86_LEVELS if flags.issuperset(needed))
    name = _x86_name(fields, flags)
    if name is not None and _level_of(ARCHS[name]) <= _level_of(ARCHS[level]):
        return ARCHS[name], features
    return ARCHS[level], features


def _features(known: Mapping[str, str], flags: Set[str]) -> tuple[str, ...]:
    """Present and absent features of a chip with these flags; empty without flags."""
    if not flags:
        return ()
    return tuple(sorted(("+" if flag in flags else "-") + name for flag, name in known.items()))


def _level_of(arch: Arch) -> int:
    """Width of the registers, which is all that a masked instruction set can take away."""
    return 512 if arch.vector_registers == 32 else arch.vector_bits


def _x86_name(fields: Mapping[str, str], flags: set[str]) -> str | None:
    family = int(fields.get("cpu family", "0"))
    model = int(fields.get("model", "0"))
    vendor = fields.get("vendor_id", "")
    if vendor == "GenuineIntel" and family == 6:
        name = _INTEL_MODELS.get(model)
        if "amx_tile" in flags and (name is None or not ARCHS[name].tiles):
            # A newer chip, or a virtual machine that tells the number of an older one.
            return "sapphirerapids"
        return "cascadelake" if name == "skylake-avx512" and "avx512_vnni" in flags else name
    if vendor == "AuthenticAMD":
        if family == 0x17:
            return "znver1" if model < 0x30 else "znver2"
        if family == 0x19:
            zen4 = 0x10 <= model <= 0x1F or 0x60 <= model <= 0x7F or 0xA0 <= model <= 0xAF
            return "znver4" if zen4 else "znver3"
        if family == 0x1A:
            return "znver5"
    return None


def _identify_arm(fields: Mapping[str, str]) -> tuple[Arch, tuple[str, ...]]:
    flags = set(fields.get("Features", "").split())
    features = _features(ARM_FEATURES, flags)
    part = (int(fields.get("CPU implementer", "0"), 0), int(fields.get("CPU part", "0"), 0))
    return ARCHS[_ARM_PARTS.get(part, "armv8-a")], features


def read_caches(folder: Path) -> dict[int, CacheLevel]:
    """The data caches that Linux lists in ``/sys/devices/system/cpu/cpu0/cache``."""
    caches = {}
    for index in sorted(folder.glob("index*")):
        try:
            facts = {
                name: (index / name).read_text().strip()
                for name in ("level", "type", "size", "coherency_line_size")
            }
            ways = int(_read(index / "ways_of_associativity", "0"))
            shared = _read(index / "shared_cpu_list", "0")
            size = _bytes(facts["size"])
            line = int(facts["coherency_line_size"])
            level = int(facts["level"])
        except (OSError, ValueError):
            continue
        if facts["type"] in ("Data", "Unified"):
            caches[level] = CacheLevel(size, line, ways, power_of_two(_count(shared)))
    return caches


def _read(path: Path, default: str) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return default


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def _count(cpu_list: str) -> int:
    """Number of CPUs in a list such as ``0-3,8``."""
    total = 0
    for part in cpu_list.split(","):
        low, _, high = part.partition("-")
        total += int(high or low) - int(low) + 1
    return total


def power_of_two(n: int) -> int:
    """The largest power of two that is at most ``n``."""
    return 1 << (max(n, 1).bit_length() - 1)


def _ask_llvm() -> tuple[Arch, tuple[str, ...]]:
    here = family()
    try:
        from llvmlite import binding
    except ImportError:  # nothing is compiled here, and nothing said of the chip
        return ARCHS["armv8-a" if here == ARM else "x86-64"], ()
    name = binding.get_host_cpu_name()
    flags = binding.get_host_cpu_features()
    known = (X86_FEATURES if here == X86 else ARM_FEATURES).values()
    # Of some families LLVM lists only what a chip has.
    features = _features({f: f for f in known}, {f for f, has in flags.items() if has})
    fallback = "armv8-a" if here == ARM else "x86-64"
    return ARCHS.get(name, ARCHS[fallback]), features
