"""How C code learns what a chip has: CPUID on x86-64, the kernel's words on AArch64.

Sources: Intel 325383, CPUID; AMD 24594, appendix E; Linux, Documentation/arch/arm64/elf_hwcaps.rst
and Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks_cpu.archs import X86

#: LLVM's feature -> leaf, subleaf, register and bit of CPUID.
_CPUID: dict[str, tuple[int, int, str, int]] = {
    "sse3": (1, 0, "ecx", 0),
    "ssse3": (1, 0, "ecx", 9),
    "fma": (1, 0, "ecx", 12),
    "cx16": (1, 0, "ecx", 13),
    "sse4.1": (1, 0, "ecx", 19),
    "sse4.2": (1, 0, "ecx", 20),
    "movbe": (1, 0, "ecx", 22),
    "popcnt": (1, 0, "ecx", 23),
    "avx": (1, 0, "ecx", 28),
    "f16c": (1, 0, "ecx", 29),
    "bmi": (7, 0, "ebx", 3),
    "avx2": (7, 0, "ebx", 5),
    "bmi2": (7, 0, "ebx", 8),
    "avx512f": (7, 0, "ebx", 16),
    "avx512dq": (7, 0, "ebx", 17),
    "avx512ifma": (7, 0, "ebx", 21),
    "avx512cd": (7, 0, "ebx", 28),
    "avx512bw": (7, 0, "ebx", 30),
    "avx512vl": (7, 0, "ebx", 31),
    "avx512vbmi": (7, 0, "ecx", 1),
    "avx512vbmi2": (7, 0, "ecx", 6),
    "gfni": (7, 0, "ecx", 8),
    "avx512vnni": (7, 0, "ecx", 11),
    "avx512bitalg": (7, 0, "ecx", 12),
    "avx512vpopcntdq": (7, 0, "ecx", 14),
    "amx-bf16": (7, 0, "edx", 22),
    "avx512fp16": (7, 0, "edx", 23),
    "amx-tile": (7, 0, "edx", 24),
    "amx-int8": (7, 0, "edx", 25),
    "avxvnni": (7, 1, "eax", 4),
    "avx512bf16": (7, 1, "eax", 5),
    "avxvnniint8": (7, 1, "edx", 4),
    "sahf": (0x80000001, 0, "ecx", 0),
    "lzcnt": (0x80000001, 0, "ecx", 5),
    "sse4a": (0x80000001, 0, "ecx", 6),
}
#: State that the system must save for a feature (XCR0), by the beginning of its name.
_STATES = (("avx512", 0xE6), ("amx", 0x60006), ("avx", 0x6), ("fma", 0x6), ("f16c", 0x6))
#: LLVM's feature -> word and bit of what the kernel tells (AT_HWCAP, AT_HWCAP2).
_HWCAP: dict[str, tuple[str, int]] = {
    "lse": ("AT_HWCAP", 8),
    "fullfp16": ("AT_HWCAP", 10),
    "dotprod": ("AT_HWCAP", 20),
    "sve": ("AT_HWCAP", 22),
    "fp16fml": ("AT_HWCAP", 23),
    "sve2": ("AT_HWCAP2", 1),
    "i8mm": ("AT_HWCAP2", 13),
    "bf16": ("AT_HWCAP2", 14),
}

_X86_CODE = """\
#include <cpuid.h>

static int cpu_has(unsigned leaf, unsigned subleaf, int reg, unsigned bit, uint64_t state) {
  unsigned r[4] = {0, 0, 0, 0};
  if (!__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) || !(r[reg] >> bit & 1))
    return 0;
  if (!state) return 1;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (((uint64_t)high << 32 | low) & state) == state;
}
"""
_TILES_CODE = """\
#include <sys/syscall.h>
#include <unistd.h>

/* A process that uses tiles unasked is killed: arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA. */
static int cpu_permits_tiles(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }
"""
_ARM_CODE = """\
#include <sys/auxv.h>

static int cpu_has(unsigned long word, unsigned bit) { return getauxval(word) >> bit & 1; }
"""


def definitions(family: str, features: Sequence[str]) -> str:
    """The C functions that :func:`condition` calls.

    Args:
        family: ``x86_64`` or ``aarch64``.
        features: all that are asked for.
    """
    if family != X86:
        return _ARM_CODE
    return _X86_CODE + (_TILES_CODE if any(f.startswith("amx") for f in features) else "")


def condition(family: str, features: Sequence[str]) -> str:
    """A C expression that is true if the chip has all of these.

    Args:
        family: ``x86_64`` or ``aarch64``.
        features: LLVM's names.
    """
    if family != X86:
        parts = [f"cpu_has({_HWCAP[name][0]}, {_HWCAP[name][1]})" for name in features]
        return " &&\n         ".join(parts) or "1"
    registers = {"eax": 0, "ebx": 1, "ecx": 2, "edx": 3}
    parts = []
    for name in features:
        leaf, subleaf, register, bit = _CPUID[name]
        state = next((mask for start, mask in _STATES if name.startswith(start)), 0)
        parts.append(f"cpu_has({leaf:#x}, {subleaf}, {registers[register]}, {bit}, {state:#x})")
    if any(name.startswith("amx") for name in features):
        parts.append("cpu_permits_tiles()")
    return " &&\n         ".join(parts) or "1"
